"""From the texts of a record to rows: `Row` is what becomes a sample, `RowEncoder` has the steps that kinds share.

Training and inference use the same code. `SPLIT.ids` names the record of each row.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.files import read_lines
from hat_fairseq.data.long_input import LongInputError, fit_parts, pack_segments, segment_limit, token_limit
from hat_fairseq.data.options import POLICIES, Settings
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.round_trip import compare, is_exact, running_text
from hat_fairseq.data.text import (
    BOS_TOKEN,
    EOS_TOKEN,
    EmptyDocumentError,
    escape_control_tokens,
    normalise,
    split_lines,
    split_sentences,
)
from hat_fairseq.data.word_tokenizer import word_tokenizer_of

LONG_SENTENCE = 512  # tokens: such a sentence was probably not split
NOTHING = "no sentence with text in it"
LONG_TEXT = 100  # tokens: a text of one such sentence was probably not split either

# The tokens of a sentence, a segment or a row. Beside each is what it stands for, or None: the role of its sentence,
# the number of its word or segment, its characters in the context of a question.
Unit = list[tuple[str, Any]]


@dataclass(frozen=True)
class Row:
    """A record as the model reads it, or one chunk, one choice or one window of it."""

    id: str
    number: int  # of the chunk, choice or window, from 0
    count: int  # how many the record has
    # names and tokens of the lines to write. `source`: `<s> s1 <s> s2`, and `</s> </s>` before a second part such as a
    # text behind its question, without the final `</s>` that `binarize_block` appends; `target`; `role`, one for each
    # token of the source; `label`, whose form depends on the kind (docs/data.md). What is not known is missing.
    streams: dict[str, list[str]]
    # for each token of the source the number of the element (int) or the characters of the context (begin, end)
    # that it stands for, None for tokens that stand for none. Empty for kinds without.
    spans: list[Any] = field(default_factory=list)

    @property
    def tokens(self) -> list[str]:
        """The tokens of the source."""
        return self.streams["source"]

    @property
    def label(self) -> list[str] | None:
        """The tokens of the label, or None."""
        return self.streams.get("label")

    @property
    def segments(self) -> int:
        """The number of its markers."""
        return self.tokens.count(BOS_TOKEN)


def unit(tokens: Iterable[str], reference: Any = None) -> Unit:
    """Returns tokens that all stand for the same thing."""
    return list(zip(tokens, repeat(reference)))


def marked(units: Sequence[Unit], references: Iterable[Any] = repeat(None)) -> Unit:
    """Returns the units of a part, each behind its marker; `references`: what the markers stand for."""
    return [
        pair for each, reference in zip(units, references, strict=False) for pair in ((BOS_TOKEN, reference), *each)
    ]


def tokens_of(pairs: Unit) -> list[str]:
    return list(map(itemgetter(0), pairs))


PART_SEPARATOR = unit((EOS_TOKEN, EOS_TOKEN))  # as in RoBERTa (Liu et al. 2019)


class Sentence(NamedTuple):
    """A sentence, segment or word."""

    text: str  # normalised
    words: str  # the same with escaped control tokens and words separated, as it goes into the BPE
    tokens: list[str]


@dataclass
class RowEncoder:
    """Encodes the texts of records; what a record is, kinds know."""

    settings: Settings
    bpe: Bpe
    policies: tuple[str, ...] = POLICIES  # for sources that are too long, of the kind of data
    by_source: bool = False  # chunks of aligned documents end where the source alone decides, as at inference
    counts: Counter[str] = field(default_factory=Counter)  # takes everything replaced, cut or lost
    # `source_tokens` and `target_tokens`, before anything was cut, without markers and separators. A
    # text that several rows share counts once.
    totals: Counter[str] = field(default_factory=Counter)
    round_trip: Counter[str] | None = None  # takes the sums of `round_trip.compare`; None: targets are not compared

    def limit(self, side: str) -> int | None:
        """Longest source or target without its `</s>`."""
        longest = getattr(self.settings, f"max_{side}_tokens")
        return None if longest is None else longest - 1

    @property
    def whole(self) -> bool:
        """Whether parts are not divided into segments."""
        return self.settings.segments == "none"

    def sentences(self, record: Record, text: Text, split: bool = True, element: str | None = None) -> list[Sentence]:
        """Returns the sentences, segments or words of a text, none empty.

        `split`: running text is split by the settings' splitter, otherwise it is one sentence. `element`: the name of
        an element that has a label. EmptyDocumentError if nothing is left, or such an element is empty.
        """
        if split and isinstance(text, str):
            way_out = "; or --segments none" if self.settings.splitter == "given" else ""
            clean = split_text(record, text, self.settings, self.counts, way_out)
            if not clean:
                raise EmptyDocumentError(f"{record.name} has an empty part: {NOTHING}")
            sentences = self.tokenize(clean, "source")
            self.count_undivided([sentence.tokens for sentence in sentences])
            return sentences
        clean = normalised(record, text, element, self.counts)
        if not isinstance(text, str):
            self.counts["sentences_empty"] += clean.count("")
            clean = list(filter(None, clean))
        return self.tokenize(clean, "source")

    def count_undivided(self, sentences: Sequence[Sequence[Any]]) -> None:
        """Counts a text, given as the tokens of its sentences, if it is long and has only one."""
        undivided = len(sentences) == 1 and len(sentences[0]) > LONG_TEXT
        self.counts[f"texts_of_one_sentence_over_{LONG_TEXT}_tokens"] += undivided

    def tokenize(self, clean: Iterable[str], side: str) -> list[Sentence]:
        """Returns normalised sentences of the source or the target with their tokens.

        Joined, the tokens decode to the sentences joined by single spaces.
        """
        tokenizer = word_tokenizer_of(self.settings, side)
        sentences = []
        for number, text in enumerate(clean):
            words = tokenizer.tokenize(escape_control_tokens(text, self.counts))
            tokens = self.bpe.encode(self.bpe.separator + words if number else words)
            self.counts.update(self.bpe.losses(words))
            self.totals[f"{side}_tokens"] += len(tokens)
            self.counts[f"{side}_sentences_over_{LONG_SENTENCE}_tokens"] += len(tokens) > LONG_SENTENCE
            sentences.append(Sentence(text, words, tokens))
        return sentences

    def target(self, texts: Sequence[str]) -> list[list[str]]:
        """Returns the tokens of each normalised sentence or segment of a target; counts which of them come back."""
        sentences, settings = self.tokenize(texts, "target"), self.settings
        if self.round_trip is not None and not is_exact(settings, self.bpe.kind):
            back = [running_text([self.bpe.decode(each.tokens)], settings, "target") for each in sentences]
            self.round_trip.update(compare(texts, back, settings.target_language))
        return [sentence.tokens for sentence in sentences]

    def units(self, record: Record, text: Text, split: bool = True, element: str | None = None) -> list[Unit]:
        """Returns the tokens of each sentence of `text`, without markers; arguments as of `sentences`."""
        return [unit(sentence.tokens) for sentence in self.sentences(record, text, split, element)]

    def segments(self, units: list[Unit], whole: bool | None = None) -> list[Unit]:
        """Returns the segments of a text, which get a marker each; `whole`: one, unless segments are packed."""
        if self.settings.segments == "packed":
            room = self.settings.segment_length - 2  # beside its marker, and a </s> that may follow
            self.counts["sentences_longer_than_segment"] += sum(len(each) > room for each in units)
            return pack_segments(units, room)
        return [list(chain.from_iterable(units))] if (self.whole if whole is None else whole) else units

    def text(self, record: Record, text: Text) -> list[Unit]:
        """Returns the segments of a text that may be long."""
        return self.segments(self.units(record, text, not self.whole))

    def short_text(self, record: Record, text: Text) -> list[Unit]:
        """Returns the segments of a question, a choice or the like, which stays whole with `--splitter given`."""
        split = not self.whole and self.settings.splitter != "given"
        return self.segments(self.units(record, text, split))

    def one_segment(self, record: Record, text: Text) -> Unit:
        """Returns a short text as one segment."""
        return list(chain.from_iterable(self.units(record, text, self.settings.splitter != "given")))

    def row(self, record: Record, parts: Sequence[Unit], truncated: int | None = None) -> Unit:
        """Returns one row of parts with their markers; `truncated` as of `long_input.fit_parts`."""
        parts = self._fit(record, parts, "source", "rows_over_limit", truncated)
        return [pair for number, part in enumerate(parts) for pair in (*(PART_SEPARATOR if number else ()), *part)]

    def truncate(self, record: Record, tokens: Unit, side: str) -> Unit:
        """Returns a source or a target, truncated if it is too long; LongInputError by the policy `error`."""
        return self._fit(record, [tokens], side, f"{side}_documents_over_limit")[0]

    def _fit(
        self, record: Record, parts: Sequence[Unit], side: str, name: str, truncated: int | None = None
    ) -> list[Unit]:
        """Truncates the parts of a row by the policy if they are too long; `name` counts these rows."""
        markers, settings = [list(map(BOS_TOKEN.__eq__, tokens_of(part))) for part in parts], self.settings
        policies = self.policies[1:] if side == "source" else ("truncate",)
        advice = f"choose --long-{side} {' or '.join(policies)}"
        limits = []
        if (longest := getattr(settings, f"max_{side}_tokens")) is not None:
            limits.append(token_limit(markers, longest, f"--max-{side}-tokens"))
        if side == "source" and settings.max_segments is not None:
            limits.append(segment_limit(markers, settings.max_segments, settings.segment_length))
        try:
            ends, cost = fit_parts(markers, limits, getattr(settings, f"long_{side}"), advice, truncated)
        except LongInputError as error:
            raise LongInputError(f"{record.name}: its {side} is too long: {error}") from error
        self.counts[name] += bool(cost)
        for what, number in cost.items():
            # Targets have no markers, and sequences no sentences that could stay whole.
            if "sentences" not in what or (side == "source" and "truncate-sentences" in self.policies):
                self.counts[f"{side}_{what}"] += number
        return [part[:end] for part, end in zip(parts, ends, strict=True)]


def normalised(record: Record, text: Text, element: str | None, counts: Counter[str]) -> list[str]:
    """Returns the whole text, or each of its elements, without line breaks and the like.

    EmptyDocumentError if nothing is left, or nothing of an element that has a name.
    """
    clean = [normalise(each, counts) for each in ([text] if isinstance(text, str) else text)]
    if element and not all(clean):
        raise EmptyDocumentError(f"{record.name}: its {element} {clean.index('') + 1} is empty")
    if not any(clean):
        raise EmptyDocumentError(f"{record.name} has an empty part: {NOTHING}")
    return clean


def split_text(record: Record, text: str, settings: Settings, counts: Counter[str], way_out: str = "") -> list[str]:
    """Returns the sentences of running text, normalised; ValueError as of `split_sentences`.

    Line breaks end sentences as the settings say, and these are counted; the others become spaces.
    """
    pieces = list(filter(None, (normalise(piece, counts) for piece in split_lines(text, settings.line_breaks))))
    language = settings.source_language
    counts["line_breaks_ending_sentences"] += max(0, len(pieces) - 1)
    try:
        return [each for piece in pieces for each in split_sentences(piece, settings.splitter, language)]
    except ValueError as error:
        raise ValueError(f"{record.name}: {error}{way_out}") from error


@dataclass(frozen=True)
class Chunk:
    """A line of the ids table: a fairseq sample is chunk `number` (from 0) of the `count` chunks of a document."""

    document_id: str
    number: int
    count: int
    segments: int  # of the source in the chunk


def read_ids(path: str | Path) -> list[Chunk]:
    """The ids table, line i (from 0) is fairseq's sample i; ValueError for a chunk that is repeated or missing."""
    chunks: dict[tuple[str, int], Chunk] = {}
    for number, line in read_lines(path):
        fields = line.split("\t")
        if len(fields) != 4 or not all(map(str.isdecimal, fields[1:])):
            raise ValueError(
                f"{path}:{number}: expected document id, chunk, number of chunks and of segments, found {line[:80]!r}; "
                "data of an earlier version: run hat preprocess again"
            )
        chunk = Chunk(fields[0], *map(int, fields[1:]))
        key = chunk.document_id, chunk.number
        if key in chunks:
            earlier = list(chunks).index(key) + 1
            raise ValueError(f"{path}:{number}: chunk {key[1]} of document {key[0]!r} is on line {earlier} already")
        chunks[key] = chunk
    for number, chunk in enumerate(chunks.values(), start=1):
        for other in range(chunk.count):
            if (chunk.document_id, other) not in chunks:
                raise ValueError(
                    f"{path}:{number}: document {chunk.document_id!r} has {chunk.count} chunks, "
                    f"but the line of chunk {other} is missing"
                )
    return list(chunks.values())
