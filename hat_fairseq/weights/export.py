"""Write a trained model as one folder: for all commands, for `hat_fairseq.load` and for transformers.

A model that equals BART or RoBERTa of transformers is written as that; every other one for the classes of
`hat_fairseq.hf`, under its names in fairseq's checkpoints.
"""

import argparse
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..data.checksums import checksums_of
from ..data.dictionary import DICTIONARIES, EOS, SPECIAL_IDS, find_dictionary
from ..data.files import Fields, json_text, parse_object
from ..data.outputs import atomic_directory
from ..data.pipeline import TextPipeline
from ..generation.settings import (
    EXPRESSED,
    OF_A_FOLDER,
    add_generation,
    check_generation,
    for_transformers,
    packaged_options,
    stated_options,
)
from ..model_folder import (
    AUTO_MAP,
    BIN,
    CARD,
    CONFIG,
    FINGERPRINT,
    GENERATION,
    MANIFEST,
    MODEL_TYPE,
    ORIGIN,
    TOKENIZER,
    TOKENIZER_MAP,
    TYPES,
    ModelFolder,
    check_links,
    is_model_folder,
    write_loader,
)
from ..networks import NETWORKS
from ..options import typed
from . import bart, roberta, vector_settings
from .card import card
from .hugging_face import write_weights
from .names import local_path
from .trained import ROLES, Packaged, Trained, is_whole


def add_arguments(parser: argparse.ArgumentParser) -> None:
    text = "the checkpoint of a training or the folder of a model, demo, meeting, or USER/NAME on the Hugging Face Hub"
    parser.add_argument("model", metavar="MODEL", help=text)
    parser.add_argument(
        "--data",
        type=Path,
        metavar="BIN",
        help="the bin directory of the training data (default: the one in the folder of the model)",
    )
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="write the model to this folder")
    parser.add_argument(
        "--score",
        type=Path,
        metavar="FILE",
        help="put the scores of this file, written by hat score --out, in the model card",
    )
    fields = 'set these fields in the front matter of the model card, e.g. \'{"license": "mit"}\'; they take precedence'
    parser.add_argument("--card", default="{}", metavar="JSON", help=fields)
    parser.add_argument("--half", action="store_true", help="store fp16, half as large; models still compute in fp32")
    parser.add_argument("--overwrite", action="store_true", help="replace a folder that this command wrote")
    add_generation(parser, "those of the folder, or fairseq's", OF_A_FOLDER)


def main(args: argparse.Namespace) -> int:
    """Loads a checkpoint with its data, and writes the folder."""
    stated, chosen = stated_options(args), parse_object(args.card, "--card")
    scores = dict(Fields.read(Path(args.score)).record) if args.score else None
    model = Path(local_path(args.model))
    if os.pathsep in args.model and not model.exists():
        raise ValueError(f"{args.model} is an ensemble, and hat export writes one model: give one")
    if args.data is None and not is_model_folder(model):
        raise ValueError(f"{args.model} is no folder of a model: give --data, the bin directory of its training")
    for folder in filter(None, [model if is_model_folder(model) else None, args.data]):
        check_links(folder)
    data = args.data or ModelFolder.open(model).data
    kind = TextPipeline.load(data).kind  # an error there comes before the long steps
    if is_model_folder(model):
        ModelFolder.open(model).check_has_classes(getattr(kind, "names_labels", False))
        check_classes(ModelFolder.open(model))
    if args.out.exists() and not is_model_folder(args.out):
        raise ValueError(f"--out {args.out} exists and is no folder of hat export; choose another directory")
    for read in (model, data):
        if read.resolve().is_relative_to(args.out.resolve()):
            raise ValueError(f"--out {args.out} is also an input of this command; choose another directory")
    with atomic_directory(args.out, MANIFEST, args.overwrite) as folder:
        trained = load(model, args.data)
        if stated and not trained.writes_texts:
            raise ValueError(f"{typed(next(iter(stated)))} is for models that write texts; remove it")
        packaged = packaged_options(model) if trained.writes_texts else {}
        check_generation(stated, packaged)
        options = packaged | stated
        lines = write_folder(folder, args.out.resolve().name, trained, args.half, options, chosen, scores)
    print(*lines, sep="\n")
    print(f"wrote {args.out}")
    return 0


def load(model: Path, data: Path | None) -> Trained:
    """Loads a model with its data; through fairseq unless it is a whole folder with the data in it."""
    if data is None and is_whole(folder := ModelFolder.open(model)):
        return Packaged.of(folder)
    return Trained.load(model, data or ModelFolder.open(model).data)


def check_classes(folder: ModelFolder) -> None:
    """Raises ValueError for a head that has not as many classes as the training data."""
    trained, classes = folder.trained_labels(), folder.head.get("classes")
    if trained and folder.head.get("level") == "document" and classes not in (1, len(trained)):
        raise ValueError(
            f"{folder.path}: transformers has given it {classes} classes, and its training data had {len(trained)}; "
            "hat export cannot write it anew, but all commands and transformers read the folder as it is"
        )


def write_folder(
    folder: Path,
    name: str,
    trained: Trained,
    half: bool = False,
    generation: dict[str, Any] | None = None,
    chosen: dict[str, Any] | None = None,
    scores: dict[str, Any] | None = None,
) -> list[str]:
    """Writes the files of a model; returns lines about them.

    Args:
        name: of the model, in its card.
        half: store fp16.
        generation: fairseq's options for those who give none.
        chosen: fields of the front matter of the card, which win.
        scores: what `hat score --out` wrote, for the card.
    """
    rename, config = layout(trained)
    state, generation = trained.state(), generation or {}
    weights = {own: tensor for own, tensor in state.items() if not own.endswith(FINGERPRINT)}
    names = {own: rename(first) for own, first in first_names(weights).items()}
    tensors = {names[own]: stored(own, tensor, half) for own, tensor in weights.items()}
    count = f"{sum(each.numel() for each in trained.model.parameters()):,} parameters"
    lines = [f"{len(tensors)} tensors, {count}, {'fp16, ' if half else ''}as {config['architectures'][0]}"]
    if config["model_type"] == "roberta":  # the row of the token type, which fairseq does not have
        tensors[TYPES] = torch.zeros(1, config["hidden_size"])
    write_weights(folder, tensors)
    (folder / CONFIG).write_text(as_json(config), encoding="utf-8")
    if trained.writes_texts:
        lines += write_generation(folder, generation, trained.positions[1], config["model_type"])
    others = {option: value for option, value in generation.items() if option not in EXPRESSED}
    fingerprints = {own: tensor.tolist() for own, tensor in state.items() if own.endswith(FINGERPRINT)}
    origin = {"updates": trained.updates, **trained.recorded(), "names": names, "fingerprints": fingerprints}
    (folder / ORIGIN).write_text(as_json(origin | {"generation": others}), encoding="utf-8")
    lines.append(write_data(folder, trained, ROLES in state))
    if trained.folder is not None:
        vector_settings.keep(trained.folder.path, folder)
    (folder / CARD).write_text(card(name, trained, half, chosen or {}, scores), encoding="utf-8")
    (folder / MANIFEST).write_text(as_json(checksums_of(folder)), encoding="utf-8")
    return lines


def stored(name: str, tensor: Tensor, half: bool) -> Tensor:
    """Returns a tensor as it is written; ValueError for values that fp16 does not have."""
    rounded = tensor.half() if half and tensor.is_floating_point() else tensor
    if not torch.equal(rounded.isfinite(), tensor.isfinite()):
        raise ValueError(f"{name} has values up to {float(tensor.abs().max()):g}, too large for fp16: no --half")
    return rounded


def first_names(state: dict[str, Tensor]) -> dict[str, str]:
    """Returns for each name the first one of the same tensor; tied weights have several."""
    first = dict[Any, str]()
    return {
        name: first.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
        for name, tensor in state.items()
    }


def layout(trained: Trained) -> tuple[Callable[[str], str], dict[str, Any]]:
    """Returns the name of each tensor in the folder, and config.json."""
    if trained.network not in NETWORKS:  # of fairseq itself
        return str, {
            "architectures": [type(trained.model).__name__],
            "model_type": "",
        }
    description, positions = trained.description(), trained.positions
    settings, heads = description["settings"], description["heads"]
    config: dict[str, Any] = {"vocab_size": description["vocab_size"]} | SPECIAL_IDS
    config |= {"torch_dtype": "float32", "description": description}
    head = next(iter(heads.values())) if len(heads) == 1 else {}
    about_documents = head.get("level") == "document"
    labels = head.get("labels") or [f"LABEL_{number}" for number in range(head["classes"] if about_documents else 0)]
    if labels:
        config |= {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if trained.writes_texts:
        config |= {"is_encoder_decoder": True, "decoder_start_token_id": EOS}
        if not description["num_roles"] and len({*positions}) == 1 and bart.SAME.items() <= settings.items():
            return bart.written_name, config | bart.written_config(settings, positions[0])
    purpose = "ForSequenceClassification" if about_documents else "Model" if heads else "ForMaskedLM"
    plain_head = not heads or (about_documents and head["inner_dim"] == settings["encoder_embed_dim"])
    plain = (
        trained.network == "hat_roberta" and roberta.SAME.items() <= settings.items()
    )  # others have these settings too
    if plain and plain_head:
        return roberta.written_name, config | roberta.written_config(settings, purpose)
    purpose = purpose_of(head) if head else purpose
    del config["description"]  # whose keys are those of `hf.HatConfig`
    return str, config | {
        "architectures": ["HatForConditionalGeneration" if trained.writes_texts else f"Hat{purpose}"],
        "model_type": MODEL_TYPE,
        "auto_map": AUTO_MAP,
        **description,
        "tie_word_embeddings": False,  # a table that is used twice is one parameter
    }


def purpose_of(head: dict[str, Any]) -> str:
    """Returns how the name of the class for a head ends in `hf`, which has none for pairs and for paragraphs."""
    if head["level"] == "document":
        return "ForMultipleChoice" if head["classes"] == 1 else "ForSequenceClassification"
    if head["level"] == "token":
        of_answers = head["classes"] == 2 and "labels" not in head
        return "ForQuestionAnswering" if of_answers else "ForTokenClassification"
    return "ForSegmentClassification" if head["level"] in ("segment", "evidence") else "Model"


def write_generation(folder: Path, options: dict[str, Any], positions: int, model_type: str) -> list[str]:
    """Writes how the model generates for transformers; returns what is different there."""
    (folder / GENERATION).write_text(as_json(for_transformers(options, positions)), encoding="utf-8")
    others = [option for option, value in options.items() if option not in EXPRESSED]
    differs = "differs: {} is an option of hat generate alone; transformers generates without it".format
    lines = [differs(typed(option)) for option in others]
    if model_type == "bart":
        lines.append("differs: transformers' BART counts the </s> that ends a text of the maximum length as certain")
    return lines


def write_data(folder: Path, trained: Trained, uses_roles: bool) -> str:
    """Writes dictionaries, pipeline and BPE, and the tokenizer that reads them; returns a line about it."""
    for path in dictionaries(trained):
        copy = folder / BIN / path.relative_to(trained.data)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    pipeline, has_mask = TextPipeline.load(trained.data), trained.has_mask
    pipeline.save(folder / BIN)
    tokenizer = {"tokenizer_class": "HatTokenizer", "auto_map": TOKENIZER_MAP, "limit": trained.positions[0]}
    tokenizer |= {"uses_roles": uses_roles, "has_mask": has_mask}
    (folder / TOKENIZER).write_text(as_json(tokenizer), encoding="utf-8")
    write_loader(folder)
    return f"tokenizer: HatTokenizer, BPE {pipeline.bpe.kind}, splitter {pipeline.settings.splitter}"


def dictionaries(trained: Trained) -> list[Path]:
    """Lists the dictionaries that the task has read: a folder may have other files that are named so."""
    stated = (getattr(trained.cfg["task"], name, None) for name in ("source_lang", "target_lang", "role_stream"))
    read = {trained.data / f"dict.{stream}.txt" for stream in stated}
    read |= {find_dictionary(trained.data, stream) or trained.data for stream in DICTIONARIES}
    return [path for path in [*trained.data.glob("dict*.txt"), *trained.data.glob("*/dict.txt")] if path in read]


def as_json(value: Any) -> str:
    return json_text(value, indent=1) + "\n"
