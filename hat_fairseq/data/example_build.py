"""One run of preprocessing examples: the stages in their order, in one directory. ``build`` does this for documents."""

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hat_fairseq.data.binarize import LABELS, check_known, example_commands, input_directory, run
from hat_fairseq.data.example_report import ExampleReport
from hat_fairseq.data.example_stages import (
    SplitLabels,
    class_labels,
    encode_examples,
    examples_path,
    learn_bpe,
    write_examples,
)
from hat_fairseq.data.labels import label_token, write_label_dictionary
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.settings import settings_of
from hat_fairseq.data.stages import read_split
from hat_fairseq.data.vocabulary import Vocabulary, has_dictionary, ready_made
from hat_fairseq.data.word_tokenizer import word_tokenizer


@dataclass
class ExampleBuild:
    """Fills ``directory`` with ``text/`` and ``bin/``; arguments as of ``build.Build``, which is for documents."""

    reader: Reader
    options: Mapping[str, Any]
    directory: Path
    root: Path | None = None
    bpe_dir: Path | None = None
    workers: int = 1
    reports: dict[str, ExampleReport] = field(default_factory=dict)
    known: set[object] = field(default_factory=set, init=False)  # see ``stages.read_split``

    def text_and_pipeline(self) -> None:
        """Write the examples, the pipeline, the rows, their labels and ids of every split."""
        settings = settings_of(self.options)
        self.text.mkdir()
        self.bin.mkdir()
        word_tokenizer(settings.source_tokenizer, settings.source_language)  # a missing package is to be known now
        known_bpe = ready_made(self.options, self.bpe_dir, self.directory / self.dictionary)
        lost: dict[str, Counter[str]] = {split: Counter() for split in self.reader.splits}
        labels = {split: self._write(split, lost[split]) for split in self.reader.splits}
        classes = self._classes(labels)

        train = examples_path(self.text, self.reader.splits[0])
        bpe = known_bpe or learn_bpe(train, settings, self.options["num_codes"], self.workers)
        pipeline = TextPipeline(settings, bpe)
        pipeline.save(self.bin)

        for split in self.reader.splits:
            labelled = labels[split].labelled is not None
            report = encode_examples(pipeline, self.text, split, labelled, bool(self.options["pack"]), self.workers)
            report.treatments.update(lost[split])
            report.labels = labels[split].counts
            self.reports[split] = report
            if (ids := self.text / f"{split}.ids").is_file():
                shutil.copyfile(ids, self.bin / ids.name)
        if any(found.labelled for found in labels.values()):
            write_label_dictionary(self._positions() if classes is None else classes, self.directory / LABELS)

    def binarize(self, shown_as: Path) -> None:
        """Write what fairseq-preprocess would; its commands are printed as typed for the directory ``shown_as``."""
        task, splits = self.options["task"], self.reader.splits
        labelled = [split for split in splits if (self.text / f"{split}.label").is_file()]
        fixed = self.dictionary if has_dictionary(self.options) else None
        commands = example_commands(splits, labelled, task, fixed, self.workers)
        counts = run(commands, self.directory, shown_as)
        check_known(counts)
        for split, report in self.reports.items():
            report.treatments["source_tokens_unknown_to_dictionary"] += counts[f"text/{split}.input0"].unknown

    @property
    def text(self) -> Path:
        return self.directory / "text"

    @property
    def bin(self) -> Path:
        return self.directory / "bin"

    @property
    def dictionary(self) -> Path:
        """The dictionary of the input, relative to the directory."""
        return input_directory(self.options["task"]) / "dict.txt"

    def _write(self, split: str, lost: Counter[str]) -> SplitLabels:
        examples = read_split(
            self.reader, split, self.root, self.options["limit"], lost, self.options["partial"], self.known
        )
        path = examples_path(self.text, split)
        return write_examples(examples, self.options["task"], self.options["on_empty"], path, lost)

    def _classes(self, labels: Mapping[str, SplitLabels]) -> list[str] | None:
        """The tokens of the labels, in the order of their classes; None if they are positions."""
        if self.options["task"] == "qa":
            return None
        known = Vocabulary.open(self.options["vocabulary"]).labels if self.options["vocabulary"] else None
        return [label_token(label) for label in class_labels(self.options["task"], labels, known)]

    def _positions(self) -> list[str]:
        """All positions that a token of a row can have."""
        longest = max(max(report.source_lengths, default=0) for report in self.reports.values())
        return list(map(str, range(longest)))
