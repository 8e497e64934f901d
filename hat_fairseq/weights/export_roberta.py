"""`hat export` of an encoder: as RoBERTa if it equals RoBERTa, else with our code in the folder."""

import argparse
from typing import Any

import torch

from .export_folder import Trained, renamed, write_folder
from .export_hat import PLAIN, common, settings_of
from .hugging_face import SPECIAL_IDS
from .roberta import OURS, TABLE, TYPES, UNUSED_POSITIONS
from .roberta import SIZES as ROBERTA_SIZES

ROBERTA = PLAIN | {
    "no_scale_embedding": True,
    "activation_fn": "gelu",
    "activation_dropout": 0.0,
    "untie_weights_roberta": False,
}
HEADS, LM_HEAD = "classification_heads.", "encoder.lm_head."
WORDS, DOCUMENT = "ForMaskedLM", "ForSequenceClassification"


def export(args: argparse.Namespace, checkpoint: dict[str, Any]) -> None:
    """Writes the folder of an encoder with a masked-LM head or with one head about documents."""
    if args.generation is not None:
        raise ValueError("--generation is for models that write texts; remove it")
    trained = Trained.load(args.path, args.data)
    model, settings = trained.model, settings_of(trained.model)
    heads = {name: head.of for name, head in model.classification_heads.items()}
    if len(heads) > 1 or "document" not in (*heads.values(), "document" if not heads else None):
        about = ", ".join(f"{name} about a {of}" for name, of in heads.items())
        raise ValueError(f"{args.path} has the head {about}: only words and one head about documents are exported")
    purpose, width = DOCUMENT if heads else WORDS, settings["encoder_embed_dim"]
    positions = model.encoder.sentence_encoder.embed_positions.max_positions  # representatives may take some
    head = next(iter(model.classification_heads.values()), None)
    inner = width if head is None else len(head.dense.weight)
    plain_head = head is None or (settings["pooler_activation_fn"] == "tanh" and inner == width)
    if plain_head and ROBERTA.items() <= settings.items():
        tensors, names = renamed(model, roberta_name)
        tensors[f"roberta.{TYPES}"] = torch.zeros(1, width)  # the row of the token type, which fairseq does not have
        config = roberta_config(settings, positions) | {"architectures": [f"Roberta{purpose}"]}
    else:
        tensors, names = renamed(model, hat_name)
        config = common(settings, f"Hat{purpose}", f"AutoModel{purpose}") | {
            "max_source_positions": positions,
            "num_roles": 0,
            "source_vocab_size": len(trained.task.source_dictionary),
            "classifier_inner_dim": inner,
            "hidden_size": width,
        }
    if head is not None:
        labels = getattr(trained.task, "labels", None) or [f"LABEL_{i}" for i in range(len(head.out_proj.weight))]
        config["id2label"] = {str(number): label for number, label in enumerate(labels)}
        config["label2id"] = {label: number for number, label in enumerate(labels)}
    config |= {"vocab_size": len(trained.task.source_dictionary), **SPECIAL_IDS}
    config["torch_dtype"] = str(next(model.parameters()).dtype)[6:]
    longest = min(model.max_positions(), getattr(trained.task.cfg, "max_positions", None) or positions)
    write_folder(args.out, trained, tensors, names, config, None, longest)


def hat_name(ours: str) -> str:
    """The name of a tensor in our classes."""
    if ours.startswith(HEADS):
        return "classifier." + ours.split(".", 2)[2]
    return ours.replace(OURS, "encoder.", 1).replace(LM_HEAD, "lm_head.", 1)


def roberta_name(ours: str) -> str:
    """RoBERTa's name of a tensor."""
    if ours.startswith(HEADS):
        return hat_name(ours)
    theirs = TABLE.theirs(ours)
    assert theirs is not None, ours
    return theirs if theirs.startswith("lm_head.") else f"roberta.{theirs}"


def roberta_config(settings: dict[str, Any], positions: int) -> dict[str, Any]:
    """config.json of a RoBERTa."""
    return {
        "model_type": "roberta",
        **{theirs: settings[ours] for theirs, ours in ROBERTA_SIZES.items()},
        "num_hidden_layers": settings["encoder_layers"],
        "hidden_act": "gelu",
        "hidden_dropout_prob": settings["dropout"],
        "attention_probs_dropout_prob": settings["attention_dropout"],
        "classifier_dropout": settings["pooler_dropout"],
        "max_position_embeddings": positions + UNUSED_POSITIONS,
        "type_vocab_size": 1,
    }
