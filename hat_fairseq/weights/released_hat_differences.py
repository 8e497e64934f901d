"""The models for which the authors' code (Chalkidis et al. 2022) would compute something else than ours.

Settings that no class of theirs has are refused. A difference on some documents is refused unless it is accepted by its
name. Everything else is a matter of how their model is called, and is printed.
"""

from collections.abc import Mapping
from typing import Any

CLASSES = {  # what a head is about -> their class
    None: "HATForMaskedLM",
    "document": "HATForSequenceClassification",
    "segment": "HATModelForSequentialSentenceClassification",
    "choice": "HATForMultipleChoice",
}
LAST = 128  # their pooling `last` reads this token, counted from the end, whatever the length of a segment


def check_expressible(values: Mapping[str, Any], head: str | None) -> None:
    """ValueError for settings that no class of theirs has; `head`: what the head is about, None for words."""
    if head not in CLASSES:
        raise ValueError(f"a head of each {head}: the authors' classes for it cannot be constructed")
    if str(values["activation_fn"]) != "gelu":
        raise ValueError(f"--activation-fn {values['activation_fn']}: the authors' code has gelu only; train with it")
    pooling = str(values["pooling"])
    reads_last = pooling == "last" and values["segment_length"] != LAST
    if head in ("document", "choice") and (pooling == "mean" or reads_last):
        why = f"reads the token {LAST} from the end" if reads_last else "does not exist"
        raise ValueError(
            f"--pooling {pooling}: in the authors' code it {why}; train the head with --pooling max, attentive or first"
        )


def refuse_differences(values: Mapping[str, Any], head: str | None, accepted: list[str]) -> list[str]:
    """Where their code computes something else on some documents: a line about each difference that is accepted.

    Raises:
        ValueError: another difference, with how to avoid it; or an accepted name that is none.
    """
    found, length = {}, values["segment_length"]  # name -> what is lost and how to avoid it
    if str(values["segment_by"]) == "marker":
        found["segment-by"] = (
            f"their model cuts after every {length} tokens, not at <s>: train with --segment-by length; or pad each "
            f"segment to {length} tokens before the model, as their tokenizer does with given segments"
        )
    elif head == "segment":
        found["segment-by"] = (
            f"their head reads the first of every {length} tokens, ours every <s>: train with --segment-by marker; or "
            f"have a <s> after every {length} tokens and nowhere else"
        )
    if head in ("document", "choice") and values["pooling"] != "first" and not values["pool_padded_segments"]:
        found["pool-padded-segments"] = (
            "their pooling also reads the segments beyond a document's end: train the head with "
            "--pool-padded-segments; or give their model documents of equally many segments in a batch"
        )
    if surplus := sorted(set(accepted) - found.keys()):
        raise ValueError(f"--accept {' '.join(surplus)}: no difference of this model")
    if not found.keys() <= set(accepted):
        raise ValueError(f"{'. Also, '.join(found.values())}. To export it all the same: --accept {' '.join(found)}")
    return [f"accepted: {difference}" for difference in found.values()]


def instructions(values: Mapping[str, Any], head: str | None) -> list[str]:
    """How to call their model so that it computes what ours does."""
    pooling = f", pooling={str(values['pooling'])!r}" if head in ("document", "choice") else ""
    length = values["segment_length"]
    lines = [
        f"class: {CLASSES[head]}.from_pretrained(DIR{pooling})",
        f"input_ids: a multiple of {length} tokens, padded with 1; a document ends with </s>, which their tokenizer "
        "does not add",
        "attention_mask: 0 in segments of nothing but padding, else 1 (--attend-segment-padding)"
        if values["attend_segment_padding"]
        else "attention_mask: input_ids != 1 (their tokenizer gives 1 for padding inside a segment)",
        "segment positions: added, so their code must be of January 2024 or later; older code, and the code of the "
        "released weights, leaves them out"
        if str(values["segment_positions"]) == "add"
        else "segment positions: a table of zeros, which any version of their code may add",
    ]
    if values["activation_dropout"]:
        lines.append(f"lost, matters in training only: --activation-dropout {values['activation_dropout']}")
    return lines
