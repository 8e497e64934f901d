"""What results depend on besides their input: packages, our sources, Python and its Unicode tables.

It is part of the key of each stored block (`data/blocks.py`), is recorded in the manifest of preprocessed data, and has
to be the same on all machines of a cluster.
"""

import platform
import unicodedata
from collections.abc import Iterable
from functools import cache
from hashlib import blake2b
from importlib import metadata
from pathlib import Path

import hat_fairseq

SOURCES = Path(__file__).resolve().parent
PACKAGES = (
    *("torch", "numpy", "fairseq-fixed", "tokenizers", "sentencepiece"),
    *("regex", "langcodes", "sacremoses", "jieba", "sentence-splitter", "pyarrow"),
)


@cache
def versions() -> dict[str, str]:
    """Returns the version of each, ours with a digest of the sources as they are at the first call of a process.

    Local parts such as +cpu are left out.
    """
    installed = {
        "python": platform.python_version(),
        "unicode": unicodedata.unidata_version,
        "hat_fairseq": f"{hat_fairseq.__version__} (sources {digest_of(SOURCES.rglob('*.py'), SOURCES)})",
    }
    for package in PACKAGES:
        try:
            installed[package] = metadata.version(package).partition("+")[0]
        except metadata.PackageNotFoundError:
            installed[package] = "not installed"
    return installed


def digest_of(paths: Iterable[Path], folder: Path) -> str:
    """Returns a digest of the names, relative to the folder, and the contents of some files in it, in any order."""
    digest = blake2b(digest_size=8)
    for path in sorted(paths):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(folder)} {len(content)}\n".encode() + content)
    return digest.hexdigest()
