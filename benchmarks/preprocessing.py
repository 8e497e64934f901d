#!/usr/bin/env python3
"""Is preprocessing faster than fairseq's? From documents to a binarised dataset with GPT-2's BPE, whole commands.

    python benchmarks/preprocessing.py
    python benchmarks/preprocessing.py --set input=FOLDER    # documents as JSON lines, as `hat preprocess` reads them

`hat` is `hat preprocess --bpe gpt2`, which also cleans text, marks sentences, counts losses and writes a manifest.
`fairseq` follows fairseq's README for BART: `multiprocessing_bpe_encoder` for each split (here source and target in one
run), then `fairseq-preprocess`, over the same text with one document on each line. Both use the same number of workers
and give the same token ids, except the markers. The default input is the AMI corpus of this repository; MB are those of
the text without markup. GPT-2's files are found by `$HAT_GPT2_BPE` (docs/data.md).
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from harness import Facts, Job, Setting, run, run_commands

from hat_fairseq.data.gpt2_bpe import find_gpt2_files
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.options import Settings
from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record
from hat_fairseq.data.text import EmptyDocumentError, escape_control_tokens

SPLITS, SIDES = ("train", "valid", "test"), ("source", "target")
BOS = 0  # number of <s> in every dictionary
SETTINGS = [{"name": "{workers} workers, {input}", "workers": workers, "input": "ami"} for workers in (1, 2)]
SETTINGS[0]["name"] = "1 worker, {input}"


def build(name: str, setting: Setting) -> Job:
    """The input is written anew for each contender, in the form that it reads."""
    temporary = tempfile.TemporaryDirectory(prefix="preprocessing-")
    folder = Path(temporary.name)
    facts = write_input(setting["input"], folder)
    peaks, out = [0], folder / "out"
    commands = (hat_commands if name == "hat" else fairseq_commands)(folder, out, str(setting["workers"]))

    def step() -> Facts:
        shutil.rmtree(out, ignore_errors=True)
        peaks.append(run_commands(commands))
        return dict(facts)

    def finish() -> Facts:
        datasets = digests(out / "bin")
        temporary.cleanup()
        return {"peak_bytes": max(peaks), "datasets": datasets}

    return Job(step, {"commands": len(commands)}, finish)


def hat_commands(folder: Path, out: Path, workers: str) -> list[list[str]]:
    command = [sys.executable, "-m", "hat_fairseq.cli", "preprocess", str(folder / "documents")]
    return [[*command, "--splitter", "punctuation", "--bpe", "gpt2", "--workers", workers, "--out", str(out)]]


def fairseq_commands(folder: Path, out: Path, workers: str) -> list[list[str]]:
    files = find_gpt2_files()
    bpe = ["--encoder-json", str(files / "encoder.json"), "--vocab-bpe", str(files / "vocab.bpe"), "--keep-empty"]
    script = [sys.executable, "-m", "fairseq.examples.roberta.multiprocessing_bpe_encoder", *bpe, "--workers", workers]
    commands = []
    for split in SPLITS:
        inputs, outputs = ([str(folder / kind / f"{split}.{side}") for side in SIDES] for kind in ("lines", "encoded"))
        commands.append([*script, "--inputs", *inputs, "--outputs", *outputs])
    dictionary = str(files / "dict.txt")
    command = [sys.executable, "-m", "fairseq_cli.preprocess", "--source-lang", "source", "--target-lang", "target"]
    command += [word for split in SPLITS for word in (f"--{split}pref", str(folder / "encoded" / split))]
    command += ["--srcdict", dictionary, "--tgtdict", dictionary, "--destdir", str(out / "bin"), "--workers", workers]
    return [*commands, command]


def write_input(name: str, folder: Path) -> Facts:
    """`documents/` for `hat preprocess`, `lines/` for fairseq; how much text there is."""
    for kind in ("documents", "lines", "encoded"):
        (folder / kind).mkdir()
    size = number = 0
    for split in SPLITS:
        paths = [folder / "documents" / f"{split}.jsonl", *(folder / "lines" / f"{split}.{side}" for side in SIDES)]
        with paths[0].open("w") as documents, paths[1].open("w") as sources, paths[2].open("w") as targets:
            for document in read(name, split):
                source, target = " ".join(document.sentences or ()), " ".join(document.target or ())
                record = {"id": document.id, "text": source, "target": list(document.target or ())}
                documents.write(json.dumps(record) + "\n")
                sources.write(escape_control_tokens(source) + "\n")  # a text's own "<s>", as `hat` escapes it
                targets.write(escape_control_tokens(target) + "\n")
                size += len(source.encode()) + len(target.encode())
                number += 1
    return {"documents": number, "bytes": size}


def read(name: str, split: str) -> Iterator[Record]:
    """Documents with clean sentences; empty ones are no input for either."""
    reader = find_reader(name, None)
    settings = Settings(splitter=reader.defaults.get("splitter", "given"))
    for document in reader.read(split, None, Counter()):
        try:
            yield kind_of("text").prepare(document, settings, Counter())
        except EmptyDocumentError:
            continue


def digests(folder: Path) -> Facts:
    """Of each dataset: lines, tokens and a digest of all ids without <s>, as fairseq reads it."""
    from fairseq.data.indexed_dataset import MMapIndexedDataset

    digest_of = {"dictionary": hashlib.sha256((folder / "dict.source.txt").read_bytes()).hexdigest()[:16]}
    for split in SPLITS:
        for side in SIDES:
            dataset = MMapIndexedDataset(str(folder / f"{split}.source-target.{side}"))
            digest, tokens = hashlib.sha256(), 0
            for index in range(len(dataset)):
                ids = dataset[index].numpy()
                ids = ids[ids != BOS].astype(np.int64)
                digest.update(ids.tobytes() + b"\n")
                tokens += len(ids)
            digest_of[f"{split}.{side}"] = f"{len(dataset)} lines, {tokens} tokens, {digest.hexdigest()[:16]}"
    return digest_of


def check(setting: Setting, ends: dict[str, Facts]) -> list[str]:
    """The same ids in the same order, but for the markers."""
    first, second = (ends[name]["datasets"] for name in ("hat", "fairseq"))
    if different := [name for name in first if first[name] != second[name]]:
        details = "; ".join(f"{name}: {first[name]}, fairseq {second[name]}" for name in different)
        raise SystemExit(f"{setting['name']}: the datasets differ: {details}")
    return ["same dictionary, and in every split the same token ids but for our <s>"]


if __name__ == "__main__":
    contenders, versions = ("hat", "fairseq"), ["tokenizers"]
    run(build, check, contenders=contenders, settings=SETTINGS, reference="hat", rounds=3, versions=versions)
