"""What networks and their settings were called in checkpoints from 0.3 on, and in folders of 0.6 and 0.7."""

from collections.abc import Mapping
from typing import Any

NAMES = {  # of networks and architectures
    "hat_evidence": "hat_units",
    "hat_evidence_minilm": "hat_units_minilm",
    "hat_evidence_tiny": "hat_units_tiny",
}
SETTINGS = {
    f"evidence_{name}": f"unit_{name}"
    for name in ("layout", "neighbours", "dim", "ffn_dim", "attention_heads", "dropout")
}
OTHER_DEFAULTS = {"unit_dropout": 0.1}  # of what has one of `NAMES`
CELLS = "pooling_cells"  # had the value `token` from 0.6 on
VERSION = "settings_version"  # 1 in checkpoints from 0.8 on


def todays_name(name: str) -> str:
    """Returns the name that a network or an architecture has today."""
    return NAMES.get(name, name)


def todays(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a network, or of an architecture, under their names of today; ValueError as `check`."""
    check(settings, settings.get(CELLS, "token"))
    stated = {SETTINGS.get(each, each): value for each, value in settings.items() if each != CELLS}
    return (OTHER_DEFAULTS if name in NAMES else {}) | stated


def todays_of_checkpoint(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings in a checkpoint under their names of today; ValueError as `check`."""
    if VERSION not in settings:
        check(settings, settings.get(CELLS, "document"))
    return ({VERSION: 1} if CELLS in settings else {}) | todays(name, settings)


def check(settings: Mapping[str, Any], cells: Any) -> None:
    """Raises ValueError for a model of 0.5 whose pooled keys begin elsewhere."""
    if settings.get("encoder_attention") == "pooling" and cells != "token":
        raise ValueError("its pooled keys begin at multiples of the stride: it runs with hat_fairseq 0.5.0")
