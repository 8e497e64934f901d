#!/usr/bin/env python3
"""Does HAT write better summaries than its baseline, of short sources and of long ones?

    hat import minilm --out minilm/model.pt
    python studies/summaries.py xsum DIR
    python studies/summaries.py pubmed DIR

DIR has `train.jsonl.gz` and `test.jsonl.gz`: articles of XSum (`document`, `summary`), or papers of SumPubmed
(`sections`, `abstract_text`). The last 60 training documents are for validation. `baseline` has `--no-hierarchy`.

`xsum`: the recipe `xsum_small` (BERT2RND of Rothe et al. 2020: the encoder starts from MiniLM, a decoder of three
layers from random weights) on 400 articles, of which 256 tokens are read: 200 updates of 8 articles. `pubmed`: the size
of `hat demo`, 128 wide, from random weights on 1,040 papers, of which 1,024 tokens are read and the first 128 tokens of
the abstract are written: 500 updates of 4 papers; HAT's loss in the first training updates chose a rate of about 3e-3,
not that of the demo. Both train in bf16 (`--amp`), and generate from the last checkpoint. `--size full` has 4,000
updates of 32 articles or 16 papers, 512 or 4,096 tokens, for a GPU.

`lead` has the first words of a document, and `constant` the training summary that is nearest to 200 others
(`examples/baselines.py`). Where a model writes one text for all documents, a difference of two such models says nothing
on what they read. So there are figures that need no search: the bits of a token of the reference, given those before
it, and `gained by reading`, how many more of them there are if the model reads the next test document in the place of
its own. ROUGE F is that of `hat score rouge`. The longer half are the test documents with more words than the median.
Intervals are those of `intervals.py`; the [predictions](predictions.md) were written before.
"""

import gzip
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from harness import RESULTS, flags, record_of
from study_table import add_run, has_run

from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.loaded import Loaded
from hat_fairseq.inference.loading import load
from hat_fairseq.scoring.files import Summary, read_hypotheses, read_references
from hat_fairseq.scoring.rouge import METRICS, score_documents, split_summary

VALID, BATCH, PAD = 60, 10, 1
ARMS = {"HAT": (), "baseline": ("--no-hierarchy",)}
COMMON = (
    "--task document_to_text --share-all-embeddings --criterion chunked_label_smoothed_cross_entropy --label-smoothing"
    " 0.1 --optimizer adam --clip-norm 1.0 --lr-scheduler polynomial_decay --no-epoch-checkpoints --amp --num-workers 0"
)
Figures = dict[str, dict[str, tuple[float, float]]]  # sum and count of a figure, by document


@dataclass(frozen=True)
class Task:
    """The records of a file, and the flags of preprocessing, training and generation."""

    record: Callable[[str, dict[str, Any]], dict[str, Any]]
    preprocess: str
    train: str
    generate: str
    sizes: dict[str, tuple[int, int, int, int]]  # tokens of the source, of the target, updates, documents of an update


def article(name: str, row: dict[str, Any]) -> dict[str, Any]:
    return {"id": name, "text": row["document"], "target": [row["summary"]]}


def paper(_: str, row: dict[str, Any]) -> dict[str, Any]:
    target = [text.replace("<S>", "").replace("</S>", "").strip() for text in row["abstract_text"]]
    sentences = [text for section in row["sections"] for text in section if text.strip()]
    return {"id": row["article_id"], "sentences": sentences, "target": [text for text in target if text]}


TASKS = {
    "xsum": Task(
        article,
        "--bpe tokenizer --bpe-dir {minilm} --splitter punctuation",
        "--arch hat_bart_minilm --encoder-from {minilm}/model.pt --decoder-layers 3 --lr 5e-4 --warmup-updates 20",
        "--min-len 10 --max-len-b 60",
        {"small": (256, 64, 200, 8), "full": (512, 64, 4000, 32)},
    ),
    "pubmed": Task(
        paper,
        "--num-codes 4000",
        "--arch hat_transformer_tiny --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --decoder-embed-dim 128"
        " --decoder-ffn-embed-dim 512 --adam-betas (0.9,0.98) --lr 3e-3 --warmup-updates 50",
        "--min-len 60 --max-len-b 128",
        {"small": (1024, 128, 500, 4), "full": (4096, 256, 4000, 16)},
    ),
}


def hat(*words: Any, log: Path) -> None:
    """Runs a command of hat, with its output in a file."""
    with log.open("w", encoding="utf-8") as file:
        command = [sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=True)


def preprocessed(name: str, root: Path, work: Path, minilm: Path, source: int, target: int) -> Path:
    """The folder of `hat preprocess`, which is made if it does not exist."""
    task, texts, data = TASKS[name], work / "records", work / "data"
    if not (data / "manifest.json").is_file():
        rows = {split: list(records(task, root / f"{split}.jsonl.gz", split)) for split in ("train", "test")}
        if len(rows["train"]) <= VALID or not rows["test"]:
            raise ValueError(f"{root} has {len(rows['train'])} training documents; {VALID} are for validation alone")
        parts = {"train": rows["train"][:-VALID], "valid": rows["train"][-VALID:], "test": rows["test"]}
        texts.mkdir(parents=True, exist_ok=True)
        for split, lines in parts.items():
            (texts / f"{split}.jsonl").write_text("".join(lines), encoding="utf-8")
        limits = ["--max-source-tokens", source, "--max-target-tokens", target]
        truncated = ["--long-source", "truncate", "--long-target", "truncate"]
        words = [*task.preprocess.format(minilm=minilm).split(), *limits, *truncated]
        hat("preprocess", texts, "--out", data, *words, log=work / "preprocess.log")
    return data


def records(task: Task, path: Path, split: str) -> Iterator[str]:
    """Yields the records of a file as lines; ValueError with the line for what is no document of the task."""
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for number, line in enumerate(lines):
                yield json.dumps(task.record(f"{split}-{number}", json.loads(line))) + "\n"
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}:{number + 1} is no document with its summary: {error!r}") from error


def trained(name: str, arm: str, seed: int, size: str, work: Path, minilm: Path) -> Path:
    """Trains an arm and writes a text for each test document, unless that was done before; returns the folder."""
    task, folder = TASKS[name], work / f"{arm}-{seed}"
    source, target, updates, documents = task.sizes[size]
    device = [] if torch.cuda.is_available() else ["--cpu"]
    if not (folder / "test.jsonl").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        positions = ["--max-source-positions", max(source, 512), "--max-target-positions", target]
        ends = ["--batch-size", documents, "--max-update", updates, "--total-num-update", updates, "--seed", seed]
        words = [*COMMON.split(), *task.train.format(minilm=minilm).split(), *ARMS[arm], *positions, *ends]
        words += ["--save-dir", folder, *device]
        hat("train", work / "data/bin", *words, log=folder / "train.log")
        words = ["--beam", 4, "--no-repeat-ngram-size", 3, "--batch-size", 20, *task.generate.split()]
        out = ["--out", folder / "test.jsonl"]
        hat("generate", folder / "checkpoint_last.pt", work / "data", *out, *words, log=folder / "generate.log")
    return folder


def rouge(texts: Path, references: Path) -> Figures:
    """F in [0, 1] of each document, as `hat score rouge` computes it."""
    known = read_references([str(references)])
    assert known.ids is not None
    own, others = read_hypotheses(str(texts), known), [each for each, *_ in known.texts]
    columns = score_documents(lines(own, "punctuation"), lines(others, "given"), stem=True)
    rows = zip(*(columns[name].tolist() for name in METRICS), strict=True)
    return {
        name: {title: (value, 1) for title, value in zip(METRICS.values(), row, strict=True)}
        for name, row in zip(known.ids, rows, strict=True)
    }


def lines(texts: Sequence[Summary], method: str) -> list[list[str]]:
    return [split_summary(text, method) for text in texts]


@torch.no_grad()
def bits(checkpoint: Path, data: Path, names: Sequence[str]) -> Figures:
    """Bits and tokens of each reference given its own source, and how many bits more it has given another one."""
    loaded = load(checkpoint, data / "bin")
    loaded.task.load_dataset("test")
    dataset = loaded.task.dataset("test")
    items = [dataset[number] for number in range(len(dataset))]
    others = [{**each, "source": other["source"]} for each, other in zip(items, items[1:] + items[:1], strict=True)]
    nats = [list(nats_of(loaded, dataset, each)) for each in (items, others)]
    return {
        names[item["id"]]: {
            "bits of a token": (own / math.log(2), len(item["target"])),
            "gained by reading": ((other - own) / math.log(2), len(item["target"])),
        }
        for item, own, other in zip(items, *nats, strict=True)
    }


def nats_of(loaded: Loaded, dataset: Any, items: Sequence[dict[str, Any]]) -> Iterator[float]:
    """The nats of each reference."""
    for first in range(0, len(items), BATCH):
        sample = dataset.collater(list(items[first : first + BATCH]))
        logits = loaded.models[0](**{name: each.to(loaded.device) for name, each in sample["net_input"].items()})[0]
        target = sample["target"].to(loaded.device)
        own = F.cross_entropy(logits.float().mT, target, reduction="none", ignore_index=PAD)
        by_id = dict(zip(sample["id"].tolist(), own.sum(dim=1).tolist(), strict=True))
        yield from (by_id[each["id"]] for each in items[first : first + BATCH])


def by_length(scores: Figures, words: dict[str, int]) -> Figures:
    """Adds each figure for the half of the documents with more words than the median."""
    median, halves = statistics.median(words.values()), Figures()
    for name, row in scores.items():
        is_long = words[name] > median
        halves[name] = row | {f"{title}, longer half": pair if is_long else (0, 0) for title, pair in row.items()}
    return halves


def words_of(path: Path) -> dict[str, int]:
    """The words of each source."""
    return {
        str(each.id): len((each.text if each.text is not None else " ".join(each.elements or ())).split())
        for each in read_records(path)
    }


def cpu_seconds() -> float:
    """Of the commands that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    parser = flags(RESULTS / "summaries.csv.gz")
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("root", type=Path, help="folder with train.jsonl.gz and test.jsonl.gz")
    parser.add_argument("--minilm", type=Path, default=Path("minilm"), help="folder of hat import, for xsum")
    parser.add_argument("--size", choices=("small", "full"), default="small")
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS), help="without a name: rules only")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--work", type=Path, default=Path("bench-runs"), help="folder of data and checkpoints")
    args = parser.parse_args()
    work = args.work / f"{args.task}-{args.size}"
    needed = [args.root / f"{split}.jsonl.gz" for split in ("train", "test")]
    needed += [args.minilm / "model.pt"] if "{minilm}" in TASKS[args.task].train else []
    for path in needed:
        if not path.is_file():
            parser.exit(2, f"summaries.py: error: {path} is missing\n")
    try:
        data = preprocessed(args.task, args.root, work, args.minilm, *TASKS[args.task].sizes[args.size][:2])
    except ValueError as error:
        parser.exit(2, f"summaries.py: error: {error}\n")
    text = data / "text"
    words = words_of(text / "test.jsonl")

    def write(name: str, train: str, arm: str, seed: int, scores: Figures, **facts: Any) -> None:
        about = {"task": name, "train": train, "arm": arm, "seed": seed, "size": args.size}
        add_run(args.out, record_of("rouge-score", **about, **facts, scores=by_length(scores, words)))

    script = Path(__file__).resolve().parents[1] / "examples/baselines.py"
    subprocess.run([sys.executable, script, text / "test.jsonl", text / "train.jsonl", work], check=True)
    name = f"summaries, {args.task}"
    for rule in ("lead", "constant"):
        write(name, "rules", rule, 1, rouge(work / f"{rule}.jsonl", text / "test.jsonl"))
    for seed, arm in product(args.seeds, args.arms):
        if has_run(args.out, name, "all", arm, seed):
            continue
        start = cpu_seconds()
        folder = trained(args.task, arm, seed, args.size, work, args.minilm)
        spent, texts = round(cpu_seconds() - start), folder / "test.jsonl"
        facts = {"cpu_seconds": spent} if spent else {}  # unless an earlier call has trained it
        facts["different_texts"] = len({json.loads(line)["text"] for line in texts.open(encoding="utf-8")})
        write(f"{name}, bits", "all", arm, seed, bits(folder / "checkpoint_last.pt", data, list(words)))
        write(name, "all", arm, seed, rouge(texts, text / "test.jsonl"), **facts)
        print(arm, seed, facts, flush=True)


if __name__ == "__main__":
    main()
