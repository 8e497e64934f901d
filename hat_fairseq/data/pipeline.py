"""From a document to tokens and back; settings and BPE are saved beside the binary data."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from hat_fairseq.data import long_source
from hat_fairseq.data import prepare as prepare_module
from hat_fairseq.data.aligned import chunk_segments
from hat_fairseq.data.bpe import FILES, Bpe, load_bpe, save_bpe
from hat_fairseq.data.document import Document
from hat_fairseq.data.encoded import BOS, EncodedDocument, EncodedPair, EncodedRow
from hat_fairseq.data.example import Example
from hat_fairseq.data.example_encoder import ExampleEncoder
from hat_fairseq.data.files import sha256_of
from hat_fairseq.data.prepare import EmptyDocumentError, role_tokens, source_sentences, target_sentences
from hat_fairseq.data.settings import Settings, settings_from_json
from hat_fairseq.data.text import CONTROL_TOKENS, SEPARATOR, restore_control_tokens
from hat_fairseq.data.word_tokenizer import WITHOUT_SPACES, WordTokenizer, word_tokenizer

__all__ = ["BOS", "FILE_NAME", "EmptyDocumentError", "EncodedDocument", "EncodedPair", "EncodedRow", "Settings"]
__all__ += ["TextPipeline"]

FILE_NAME = "pipeline.json"
FORMAT = 3

# Sentences of a target without <sep> come back with a space after each.
_SPACE_AFTER_SENTENCE = re.compile(r"(?<=[。！？…」』）”]) ")

Pieces = list[list[str]]  # BPE tokens of each sentence, without markers and separators


@dataclass
class TextPipeline:
    """Encodes documents and examples, and decodes what a model has generated.

    Args:
        settings: see ``Settings``.
        bpe: any ``Bpe``.
        counts: everything replaced, dropped or truncated so far.
    """

    settings: Settings
    bpe: Bpe
    counts: Counter[str] = field(default_factory=Counter)

    def encode(self, document: Document) -> list[EncodedDocument]:
        """Encode a raw document: one result, or with the policy ``chunk`` one for each chunk.

        Where the chunks end depends on the source alone.

        Raises:
            EmptyDocumentError: there is no sentence in it.
            MisalignedError: it is to be aligned with its target, and is not.
            LongSourceError: it is too long and the policy is ``error``.
        """
        return self.encode_prepared(self.prepare(document))

    def prepare(self, document: Document) -> Document:
        """Normalise a document and split it into sentences; see ``prepare.prepare``."""
        return prepare_module.prepare(document, self.settings, self.counts)

    def encode_prepared(self, document: Document) -> list[EncodedDocument]:
        """Like ``encode``, for a document that ``prepare`` has returned."""
        source = self._source_pieces(document)
        if self._cuts_both_sides:
            return self._aligned_chunks(document, source, None)[0]
        return self._source_parts(document, source)

    def encode_pair(self, document: Document, by_source: bool = False) -> EncodedPair:
        """Encode a prepared document with its target, if it has one.

        Args:
            by_source: where chunks of an aligned document end depends on the source alone, as in ``encode``.
        Raises:
            LongSourceError: one of the two is too long and the policy is ``error``.
        """
        source, target = self._source_pieces(document), self._target_pieces(document)
        if target is None:
            return EncodedPair(self.encode_prepared(document), [], sum(map(len, source)), 0)
        if self._cuts_both_sides:
            parts, targets = self._aligned_chunks(document, source, target, by_source)
        else:
            parts = self._source_parts(document, source)
            targets = [self._whole_target(document, target)] * len(parts)
            self.counts["targets_repeated_for_chunks"] += len(parts) - 1
        return EncodedPair(parts, targets, sum(map(len, source)), sum(map(len, target)))

    def encode_example(self, example: Example) -> list[EncodedRow]:
        """Encode a raw example of the kind ``settings.task``; see ``ExampleEncoder.rows``."""
        return ExampleEncoder(self.settings, self.bpe, self.counts).rows(example)

    def decode(self, line: str, side: str = "target") -> str:
        """Text of a line of tokens as fairseq prints it; a tab stands for each ``<sep>``.

        Sentence markers and other control tokens are left out, but ``<unk>`` stays, because it stands for something.

        Args:
            line: tokens with spaces between them.
            side: ``target``, which is what a model generates, or ``source``: whose words they are.
        """
        segments: list[list[str]] = [[]]
        for token in line.split():
            if token == SEPARATOR:
                segments.append([])
            elif token == "<unk>" or token not in CONTROL_TOKENS:
                segments[-1].append(token)
        join = self._tokenizer(side).detokenize
        # Restored first: brackets and letters that stand apart as words must not become an escaped token. A model can
        # generate GPT-2's tokens for line breaks and tabs; one would break fairseq's lines, the other means <sep>.
        texts = [join(restore_control_tokens(self.bpe.decode(tokens))) for tokens in segments]
        decoded = "\t".join(" ".join(text.split()) for text in texts)
        without_spaces = getattr(self.settings, f"{side}_language") in WITHOUT_SPACES
        return _SPACE_AFTER_SENTENCE.sub("", decoded) if without_spaces else decoded

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
            if record["format"] != FORMAT:
                raise ValueError(f"it has format {record['format']!r}, this version needs {FORMAT}")
            kind, hashes = record["bpe"]["kind"], record["bpe"]["sha256"]
            settings = settings_from_json(record["settings"])
            if sorted(hashes) != sorted(FILES[kind]):
                raise ValueError(f"a BPE of kind {kind} has the files {', '.join(FILES[kind])}")
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path} cannot be read ({error!r}); run hat preprocess again") from error
        for name, expected in hashes.items():
            if not (directory / name).is_file() or sha256_of(directory / name) != expected:
                raise ValueError(f"{directory / name} is missing or was changed after {FILE_NAME} was written")
        return cls(settings, load_bpe(kind, directory))

    @property
    def _cuts_both_sides(self) -> bool:
        return self.settings.aligned and self.settings.long_source == "chunk"

    def _tokenizer(self, side: str) -> WordTokenizer:
        name, language = getattr(self.settings, f"{side}_tokenizer"), getattr(self.settings, f"{side}_language")
        return word_tokenizer(name, language)

    def _source_pieces(self, document: Document) -> Pieces:
        return self._pieces(source_sentences(document, self.settings, self.counts))

    def _target_pieces(self, document: Document) -> Pieces | None:
        sentences = target_sentences(document, self.settings, self.counts)
        return None if sentences is None else self._pieces(sentences)

    def _pieces(self, sentences: list[str]) -> Pieces:
        return [
            self.bpe.encode(sentence if index == 0 else self.bpe.separator + sentence)
            for index, sentence in enumerate(sentences)
        ]

    def _aligned_chunks(
        self, document: Document, source: Pieces, target: Pieces | None, by_source: bool = False
    ) -> tuple[list[EncodedDocument], list[list[str]]]:
        """Chunks of both sides; without a target, empty targets."""
        settings = self.settings
        chunks, too_long = chunk_segments(
            [1 + len(pieces) for pieces in source],
            None if target is None or by_source else [len(pieces) for pieces in target],
            settings.max_source_tokens,
            settings.max_target_tokens,
            between_targets=int(settings.target_separator),
        )
        self.counts["segments_longer_than_chunk"] += too_long
        if len(chunks) > 1:
            self.counts["documents_cut_into_chunks"] += 1
            self.counts["chunks"] += len(chunks)
        parts = [
            EncodedDocument(document.id, number, len(chunks), [t for s in source[chunk] for t in (BOS, *s)], None)
            for number, chunk in enumerate(chunks)
        ]
        return parts, [self._join_target(target[chunk] if target else []) for chunk in chunks]

    def _source_parts(self, document: Document, source: Pieces) -> list[EncodedDocument]:
        tokens, roles = self._tokens(document, source)
        limit = self.settings.max_source_tokens or len(tokens)
        parts = self._fit(document.id, "source", tokens, limit, self.settings.long_source)
        return [
            EncodedDocument(document.id, chunk, len(parts), tokens[part], None if roles is None else roles[part])
            for chunk, part in enumerate(parts)
        ]

    def _whole_target(self, document: Document, target: Pieces) -> list[str]:
        tokens = self._join_target(target)
        limit = self.settings.max_target_tokens or max(1, len(tokens))
        (part,) = self._fit(document.id, "target", tokens, limit, self.settings.long_target)
        return tokens[part]

    def _join_target(self, target: Pieces) -> list[str]:
        between = [SEPARATOR] if self.settings.target_separator else []
        return [token for index, pieces in enumerate(target) for token in (*(between if index else ()), *pieces)]

    def _tokens(self, document: Document, source: Pieces) -> tuple[list[str], list[str] | None]:
        """All tokens of a prepared document, and the role token of each."""
        tokens: list[str] = []
        lengths: list[int] = []
        for pieces in source:
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
        if len(tokens) <= limit:
            return [slice(0, len(tokens))]
        try:
            offered = long_source.POLICIES[1:] if what == "source" else ("truncate",)
            parts, counts = long_source.fit([token == BOS for token in tokens], limit, policy, offered)
        except long_source.LongSourceError as error:
            raise long_source.LongSourceError(f"document {id_!r}: its {what} is too long: {error}") from error
        for name, number in counts.items():
            if what == "source" or "sentences" not in name:  # a target has no markers: its sentences are not known
                self.counts[f"{what}_{name}"] += number
        return parts


def recorded_language(path: str | Path) -> str | None:
    """The target language that `hat preprocess` recorded for a file of its folder `text` or `bin`; else None."""
    folder = Path(path).resolve().parent
    file = (folder.parent / "bin" if folder.name == "text" else folder) / FILE_NAME
    try:
        return str(json.loads(file.read_text(encoding="utf-8"))["settings"]["target_language"])
    except (OSError, ValueError, KeyError, TypeError):  # none of ours, or of another version
        return None
