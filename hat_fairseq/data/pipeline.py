"""`TextPipeline`: record to rows of tokens, and tokens back to text. It is saved beside the binary data."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from hat_fairseq.data.bpe import FILES, Bpe, load_bpe
from hat_fairseq.data.files import parse_json, sha256_of
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.options import Settings, settings_from_json, settings_to_json
from hat_fairseq.data.record import Record
from hat_fairseq.data.row_encoder import RowEncoder
from hat_fairseq.data.rows import Row
from hat_fairseq.data.text import CONTROL_TOKENS, SEPARATOR, restore_control_tokens
from hat_fairseq.data.word_tokenizer import SPACE_AFTER_SENTENCE, WITHOUT_SPACES, word_tokenizer

FILE_NAME = "pipeline.json"
FORMAT = 4


@dataclass
class TextPipeline:
    """Encodes records, and decodes what a model has generated."""

    settings: Settings
    bpe: Bpe
    counts: Counter[str] = field(default_factory=Counter)  # everything replaced, dropped or truncated so far

    @property
    def kind(self) -> Kind:
        return kind_of(self.settings.kind)

    def encode(self, record: Record) -> list[Row]:
        """Returns the rows of a raw record for inference, without its target, labels and answers.

        ValueError: EmptyDocumentError, MisalignedError or LongInputError; or it lacks something that the settings need.
        """
        self.kind.check(record)
        return self.rows(self.prepare(record).without_gold())

    def prepare(self, record: Record) -> Record:
        """Returns the record as `text/SPLIT.jsonl` has it; see `Kind.prepare`."""
        return self.kind.prepare(record, self.settings, self.counts)

    def rows(self, record: Record, by_source: bool = False) -> list[Row]:
        """Returns the rows of a prepared record with its target, labels and answers; `by_source`: see `RowEncoder`."""
        return self.kind.encode(self.encoder(by_source), record)

    def encoder(self, by_source: bool = False) -> RowEncoder:
        """Returns the encoder, which adds to the counts of this pipeline."""
        return RowEncoder(self.kind, self.settings, self.bpe, by_source, self.counts)

    def decode(self, line: str, side: str = "target") -> str:
        """Returns the text of a line of tokens as fairseq prints it; a tab stands for each `<sep>`.

        Sentence markers and other control tokens are left out, but `<unk>` stays, because it stands for something.
        `side`: `target`, which is what a model generates, or `source`: whose words they are.
        """
        segments: list[list[str]] = [[]]
        for token in line.split():
            if token == SEPARATOR:
                segments.append([])
            elif token == "<unk>" or token not in CONTROL_TOKENS:
                segments[-1].append(token)
        tokenizer, language = (getattr(self.settings, f"{side}_{what}") for what in ("tokenizer", "language"))
        join = word_tokenizer(tokenizer, language).detokenize
        # Restored first: brackets and letters that stand apart as words must not become an escaped token. A model can
        # generate GPT-2's tokens for line breaks and tabs; one would break fairseq's lines, the other means <sep>.
        texts = [join(restore_control_tokens(self.bpe.decode(tokens))) for tokens in segments]
        decoded = "\t".join(" ".join(text.split()) for text in texts)
        return SPACE_AFTER_SENTENCE.sub("", decoded) if language in WITHOUT_SPACES else decoded

    def save(self, directory: str | Path) -> None:
        """Write `pipeline.json` and the files of the BPE."""
        directory = Path(directory)
        names = FILES[self.bpe.kind]
        self.bpe.save(*(directory / name for name in names))
        record = {
            "format": FORMAT,
            "settings": settings_to_json(self.settings),
            "bpe": {"kind": self.bpe.kind, "sha256": {name: sha256_of(directory / name) for name in names}},
        }
        (directory / FILE_NAME).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Read what `save` wrote; ValueError for a file that is missing or changed, or settings of another version."""
        directory = Path(directory)
        if not (path := directory / FILE_NAME).is_file():
            raise ValueError(f"{path} is missing: {directory} is no directory written by hat preprocess")
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise ValueError(f"it has format {record['format']!r}, this version needs {FORMAT}")
            kind, hashes = record["bpe"]["kind"], record["bpe"]["sha256"]
            settings = settings_from_json(record["settings"])
            expected = {name: hashes[name] for name in FILES[kind]}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); make the data again, with the options that manifest.json records: "
                "hat preprocess READER --out NEW_DIRECTORY"
            ) from error
        for name, sha256 in expected.items():
            if not (directory / name).is_file() or sha256_of(directory / name) != sha256:
                raise ValueError(f"{directory / name} is missing or was changed after {FILE_NAME} was written")
        return cls(settings, load_bpe(kind, directory))


def recorded_language(path: str | Path) -> str | None:
    """Returns the target language that `hat preprocess` recorded for a file of its folder `text` or `bin`, or None."""
    folder = Path(path).resolve().parent
    file = (folder.parent / "bin" if folder.name == "text" else folder) / FILE_NAME
    try:
        return str(parse_json(file.read_text(encoding="utf-8"))["settings"]["target_language"])
    except (OSError, ValueError, KeyError, TypeError):  # none, or of another version
        return None
