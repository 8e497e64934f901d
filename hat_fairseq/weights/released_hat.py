"""Names of tensors: the released Hierarchical Attention Transformers (Chalkidis et al. 2022) and ours, both ways.

Theirs are Hugging Face's: the table of segment positions stands in every layer that uses it, the output layer is a copy
of the embedding table, and a head is called by what it does. Ours are fairseq's, and have each of these once.
"""

from __future__ import annotations

import re

import torch
from torch import Tensor

from .roberta import LAYER

HEAD = "sentence_classification_head"  # what fairseq's sentence_prediction calls its head
PREFIX = "hi_transformer."  # of every model with a head; the bare one has none

EMBEDDINGS = {
    "embeddings.word_embeddings": "encoder.embed_tokens",
    "embeddings.position_embeddings": "encoder.embed_positions",
    "embeddings.token_type_embeddings": "encoder.embed_token_type",
    "embeddings.LayerNorm": "encoder.layernorm_embedding",
}
KINDS = {"sentence_encoder": "segment_wise", "document_encoder": "cross_segment"}
HEADS = {
    "lm_head.dense": "encoder.lm_head.dense",
    "lm_head.layer_norm": "encoder.lm_head.layer_norm",
    "lm_head": "encoder.lm_head",
    "pooler.dense": f"classification_heads.{HEAD}.dense",
    "sentencizer.dense": f"classification_heads.{HEAD}.dense",
    "pooler.attentive_pooling.lin_proj": f"classification_heads.{HEAD}.pooling.projection",
    "pooler.attentive_pooling.v": f"classification_heads.{HEAD}.pooling.score",
    "classifier": f"classification_heads.{HEAD}.out_proj",
}
TABLE, OUTPUT = "encoder.embed_tokens.weight", "encoder.lm_head.weight"
SEGMENTS = "encoder.segment_positions.weight"
REPEATED = re.compile(r"encoder\.layer\.\d+\.position_embeddings\.weight")
COPIES = {"lm_head.decoder.weight": TABLE, "lm_head.decoder.bias": "encoder.lm_head.bias"}


def our_name(theirs: str) -> str | None:
    """Our name of a tensor; None if we have none."""
    stem, _, kind = theirs.removeprefix(PREFIX).rpartition(".")
    layer = re.fullmatch(r"encoder\.layer\.(\d+)\.(\w+)\.(.+)", stem)
    if layer and layer[2] in KINDS and layer[3] in LAYER:
        return f"encoder.layers.{layer[1]}.{KINDS[layer[2]]}.{LAYER[layer[3]]}.{kind}"
    if REPEATED.fullmatch(theirs.removeprefix(PREFIX)):
        return SEGMENTS
    ours = EMBEDDINGS.get(stem) or HEADS.get(stem)
    return f"{ours}.{kind}" if ours else None


def from_hugging_face(state: dict[str, Tensor], segment_positions: bool = False) -> dict[str, Tensor]:
    """A released state under our names.

    Args:
        state: tensors of `pytorch_model.bin`.
        segment_positions: keep the table of segment positions (`--segment-positions add`). The code that the released
            weights were trained with did not use it.
    Raises:
        ValueError: an unknown tensor, or copies that differ.
    """
    converted: dict[str, Tensor] = {}
    for theirs, tensor in state.items():
        if theirs.endswith("embeddings.position_ids"):  # numbers in order, no weights
            continue
        name = COPIES.get(theirs) or our_name(theirs)
        if name is None:
            raise ValueError(f"unknown tensor {theirs} {list(tensor.shape)}: not a hierarchical transformer's")
        if name in converted and not torch.equal(converted[name], tensor):
            raise ValueError(f"{theirs}: differs from the other copies of {name}, which should be one tensor")
        converted[name] = tensor
    if not segment_positions:
        converted.pop(SEGMENTS, None)
    if "encoder.lm_head.bias" in converted:
        converted[OUTPUT] = converted[TABLE]
    return converted


def their_name(ours: str, pooled: bool) -> str | None:
    """The released name of a tensor, without `PREFIX`; None if they have none."""
    stem, _, kind = ours.rpartition(".")
    layer = re.fullmatch(r"encoder\.layers\.(\d+)\.(segment_wise|cross_segment)\.(.+)", stem)
    if layer:
        part = next((theirs for theirs, name in LAYER.items() if name == layer[3]), None)
        side = next(theirs for theirs, name in KINDS.items() if name == layer[2])
        return f"encoder.layer.{layer[1]}.{side}.{part}.{kind}" if part else None
    absent = "sentencizer.dense" if pooled else "pooler.dense"
    stems = {name: theirs for theirs, name in (EMBEDDINGS | HEADS).items() if theirs != absent}
    return f"{stems[stem]}.{kind}" if stem in stems else None


def to_hugging_face(
    state: dict[str, Tensor], max_segments: int, segment_length: int, pooled: bool = True
) -> dict[str, Tensor]:
    """Our state under the released names, for one of the released classes with a head.

    Args:
        state: of a model with at most one classification head, which is called `HEAD`.
        max_segments, segment_length: as in our config. Without a table of segment positions one of zeros is written:
            then their code computes what ours does, whether it adds them or not.
        pooled: False if the classification head reads each segment.
    Raises:
        ValueError: an unknown tensor.
    """
    found: dict[str, Tensor] = {}
    for name, tensor in state.items():
        if name in (OUTPUT, SEGMENTS) or name.endswith("_fingerprint"):
            continue
        theirs = their_name(name, pooled)
        if theirs is None:
            raise ValueError(f"unknown tensor {name} {list(tensor.shape)}: nothing of the released models")
        found[theirs] = tensor
    segments = state.get(SEGMENTS, state[TABLE].new_zeros(max_segments + 1, state[TABLE].size(1)))
    for number in {name.split(".")[2] for name in found if ".document_encoder." in name}:
        found[f"encoder.layer.{number}.position_embeddings.weight"] = segments
    first = len(state["encoder.embed_positions.weight"]) - segment_length
    found["embeddings.position_ids"] = torch.arange(first, first + segment_length).repeat(max_segments)[None]
    if OUTPUT in state:
        found |= {copy: state[name] for copy, name in COPIES.items()}
    return {PREFIX + n if n.startswith(("encoder.", "embeddings.")) else n: t for n, t in found.items()}
