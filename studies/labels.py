"""What labels long documents best on a CPU: sentences with learned weights, words, or both?

    python studies/labels.py drawn FILE --work DIR
    python studies/labels.py imdb FILE --test FILE --work DIR
    python studies/labels.py sentences FILE --test FILE --work DIR

FILE has JSON lines with id, text and label, or segments and labels. Without `--test` each document is tested once, in
one of five folds. The vectors of the sentences are computed once, by the MiniLM of the extra `minilm` with
`--precision auto`, and kept in DIR. Each arm of the network (`head`) has three seeds a fold, or five without folds,
and the settings of `hat recipe run labels`; its vectors are those of sentences alone, in the context of their
document, or both. A regression over terms of tokens stands beside it, as in the recipe, and is measured by itself as
`tokens`. The baselines of `hat score classification --baselines` (`rules`) choose their strength on an eighth of the
training documents. A document is long with more than 380 words.

`drawn` is the task of docs/tutorial_labels.md: 300 documents in which two sentences decide. `hyperpartisan` has the
645 articles of SemEval-2019, task 4; `imdb` has 3,000 training and 3,000 test reviews (Maas et al. 2011). `sentences`
are those of 400 and 170 papers with their roles (`paper_roles.py`); its network has the layers of `hat recipe run
sentence_labels`, one over 24 neighbours and one over the paper, and `tokens` are those of a sentence and its
neighbours.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import numpy as np
import torch
import torch.nn.functional as F
from harness import RESULTS, record_of
from study_table import Run, read_runs, write_runs
from torch import Tensor
from vector_heads import LABELS, SENTENCE_LABELS, logits_of, trained

from hat_fairseq import cli
from hat_fairseq.data.kinds.labels import LabelledSegments, LabelledText
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.rows import row_of
from hat_fairseq.kernels import choose_precision, set_precision
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.networks import build
from hat_fairseq.recipes.labels import OF_TRAINING
from hat_fairseq.scoring.baselines import FIRST, OF_DOCUMENTS, OF_SEGMENTS, LabelledDocument, baselines
from hat_fairseq.units.fit_words import fit_unit_words, fit_words
from hat_fairseq.units.heads import DocumentHead, UnitHead, mean_of_probabilities
from hat_fairseq.units.layers import NONE, UnitSizes
from hat_fairseq.units.network import UNIT_VECTORS

SOME = (0.2, 0.8)  # of the documents
Document = dict[str, Any]


def documents_of(file: Path, work: Path, kind: str) -> list[Document]:
    """Returns texts, labels, ids of tokens and vectors of documents, from DIR if they are there."""
    if (stored := work / f"{file.stem}.pt").is_file():
        return torch.load(stored, weights_only=True)
    if not (work / "minilm").is_dir() and cli.main(["import", "minilm", "--package", str(work / "minilm")]):
        raise RuntimeError("hat import minilm failed")
    loaded = load(work / "minilm", precision="auto")
    loaded.pipeline.settings = replace(loaded.pipeline.settings, kind=kind)
    encoder, documents = units_encoder(work / "minilm"), []
    for record in read_records(file, kind):
        (row,) = loaded.pipeline.encode(record)
        tokens = row_of(row.tokens, loaded.source)
        units = [*encoder.units(tokens.tolist())]
        with torch.no_grad():
            alone, context = encoder.alone(units), next(encoder.encode_in_context([units]))
        vectors = {"alone": alone.half(), "context": F.normalize(context, dim=1).half()}
        about: dict[str, Any] = {"id": str(record.id)}
        if isinstance(record, LabelledSegments):
            about |= {"texts": list(record.segments), "labels": list(record.labels or ())}
        elif isinstance(record, LabelledText):
            about |= {"text": str(record.text), "label": str(record.label)}
        documents.append({**about, "ids": tokens, **vectors})
    torch.save(documents, stored)
    return documents


def units_encoder(folder: Path) -> Any:
    """Returns the encoder of a folder as that of `hat_units`."""
    own = ModelFolder.open(folder)
    assert own.description is not None
    every = own.description["settings"].items()
    settings = {name: value for name, value in every if not name.startswith(OF_TRAINING)}
    description = {"network": "hat_units", "settings": settings, "heads": {}}
    model = build(description | {"vocab_size": own.description["vocab_size"]}).eval()
    model.load_state_dict(own.tensors(), strict=False)
    set_precision(model, choose_precision("auto", "cpu"))
    return model.core


def vectors_of(document: Document, which: str) -> Tensor:
    names = ("alone", "context") if which == "both" else (which,)
    return torch.cat([document[name].float() for name in names], dim=1)


def folds_of(documents: list[Document], test: list[Document] | None) -> Iterator[tuple[list[Document], list[Document]]]:
    """Yields training and test documents: of five folds, or those of two files."""
    if test is not None:
        yield documents, test
        return
    from sklearn.model_selection import StratifiedKFold

    labels = [each["label"] for each in documents]
    for own, asked in StratifiedKFold(5, shuffle=True, random_state=1).split(labels, labels):
        yield [documents[place] for place in own], [documents[place] for place in asked]


def scores_of(asked: Sequence[Document], labels: Sequence[str]) -> dict[str, dict[str, tuple[float, float]]]:
    """Returns for each document by figure whether its label is right, and whether the document counts.

    Long documents have a figure of their own where they are neither few nor nearly all.
    """
    right = [float(label == each["label"]) for each, label in zip(asked, labels, strict=True)]
    is_long = [float(len(each["text"].split()) > FIRST) for each in asked]
    scores = {each["id"]: {"accuracy": (value, 1.0)} for each, value in zip(asked, right, strict=True)}
    if SOME[0] < np.mean(is_long) < SOME[1]:
        for each, value, counts in zip(asked, right, is_long, strict=True):
            scores[each["id"]]["accuracy, long documents"] = (value * counts, counts)
    return scores


def plain(document: Document) -> LabelledDocument:
    return LabelledDocument((document["text"],), (document["label"],), document["alone"].float().numpy())


def runs_of_fold(known: list[Document], asked: list[Document], fold: int, seeds: int) -> Iterator[Run]:
    """Yields all runs of a fold: rules, the regression over tokens, and the network alone and beside it."""
    names = sorted({each["label"] for each in known})
    gold = torch.tensor([names.index(each["label"]) for each in known])

    def run(train: str, arm: str, seed: int, labels: Sequence[str], seconds: float) -> Run:
        about = {"train": train, "arm": arm, "seed": 100 * fold + seed, "cpu_seconds": round(seconds, 2)}
        return {**about, "scores": scores_of(asked, labels)}

    def labels_of(logits: Tensor) -> list[str]:
        return [names[place] for place in logits.argmax(dim=1).tolist()]

    held = len(known) // 8  # validation of the baselines
    order = np.random.default_rng(fold).permutation(len(known))
    train, valid = ([plain(known[place]) for place in part] for part in (order[held:], order[:held]))
    for name in OF_DOCUMENTS:
        begin = time.process_time()
        (baseline,) = baselines([OF_DOCUMENTS[name]], train, valid, [plain(each) for each in asked])
        yield run("rules", baseline.title, 0, [label for (label,) in baseline.predictions], time.process_time() - begin)
    begin = time.process_time()
    words = DocumentHead(1, len(names), UnitSizes("none")).words
    assert words is not None
    fit_words(words, [each["ids"] for each in known], gold.tolist())
    with torch.no_grad():
        of_words = torch.cat([words(each["ids"][None]) for each in asked])
    yield run("rules", "tokens", 0, labels_of(of_words), time.process_time() - begin)
    for seed in range(1, seeds + 1):
        for which in UNIT_VECTORS:
            begin = time.process_time()
            vectors = [vectors_of(each, which) for each in known]
            head = trained(LABELS, vectors, gold.split(1), len(names), seed)
            network = torch.cat([logits_of(head, vectors_of(each, which)) for each in asked])
            spent = time.process_time() - begin
            yield run("head", which, seed, labels_of(network), spent)
            yield run("head", f"{which}, tokens", seed, labels_of(mean_of_probabilities(network, of_words)), spent)


def runs_of_sentences(known: list[Document], asked: list[Document], seeds: int) -> Iterator[Run]:
    """Yields all runs of labels of sentences: rules, the regression over tokens, and the network."""
    names = sorted({label for each in known for label in each["labels"]})
    gold = [torch.tensor([names.index(label) for label in each["labels"]]) for each in known]

    def run(train: str, arm: str, seed: int, labels: Sequence[Sequence[str]], seconds: float) -> Run:
        scores = {}
        for each, own in zip(asked, labels, strict=True):
            right = sum(a == b for a, b in zip(own, each["labels"], strict=True))
            scores[each["id"]] = {"accuracy": (float(right), float(len(own)))}
        return {"train": train, "arm": arm, "seed": seed, "cpu_seconds": round(seconds, 2), "scores": scores}

    def labels_of(logits: Sequence[Tensor]) -> list[list[str]]:
        return [[names[place] for place in each.argmax(dim=1).tolist()] for each in logits]

    held = len(known) // 8
    documents = [LabelledDocument(tuple(each["texts"]), tuple(each["labels"])) for each in known]
    wanted = [LabelledDocument(tuple(each["texts"]), tuple(each["labels"])) for each in asked]
    for name in OF_SEGMENTS:
        begin = time.process_time()
        (baseline,) = baselines([OF_SEGMENTS[name]], documents[held:], documents[:held], wanted)
        yield run("rules", baseline.title, 0, baseline.predictions, time.process_time() - begin)
    begin = time.process_time()
    words = UnitHead(1, len(names), UnitSizes(NONE)).words
    assert words is not None
    fit_unit_words(words, [each["ids"] for each in known], [each.tolist() for each in gold])
    with torch.no_grad():
        of_words = [words(each["ids"][None])[0] for each in asked]
    yield run("rules", "tokens", 0, labels_of(of_words), time.process_time() - begin)
    for seed in range(1, seeds + 1):
        for which in ("alone", "both"):
            begin = time.process_time()
            head = trained(SENTENCE_LABELS, [vectors_of(each, which) for each in known], gold, len(names), seed)
            network = [logits_of(head, vectors_of(each, which)) for each in asked]
            spent = time.process_time() - begin
            both = [mean_of_probabilities(a, b) for a, b in zip(network, of_words, strict=True)]
            yield run("head", which, seed, labels_of(network), spent)
            yield run("head", f"{which}, tokens", seed, labels_of(both), spent)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=("drawn", "hyperpartisan", "imdb", "sentences"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--test", type=Path, help="test these documents instead of five folds")
    parser.add_argument("--work", type=Path, required=True, help="keep vectors here")
    parser.add_argument("--out", type=Path, default=RESULTS / "labels.csv.gz")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    kind = "segments" if args.task == "sentences" else "classification"
    if kind == "segments" and args.test is None:
        parser.error("sentences need --test FILE")
    documents = documents_of(args.file, args.work, kind)
    test = documents_of(args.test, args.work, kind) if args.test else None
    record = record_of()
    machine = {name: record[name] for name in ("command", "device", "threads", "versions")}
    runs: list[Run] = []
    for fold, (known, asked) in enumerate(folds_of(documents, test)):
        own = runs_of_fold(known, asked, fold, 5 if test else 3)
        for run in runs_of_sentences(known, asked, 3) if kind == "segments" else own:
            runs.append({"task": args.task, **run, **machine})
            right, of = np.sum([values["accuracy"] for values in run["scores"].values()], axis=0)
            print(fold, run["train"], run["arm"], run["seed"], f"{100 * right / of:.1f}", flush=True)
    write_runs(args.out, [*(run for run in read_runs(args.out) if run["task"] != args.task), *runs])


if __name__ == "__main__":
    main()
