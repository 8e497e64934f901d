#!/usr/bin/env python3
"""Is preprocessing faster than with `datasets` and `tokenizers`? The same sentences and BPE, whole commands.

    pip install datasets
    python benchmarks/preprocessing.py --rounds 3
    python benchmarks/preprocessing.py --megabytes 1000 --workers 2 --rounds 1

Documents are sentences of AMI meetings in random order, some 15,000 characters each, as JSON lines. `hat preprocess`
learns a BPE of 4,000 merges, cuts documents at 3,072 tokens, and writes text and binary data. The peer does the same by
`load_dataset`, `BpeTrainer`, and `Dataset.map` over batches with our function for sentences; it writes Arrow files. It
does not clean the text, count losses or resume. Both write as many tokens, within 0.1 %. Meetings have few different
words, which helps the caches of both. CPU seconds are those of all processes, the least of all rounds; other seconds
depend on what else the machine does. Growth is that of the resident memory of all processes over the second half of the
time.
"""

import json
import random
import shutil
import statistics
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.text import split_sentences

MERGES, LONGEST, CHARACTERS = 4000, 3072, 15_000
SPLITS = {"train": 0.9, "valid": 0.05, "test": 0.05}  # shares of the text
PEER = "peer"  # the first word of the peer's own command
CONTENDERS = ("hat preprocess", "datasets")


def main() -> None:
    from harness import RESULTS, flags, write_result  # torch, which neither contender imports
    from load import HAT, watched

    parser = flags(RESULTS / "preprocessing.json")
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    if find_spec("datasets") is None:
        raise SystemExit("datasets is missing: pip install datasets")
    runs = []
    with tempfile.TemporaryDirectory() as temporary:
        raw, out = Path(temporary, "raw"), Path(temporary, "out")
        documents = write_documents(raw, args.megabytes * 10**6)
        for _ in range(args.rounds):
            for workers in args.workers:
                tokens = set()
                for name in CONTENDERS:
                    hat = [*HAT, "preprocess", raw, "--out", out, "--splitter", "punctuation", "--bpe", "learned"]
                    hat += ["--num-codes", MERGES, "--max-source-tokens", LONGEST, "--long-source", "truncate"]
                    own = [*hat, "--workers", workers]
                    command = own if name == CONTENDERS[0] else [sys.executable, __file__, PEER, raw, out, workers]
                    runs.append({"contender": name, "workers": workers, **watched(command, documents)})
                    tokens.add(tokens_in(out))
                    shutil.rmtree(out)
                if max(tokens) > 1.001 * min(tokens):  # ties between merges are broken otherwise
                    raise SystemExit(f"the contenders wrote different numbers of tokens: {tokens}")
    settings = {"megabytes": args.megabytes, "documents": documents}
    write_result(args.out, "datasets", "tokenizers", settings=settings, runs=runs, summary=summary(runs))


def summary(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Median, least and most seconds of each contender and number of workers, least CPU seconds, largest memory."""
    rows = []
    for contender, workers in dict.fromkeys((run["contender"], run["workers"]) for run in runs):
        own = [run for run in runs if (run["contender"], run["workers"]) == (contender, workers)]
        seconds = [run["seconds"] for run in own]
        row = {"contender": contender, "workers": workers, "seconds": statistics.median(seconds)}
        row |= {"least": min(seconds), "most": max(seconds), "cpu_seconds": min(run["cpu_seconds"] for run in own)}
        rows.append(row | {name: max(run[name] for run in own) for name in ("peak_mb", "growth_mb")})
    return rows


def write_documents(folder: Path, size: int) -> int:
    """Writes the raw data; returns the number of documents."""
    folder.mkdir()
    reader, number = find_reader("ami", None), 0
    sentences = [text for record in reader.read("train", None, Counter()) for text in record.elements or ()]
    for split, share in SPLITS.items():
        rng, written = random.Random(split), 0
        with (folder / f"{split}.jsonl").open("w") as file:
            while written < share * size:
                text = " ".join(some(rng, sentences, CHARACTERS))
                number += 1
                written += file.write(json.dumps({"id": f"d{number}", "text": text, "target": [text[:300]]}) + "\n")
    return number


def some(rng: random.Random, sentences: list[str], characters: int) -> Iterator[str]:
    """Yields random sentences until they have that many characters."""
    while characters > 0:
        sentence = rng.choice(sentences)
        characters -= len(sentence) + 1
        yield sentence


def peer(raw: Path, out: Path, workers: int) -> None:
    """Preprocesses the raw data with `datasets` and `tokenizers`."""
    import datasets
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    files = {split: str(raw / f"{split}.jsonl") for split in SPLITS}
    data = datasets.load_dataset("json", data_files=files, cache_dir=str(out / "cache"))
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=MERGES, special_tokens=special, end_of_word_suffix="</w>", show_progress=False
    )
    train = data["train"]
    tokenizer.train_from_iterator((text for row in train for text in (row["text"], *row["target"])), trainer)

    def encode(batch: dict[str, list[Any]]) -> dict[str, list[list[int]]]:
        sources = []
        for text in batch["text"]:
            encoded = tokenizer.encode_batch(split_sentences(text, "punctuation"))
            sources.append([number for each in encoded for number in (0, *each.ids)][: LONGEST - 1] + [2])
        targets = [[*tokenizer.encode(" ".join(target)).ids, 2] for target in batch["target"]]
        return {"source": sources, "target": targets}

    columns = data["train"].column_names
    data.map(encode, batched=True, num_proc=workers, remove_columns=columns).save_to_disk(str(out / "data"))


def tokens_in(out: Path) -> int:
    """How many source tokens a result has."""
    if (out / "bin").is_dir():  # numbers of 16 bits, as the dictionary is small
        return sum(path.stat().st_size // 2 for path in (out / "bin").glob("*.source-target.source.bin"))
    import datasets

    parts = datasets.load_from_disk(str(out / "data")).values()
    return sum(len(row["source"]) for part in parts for row in part)


if __name__ == "__main__":
    if sys.argv[1:2] == [PEER]:
        peer(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        main()
