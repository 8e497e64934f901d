"""Restored weights compute the function that they were trained in: settings that change no shape are compared.

A checkpoint that is restored with another number of attention heads, for example, loads without an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairseq.models import ARCH_MODEL_REGISTRY

from .checkpoint_file import CheckpointError

SETTINGS = (
    "encoder_attention_heads",
    "decoder_attention_heads",
    "encoder_normalize_before",
    "decoder_normalize_before",
    "activation_fn",
    "no_scale_embedding",
)


def check_same_function(state: Mapping[str, Any], trainer: Any) -> None:
    """Compares the settings of a checkpoint with those of the model that gets its weights, where both have them.

    Raises:
        CheckpointError: they differ; with the flag.
    """
    saved = state["cfg"].get("model") if state.get("cfg") is not None else None
    if saved is None:  # converted weights
        return
    model = trainer.get_model()
    current = getattr(model, "config", trainer.cfg.model)
    is_same_model = ARCH_MODEL_REGISTRY.get(getattr(saved, "_name", None)) is type(model)
    for name in SETTINGS:
        # a checkpoint has only the flags that were given and those of its architecture; the config has the defaults
        default = getattr(type(current), name, None) if is_same_model else None
        before = _first(getattr(saved, name, None), default)
        now = getattr(current, name, None)
        if before is not None and now is not None and str(before) != str(now):
            raise CheckpointError(
                f"trained with --{name.replace('_', '-')} {before}, and this run has {now}: its weights would compute "
                "another function"
            )


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)
