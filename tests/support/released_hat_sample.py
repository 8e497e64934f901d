"""The reference numbers of Chalkidis et al. 2022's public code, and models of ours with its weights."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from building import PAD, Vocabulary, build
from commands import REPOSITORY
from torch import Tensor

from hat_fairseq.weights.released_hat import HEAD, convert

DATA = {
    name: torch.from_numpy(array)
    for name, array in np.load(REPOSITORY / "tests/samples/chalkidis_hat_tiny.npz").items()
}
TOKENS = DATA["input_ids"]
REAL = TOKENS.ne(PAD)
FLAGS = (
    "--layout S|SD|D|SD --segment-length 8 --max-segments 4 --encoder-embed-dim 32 --encoder-ffn-embed-dim 64 "
    "--encoder-attention-heads 4 --layer-norm-eps 1e-12 --pool-padded-segments --pooling "
)
NAMES = [
    "MaskedLM",
    "SequenceClassification[pooling=max]",
    "SequenceClassification[pooling=attentive]",
    "SequentialSentenceClassification",
    "MultipleChoice",
]
KINDS = {"S": (True, False), "SD": (True, True), "D": (False, True)}
CONFIG = {
    "encoder_layout": {
        str(number): dict(zip(("sentence_encoder", "document_encoder"), KINDS[kind], strict=True))
        for number, kind in enumerate(["S", "SD", "D", "SD"])
    },
    "max_sentences": 4, "hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "layer_norm_eps": 1e-12,
    "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1, "hidden_act": "gelu", "vocab_size": 97,
    "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "type_vocab_size": 1,
}  # fmt: skip


def state(name: str) -> dict[str, Tensor]:
    """The state_dict of one of their classes."""
    prefix = f"{name}/state/"
    return {key.removeprefix(prefix): tensor for key, tensor in DATA.items() if key.startswith(prefix)}


def release(folder: Path, name: str = "MaskedLM", **changes: object) -> Path:
    """A folder as `save_pretrained` writes it."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIG | changes))
    torch.save(state(name), folder / "pytorch_model.bin")
    return folder


def model_for(weights: dict[str, Tensor], flags: str) -> Any:
    """A model of ours with the head that a state under their names has."""
    model = build("hierarchical_transformer", flags, Vocabulary(97, mask=True)).eval()
    if "classifier.weight" in weights:
        level = "segment" if "sentencizer.dense.weight" in weights else "document"
        model.register_classification_head(HEAD, num_classes=len(weights["classifier.weight"]), level=level)
    return model


def imported(name: str, pooling: str = "max", flags: str = "", segment_positions: bool = True) -> Any:
    """A model of ours with the weights of one of their classes, every tensor of either in the other."""
    weights = state(name)
    model = model_for(weights, FLAGS + pooling + flags)
    converted = convert(weights, CONFIG, "add" if segment_positions else "none").model
    assert converted.keys() == {key for key in model.state_dict() if not key.endswith("_fingerprint")}
    model.load_state_dict(converted)
    return model


def largest_difference(one: Tensor, other: Tensor) -> float:
    assert one.shape == other.shape
    return float((one - other).abs().max())
