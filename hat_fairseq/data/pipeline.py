"""`TextPipeline`: record to rows of tokens, and tokens back to text. It is saved beside the binary data.

`BinFolder` is what such a folder has; `ready_made` finds the BPE of a new one.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from shutil import copyfile
from typing import Any, Self

from hat_fairseq.data.bpe import Bpe, LearnedBpe, NoBpe
from hat_fairseq.data.dictionary import DICTIONARIES, Dictionary, find_dictionary, read_labels
from hat_fairseq.data.files import json_text, parse_json, sha256_of, state_of
from hat_fairseq.data.gpt2_bpe import find_gpt2_files, read_gpt2
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.record import Record
from hat_fairseq.data.round_trip import running_text
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentencepiece_bpe import MODEL, SentencePieceBpe
from hat_fairseq.data.sentences import Prepared
from hat_fairseq.data.text import CONTROL_TOKENS, SEPARATOR
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe, find_tokenizer

FILE_NAME = "pipeline.json"
FORMAT = 4
_CHANGED = f"{{}} is missing or was changed after {FILE_NAME} was written"
LATER = {"max_chunk_tokens": None, "line_breaks": "space"}  # settings that earlier versions do not have: what they did
BPE_FILES = {
    "learned": ("bpe.codes",),
    "gpt2": ("encoder.json", "vocab.bpe"),
    "sentencepiece": (MODEL,),
    "tokenizer": ("bpe.json",),  # not tokenizer.json: transformers would take it for the whole tokenizer of a model
    "none": (),
}
LOAD: dict[str, Any] = {
    "learned": LearnedBpe.load,
    "gpt2": read_gpt2,
    "sentencepiece": SentencePieceBpe,
    "tokenizer": TokenizerBpe.load,
    "none": NoBpe,
}


@dataclass
class TextPipeline:
    """Encodes records, and decodes what a model has generated."""

    settings: Settings
    bpe: Bpe
    counts: Counter[str] = field(default_factory=Counter)  # everything replaced, dropped or truncated so far
    needed: Counter[str] = field(default_factory=Counter)  # limits of the sources so far, see `RowEncoder`

    @property
    def kind(self) -> Kind:
        return kind_of(self.settings.kind)

    def encode(self, record: Record) -> list[Row]:
        """Returns the rows of a raw record for inference, without its target, labels and answers.

        ValueError: EmptyDocumentError, MisalignedError or LongInputError; or it lacks something that the settings need.
        """
        self.kind.check(record)
        return self.kind.encode(self.encoder(), self.prepare(record).without_gold())

    def prepare(self, record: Record) -> Prepared:
        """Returns a raw record with its divided texts; see `Kind.prepare`."""
        return self.kind.prepare(record, self.settings, self.counts)

    def rows(self, record: Record, chunk_by_source: bool = False) -> list[Row]:
        """Returns the rows of a raw record with its target, labels and answers; `chunk_by_source`: see `RowEncoder`."""
        return self.kind.encode(self.encoder(chunk_by_source), self.prepare(record))

    def encoder(self, chunk_by_source: bool = False) -> RowEncoder:
        """Returns the encoder, which adds to the counts of this pipeline."""
        options = self.settings, self.bpe, self.kind.policies, chunk_by_source, self.counts
        return RowEncoder(*options, needed=self.needed)

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
        self.counts.update(f"texts_decoded_without_{what}" for what in self.bpe.loses)
        return running_text(map(self.bpe.decode, segments), self.settings, side)

    def save(self, directory: str | Path) -> None:
        """Writes `pipeline.json` and the files of the BPE."""
        directory = Path(directory)
        names = BPE_FILES[self.bpe.kind]
        self.bpe.save(*(directory / name for name in names))
        settings = asdict(self.settings)
        record = {
            "format": FORMAT,
            "settings": {name: value for name, value in settings.items() if value != LATER.get(name, ...)},
            "bpe": {"kind": self.bpe.kind, "sha256": {name: sha256_of(directory / name) for name in names}},
        }
        (directory / FILE_NAME).write_text(json_text(record, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: str | Path) -> Self:
        """Reads what `save` wrote; ValueError for a file that is missing or changed, or settings of another version."""
        directory = Path(directory)
        if not (path := directory / FILE_NAME).is_file():
            if (directory / "bin" / FILE_NAME).is_file():
                raise ValueError(f"{path} is missing: give the bin directory of the data, {directory / 'bin'}")
            raise ValueError(f"{path} is missing: {directory} is no directory written by hat preprocess")
        try:
            record = parse_json(path.read_text(encoding="utf-8"))
            if record["format"] != FORMAT:
                raise ValueError(f"it has format {record['format']!r}, this version needs {FORMAT}")
            kind, hashes = record["bpe"]["kind"], record["bpe"]["sha256"]
            settings, known = record["settings"], {item.name for item in fields(Settings)}
            if settings.keys() | LATER.keys() != known:
                raise ValueError(f"it has the settings {sorted(settings)}, this version needs {sorted(known)}")
            settings = Settings(**{**LATER, **settings, "role_labels": tuple(settings["role_labels"])})
            expected = {name: hashes[name] for name in BPE_FILES[kind]}
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(
                f"{path} cannot be read ({error}); make the data again, with the options that manifest.json records: "
                "hat preprocess READER --out NEW_DIRECTORY"
            ) from error
        if missing := [name for name in expected if not (directory / name).is_file()]:
            raise ValueError(_CHANGED.format(directory / missing[0]))
        state = tuple(state_of(directory / name) for name in expected)
        return cls(settings, _bpe(kind, directory.absolute(), tuple(expected.items()), state))


@lru_cache(maxsize=8)
def _bpe(kind: str, directory: Path, hashes: Sequence[tuple[str, str]], state: object) -> Bpe:
    """Loads a BPE once a process, as long as its files are the same; ValueError if one does not have its hash."""
    for name, sha256 in hashes:
        if sha256_of(directory / name) != sha256:
            raise ValueError(_CHANGED.format(directory / name))
    bpe: Bpe = LOAD[kind](*(directory / name for name, _ in hashes))
    return bpe


@dataclass(frozen=True)
class BinFolder:
    """The BPE, dictionary and settings of an earlier `bin` directory."""

    pipeline: TextPipeline
    dictionary: Path  # fairseq's dictionary of its input
    labels: list[str] | None  # its labels in the order of their classes, or None

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """Reads a directory that `hat preprocess` wrote.

        Raises ValueError if it is none, was changed, or has no dictionary.
        """
        directory = Path(directory)
        pipeline = TextPipeline.load(directory)
        dictionary, labels = find_dictionary(directory, "source"), find_dictionary(directory, "label")
        if dictionary is None:
            raise ValueError(f"{directory} has none of {', '.join(DICTIONARIES['source'])}")
        return cls(pipeline, dictionary, read_labels(labels) if labels else None)


def has_dictionary(options: Options) -> bool:
    """Tells whether the dictionary is fixed, not built from the training text."""
    return bool(options.vocabulary or kind_of(options.kind).alphabet) or options.bpe != "learned"


def ready_made(options: Options, vocabulary: BinFolder | None, bpe_dir: Path | None, dictionary: Path) -> Bpe | None:
    """Returns the BPE, or None if it is to be learned.

    Its dictionary is copied if it has one. ValueError for missing files.
    """
    dictionary.parent.mkdir(exist_ok=True)
    if vocabulary:
        Dictionary.load(vocabulary.dictionary)  # an error there names the user's file
        copyfile(vocabulary.dictionary, dictionary)
        return vocabulary.pipeline.bpe
    if not (kind := kind_of(options.kind)).is_text:
        if kind.alphabet:
            Dictionary.of(kind.alphabet).save(dictionary)
        return NoBpe()
    if options.bpe == "gpt2":
        gpt2 = find_gpt2_files(bpe_dir)
        copyfile(gpt2 / "dict.txt", dictionary)
        return read_gpt2(gpt2 / "encoder.json", gpt2 / "vocab.bpe")
    if options.bpe == "sentencepiece":
        bpe = SentencePieceBpe(model := find_tokenizer(bpe_dir, options.bpe, (MODEL,)))
        if (own := model.with_name("dict.txt")).is_file():  # of a model with fewer entries, or more
            copyfile(own, dictionary)
        else:
            Dictionary.of(bpe.pieces()).save(dictionary)
        return bpe
    if options.bpe == "tokenizer":
        entries = TokenizerBpe.load(find_tokenizer(bpe_dir))
        Dictionary.of(entries.symbols).save(dictionary)
        return entries
    return None


def recorded_settings(path: str | Path) -> dict[str, Any]:
    """Returns the settings that `hat preprocess` recorded for a file of its folder `text` or `bin`, or none."""
    folder = Path(path).resolve().parent
    file = (folder.parent / "bin" if folder.name == "text" else folder) / FILE_NAME
    try:
        return dict(parse_json(file.read_text(encoding="utf-8"))["settings"])
    except (OSError, ValueError, KeyError, TypeError):  # none, or of another version
        return {}


def recorded_language(path: str | Path) -> str | None:
    """Returns the target language of `recorded_settings`, or None."""
    language = recorded_settings(path).get("target_language")
    return None if language is None else str(language)
