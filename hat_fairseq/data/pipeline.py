"""The single way from a document to tokens and back; its settings and BPE are saved beside the binary data."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hat_fairseq.data import long_source
from hat_fairseq.data import prepare as prepare_module
from hat_fairseq.data.bpe import FILES, Bpe, load_bpe, save_bpe
from hat_fairseq.data.document import Document
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.prepare import (
    EmptyDocumentError,
    Settings,
    role_tokens,
    settings_from_json,
    source_sentences,
    target_text,
)
from hat_fairseq.data.text import CONTROL_TOKENS, restore_control_tokens

__all__ = ["BOS", "FILE_NAME", "EmptyDocumentError", "EncodedDocument", "Settings", "TextPipeline"]

BOS = "<s>"
FILE_NAME = "pipeline.json"
FORMAT = 1


@dataclass(frozen=True)
class EncodedDocument:
    """A document as the model reads it, or one chunk of it.

    Args:
        id: the document's id.
        chunk: its number from 0.
        num_chunks: how many chunks the document has.
        tokens: BPE tokens with ``<s>`` before each sentence; never empty.
        roles: the label of the role stream for each token, markers included; None without role stream.
    """

    id: str
    chunk: int
    num_chunks: int
    tokens: list[str]
    roles: list[str] | None


@dataclass
class TextPipeline:
    """Encodes documents and decodes what a model has generated.

    Args:
        settings: see ``Settings``.
        bpe: a ``LearnedBpe`` or a ``Gpt2Bpe``.
        counts: everything replaced, dropped or truncated so far.
    """

    settings: Settings
    bpe: Bpe
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, document: Document) -> list[EncodedDocument]:
        """Encode a raw document: one result, or with the policy ``chunk`` one for each chunk.

        Raises:
            EmptyDocumentError: there is no sentence in it.
            LongSourceError: it is too long and the policy is ``error``.
        """
        return self.encode_prepared(self.prepare(document))

    def prepare(self, document: Document) -> Document:
        """Normalise a document and split it into sentences; see ``prepare.prepare``."""
        return prepare_module.prepare(document, self.settings, self.counts)

    def encode_prepared(self, document: Document) -> list[EncodedDocument]:
        """Like ``encode``, for a document that ``prepare`` has returned."""
        tokens, roles = self._tokens(document)
        limit = self.settings.max_source_tokens or len(tokens)
        parts = self._fit(document.id, "source", tokens, limit, self.settings.long_source)
        return [
            EncodedDocument(document.id, chunk, len(parts), tokens[part], None if roles is None else roles[part])
            for chunk, part in enumerate(parts)
        ]

    def encode_target(self, document: Document) -> list[str] | None:
        """Tokens of a document's target, without sentence markers; None if it has no target."""
        text = target_text(document, self.counts)
        if text is None:
            return None
        tokens = self.bpe.encode(text)
        limit = self.settings.max_target_tokens or max(1, len(tokens))
        (part,) = self._fit(document.id, "target", tokens, limit, self.settings.long_target)
        return tokens[part]

    def decode(self, line: str) -> str:
        """Text of a line of tokens as fairseq prints it; sentence markers and other control tokens are left out.

        ``<unk>`` stays, because it stands for something.
        """
        tokens = [token for token in line.split() if token == "<unk>" or token not in CONTROL_TOKENS]
        return restore_control_tokens(self.bpe.decode(tokens)).strip()

    def save(self, directory: str | Path) -> None:
        """Write ``pipeline.json`` and the files of the BPE."""
        directory = Path(directory)
        names = save_bpe(self.bpe, directory)
        record = {
            "format": FORMAT,
            "settings": asdict(self.settings),
            "bpe": {"kind": self.bpe.kind, "sha256": {name: sha256_of(directory / name) for name in names}},
        }
        (directory / FILE_NAME).write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, directory: str | Path) -> TextPipeline:
        """Read what ``save`` wrote.

        Raises:
            ValueError: a file is missing or changed, or the settings are of another version.
        """
        directory = Path(directory)
        path = directory / FILE_NAME
        if not path.is_file():
            raise ValueError(f"{path} is missing: {directory} is no directory written by hat preprocess")
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
            kind, hashes = record["bpe"]["kind"], record["bpe"]["sha256"]
            settings = settings_from_json(record["settings"])
            if record["format"] != FORMAT or sorted(hashes) != sorted(FILES[kind]):
                raise ValueError(f"unknown format {record['format']!r}")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} cannot be read ({error!r}); run hat preprocess again") from error
        for name, expected in hashes.items():
            if not (directory / name).is_file() or sha256_of(directory / name) != expected:
                raise ValueError(f"{directory / name} is missing or was changed after {FILE_NAME} was written")
        return cls(settings, load_bpe(kind, directory))

    def _tokens(self, document: Document) -> tuple[list[str], list[str] | None]:
        """All tokens of a prepared document, and the role token of each."""
        tokens: list[str] = []
        lengths: list[int] = []
        for index, sentence in enumerate(source_sentences(document, self.settings, self.counts)):
            pieces = self.bpe.encode(sentence if index == 0 else self.bpe.separator + sentence)
            before = len(tokens)
            for part in self._sentence_parts(pieces):
                tokens += [BOS, *part]
            lengths.append(len(tokens) - before)
        roles = role_tokens(document, self.settings)
        if roles is None:
            return tokens, None
        return tokens, [role for role, length in zip(roles, lengths, strict=True) for _ in range(length)]

    def _sentence_parts(self, pieces: list[str]) -> list[list[str]]:
        """For chunks, cut a sentence longer than a chunk, so that every chunk can begin with a marker."""
        limit = self.settings.max_source_tokens
        if self.settings.long_source != "chunk" or limit is None or len(pieces) < limit:
            return [pieces]
        self.counts["source_sentences_longer_than_chunk"] += 1
        room = limit - 1
        return [pieces[begin : begin + room] for begin in range(0, len(pieces), room)]

    def _fit(self, id_: str, what: str, tokens: list[str], limit: int, policy: str) -> list[slice]:
        try:
            offered = long_source.POLICIES[1:] if what == "source" else ("truncate",)
            parts, counts = long_source.fit([token == BOS for token in tokens], limit, policy, offered)
        except long_source.LongSourceError as error:
            raise long_source.LongSourceError(f"document {id_!r}: its {what} is too long: {error}") from error
        for name, number in counts.items():
            if what == "source" or "sentences" not in name:  # a target has no markers: its sentences are not known
                self.counts[f"{what}_{name}"] += number
        return parts
