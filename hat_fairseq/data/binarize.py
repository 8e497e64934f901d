"""Turns the text streams into fairseq's binary files, as fairseq-preprocess would; counts what a dictionary lacks."""

import struct
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from hat_fairseq.data.blocks import Block, Blocks, tasks_of_text
from hat_fairseq.data.dictionary import EOS, MAX_UNKNOWN, SPECIAL, UNKNOWN, Dictionary
from hat_fairseq.data.kinds import Kind

ROLE_LABELS = Path("text", "role.labels")  # the fixed dictionary of the role stream, in fairseq's format
LABELS = Path("text", "label.labels")  # likewise of the labels of examples
_SMALL = 65500  # below it fairseq writes a dictionary's ids in 16 bits
_CODES = {"<u2": 8, "<u4": 9}  # how the index names the type


def check_splits(splits: Sequence[str]) -> None:
    """Raises ValueError for splits that fairseq names otherwise: it numbers valid, valid1, ..., test, test1, ..."""
    for kind in ("train", "valid", "test"):
        names = [split for split in splits if split.rstrip("0123456789") == kind]
        if names != [f"{kind}{number or ''}" for number in range(len(names))]:
            raise ValueError(f"fairseq cannot number the splits {', '.join(splits)}; use test, test1, ...")


def binarize(directory: Path, kind: Kind, splits: Sequence[str], joint: Dictionary, blocks: Blocks) -> dict[str, int]:
    """Writes `bin/` from the streams in `text/`; returns how many tokens of each text its dictionary does not have.

    Args:
        joint: the dictionary of source and target.
    Raises:
        ValueError: a dictionary does not have more than half of the tokens of a text.
    """
    labels = {"label": directory / LABELS, "role": directory / ROLE_LABELS}
    unknown = {}
    for stream, (prefix, dictionary_file) in kind.files.items():
        if stream in labels and not labels[stream].exists():
            continue
        dictionary = Dictionary.load(labels[stream]) if stream in labels else joint
        path = directory / "bin" / dictionary_file
        path.parent.mkdir(parents=True, exist_ok=True)
        dictionary.save(path)
        for split in splits:
            if (text := directory / f"text/{split}.{stream}").exists():
                out = directory / "bin" / prefix.format(split=split)
                unknown[text.name] = binarize_text(text, dictionary, out, blocks)
    return unknown


def binarize_text(text: Path, dictionary: Dictionary, prefix: Path, blocks: Blocks) -> int:
    """Writes `PREFIX.bin` (token ids, `</s>` after each line) and `PREFIX.idx` (offsets) of a text, a row a line."""
    dtype = "<u2" if len(dictionary) < _SMALL else "<u4"
    lengths, unknown = [np.zeros(0, "<i4")], 0
    with open(f"{prefix}.bin", "wb") as file:
        function = partial(binarize_block, dictionary, dtype)
        for block in blocks.map(function, tasks_of_text(text, dictionary.counts)):
            file.write(block.files["bin"])
            lengths.append(np.frombuffer(block.files["idx"], "<i4"))
            unknown += block.figures["unknown"]
    sizes = np.concatenate(lengths)
    begins = (np.cumsum(sizes, dtype="<i8") - sizes) * np.dtype(dtype).itemsize
    with open(f"{prefix}.idx", "wb") as file:
        file.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQ", 1, _CODES[dtype], len(sizes)))  # 1: the version
        file.write(sizes.tobytes() + begins.tobytes())
    if unknown > MAX_UNKNOWN * (tokens := int(sizes.sum(dtype=np.int64))):
        raise ValueError(
            f"text/{text.name}: {unknown} of {tokens} tokens are not in the dictionary: text of another language than "
            "the vocabulary is of, or in another encoding; choose another --bpe, or remove --vocabulary to learn "
            "one from this text. Where it is learned, give fewer --num-codes or more training texts"
        )
    return unknown


def binarize_block(dictionary: Dictionary, dtype: str, part: tuple[Path, int, int]) -> Block:
    """Returns the ids of some rows, each with `</s>` appended; their lengths; how many tokens the dictionary lacks.

    `part`: the argument of a task of `tasks_of_text`, a file, and where its lines begin and end, in bytes.
    """
    (path, begin, end), id_of = part, dictionary.ids.__getitem__
    ids, lengths, unknown = [], [], 0
    with open(path, "rb") as file:
        file.seek(begin)
        lines = file.read(end - begin).decode("utf-8").removesuffix("\n").split("\n")
    for line in lines:
        tokens = [*line.split(), SPECIAL[EOS]]
        row = np.fromiter(map(id_of, tokens), dtype, len(tokens))
        if missing := int((row == UNKNOWN).sum()):
            unknown += missing - tokens.count(SPECIAL[UNKNOWN])
        ids.append(row.tobytes())
        lengths.append(len(tokens))
    files = {"bin": b"".join(ids), "idx": np.array(lengths, "<i4").tobytes()}
    return Block(figures={"unknown": unknown}, files=files)
