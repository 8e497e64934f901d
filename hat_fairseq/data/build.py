"""`Build`: the stages of one run of preprocessing, in order, for one directory."""

import shlex
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hat_fairseq.data import binarize
from hat_fairseq.data.clean import role_token
from hat_fairseq.data.encode_split import encode_split
from hat_fairseq.data.files import recorded_inputs
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.labels import label_token, write_label_dictionary
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options
from hat_fairseq.data.outputs import check_space
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Gold
from hat_fairseq.data.stages import Share, check_gold, learn_bpe, prepare_split, read_split, records_path, round_trip
from hat_fairseq.data.vocabulary import Vocabulary, has_dictionary, ready_made
from hat_fairseq.data.word_tokenizer import word_tokenizer

EXPANSION = 3  # bytes of a result for each byte of records


@dataclass
class Build:
    """Fills `directory` with `text/` and `bin/`."""

    reader: Reader
    options: Options
    directory: Path  # exists and is empty
    root: Path | None = None  # of the raw release
    bpe_dir: Path | None = None  # where the files of a ready-made BPE are; None for the usual places of GPT-2's
    workers: int = 1
    share: Share | None = None  # takes a share of the records, and leaves to `hat merge` what all of them decide
    reports: dict[str, SplitReport] = field(default_factory=dict)  # figures of each split, once it has been encoded
    gold: dict[str, Gold] = field(default_factory=dict)  # the targets or labels of each split
    inputs: set[Path] = field(default_factory=set)  # the files that the reader has read

    @property
    def kind(self) -> Kind:
        return kind_of(self.options.kind)

    @property
    def text(self) -> Path:
        return self.directory / "text"

    @property
    def dictionary(self) -> Path:
        """A fixed dictionary of the source, relative to the directory."""
        return Path("bin", self.kind.folder, "dict.txt")

    def text_and_pipeline(self) -> None:
        """Write the records, the pipeline and the streams of every split."""
        self.text.mkdir()
        check_space(self.directory.parent, EXPANSION * (0 if self.options.limit else self.reader.size))
        (self.directory / "bin").mkdir()
        for side in ("source", "target"):  # missing files and packages are found before the long steps start
            word_tokenizer(getattr(self.options, f"{side}_tokenizer"), getattr(self.options, f"{side}_language"))
        known_bpe = ready_made(self.options, self.bpe_dir, self.directory / self.dictionary)
        counts: dict[str, Counter[str]] = {split: Counter() for split in self.reader.splits}
        earlier: set[object] = set()
        for split in self.reader.splits:
            expected = self.options.limit or next(iter(self.reader.release.get(split, ())), None)
            with recorded_inputs() as inputs:
                if self.share:
                    records = self.share.read(self.reader, split, self.root, self.options)
                else:
                    records = read_split(self.reader, split, self.root, self.options, counts[split], earlier)
                own = counts[split], self.workers, expected
                self.gold[split] = prepare_split(records, split, self.options, self.text, *own)
            self.inputs |= inputs
            if not self.share:
                check_gold(split, self.gold[split], self.kind)
        check_space(self.directory.parent, (EXPANSION - 1) * sum(path.stat().st_size for path in self.text.iterdir()))
        first = self.reader.splits[0]
        roles = self._roles(self.gold[first])
        if not self.share:
            self._check_tests()
            self._classes()
        bpe = known_bpe or learn_bpe(self.text, first, self.options, self.workers, self.gold[first].records)
        pipeline = TextPipeline(self.options.settings(roles), bpe)
        pipeline.save(self.directory / "bin")
        for split in self.reader.splits:
            parallel = self.workers, self.gold[split].records, self.share
            self.reports[split] = encode_split(pipeline, split, self.options, self.directory, *parallel)
            self.reports[split].treatments.update(counts[split])
            self.reports[split].labels = self.gold[split].counts
        if roles:
            write_label_dictionary(map(role_token, roles), self.directory / binarize.ROLE_LABELS)
        if not self.share:
            self.finish(pipeline)

    def finish(self, pipeline: TextPipeline) -> None:
        """The steps that need all rows of all splits."""
        for split, report in self.reports.items():
            if not report.lengths["source"]:
                raise ValueError(
                    f"{split}: no window has an answer, and the others are dropped; raise --negative-windows"
                )
            if self.kind.has_target:
                report.round_trip = round_trip(pipeline, records_path(self.text, split))
        self._check_tests()
        if (classes := self._classes()) is not None:
            if len(classes) == 1:
                print(f"the only label is {classes[0]!r}: a model has nothing to tell apart", file=sys.stderr)
            longest = max(max(report.lengths["source"], default=0) for report in self.reports.values())
            # All positions that a token of a row can have; a row's final </s> has none.
            positions = map(str, range(longest - 1)) if self.kind.positions else ()
            write_label_dictionary([*classes, *positions], self.directory / binarize.LABELS)

    def binarize(self, shown_as: Path) -> list[str]:
        """Write what fairseq-preprocess would; returns its commands as typed for the directory `shown_as`."""
        splits = self.reader.splits
        dictionary = self.dictionary if has_dictionary(self.options) else None
        if self.kind.has_target:
            blind = [split for split in splits if not (self.text / f"{split}.target").is_file()]
            calls = binarize.of_documents(splits, blind, dictionary, self.options.roles)
        else:
            labelled = [split for split in splits if (self.text / f"{split}.label").is_file()]
            calls = binarize.of_rows(splits, labelled, dictionary, self.kind.folder)
        for text, found in binarize.run(calls, self.directory).items():
            split, stream = text.rsplit(".", 1)
            if stream in ("source", "target"):
                self.reports[split].treatments[f"{stream}_tokens_unknown_to_dictionary"] += found.unknown
        labels = self.directory / binarize.LABELS
        if labels.is_file() and not (known := self.directory / "bin/label/dict.txt").exists():  # no split has labels
            known.parent.mkdir()
            known.write_bytes(labels.read_bytes())
        if self.kind.has_target and not (target := self.directory / "bin/dict.target.txt").exists():  # all splits blind
            target.write_bytes(target.with_name("dict.source.txt").read_bytes())
        folder = shlex.quote(str(shown_as))
        return [f"(cd {folder} && {shlex.join(call.command(self.workers))})" for call in calls]

    def _check_tests(self) -> None:
        """fairseq numbers test, test1, ... those with and without targets or labels on their own."""
        tests = [split for split in self.gold if split.startswith("test")]
        with_gold = [split for split in tests if self.gold[split].known]
        if with_gold and with_gold != tests and self.kind.gold:
            without = next(split for split in tests if split not in with_gold)
            raise ValueError(
                f"{with_gold[0]} has {self.kind.gold} and {without} has not: preprocess them from separate folders"
            )

    def _roles(self, first: Gold) -> tuple[str, ...]:
        """The labels of the role stream: those of --vocabulary, else those of the training part, sorted."""
        if not self.options.roles:
            return ()
        if self.options.vocabulary and (known := Vocabulary.open(self.options.vocabulary).settings.role_labels):
            return known
        if self.share:
            raise ValueError("--roles with --shard: all shards need the same roles; give a --vocabulary that has roles")
        if not first.roles:
            raise ValueError(
                f"{self.reader.name}: --roles needs documents with roles, and none has any; use --no-roles"
            )
        return tuple(sorted(first.roles))

    def _classes(self) -> list[str] | None:
        """The tokens of the labels in the order of the classes, without positions; None without labels.

        Those of `--vocabulary` are written even if no record here has one: predictions need them.
        """
        vocabulary = Vocabulary.open(self.options.vocabulary) if self.options.vocabulary else None
        known = vocabulary.labels if vocabulary and vocabulary.settings.kind == self.kind.name else None
        any_known = any(each.known for each in self.gold.values())
        if self.kind.has_target or not (known or any_known) or (self.kind.positions and not any_known):
            return None
        if self.kind.classes is not None:
            return list(self.kind.classes)
        return [label_token(label) for label in class_labels(self.gold, known)]


def class_labels(splits: dict[str, Gold], known: list[str] | None) -> list[str]:
    """The labels in the order of their classes: those of the training part, sorted, or without such labels `known`.

    Raises:
        ValueError: a split has a label that is not among them; with the record.
    """
    train = splits.get("train", Gold())
    where = "the training part" if train.known else "the data of --vocabulary"
    classes = sorted(train.first_with) if train.known else known or []
    for split, gold in splits.items():
        for label, name in gold.first_with.items():
            if label not in classes:
                raise ValueError(
                    f"{split}: {name} has the label {label!r}, which {where} does not have; "
                    f"it has {', '.join(map(repr, classes[:20])) or 'none'}{', ...' if len(classes) > 20 else ''}"
                )
    return classes
