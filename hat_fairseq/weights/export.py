"""Write a trained model as a folder that Hugging Face's transformers reads: weights, settings and tokenizer.

A model that equals BART or RoBERTa is written as that; every other one with its own names for the classes of
`hat_fairseq.hf`. `hat import hat_fairseq` reads a folder back.
"""

import argparse
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf
from torch import Tensor

from ..data import dictionary
from ..data.dictionary import EOS, PAD, SPECIAL_IDS
from ..data.files import Fields
from ..data.outputs import atomic_directory, atomic_file
from ..data.pipeline import BPE_FILES, FILE_NAME, TextPipeline
from ..generation.options import DEFAULTS, packaged_options, parse_generation_options
from ..package_files import BIN, bare_checkpoint, is_package
from . import bart, roberta
from .hugging_face import read_json, read_weights, write_weights
from .package import ROLES, Trained, as_json, first_names

# Of fairseq's options those that generation_config.json expresses; all others must be unset or fairseq's default.
EXPRESSED = ("beam", "nbest", "lenpen", "unnormalized", "min_len", "max_len_b", "no_repeat_ngram_size")
FINGERPRINT = "_fingerprint"
ORIGIN = "hat_fairseq.json"
#: Name of each dictionary in the folder, and its places in a `bin` directory.
DICTIONARIES = {f"dict.{stream}.txt": places for stream, places in dictionary.DICTIONARIES.items()}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--to", choices=["hf"], required=True, help="hf: the folder that Hugging Face's classes read")
    parser.add_argument("--path", type=Path, required=True, help="checkpoint or package")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write; it must not exist")
    data = "bin directory of the training: tokenizer, labels (default: that of the package)"
    parser.add_argument("--data", type=Path, metavar="BIN", help=data)
    defaults = "fairseq generation options as JSON, e.g. '{\"beam\": 4}' (default: those of the package)"
    parser.add_argument("--generation", metavar="JSON", help=defaults)


def main(args: argparse.Namespace) -> int:
    """Loads a checkpoint with its data, and writes the folder."""
    if args.data is None and not is_package(args.path):
        raise ValueError(f"{args.path} is no package: give --data, the bin directory of its training")
    trained = Trained.load(args.path, args.data or args.path / BIN)
    generation = None
    if hasattr(trained.model, "decoder"):
        stated = args.generation
        options = parse_generation_options(stated, "--generation") if stated else packaged_options(args.path)
        generation = generation_config(options, trained.model.decoder.max_positions())
    elif args.generation is not None:
        raise ValueError("--generation is for models that write texts; remove it")
    with atomic_directory(args.out) as folder:
        write_folder(folder, trained, generation)
    print(f"wrote {args.out}")
    return 0


def write_folder(folder: Path, trained: Trained, generation: dict[str, Any] | None) -> None:
    """Writes the files and prints what they hold; `generation`: generation_config.json, None without."""
    from ..hf.config import write_loader

    rename, config = layout(trained)
    state = trained.model.state_dict()
    weights = {name: tensor for name, tensor in state.items() if not name.endswith(FINGERPRINT)}
    names = {name: rename(first) for name, first in first_names(weights).items()}
    tensors = {names[name]: tensor for name, tensor in weights.items()}
    if config["model_type"] == "roberta":  # the row of the token type, which fairseq does not have
        tensors[f"roberta.{roberta.TYPES}"] = torch.zeros(1, config["hidden_size"])
    write_weights(folder, tensors)
    dtype = str(next(trained.model.parameters()).dtype).removeprefix("torch.")
    (folder / "config.json").write_text(as_json(config | SPECIAL_IDS | {"torch_dtype": dtype}), encoding="utf-8")
    if "auto_map" in config:
        write_loader(folder)
    if generation is not None:
        (folder / "generation_config.json").write_text(as_json(generation), encoding="utf-8")
    origin = {
        "updates": trained.updates,
        **trained.recorded(),
        "names": names,
        "fingerprints": {name: t.tolist() for name, t in state.items() if name.endswith(FINGERPRINT)},
        "data": copy_data(trained.data, folder),
    }
    (folder / ORIGIN).write_text(as_json(origin), encoding="utf-8")
    parameters = sum(tensor.numel() for tensor in tensors.values())
    print(f"{len(tensors)} tensors, {parameters:,} parameters, as {config['architectures'][0]}")
    if generation is not None and config["model_type"] == "bart":
        print("differs: transformers' BART counts the </s> that ends a text of the greatest length as certain")
    print(write_tokenizer(folder, trained, ROLES in state))


def layout(trained: Trained) -> tuple[Callable[[str], str], dict[str, Any]]:
    """Returns the name of each tensor in the folder, and config.json."""
    from ..hf.config import AUTO_MAP, HatConfig

    description, positions = trained.description(), trained.positions
    settings, heads = description["settings"], description["heads"]
    numbers: dict[str, Any] = {"vocab_size": description["vocab_size"]}
    head = next(iter(heads.values())) if len(heads) == 1 else {}
    about_documents = head.get("level") == "document"
    if about_documents:
        labels = head.get("labels") or [f"LABEL_{number}" for number in range(head["classes"])]
        numbers |= {"id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)}}
    if len(positions) == 2:
        numbers |= {"is_encoder_decoder": True, "decoder_start_token_id": EOS}
        if not description["num_roles"] and len({*positions}) == 1 and bart.SAME.items() <= settings.items():
            return bart.written_name, numbers | bart.written_config(settings, positions[0])
    purpose = "ForSequenceClassification" if about_documents else "Model" if heads else "ForMaskedLM"
    plain_head = not heads or (about_documents and head["inner_dim"] == settings["encoder_embed_dim"])
    if roberta.SAME.items() <= settings.items() and plain_head and len(positions) == 1:
        return roberta.written_name, numbers | roberta.written_config(settings, purpose)
    return str, numbers | {
        "architectures": ["HatForConditionalGeneration" if len(positions) == 2 else f"Hat{purpose}"],
        "model_type": HatConfig.model_type,
        "auto_map": AUTO_MAP,
        **description,
        "tie_word_embeddings": False,  # a table that is used twice is one parameter
    }


def generation_config(options: dict[str, Any], positions: int) -> dict[str, Any]:
    """fairseq's options of generation, and its defaults, as those of transformers; ValueError for one it does not have.

    Both divide a score by the length with `</s>` to the power of lenpen. transformers counts the first token, the
    `</s>` that starts every text, as part of the length; fairseq does not.
    """
    for name, value in options.items():
        if name not in EXPRESSED and value != DEFAULTS[name]:
            raise ValueError(f"generation option {name} {value!r}: transformers has no such option; leave it out")
    values = DEFAULTS | options
    longest, least = min(int(values["max_len_b"]), positions - 1), values["min_len"]
    if least > longest:
        raise ValueError(f"generation option min_len {least} is more than the longest text, {longest} tokens")
    return {
        **SPECIAL_IDS,
        "decoder_start_token_id": EOS,
        "forced_eos_token_id": EOS,
        "suppress_tokens": [PAD],  # padding is never generated
        "num_beams": values["beam"],
        "num_return_sequences": values["nbest"],
        "early_stopping": True,  # a document is finished with as many hypotheses as beams
        "length_penalty": 0.0 if values["unnormalized"] else float(values["lenpen"]),
        "min_length": least + 1,
        "max_length": longest + 2,
        "no_repeat_ngram_size": values["no_repeat_ngram_size"],
    }


def copy_data(data: Path, folder: Path) -> dict[str, str]:
    """Copies dictionaries, pipeline and BPE into the folder; returns where the bin directory has each."""
    bpe = {name: (name,) for files in BPE_FILES.values() for name in files}
    names = {FILE_NAME: (FILE_NAME,), **bpe, **DICTIONARIES}
    copied = {}
    for name, places in names.items():
        if place := next((place for place in places if (data / place).is_file()), None):
            copied[name] = place
            shutil.copyfile(data / place, folder / name)
    return copied


def write_tokenizer(folder: Path, trained: Trained, uses_roles: bool) -> str:
    """Writes the tokenizer beside the files of its data; returns a line about it."""
    from ..hf.tokenization import HatTokenizer

    if not (folder / FILE_NAME).is_file():
        return f"tokenizer: none, because {trained.data} was not made by hat preprocess"
    pipeline, has_mask = TextPipeline.load(folder), "<mask>" in trained.task.source_dictionary
    HatTokenizer(str(folder / FILE_NAME), trained.positions[0], uses_roles, has_mask).save_pretrained(folder)
    return f"tokenizer: HatTokenizer, BPE {pipeline.bpe.kind}, splitter {pipeline.settings.splitter}"


def restore(directory: Path, out: Path, overwrite: bool) -> int:
    """Writes the checkpoint that a folder was made of, and beside it `bin` with its data; ValueError for any other."""
    from ..fairseq_fixes.checkpoints import package_settings

    if not (directory / ORIGIN).is_file():
        raise ValueError(f"{directory / ORIGIN} is missing: not a folder of hat export")
    known = ("updates", "namespaces", "cfg", "names", "fingerprints", "data")
    fields = Fields(read_json(directory / ORIGIN), str(directory / ORIGIN), known)
    names, data, data_folder = fields.get("names", dict), fields.get("data", dict), out.parent / BIN
    files = {FILE_NAME, *(name for names in BPE_FILES.values() for name in names)}  # besides dictionaries
    places = {place for each in DICTIONARIES.values() for place in each} | files
    if surplus := sorted((set(data.values()) - places) | (data.keys() - DICTIONARIES.keys() - files)):
        raise fields.error(f"refused, because it names {surplus[0]!r}, which is no file of the data")
    for path in (out, *(data_folder / place for place in data.values())):
        if path.exists() and not overwrite:
            raise ValueError(f"{path} exists; give another --out or --overwrite")
    model = read_exported(directory, names)
    fingerprints = Fields(fields.get("fingerprints", dict), f"{fields.where}: fingerprints")
    for name in fingerprints.record:
        if not name.endswith(FINGERPRINT):
            raise fields.error(f"{name!r:.80} is no fingerprint")
        model[name] = torch.tensor(fingerprints.items(name, int))
    cfg: Any = OmegaConf.create(package_settings(fields, data_folder), flags={"allow_objects": True})
    for name, place in data.items():
        (data_folder / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(directory / name, data_folder / place)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(out) as file:
        torch.save(bare_checkpoint(model, cfg, fields.get("updates", int)), file)
    print(f"wrote {out}: {len(names)} tensors, and {data_folder}: {', '.join(sorted(data.values()))}")
    print(f"use it with --path {out} --data {data_folder}, or start from it with --finetune-from-model {out}")
    return 0


def read_exported(directory: Path, names: dict[str, str]) -> dict[str, Tensor]:
    """Reads the weights of a folder of `hat export` under our names; ValueError for missing or unknown tensors."""
    weights = read_weights(directory)
    bias, types = weights.pop("final_logits_bias", None), weights.pop(f"roberta.{roberta.TYPES}", None)
    if bias is not None and bool(bias.any()):
        raise ValueError(f"{directory}: final_logits_bias is not zero, and fairseq's BART has no bias on its output")
    if missing := sorted(set(names.values()) - weights.keys()):
        raise ValueError(f"{directory}: {len(missing)} tensors are missing: {', '.join(missing[:8])}")
    if unknown := sorted(weights.keys() - set(names.values())):
        raise ValueError(f"{directory}: {len(unknown)} tensors are unknown: {', '.join(unknown[:8])}")
    model = {own: weights[other] for own, other in names.items()}
    if types is not None and bool(types.any()):  # trained further: every token has this row
        model[roberta.POSITIONS] = model[roberta.POSITIONS] + types
    return model
