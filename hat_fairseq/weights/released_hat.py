"""The released Hierarchical Attention Transformers (Chalkidis et al. 2022) for `hierarchical_transformer`.

A release repeats the table of segment positions in every layer that uses it, and the embedding as the output layer.
Here each is stored once. The settings of a release are a `config.json`; they become flags of fairseq-train.
"""

import re
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..data.dictionary import LABELS_FINGERPRINT, PAD, fingerprint_of_labels
from ..model_folder import OTHER_PROBLEMS
from . import roberta
from .rename import Converted, meta_model
from .tables import Table, by_table, fit

ARCHITECTURE = "hierarchical_transformer"
FIELDS = roberta.SIZES | {  # of the release -> own
    "max_sentences": "max_segments",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
}
# What the authors' code computes, and this package on request only.
QUIRKS = {"attend_segment_padding": True, "pool_padded_segments": True}
REQUIRED = (*FIELDS, "vocab_size")
PARTS = {"sentence_encoder": "S", "document_encoder": "D"}

HEAD = "sentence_classification_head"  # what fairseq's sentence_prediction calls its head
PREFIX = "hi_transformer."  # of every model with a head; the bare one has none
KINDS = {"sentence_encoder": "segment_wise", "document_encoder": "cross_segment"}
MODULES = roberta.OF_LM_HEAD | {
    "embeddings.word_embeddings": "encoder.embed_tokens",
    "embeddings.position_embeddings": "encoder.embed_positions",
    "embeddings.token_type_embeddings": "encoder.embed_token_type",
    "embeddings.LayerNorm": "encoder.layernorm_embedding",
    "encoder.layer.{}.position_embeddings": "encoder.segment_positions",
    "pooler.attentive_pooling.lin_proj": f"classification_heads.{HEAD}.pooling.projection",
    "pooler.attentive_pooling.v": f"classification_heads.{HEAD}.pooling.score",
    "classifier": f"classification_heads.{HEAD}.out_proj",
}
for other, own in roberta.LAYER.items():
    MODULES |= {f"encoder.layer.{{}}.{kind}.{other}": f"encoder.layers.{{}}.{KINDS[kind]}.{own}" for kind in KINDS}
POSITIONS = "embeddings.position_embeddings.weight"
HEAD_PARTS = ("classifier.", "pooler.", "sentencizer.")
REPEATED = re.compile(r"encoder\.layer\.\d+\.position_embeddings\.weight")


def table_of(pooled: bool) -> Table:
    """Returns the names of all tensors; `pooled`: the classification head reads a document, not each segment."""
    dense = "pooler.dense" if pooled else "sentencizer.dense"
    return Table(MODULES | {dense: f"classification_heads.{HEAD}.dense"}, prefixes=(PREFIX,))


def convert(weights: dict[str, Tensor], config: dict[str, Any], segment_positions: str = "none") -> Converted:
    """Returns a release under our names, with the flags that compute what its weights were trained to compute.

    `segment_positions`: `add` keeps the table of segment positions, which the code that the released weights were
    trained with did not use. ValueError as `tables.fit`.
    """
    weights = {name.removeprefix(PREFIX): tensor for name, tensor in weights.items()}
    weights.pop("embeddings.position_ids", None)  # consecutive numbers, no weights
    if segment_positions == "none":
        weights = {name: tensor for name, tensor in weights.items() if not REPEATED.fullmatch(name)}
    settings, report = read_settings(config, weights, segment_positions), []
    if is_left_out(config, weights):
        weights = {name: tensor for name, tensor in weights.items() if not name.startswith(HEAD_PARTS)}
        report.append(
            "skipped the classification head: it gives a number, or several labels at once; no task here does"
        )
    head = head_settings(config, weights)
    segments = head.get("task") == "segment_classification"
    start: list[str] = []
    for name, value in (settings | head).items():
        start += [f"--{name.replace('_', '-')}"] + ([] if value is True else [str(value)])
    model: Any = meta_model(start, weights, config["vocab_size"])
    if head:
        classes, level = len(weights["classifier.weight"]), "segment" if segments else "document"
        with torch.device("meta"):
            model.register_classification_head(HEAD, num_classes=classes, level=level)
    table = table_of(pooled=not segments)
    state = fit(by_table(weights, table, report), table, model, "encoder.lm_head.")
    if head.get("pooling", "attentive") != "attentive":
        report.append(f"--pooling {head['pooling']} is the authors' default; the files do not say how the head pools")
    if head and head["task"] != "multiple_choice":
        report.append(order_labels(state, config))
    if not segments:
        sizes = f"--segment-length {settings['segment_length']} --max-segments {settings['max_segments']}"
        report.append(f"preprocess with: --segments packed {sizes}")
    return Converted(state, [start], report)


def read_settings(config: Mapping[str, Any], weights: Mapping[str, Tensor], segment_positions: str) -> dict[str, Any]:
    """Returns the settings for a release's `config`; a segment is as long as the table of positions."""
    if POSITIONS not in weights:
        raise ValueError(f"1 tensor is missing for this config.json: {POSITIONS}")
    layers = [config["encoder_layout"].get(str(number), {}) for number in range(len(config["encoder_layout"]))]
    if not all(isinstance(layer.get(part), bool) for layer in layers for part in PARTS):
        raise ValueError(f"config.json: encoder_layout must say true or false for {list(PARTS)} of layers 0, 1, ...")
    layout = "|".join("".join(letter for part, letter in PARTS.items() if layer[part]) for layer in layers)
    dropout = config.get("classifier_dropout")
    return {
        "arch": ARCHITECTURE,
        "layout": layout,
        "segment_positions": segment_positions,
        "segment_length": len(weights[POSITIONS]) - PAD - 1,
        "segment_by": "marker",  # their tokenizer begins every segment with <s>
        **{own: config[other] for other, own in FIELDS.items()},
        "pooler_dropout": config["hidden_dropout_prob"] if dropout is None else dropout,
        **QUIRKS,
    }


def is_left_out(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> bool:
    """Returns whether the head in a release's weights is for a task that does not exist here."""
    if "classifier.weight" not in weights:
        return False
    is_number = len(weights["classifier.weight"]) == 1 and "SequenceClassification" in purpose_of(config)
    return is_number or config.get("problem_type") in OTHER_PROBLEMS


def head_settings(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, str]:
    """Returns the task and the pooling of the classification head in a release's weights; nothing without one.

    The files do not say which pooling without parameters it has; these are the defaults of the authors' classes.
    """
    if "classifier.weight" not in weights:
        return {}
    if "sentencizer.dense.weight" in weights:
        return {"task": "segment_classification"}
    is_choice = len(weights["classifier.weight"]) == 1 or "MultipleChoice" in purpose_of(config)
    pooling = "attentive" if "pooler.attentive_pooling.v.weight" in weights else "last" if is_choice else "max"
    return {"task": "multiple_choice" if is_choice else "document_classification", "pooling": pooling}


def purpose_of(config: Mapping[str, Any]) -> str:
    """Returns the name of the class that a release is of; an empty string if it does not say so."""
    return str((config.get("architectures") or [""])[0])


def order_labels(state: dict[str, Tensor], config: Mapping[str, Any]) -> str:
    """Puts the classes of a head into the order of data with the labels of `config`; returns a line on them.

    Labels of data are sorted. With the fingerprint a training sees whether its data have these labels. Classes without
    names stay in their order.
    """
    names = config.get("id2label")
    names = names if isinstance(names, Mapping) else {}
    weight, bias = (f"classification_heads.{HEAD}.out_proj.{part}" for part in ("weight", "bias"))
    labels = [str(names.get(str(number), "")) for number in range(len(state[weight]))]
    if "" in labels or labels == [f"LABEL_{number}" for number in range(len(labels))] or len({*labels}) < len(labels):
        return "config.json does not name the labels: class 0 is the first of the sorted labels of your data, and so on"
    order = sorted(range(len(labels)), key=labels.__getitem__)
    state |= {name: state[name][order] for name in (weight, bias)}
    ordered = [labels[number] for number in order]
    state[f"classification_heads.{HEAD}.{LABELS_FINGERPRINT}"] = torch.tensor(fingerprint_of_labels(ordered))
    return f"labels: {', '.join(map(repr, ordered))}; with other labels in the data a training begins with a new head"
