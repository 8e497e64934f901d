"""The stages of preprocessing examples between the reader and fairseq; each reads and writes files one can open."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

from hat_fairseq.data.encoded import EncodedRow
from hat_fairseq.data.example import Example, read_examples
from hat_fairseq.data.example_encoder import ExampleEncoder
from hat_fairseq.data.example_json import check_kind
from hat_fairseq.data.example_report import ExampleReport
from hat_fairseq.data.example_text import normalised, texts, words
from hat_fairseq.data.labels import RIGHT, WRONG
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.packing import pack_rows
from hat_fairseq.data.parallel import ordered_map
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.prepare import EmptyDocumentError
from hat_fairseq.data.settings import Settings
from hat_fairseq.data.stages import check_line_counts, check_some_left, progress
from hat_fairseq.data.word_tokenizer import count_words


@dataclass
class SplitLabels:
    """The labels of a split: their number, and how many examples have none.

    Args:
        labelled: the first example with a label; None if there is none. Examples of ``mlm`` have none.
        unlabelled: the first example without.
        first_with: each label of ``classification``, ``segments`` and ``tokens``, and the first example that has it.
        counts: how often each label occurs.
    """

    labelled: str | None = None
    unlabelled: str | None = None
    first_with: dict[str, str] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, example: Example, task: str) -> None:
        if not example.labelled:
            self.unlabelled = self.unlabelled or example.name
            return
        self.labelled = self.labelled or example.name
        if task == "qa":
            self.counts["with an answer" if example.answers else "without answer"] += 1
        if task == "choice":
            self.counts[f"choice {example.label}"] += 1
            return
        found = example.labels or (() if example.label is None else (example.label,))
        self.counts.update(found)
        for label in found:
            self.first_with.setdefault(label, example.name)


def examples_path(text: Path, split: str) -> Path:
    """Where the examples of a split are kept, as they were given."""
    return text / f"{split}.examples.jsonl"


def write_examples(
    examples: Iterable[Example], task: str, on_empty: str, path: Path, counts: Counter[str]
) -> SplitLabels:
    """Write the examples that are of the kind ``task`` to ``path``; adds ``documents_empty_dropped`` to ``counts``.

    Raises:
        EmptyDocumentError: an example with an empty part, and ``on_empty`` is ``error``.
        ValueError: an example of another kind, or some examples have labels and others have not, with one of each.
    """
    labels = SplitLabels()
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for example in progress(examples, path.name):
            check_kind(example, task)
            try:
                for _, text in texts(example):
                    normalised(example, text, task, Counter())  # what it replaces is counted later
            except EmptyDocumentError as error:
                if on_empty == "error":
                    raise EmptyDocumentError(f"{error}; remove it, or drop and count such: --on-empty drop") from error
                counts["documents_empty_dropped"] += 1
                continue
            labels.add(example, task)
            file.write(json.dumps(example.to_json(task)) + "\n")  # ASCII: it may hold what UTF-8 cannot
    check_some_left(path)
    if labels.labelled and labels.unlabelled:
        raise ValueError(
            f"{path.stem.removesuffix('.examples')}: {labels.labelled} has labels, {labels.unlabelled} has none; "
            "label all examples of a split or none"
        )
    return labels


def class_labels(task: str, splits: Mapping[str, SplitLabels], known: list[str] | None) -> list[str]:
    """The labels in the order of their classes: those of the training part, sorted.

    Args:
        task: not ``mlm`` and not ``qa``, whose labels are positions.
        splits: every split that there is.
        known: the labels to take where there is no training part.

    Raises:
        ValueError: a split has a label that is not among them; with the example.
    """
    if task == "choice":
        return [RIGHT, WRONG]
    where = "the training part" if "train" in splits else "the data of --vocabulary"
    classes = sorted(splits["train"].first_with) if "train" in splits else known or []
    for split, labels in splits.items():
        for label, name in labels.first_with.items():
            if label not in classes:
                raise ValueError(
                    f"{split}: {name} has the label {label!r}, which {where} does not have; "
                    f"it has {', '.join(map(repr, classes[:20])) or 'none'}{', ...' if len(classes) > 20 else ''}"
                )
    return classes


def learn_bpe(path: Path, settings: Settings, num_codes: int, workers: int) -> LearnedBpe:
    """Learn codes from all parts of the examples."""
    counted: Counter[str] = Counter()
    found = ordered_map(partial(_words, settings), read_examples(path, settings.task), workers)
    for words_of_example in progress(found, f"count words of {path.name}"):
        counted.update(words_of_example)
    return LearnedBpe.learn_from_words(counted, num_codes)


def encode_examples(
    pipeline: TextPipeline, text: Path, split: str, labelled: bool, pack: bool, workers: int
) -> ExampleReport:
    """Write the rows of a split, their labels and (not for ``mlm``) their ids: the same number of lines in every file.

    Args:
        pack: fill rows with consecutive documents (``mlm``).
    """
    task = pipeline.settings.task
    report = ExampleReport()
    streams = ["input0"] + (["label"] if labelled else []) + (["ids"] if task != "mlm" else [])
    paths = {stream: text / f"{split}.{stream}" for stream in streams}
    examples = read_examples(examples_path(text, split), task)
    encoded = progress(ordered_map(partial(_encode, pipeline, pack), examples, workers), f"{split}: BPE")
    counted = _counted(encoded, report)
    if pack:
        encoder = ExampleEncoder(pipeline.settings, pipeline.bpe, report.treatments)
        packed = pack_rows((result.units for result in counted), *encoder.packing)
        rows: Iterator[EncodedRow] = (EncodedRow("", 0, 1, tokens) for tokens in packed)
    else:
        rows = (row for result in counted for row in result.rows)
    with ExitStack() as stack:
        files = {
            stream: stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))
            for stream, path in paths.items()
        }
        for row in rows:
            _write(row, files)
            report.sentences += row.segments
            report.source_lengths.append(len(row.tokens))
    check_line_counts(list(paths.values()))
    return report


class _Encoded(NamedTuple):
    rows: list[EncodedRow]
    units: list[list[str]]  # instead of rows, where rows are filled with several documents
    totals: Counter[str]
    counts: Counter[str]


def _encode(pipeline: TextPipeline, pack: bool, example: Example) -> _Encoded:
    encoder = ExampleEncoder(pipeline.settings, pipeline.bpe)
    rows, units = ([], encoder.units(example)) if pack else (encoder.rows(example), [])
    language = pipeline.settings.source_language
    plain = (sentence for _, text in texts(example) for sentence in ([text] if isinstance(text, str) else text))
    totals = Counter(
        source_words=sum(count_words(sentence, language) for sentence in plain), source_tokens=encoder.source_tokens
    )
    return _Encoded(rows, units, totals, encoder.counts)


def _counted(encoded: Iterable[_Encoded], report: ExampleReport) -> Iterator[_Encoded]:
    for result in encoded:
        report.documents += 1
        report.totals.update(result.totals)
        report.treatments.update(result.counts)
        yield result


def _write(row: EncodedRow, files: Mapping[str, TextIO]) -> None:
    files["input0"].write(" ".join(row.tokens) + "\n")
    if "label" in files:
        assert row.label is not None, row.id
        files["label"].write(" ".join(row.label) + "\n")
    if "ids" in files:
        files["ids"].write(f"{row.id}\t{row.part}\t{row.num_parts}\t{row.segments}\n")


def _words(settings: Settings, example: Example) -> Counter[str]:
    return words(example, settings)
