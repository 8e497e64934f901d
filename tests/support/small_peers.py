"""Small models of transformers with random parameters, and the refusal of folders with another configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from hat_fairseq import cli

ENCODER_SIZES = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 40}


def small_peer(model_class: Any, config: Any) -> Any:
    """A model whose every parameter is random, so that any two tensors that are swapped make a difference."""
    torch.manual_seed(3)
    model = model_class(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def assert_refused(
    release: str, folder: Path, change: dict[str, Any], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`hat import` says `words` of a folder whose config.json is changed, and writes nothing."""
    path, out = folder / "config.json", folder.parent / "refused/model.pt"
    config = path.read_text()
    path.write_text(json.dumps(json.loads(config) | change))
    assert cli.main(["import", release, str(folder), "--out", str(out)]) == 2
    assert words in capsys.readouterr().err
    assert not out.parent.exists()
    path.write_text(config)
