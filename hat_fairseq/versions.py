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
from itertools import chain
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


def digest(*values: object) -> str:
    """Returns a digest of bytes, and of the `repr` of other values."""
    state = blake2b(digest_size=16)
    for value in values:
        content = value if isinstance(value, bytes) else repr(value).encode()
        state.update(b"%d:" % len(content) + content)
    return state.hexdigest()


def digest_of(paths: Iterable[Path], folder: Path) -> str:
    """Returns a digest of the names, relative to the folder, and the contents of some files in it, in any order."""
    named = ((str(path.relative_to(folder)), path.read_bytes()) for path in sorted(paths))
    return digest(*chain.from_iterable(named))
