"""One run of preprocessing, from top to bottom: clean the records, learn the BPE, encode them, binarize the rows.

Each stage maps a function of `stages.py` over blocks. So order and bytes of the result do not depend on the number of
processes, and a killed run goes on where it was.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from hat_fairseq.data import stages
from hat_fairseq.data.binarize import LABELS, ROLE_LABELS, binarize, check_splits
from hat_fairseq.data.blocks import Blocks, digest, group, part_names, read_part
from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.clean import role_token
from hat_fairseq.data.files import recorded_inputs
from hat_fairseq.data.gold import Gold, check_gold, check_tests, class_labels, role_labels
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.kinds.pretraining import pack_documents
from hat_fairseq.data.labels import label_token, write_label_dictionary
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.manifest import SplitReport, versions
from hat_fairseq.data.options import Options
from hat_fairseq.data.outputs import check_space
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline
from hat_fairseq.data.progress import progress
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.row_encoder import RowEncoder
from hat_fairseq.data.rows import Row, write_pieces
from hat_fairseq.data.vocabulary import Vocabulary, has_dictionary, ready_made
from hat_fairseq.data.word_tokenizer import word_tokenizer

EXPANSION = 5  # bytes of the results, and of the blocks beside them, for each byte of records


@dataclass
class Split:
    """What a run knows of a split."""

    name: str
    report: SplitReport
    gold: Gold = field(default_factory=Gold)  # the targets or labels
    stored: list[Path] = field(default_factory=list)  # blocks of stored records


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
        self.splits = [Split(name, SplitReport(self.kind)) for name in self.reader.splits]

    def run(self) -> dict[str, SplitReport]:
        """Runs all stages; returns the figures of each split."""
        check_splits(self.reader.splits)
        check_space(self.directory.parent, EXPANSION * (0 if self.options.limit else self.reader.size))
        for side in ("source", "target"):  # a missing package is reported before the long stages start
            word_tokenizer(getattr(self.options, f"{side}_tokenizer"), getattr(self.options, f"{side}_language"))
        self.text.mkdir()
        self.bin.mkdir()
        bpe = ready_made(self.options, self.bpe_dir, self.dictionary)
        self.clean()
        pipeline = TextPipeline(self.options.settings(self.roles()), bpe or self.learn())
        pipeline.save(self.bin)
        for split in self.splits:
            self.encode(split, pipeline)
        self.write_labels(pipeline.settings.role_labels)
        self.binarize()
        return {split.name: split.report for split in self.splits}

    @property
    def gold(self) -> dict[str, Gold]:
        return {split.name: split.gold for split in self.splits}

    @property
    def dictionary(self) -> Path:
        """Where a fixed dictionary of the source is."""
        return self.bin / self.kind.folder / "dict.txt"

    def clean(self) -> None:
        """Reads, prepares (`Kind.prepare`) and checks the records of all splits; stores them in `text/SPLIT.jsonl`."""
        earlier: set[object] = set()
        key = digest("clean", versions(), self.options)
        for split in self.splits:
            counts: Counter[str] = Counter()  # of what the reader drops
            function = partial(stages.clean_block, self.options, split.name.startswith("test"))
            with recorded_inputs() as inputs:
                lines = islice(self.reader.lines(split.name, self.root, counts), self.options.limit)
                blocks = (stages.block_of_lines(digest(key, split.name), block) for block in group(lines))
                self.store(split, self.blocks.map(function, blocks), earlier)
            self.inputs |= inputs
            split.report.treatments.update(counts)
            split.report.labels = split.gold.counts
            check_gold(split.name, split.gold, self.kind.gold)
        check_tests(self.gold, self.kind.gold)
        self.classes()  # refuses labels that the training part does not have before the long stages start

    def store(self, split: Split, archives: Iterable[Path], earlier: set[object]) -> None:
        """Write the records of the blocks, and check their ids and their number.

        `earlier` has ids and digests of the sources of earlier splits; those of this one are added.
        """
        ids: set[str] = set()
        sources: set[str] = set()
        expected = self.options.limit or next(iter(self.reader.release.get(split.name, ())), None)
        with open(self.text / f"{split.name}.jsonl", "wb") as file:
            headers = self._headers(split, archives, file)
            for record_id, source, name in progress(headers, f"{split.name}: read", expected):
                if record_id in ids:
                    raise ValueError(f"{self.reader.name}, {split.name}: the id of {name} occurs twice in this split")
                ids.add(record_id)
                sources.add(source)
                split.report.treatments["ids_in_an_earlier_split"] += record_id in earlier
                split.report.treatments["sources_in_an_earlier_split"] += source in earlier
        earlier |= ids | sources
        if not ids:
            raise ValueError(f"{self.reader.name}: the split {split.name} has no documents")
        release = self.reader.release.get(split.name, (len(ids),))
        if self.options.limit is None and not self.options.partial and len(ids) not in release:
            raise ValueError(
                f"{self.reader.name}: the split {split.name} has {len(ids):,} documents, a complete release "
                f"{' or '.join(f'{number:,}' for number in release)}; complete it, or use what is there with "
                "--partial, or only the first N documents with --limit N"
            )

    def _headers(self, split: Split, archives: Iterable[Path], file: BinaryIO) -> Iterator[list[str]]:
        """Id, digest of the source and name of each record; copies the stored records to the file."""
        for archive in archives:
            split.stored.append(archive)
            file.write(read_part(archive, "records"))
            figures = json.loads(read_part(archive, "figures"))
            split.report.treatments.update(figures["counts"])
            split.gold.update(figures["gold"])
            yield from figures["headers"]

    def learn(self) -> Bpe:
        """Learn a joint BPE from all texts of the training part, sources and targets."""
        words: Counter[str] = Counter()
        train = self.splits[0]
        blocks = stages.blocks_of_words(train.name, train.stored)
        archives = self.blocks.map(partial(stages.words_of_blocks, self.options), blocks)
        for archive in progress(archives, f"{train.name}: count words", len(blocks), "blocks"):
            words.update(json.loads(read_part(archive, "words")))
        return LearnedBpe.learn(words, self.options.num_codes)

    def encode(self, split: Split, pipeline: TextPipeline) -> None:
        """Write the streams of the rows, `text/SPLIT.STREAM`, and the files about them."""
        encoder = pipeline.encoder(by_source=split.name.startswith("test"))
        negatives = self.options.negative_windows if split.name == "train" else 1.0
        key = digest("encode", (self.bin / FILE_NAME).read_bytes(), split.name, negatives)
        blocks = (stages.stored_block(key, path) for path in split.stored)
        encoded = self.blocks.map(partial(stages.encode_block, encoder, split.name, negatives), blocks)
        archives = progress(encoded, f"{split.name}: encode", len(split.stored), "blocks")
        texts = self._packed(split, encoder, archives) if encoder.packs else self._texts(split, archives)
        write_pieces(self.directory, texts)
        if not split.report.lengths["source"]:
            raise ValueError(
                f"{split.name}: no window has an answer, and the others are dropped; raise --negative-windows"
            )

    def _texts(self, split: Split, archives: Iterable[Path]) -> Iterator[dict[str, bytes]]:
        for archive in archives:
            split.report.add(json.loads(read_part(archive, "figures")))
            yield {name: read_part(archive, name) for name in part_names(archive) if "/" in name}

    def _packed(self, split: Split, encoder: RowEncoder, archives: Iterable[Path]) -> Iterator[dict[str, bytes]]:
        """Rows that are filled with the segments of consecutive documents, also of different blocks."""
        counts = split.report.treatments
        packed = pack_documents(replace(encoder, counts=counts), self._documents(split, archives))
        rows = (Row("", 0, 1, {"source": tokens}) for tokens in packed)
        while chunk := list(islice(rows, 1000)):
            yield {name: text.encode() for name, text in stages.lines_of_rows(chunk, split.name, split.report).items()}

    def _documents(self, split: Split, archives: Iterable[Path]) -> Iterator[list[list[str]]]:
        """The segments of each document."""
        for archive in archives:
            split.report.add(json.loads(read_part(archive, "figures")))
            yield from stages.stored_units(archive)

    def write_labels(self, roles: tuple[str, ...]) -> None:
        """Write the dictionaries of labels and of roles, if there are any."""
        if roles:
            write_label_dictionary(map(role_token, roles), self.directory / ROLE_LABELS)
        classes = self.classes()
        if classes is None:
            return
        if len(classes) == 1:
            print(f"the only label is {classes[0]!r}: a model has nothing to tell apart", file=sys.stderr)
        longest = max(max(split.report.lengths["source"], default=0) for split in self.splits)
        # All positions that a token of a row can have; a row's final </s> has none.
        positions = map(str, range(longest - 1)) if self.kind.positions else ()
        write_label_dictionary([*classes, *positions], self.directory / LABELS)

    def binarize(self) -> None:
        """Write what fairseq-preprocess would write for the streams of all splits."""
        fixed = self.dictionary if has_dictionary(self.options) else None
        unknown = binarize(self.directory, self.kind, self.reader.splits, fixed, self.blocks)
        for split in self.splits:
            for side in ("source", "target"):
                name = f"{side}_tokens_unknown_to_dictionary"
                split.report.treatments[name] += unknown.get(f"{split.name}.{side}", 0)

    def roles(self) -> tuple[str, ...]:
        """Returns the labels of the role stream: those of --vocabulary, else those of the training part, sorted."""
        if not self.options.roles:
            return ()
        if self.options.vocabulary and (known := Vocabulary.open(self.options.vocabulary).settings.role_labels):
            return known
        return role_labels(self.reader.name, self.splits[0].gold)

    def classes(self) -> list[str] | None:
        """Returns the tokens of the labels in the order of the classes, without positions; None without labels.

        Those of `--vocabulary` are written even if no record here has one: predictions need them.
        """
        vocabulary = Vocabulary.open(self.options.vocabulary) if self.options.vocabulary else None
        known = vocabulary.labels if vocabulary and vocabulary.settings.kind == self.kind.name else None
        any_known = any(split.gold.known for split in self.splits)
        if self.kind.has_target or not (known or any_known) or (self.kind.positions and not any_known):
            return None
        if self.kind.classes is not None:
            return list(self.kind.classes)
        return [label_token(label) for label in class_labels(self.gold, known)]
