"""`--encoder-family`: the text of a record, and what versions up to 0.7 stated as options of its parts."""

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fairseq.models import ARCH_CONFIG_REGISTRY

from hat_fairseq.hf import HatConfig
from hat_fairseq.networks import NETWORKS
from hat_fairseq.networks.families import FAMILIES, OLD, Family, parse_family, renamed, text_of, usual_text
from hat_fairseq.register import register

register()
# Written by hat-train and hat export of 0.7 for small models, and the record that they mean.
SAVED = json.loads((Path(__file__).parents[1] / "fixtures/settings_of_v0.7.json").read_text(encoding="utf-8"))
BY_HAND = replace(FAMILIES["modernbert"], rotary=10000.0, rotary_local=100.0, kv_heads=1)
MEANT = {
    "modernbert": ("hat_roberta", replace(FAMILIES["modernbert"], rotary=80000.0)),
    "eurobert": ("hat_roberta", replace(FAMILIES["eurobert"], kv_heads=1)),
    "segments": ("hierarchical_transformer", BY_HAND),
    "bart": ("hat_bart", BY_HAND),
}


@pytest.mark.parametrize("name", SAVED)
def test_settings_of_the_last_version_are_read(name: str) -> None:
    """Of a checkpoint as fairseq reads them, after its architecture, and of a folder."""
    network, family = MEANT[name]
    args = Namespace(**SAVED[name]["checkpoint"])
    ARCH_CONFIG_REGISTRY[args.arch](args)
    of_checkpoint, folder = NETWORKS[network].from_args(args), SAVED[name]["folder"]
    of_folder = NETWORKS[network].from_args(Namespace(**folder["settings"]))
    of_transformers = HatConfig.from_dict(folder).network_config(NETWORKS)
    assert of_checkpoint.family == of_folder.family == of_transformers.family == family
    assert of_transformers == of_folder
    others = vars(of_folder).keys() - {"pooling_cells"}
    assert all(getattr(of_checkpoint, each) == getattr(of_folder, each) for each in others)


def test_settings_without_parts_stay() -> None:
    assert renamed({"dropout": 0.1}) == {"dropout": 0.1}
    assert renamed(dict.fromkeys(OLD)) == {}


@pytest.mark.parametrize(
    "parts", [{}, {"kv_heads": 1}, {"rotary": 1.0}, {"rotary": 2e5, "rotary_factor": 4.0, "ffn_bias": False}]
)
@pytest.mark.parametrize("name", FAMILIES)
def test_a_text_is_read_back(parts: dict[str, Any], name: str) -> None:
    family: Any = replace(FAMILIES[name], **parts)
    assert parse_family(text_of(family)) == parse_family(text_of(family, [name])) == family


def test_equal_texts_become_one() -> None:
    assert usual_text("modernbert:rotary=160000:local_layers=1-2,4", 6) == "modernbert:local_layers=1-2,4"
    assert usual_text("modernbert:rotary=160000:local_layers=1-2,4", 5) == "modernbert"
    assert text_of(Family()) == "plain"
