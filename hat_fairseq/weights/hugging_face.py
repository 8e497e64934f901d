"""Folders of Hugging Face: `config.json`, tensors and vocabularies, as `save_pretrained` writes them.

Nothing in the files is executed. Vocabularies become dictionaries of fairseq: GPT-2's BPE, and XLM-RoBERTa's pieces.

fairseq's GPT-2 BPE writes ids: 0-255 are the bytes, in the order in which GPT-2 lists them; 256 + i is what merge i
produces; the next one is `<|endoftext|>`. The line of dict.txt on which a number stands, plus four, is the row of the
embedding. Hugging Face's vocab.json gives that row for the token itself, so tokens have to be turned into ids.

XLM-RoBERTa's dictionary has the pieces of its sentencepiece model in their order. The model numbers them from 3, so a
row of the embedding is the number plus one.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tokenizers.pre_tokenizers import ByteLevel
from torch import Tensor

from .. import model_folder
from ..data.dictionary import SPECIAL
from ..data.files import Fields, read_lines
from ..data.gpt2_bpe import gpt2_bpe
from ..data.outputs import check_space
from ..data.sentencepiece_bpe import MODEL, SentencePieceBpe
from ..data.tokenizer_bpe import TokenizerBpe
from ..model_folder import SHARDS, WEIGHTS

MASK, PICKLED = "<mask>", "pytorch_model.bin"
# Settings with which the encoder is that of BART and RoBERTa.
PLAIN = {
    "no_hierarchy": True,
    "encoder_attention": "full",
    "encoder_learned_pos": True,
    "layernorm_embedding": True,
    "encoder_normalize_before": False,
    "encoder_qkv_dim": None,
}


def read_config(
    path: Path,
    fixed: Mapping[str, Any],
    sizes: Iterable[str],
    target: str,
    defaults: Mapping[str, Any] | None = None,
    rename: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
) -> dict[str, Any]:
    """Reads `config.json`; ValueError if it describes what `target`, the model to convert to, cannot compute.

    `fixed`: settings that `target` cannot change; they may be missing. `sizes`: settings that must be there; whole
    numbers, except epsilons and probabilities. `defaults`: what transformers takes for those that are missing.
    `rename`: gives settings the names of these.
    """
    config = {**(defaults or {}), **rename(Fields.read(path).record)}
    kinds = {key: (int, float) if key.endswith(("_eps", "_prob")) else (int,) for key in sizes}
    for key, value in fixed.items():
        is_unset = value is False and config.get(key) is None  # null is as if it were not there
        if config.get(key, value) != value and not is_unset:
            raise ValueError(f"{path}: {key} is {config[key]!r}, only {value!r} can be converted to {target}")
    if missing := [key for key, kind in kinds.items() if type(config.get(key)) not in kind]:
        raise ValueError(
            f"{path}: no number for {', '.join(missing)} (a whole number, except for epsilons and probabilities)"
        )
    return config


def read_weights(directory: Path) -> dict[str, Tensor]:
    """Reads `model.safetensors`, else `pytorch_model.bin`, also in shards.

    ValueError if it is damaged, or does not hold finite tensors only.
    """
    if any((directory / name).is_file() for name in (WEIGHTS, SHARDS)):
        weights = model_folder.read_weights(directory)
    elif any((directory / name).is_file() for name in (PICKLED, f"{PICKLED}.index.json")):
        weights = model_folder.read_weights(directory, PICKLED, read_pickled)
    else:
        raise ValueError(f"{directory} has neither {WEIGHTS} nor {PICKLED}")
    if others := [name for name, tensor in weights.items() if not is_plain(tensor)]:
        raise ValueError(f"{directory}: {others[0]} is no plain tensor (quantised, sparse, expanded); save it as one")
    if broken := sorted(name for name, tensor in weights.items() if not tensor.isfinite().all()):
        raise ValueError(f"{directory}: NaN or infinite values in {', '.join(broken[:8])}; fetch the weights again")
    return weights


def read_pickled(path: Path) -> dict[str, Tensor]:
    """Reads a dictionary of tensors; ValueError for a damaged file, or one that holds anything else."""
    from ..fairseq_fixes.trust import named_failures  # not above: safetensors need no fairseq

    with named_failures(str(path)):
        weights = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(weights, dict) or not all(isinstance(tensor, Tensor) for tensor in weights.values()):
        raise ValueError(f"{path} is refused: it does not hold a dictionary of tensors only")
    return weights


def is_plain(tensor: Tensor) -> bool:
    """Tells whether a tensor has all of its numbers in the file, each in 16 bits or more, in few dimensions."""
    if tensor.is_quantized or tensor.layout != torch.strided or tensor.dim() > 8:
        return False
    return tensor.nbytes <= tensor.untyped_storage().nbytes() and not (
        tensor.is_floating_point() and tensor.itemsize < 2
    )


def write_weights(folder: Path, tensors: Mapping[str, Tensor]) -> None:
    """Writes `model.safetensors`; tensors may share memory, and are then written twice."""
    from safetensors.torch import save_file

    path = folder / WEIGHTS
    check_space(folder, 1.01 * sum(tensor.nbytes for tensor in tensors.values()))
    path.touch()
    mode = path.stat().st_mode
    save_file({name: tensor.clone().contiguous() for name, tensor in tensors.items()}, path, metadata={"format": "pt"})
    path.chmod(mode)  # safetensors writes for the owner only


def gpt2_ids(merges: Iterable[str]) -> dict[str, int]:
    """Numbers every token, from the lines of vocab.bpe (merges.txt): what encoder.json holds."""
    pairs = [pair.replace(" ", "") for pair in pairs_of(merges)]
    tokens = sorted(ByteLevel.alphabet()) + pairs + ["<|endoftext|>"]
    return {token: number for number, token in enumerate(tokens)}


def pairs_of(merges: Iterable[str]) -> list[str]:
    """Returns the lines that are merges."""
    return [line for line in merges if line.strip() and not line.startswith("#version")]


def dictionary_symbols(ids: Mapping[str, int], merges: Iterable[str], source: str = "vocab.json") -> list[str]:
    """Returns the symbols of dict.txt in order, for token rows `ids` (vocab.json, or what `source` names).

    A final `<mask>` is omitted, as in the dict.txt of fairseq's BART: the tasks that use it add it. Tokens that the
    BPE never writes (`madeupword0000`) keep their names. ValueError if no fairseq dictionary can have these rows.
    """
    tokens = sorted(ids, key=lambda token: ids[token])
    if [ids[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError(f"{source}: the {len(tokens)} ids are not 0 to {len(tokens) - 1}, each once")
    if tuple(tokens[:4]) != SPECIAL:
        raise ValueError(f"{source} starts with {tokens[:4]}, fairseq's dictionaries with {list(SPECIAL)}")
    ids = gpt2_ids(merges)
    body = tokens[4:-1] if tokens[-1] == MASK else tokens[4:]
    return [str(ids.get(token, token)) for token in body]


def read_symbols(directory: Path, vocab_size: int) -> list[str] | None:
    """Returns the lines of dict.txt for the ids that these weights have; None without tokenizer files."""
    if (found := read_merges(directory)) is None:
        return None
    ids, merges, source = found
    if len(ids) != vocab_size:
        raise ValueError(f"{source} has {len(ids)} entries, the embedding has {vocab_size} rows")
    return dictionary_symbols(ids, merges, source.name)


def read_merges(directory: Path) -> tuple[dict[str, int], list[str], Path] | None:
    """Returns the rows of entries, the merges, and their file; None without tokenizer files.

    Read from vocab.json and merges.txt, or from the tokenizer.json that newer versions write instead; else ValueError.
    """
    source, merges_file = directory / "vocab.json", directory / "merges.txt"
    if source.is_file() and merges_file.is_file():
        ids, merges = Fields.read(source).record, [line.rstrip("\r") for _, line in read_lines(merges_file)]
    elif (directory / "tokenizer.json").is_file():
        source = directory / "tokenizer.json"
        record = Fields.read(source).record
        model = record["model"]
        if model["type"] != "BPE":
            raise ValueError(f"{source} is no byte-level BPE ({model['type']}); fairseq's RoBERTa and BART have one")
        merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]
        ids = model["vocab"] | {token["content"]: token["id"] for token in record.get("added_tokens", [])}
    elif source.is_file() or merges_file.is_file():
        missing = merges_file if source.is_file() else source
        raise ValueError(f"{missing} is missing: a byte-level BPE is vocab.json and merges.txt together")
    else:
        return None
    return dict(ids), merges, source


def read_bpe(directory: Path) -> TokenizerBpe | None:
    """Returns GPT-2's BPE of a folder, whose tokens are the lines of dict.txt; None without tokenizer files."""
    if (found := read_merges(directory)) is None:
        return None
    pairs = [line.split(" ") for line in pairs_of(found[1])]
    return gpt2_bpe(gpt2_ids(found[1]), [(first, second) for first, second in pairs])


def read_pieces(directory: Path, vocab_size: int) -> list[str] | None:
    """Does the same for a sentencepiece model numbered as XLM-RoBERTa's; ValueError for other ids."""
    if not (path := directory / MODEL).is_file():
        return None
    pieces = SentencePieceBpe(path).pieces()
    expected = range(len(SPECIAL) - 1, vocab_size - 2)  # in the rows <mask> follows
    if list(pieces.values()) != list(expected):
        first = min(pieces.values(), default=0)
        rows = f"an XLM-RoBERTa of {vocab_size} rows has {len(expected)} from number {expected.start} on"
        raise ValueError(
            f"{path} has {len(pieces)} pieces from number {first} on; {rows}; use the model of these weights"
        )
    return list(pieces)
