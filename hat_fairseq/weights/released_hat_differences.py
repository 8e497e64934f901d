"""What the authors' code computes otherwise than a trained `hierarchical_transformer`, and what to do about it.

Chalkidis et al. 2022; their code as it is published. Some of ours cannot be expressed there at all; some can where the
input is laid out in a certain way; the rest has to be said to their code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CLASSES = {  # what a head is about -> their class
    None: "HATForMaskedLM",
    "document": "HATForSequenceClassification",
    "segment": "HATModelForSequentialSentenceClassification",
    "choice": "HATForMultipleChoice",
}
LAST = 128  # where their pooling `last` reads, counted from the end, whatever the length of a segment


@dataclass(frozen=True)
class Difference:
    """One thing that differs on some input: what is lost, and what makes both the same."""

    name: str
    lost: str
    remedy: str


def check_expressible(values: Mapping[str, Any], head: str | None) -> None:
    """ValueError for settings `values` that no class of theirs has; `head`: what the head is about, None for words."""
    if head not in CLASSES:
        raise ValueError(
            f"a head of each {head}: the authors' classes for it cannot be constructed, nothing to export to"
        )
    if str(values["activation_fn"]) != "gelu":
        raise ValueError(f"--activation-fn {values['activation_fn']}: the authors' code has gelu only; train with it")
    pooling = str(values["pooling"])
    reads_last = pooling == "last" and values["segment_length"] != LAST
    if head in ("document", "choice") and (pooling == "mean" or reads_last):
        why = f"reads the token {LAST} from the end" if reads_last else "does not exist"
        raise ValueError(
            f"--pooling {pooling}: in the authors' code it {why}; train the head with --pooling max, attentive or first"
        )


def differences(values: Mapping[str, Any], head: str | None) -> list[Difference]:
    """Where their code computes something else on some documents."""
    found = []
    length = values["segment_length"]
    if str(values["segment_by"]) == "marker":
        found.append(
            Difference(
                "segment-by",
                f"their model cuts after every {length} tokens, not at <s>",
                f"train with --segment-by length; or pad each segment to {length} tokens before the model, as their "
                "tokenizer does with segments that are given",
            )
        )
    elif head == "segment":
        found.append(
            Difference(
                "segment-by",
                f"their head reads the first of every {length} tokens, ours every <s>",
                f"train with --segment-by marker; or have a <s> after every {length} tokens and nowhere else",
            )
        )
    if head in ("document", "choice") and values["pooling"] != "first" and not values["pool_padded_segments"]:
        found.append(
            Difference(
                "pool-padded-segments",
                "their pooling also reads the segments beyond a document's end",
                "train the head with --pool-padded-segments; or give their model documents of equally many segments in "
                "a batch",
            )
        )
    return found


def instructions(values: Mapping[str, Any], head: str | None) -> list[str]:
    """How their model is to be called so that it computes what ours does."""
    pooling = f", pooling={str(values['pooling'])!r}" if head in ("document", "choice") else ""
    lines = [f"class: {CLASSES[head]}.from_pretrained(DIR{pooling})"]
    lines.append(
        f"input_ids: a multiple of {values['segment_length']} tokens, padded with 1; a document ends with </s>, which "
        "their tokenizer does not add"
    )
    if values["attend_segment_padding"]:
        lines.append("attention_mask: 0 in segments of nothing but padding, else 1 (--attend-segment-padding)")
    else:
        lines.append("attention_mask: input_ids != 1 (their tokenizer gives 1 for padding inside a segment)")
    if str(values["segment_positions"]) == "add":
        lines.append(
            "segment positions: added, so their code must be of January 2024 or later; older code, and the one that "
            "comes with the released weights, leaves them out"
        )
    else:
        lines.append("segment positions: a table of zeros, which any version of their code may add")
    if values["activation_dropout"]:
        lines.append(f"lost, matters in training only: --activation-dropout {values['activation_dropout']}")
    return lines
