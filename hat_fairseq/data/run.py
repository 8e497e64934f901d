"""One run of preprocessing, from top to bottom: clean the records, learn the BPE, encode them, binarize the rows.

Clean, learn and encode map functions of `stages.py` over blocks of records; binarize maps those of `binarize.py` over
lines of the text files. So order and bytes of the result do not depend on the number of processes, and a killed run
resumes.
"""

import json
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np

from hat_fairseq.data import stages
from hat_fairseq.data.binarize import LABELS, ROLE_LABELS, binarize, check_splits
from hat_fairseq.data.blocks import Block, Blocks, Task, tasks_of_lines
from hat_fairseq.data.bpe import LearnedBpe, letters_without_symbol
from hat_fairseq.data.dictionary import Dictionary, label_of, label_token
from hat_fairseq.data.files import recorded_inputs
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.kinds.documents import role_token
from hat_fairseq.data.kinds.pretraining import pack_documents
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.options import Options
from hat_fairseq.data.outputs import check_space
from hat_fairseq.data.pipeline import FILE_NAME, BinFolder, TextPipeline, has_dictionary, ready_made
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.word_tokenizer import word_tokenizer_of
from hat_fairseq.versions import digest
from hat_fairseq.workers import progress

MAX_WITHOUT_SYMBOL = 0.25  # of the letters of the training texts, from which a warning is given
LEAST_CODES = 100  # with fewer no warning is given
DIGESTS = np.dtype([("ids", "S16"), ("sources", "S16")])  # 32 bytes a record: a split may have hundreds of millions
EXPANSION = 6  # bytes of the results, and of the blocks beside them, for each byte of records


@dataclass
class Run:
    """Fills `directory` with `text/` and `bin/`."""

    reader: Reader
    options: Options
    directory: Path  # exists and is empty
    blocks: Blocks
    root: Path | None = None  # of the raw release
    bpe_dir: Path | None = None  # where the files of a ready-made BPE are; None for the usual places of GPT-2's
    inputs: set[Path] = field(default_factory=set)  # the files that the reader has read

    def __post_init__(self) -> None:
        self.kind = kind_of(self.options.kind)
        self.text, self.bin = self.directory / "text", self.directory / "bin"
        self.dictionary = self.bin / self.kind.folder / "dict.txt"  # of the source, if it is fixed
        self.vocabulary = BinFolder.open(self.options.vocabulary) if self.options.vocabulary else None
        self.reports = {split: SplitReport(self.kind) for split in self.reader.splits}
        self.stored: dict[str, list[Task]] = {split: [] for split in self.reader.splits}  # to encode

    def run(self) -> dict[str, SplitReport]:
        """Runs all stages; returns the figures of each split."""
        check_splits(self.reader.splits)
        check_space(self.directory.parent, EXPANSION * (0 if self.options.limit else self.reader.size))
        for side in ("source", "target"):  # a missing package, or a language, is reported before the long stages start
            word_tokenizer_of(self.options, side)
        if not has_dictionary(self.options):
            self.reports[self.reader.splits[0]].tokens = Counter()
        self.text.mkdir()
        self.bin.mkdir()
        bpe = ready_made(self.options, self.vocabulary, self.bpe_dir, self.dictionary)
        self.learns = bpe is None
        self.clean()
        if bpe is None:  # a joint one, of sources and targets
            counted = self.reports[self.reader.splits[0]].words
            bpe = LearnedBpe.learn(counted, self.options.num_codes)
            counted.clear()  # it takes memory
        pipeline = TextPipeline(self.options.settings(self.roles()), bpe)
        pipeline.save(self.bin)
        for split in self.reports:
            self.encode(split, pipeline)
        self.write_labels(pipeline.settings.role_labels)
        self.binarize()
        return self.reports

    def clean(self) -> None:
        """Reads, prepares (`Kind.prepare`) and checks the records of all splits; stores them in `text/SPLIT.jsonl`."""
        earlier: dict[str, np.ndarray] = {}
        key = digest("clean", self.options)
        for split, report in self.reports.items():
            counts: Counter[str] = Counter()  # of what the reader drops
            to_learn = self.learns and split == self.reader.splits[0]
            function = partial(stages.clean_block, self.options, split, to_learn)
            with recorded_inputs() as inputs:
                lines = islice(self.reader.lines(split, self.root, counts), self.options.limit)
                tasks = tasks_of_lines(lines, digest(key, split, to_learn))
                self.store(split, self.blocks.map(function, tasks), earlier)
            if not self.stored[split]:
                left_out = [f"{name.replace('_', ' ')} {number:,}" for name, number in counts.items() if number]
                read = [f"read {', '.join(map(str, sorted(inputs)[:3]))}"] if inputs else []
                details = f" ({'; '.join([*read, *left_out])})" if read or left_out else ""
                raise ValueError(f"{self.reader.name}: the split {split} has no documents{details}")
            self.inputs |= inputs
            report.treatments.update(counts)
            report.check_gold(split)
        tests = {split: bool(report.with_gold) for split, report in self.reports.items() if split.startswith("test")}
        if self.kind.gold and len(set(tests.values())) > 1:  # fairseq numbers those with labels on their own
            labelled, other = (next(split for split in tests if tests[split] is has) for has in (True, False))
            raise ValueError(
                f"{labelled} has {self.kind.gold} and {other} has not: preprocess them from separate folders"
            )
        self.classes()  # refuses labels that the training split does not have before the long stages start

    def store(self, split: str, blocks: Iterable[Block], earlier: dict[str, np.ndarray]) -> None:
        """Writes the records of the blocks, and checks their ids and their number.

        `earlier` has digests of the ids and of the sources of earlier splits, without the records that are dropped;
        those of this one are added.
        """
        release = self.reader.release.get(split, ())
        expected = self.options.limit or next(iter(release), None)
        digests = np.fromiter(progress(self.headers(split, blocks), f"{split}: read", expected), DIGESTS)
        ids, sources = digests["ids"], digests["sources"]
        first = np.unique(ids, return_index=True)[1]
        if len(first) < len(ids):
            stored = (header for task in self.stored[split] for header in Block.open(task.argument).headers)
            _, _, name = next(islice(stored, int(np.setdiff1d(np.arange(len(ids)), first)[0]), None))
            raise ValueError(f"{self.reader.name}, {split}: the id of {name} occurs twice in this split")
        for what, values in (("ids", ids[sources != b""]), ("sources", sources[sources != b""])):
            before = earlier.get(what, values[:0])
            self.reports[split].treatments[f"{what}_in_an_earlier_split"] += int(np.isin(values, before).sum())
            earlier[what] = np.union1d(before, values)
        if len(ids) and release and self.options.limit is None and not self.options.partial and len(ids) not in release:
            raise ValueError(
                f"{self.reader.name}: the split {split} has {len(ids):,} documents, a complete release "
                f"{' or '.join(f'{number:,}' for number in release)}; complete it, or use what is there with "
                "--partial, or only the first N documents with --limit N"
            )

    def headers(self, split: str, blocks: Iterable[Block]) -> Iterator[tuple[bytes, ...]]:
        """Yields digests of the id and of the sources of each record of blocks, which are written."""
        for block in self.counted(split, blocks):
            assert block.archive is not None
            append(self.directory, [block.files])
            name = f"{block.headers[0][2]} to {block.headers[-1][2]}"
            self.stored[split].append(Task(block.archive.name, block.archive, name))
            yield from (tuple(map(bytes.fromhex, digests)) for *digests, _ in block.headers)

    def counted(self, split: str, blocks: Iterable[Block]) -> Iterator[Block]:
        """Yields blocks, whose figures are added to those of their split."""
        for block in blocks:
            self.reports[split].add(block.figures)
            yield block

    def encode(self, split: str, pipeline: TextPipeline) -> None:
        """Writes the streams of the rows, `text/SPLIT.STREAM`, and the files about them."""
        encoder, report = pipeline.encoder(chunk_by_source=split.startswith("test")), self.reports[split]
        negatives = self.options.negative_windows if split == "train" else 1.0
        key = digest("encode", (self.bin / FILE_NAME).read_bytes(), split, negatives)
        tasks = [task._replace(digest=digest(key, task.digest)) for task in self.stored[split]]
        function = partial(stages.encode_block, encoder, split, negatives, report.tokens is not None)
        blocks = self.blocks.map(function, tasks)
        encoded = self.counted(split, progress(blocks, f"{split}: encode", len(tasks), "blocks"))
        if self.kind.fills_rows(encoder.settings):
            append(self.directory, self.packed(split, replace(encoder, counts=report.treatments), encoded))
        else:
            append(self.directory, (block.files for block in encoded))
        if not report.lengths["source"]:
            raise ValueError(f"{split}: no window has an answer, and the others are dropped; raise --negative-windows")

    def packed(self, split: str, encoder: RowEncoder, blocks: Iterable[Block]) -> Iterator[dict[str, bytes]]:
        """Yields files of rows that are filled with the segments of consecutive documents, also of different blocks."""
        documents = (document for block in blocks for document in json.loads(block.records))
        rows = (Row("", 0, 1, {"source": tokens}) for tokens in pack_documents(encoder, documents))
        while chunk := list(islice(rows, 1000)):
            yield stages.lines_of_rows(chunk, split, self.reports[split])

    def write_labels(self, roles: tuple[str, ...]) -> None:
        """Writes the dictionaries of labels and of roles, if there are any."""
        if roles:
            Dictionary.of(map(role_token, roles)).save(self.directory / ROLE_LABELS)
        classes = self.classes()
        if classes is None:
            return
        for problem in problems_of_labels(list(map(label_of, classes))):
            print(f"warning: {problem}", file=sys.stderr)
        longest = max(max(report.lengths["source"], default=0) for report in self.reports.values())
        # All positions that a token of a row can have; a row's final </s> has none.
        positions = map(str, range(longest - 1)) if self.kind.positions else ()
        Dictionary.of([*classes, *positions]).save(self.directory / LABELS)

    def binarize(self) -> None:
        """Writes what fairseq-preprocess would write for the streams of all splits."""
        tokens = self.reports[self.reader.splits[0]].tokens
        dictionary = Dictionary.load(self.dictionary) if tokens is None else Dictionary.build(tokens)
        unknown = binarize(self.directory, self.kind, self.reader.splits, dictionary, self.blocks)
        for split, report in self.reports.items():
            for side in ("source", "target"):
                report.treatments[f"{side}_tokens_unknown_to_dictionary"] += unknown.get(f"{split}.{side}", 0)
        if self.learns and self.kind.is_text:
            self.check_codes(dictionary)

    def check_codes(self, dictionary: Dictionary) -> None:
        """Warns of a BPE with more codes than the texts support, whose dictionary has words and few letters."""
        missing = letters_without_symbol(dictionary.counts)
        if missing >= MAX_WITHOUT_SYMBOL and self.options.num_codes >= LEAST_CODES:
            print(
                f"warning: --num-codes {self.options.num_codes} are too many for these training texts: the BPE made "
                f"whole words of them, and {missing:.0%} of their letters have no token, so most words that are not in "
                "these texts will be unknown to the model; give fewer codes, or more texts",
                file=sys.stderr,
            )

    def roles(self) -> tuple[str, ...]:
        """Returns the labels of the role stream: those of --vocabulary, else those of the training split, sorted."""
        if not self.options.roles:
            return ()
        if self.vocabulary and (earlier := self.vocabulary.pipeline.settings.role_labels):
            return earlier
        if not (roles := self.reports[self.reader.splits[0]].role_counts):
            raise ValueError(
                f"{self.reader.name}: --roles needs documents with roles, and none has any; use --roles none"
            )
        return tuple(sorted(roles))

    def classes(self) -> list[str] | None:
        """Returns the tokens of the labels in the order of the classes, without positions; None without labels.

        They are those of the training split, sorted, or without such labels those of `--vocabulary`. The latter are
        written even if no record here has one: predictions need them. ValueError for a label that is not among them.
        """
        earlier: list[str] = []
        if self.vocabulary and self.vocabulary.pipeline.kind is self.kind:
            earlier = self.vocabulary.labels or []
        labelled = any(report.with_gold for report in self.reports.values())
        if self.kind.has_target or not (earlier or labelled) or (self.kind.positions and not labelled):
            return None
        if self.kind.classes is not None:
            return list(self.kind.classes)
        train = self.reports.get("train")
        from_train = train is not None and train.with_gold is not None
        classes = sorted(train.labels) if train and from_train else earlier
        where = "the training part" if from_train else "the data of --vocabulary"
        for split, report in self.reports.items():
            if unknown := sorted(report.labels.keys() - classes):
                raise ValueError(
                    f"{split}: {report.first_with[unknown[0]]} has the label {unknown[0]!r}, which {where} does not "
                    f"have; it has {', '.join(map(repr, classes[:20])) or 'none'}{', ...' if len(classes) > 20 else ''}"
                )
        return list(map(label_token, classes))


def append(directory: Path, texts: Iterable[Mapping[str, bytes]]) -> None:
    """Writes files in pieces; line i of all files is about row i, so each item has a piece of every file."""
    names: set[str] = set()
    for pieces in texts:
        names |= pieces.keys()
        if pieces and (pieces.keys() != names or len({piece.count(b"\n") for piece in pieces.values()}) > 1):
            raise ValueError(f"rows differ in their files: expected {', '.join(sorted(names))} of every row")
        for name, piece in pieces.items():
            with open(directory / name, "ab") as file:
                file.write(piece)


def problems_of_labels(labels: Sequence[str]) -> Iterator[str]:
    """Yields what is wrong with the labels of a data set: there is only one, or two that look the same."""
    if len(labels) == 1:
        yield f"every record has the label {labels[0]!r}"
    alike: dict[str, str] = {}
    for label in labels:
        if (other := alike.setdefault(" ".join(unicodedata.normalize("NFC", label).split()), label)) != label:
            yield f"the labels {ascii(other)} and {ascii(label)} look the same, and are two classes"
