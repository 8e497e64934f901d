"""The released Hierarchical Attention Transformers (Chalkidis et al. 2022) for `hierarchical_transformer`, and back.

Theirs repeat the table of segment positions in every layer that uses it and the embedding as the output layer, and name
a head after its purpose. Ours have each of these once.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import Tensor

from .released_hat_config import ARCHITECTURE, as_flags, head_settings, read_settings
from .rename import Converted, RenameTable, rename_state
from .roberta import LAYER, LM_HEAD
from .target import meta_model, vocabulary_rows

HEAD = "sentence_classification_head"  # what fairseq's sentence_prediction calls its head
PREFIX = "hi_transformer."  # of every model with a head; the bare one has none
KINDS = {"sentence_encoder": "segment_wise", "document_encoder": "cross_segment"}
MODULES = LM_HEAD | {
    "embeddings.word_embeddings": "encoder.embed_tokens",
    "embeddings.position_embeddings": "encoder.embed_positions",
    "embeddings.token_type_embeddings": "encoder.embed_token_type",
    "embeddings.LayerNorm": "encoder.layernorm_embedding",
    "encoder.layer.{}.position_embeddings": "encoder.segment_positions",
    "pooler.attentive_pooling.lin_proj": f"classification_heads.{HEAD}.pooling.projection",
    "pooler.attentive_pooling.v": f"classification_heads.{HEAD}.pooling.score",
    "classifier": f"classification_heads.{HEAD}.out_proj",
}
for theirs, ours in LAYER.items():
    MODULES |= {f"encoder.layer.{{}}.{kind}.{theirs}": f"encoder.layers.{{}}.{KINDS[kind]}.{ours}" for kind in KINDS}
EMBEDDING, OUTPUT = "encoder.embed_tokens.weight", "encoder.lm_head.weight"
SEGMENTS = "encoder.segment_positions.weight"
REPEATED = re.compile(r"encoder\.layer\.\d+\.position_embeddings\.weight")
COPIES = {"lm_head.decoder.weight": EMBEDDING, "lm_head.decoder.bias": "encoder.lm_head.bias"}


def table(pooled: bool) -> RenameTable:
    """Names of all tensors; `pooled`: the classification head reads a document, not each segment."""
    dense = "pooler.dense" if pooled else "sentencizer.dense"
    return RenameTable(MODULES | {dense: f"classification_heads.{HEAD}.dense"}, COPIES)


def convert(weights: dict[str, Tensor], config: dict[str, Any], segment_positions: str = "none") -> Converted:
    """A release under our names, with the flags that compute what its weights were trained to compute.

    Args:
        segment_positions: `add` keeps the table of segment positions. The code that the released weights were trained
            with did not use it.

    Raises:
        ValueError: a tensor is unknown, missing or of another shape, or copies of one tensor differ.
    """
    weights = {name.removeprefix(PREFIX): tensor for name, tensor in weights.items()}
    weights.pop("embeddings.position_ids", None)  # consecutive numbers, no weights
    if segment_positions == "none":
        weights = {name: tensor for name, tensor in weights.items() if not REPEATED.fullmatch(name)}
    rows = vocabulary_rows(weights, ("embeddings.word_embeddings.weight",), config)
    settings = read_settings(config, weights, segment_positions)
    head = head_settings(weights)
    start = as_flags({"arch": ARCHITECTURE} | settings | ({} if head["task"] == "masked_lm" else head))
    model: Any = meta_model(start, weights, rows)
    segments = head["task"] == "segment_classification"
    if head["task"] != "masked_lm":
        classes, of = len(weights["classifier.weight"]), "segment" if segments else "document"
        with torch.device("meta"):
            model.register_classification_head(HEAD, num_classes=classes, of=of)
    state = rename_state(weights, table(pooled=not segments), model, optional="encoder.lm_head.")
    return Converted(state, [start], architecture={"arch": ARCHITECTURE} | settings | head)


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
    names, released = table(pooled), {}
    for name, tensor in state.items():
        if name in (OUTPUT, SEGMENTS) or name.endswith("_fingerprint"):
            continue
        theirs = names.theirs(name)
        if theirs is None:
            raise ValueError(f"unknown tensor {name} {list(tensor.shape)}: the released models have no such tensor")
        released[theirs] = tensor
    segments = state.get(SEGMENTS, state[EMBEDDING].new_zeros(max_segments + 1, state[EMBEDDING].size(1)))
    for number in {name.split(".")[2] for name in released if ".document_encoder." in name}:
        released[f"encoder.layer.{number}.position_embeddings.weight"] = segments
    first = len(state["encoder.embed_positions.weight"]) - segment_length
    released["embeddings.position_ids"] = torch.arange(first, first + segment_length).repeat(max_segments)[None]
    if OUTPUT in state:
        released |= {copy: state[name] for copy, name in COPIES.items()}
    return {PREFIX + n if n.startswith(("encoder.", "embeddings.")) else n: t for n, t in released.items()}
