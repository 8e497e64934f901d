"""One run of preprocessing: the stages in their order, in one directory."""

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hat_fairseq.data.binarize import check_known, fairseq_commands, run, write_role_labels
from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.prepare import role_token
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.settings import Settings, settings_of
from hat_fairseq.data.stages import (
    Policies,
    documents_path,
    encode_split,
    learn_bpe,
    prepare_split,
    read_split,
    role_labels,
)
from hat_fairseq.data.vocabulary import Vocabulary, has_dictionary, ready_made
from hat_fairseq.data.word_tokenizer import word_tokenizer


@dataclass
class Build:
    """Fills ``directory`` with ``text/`` and ``bin/``.

    Args:
        reader: where the documents come from.
        options: those of ``preprocess.DEFAULTS``, all of them.
        directory: exists and is empty.
        root: where the raw release is, for the reader.
        bpe_dir: where the files of the GPT-2 BPE are; None for the usual places.
        workers: number of processes.
        reports: figures of each split, once it has been encoded.
    """

    reader: Reader
    options: Mapping[str, Any]
    directory: Path
    root: Path | None = None
    bpe_dir: Path | None = None
    workers: int = 1
    reports: dict[str, SplitReport] = field(default_factory=dict)
    known: set[object] = field(default_factory=set, init=False)  # see ``stages.read_split``

    def text_and_pipeline(self) -> None:
        """Write the documents, the pipeline and the streams of every split."""
        settings = settings_of(self.options)
        self.text.mkdir()
        self.bin.mkdir()
        known_bpe = self._check_early(settings)
        lost = {split: self._prepare(split, settings) for split in self.reader.splits}

        train = documents_path(self.text, self.reader.splits[0])
        if self.options["roles"]:
            settings = replace(settings, roles=self._known_roles() or role_labels(train))
            write_role_labels([role_token(role) for role in settings.roles or ()], self.directory)
        bpe = known_bpe or learn_bpe(train, settings, self.options["num_codes"], self.workers)
        pipeline = TextPipeline(settings, bpe)
        pipeline.save(self.bin)

        for split in self.reader.splits:
            by_source = self.options["chunk_by"] == "source" and split.startswith("test")
            self.reports[split] = encode_split(pipeline, self.text, split, self.workers, by_source)
            self.reports[split].treatments.update(lost[split])
            shutil.copyfile(self.text / f"{split}.ids", self.bin / f"{split}.ids")  # to join chunks with bin/ alone

    def binarize(self, shown_as: Path) -> None:
        """Write what fairseq-preprocess would; its commands are printed as typed for the directory ``shown_as``."""
        dictionary = Path("bin", "dict.txt") if has_dictionary(self.options) else None
        blind = [split for split in self.reader.splits if not (self.text / f"{split}.target").is_file()]
        commands = fairseq_commands(self.reader.splits, dictionary, self.options["roles"], self.workers, blind)
        counts = run(commands, self.directory, shown_as)
        if len(blind) == len(self.reader.splits):  # no command has written it
            shutil.copyfile(self.bin / "dict.source.txt", self.bin / "dict.target.txt")
        check_known(counts)
        for split, report in self.reports.items():
            for side in ("source",) if split in blind else ("source", "target"):
                report.treatments[f"{side}_tokens_unknown_to_dictionary"] += counts[f"text/{split}.{side}"].unknown

    @property
    def text(self) -> Path:
        return self.directory / "text"

    @property
    def bin(self) -> Path:
        return self.directory / "bin"

    def _prepare(self, split: str, settings: Settings) -> Counter[str]:
        lost: Counter[str] = Counter()
        documents = read_split(
            self.reader, split, self.root, self.options["limit"], lost, self.options["partial"], self.known
        )
        policies = Policies(self.options["on_empty"], self.options["on_misaligned"], split.startswith("test"))
        lost += prepare_split(documents, settings, policies, documents_path(self.text, split), self.workers)
        return lost

    def _known_roles(self) -> tuple[str, ...] | None:
        """The roles of the run that --vocabulary names, if it has a role stream."""
        directory = self.options["vocabulary"]
        return Vocabulary.open(directory).pipeline.settings.roles if directory else None

    def _check_early(self, settings: Settings) -> Bpe | None:
        """Finds missing files before the long steps start; returns the BPE unless it is to be learned."""
        for name, language in zip(
            (settings.source_tokenizer, settings.target_tokenizer), settings.languages, strict=True
        ):
            word_tokenizer(name, language)
        return ready_made(self.options, self.bpe_dir, self.bin / "dict.txt")
