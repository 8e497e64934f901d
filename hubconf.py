"""`torch.hub.load("path/to/this/repository", "hat_fairseq", path="my-model", source="local")` (docs/share.md)."""

from typing import Any

dependencies = ["safetensors", "torch"]


def hat_fairseq(path: str, **options: Any) -> Any:
    """What `hat_fairseq.load` returns for the same arguments."""
    from hat_fairseq import load

    return load(path, **options)
