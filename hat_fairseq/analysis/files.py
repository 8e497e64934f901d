"""Writes a `Look` as JSON, and files in one step."""

from pathlib import Path
from typing import Any

from torch import Tensor

from ..data.files import at, json_text
from ..data.outputs import atomic_file
from .look import Look


def write(path: Path, content: bytes) -> None:
    """Writes a file in one step, and says so."""
    with atomic_file(path) as file:
        file.write(content)
    print(f"wrote {path} ({len(content):,} bytes)")


def to_json(look: Look) -> str:
    """Returns the texts, the weights of all heads for target sentences and units, and occlusion."""

    def numbers(values: Tensor) -> Any:
        return [round(x, 6) for x in values.tolist()] if values.dim() == 1 else [numbers(x) for x in values]

    names = {"document": look.document, "model": look.model, "unit": look.unit, "note": look.note}
    record: dict[str, Any] = {**names, "source": look.source, "target": look.sentences}
    record["maps"] = [
        {"attention": one.name, "queries": one.queries, "layers": one.layers, "weights": numbers(one.weights)}
        for one in look.by_sentence
    ]
    if (one := look.occlusion) is not None:
        before, change = numbers(one.before), numbers(one.change)
        record["occlusion"] = {"rows": one.rows, "log_probability": before, "change": change}
    with at(f"document {look.document}"):
        return json_text(record, indent=1) + "\n"
