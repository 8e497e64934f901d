"""From sentences to rows: `Row` is what becomes a sample, `RowEncoder` has the steps that kinds of data share.

Training and inference use the same code. `SPLIT.ids` names the record of each row.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import TypeVar

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.long_input import (
    SEPARATORS,
    LongInputError,
    fit_parts,
    pack_segments,
    segment_limit,
    token_limit,
)
from hat_fairseq.data.options import POLICIES, Settings
from hat_fairseq.data.record import Record
from hat_fairseq.data.round_trip import compare, running_text
from hat_fairseq.data.sentences import Divided, Sentence
from hat_fairseq.data.text import BOS_TOKEN, EOS_TOKEN

LONG_SENTENCE = 512  # tokens: such a sentence was probably not split
LONG_TEXT = 100  # tokens: a text of one such sentence was probably not split either

Token = TypeVar("Token")
Value = TypeVar("Value")
Span = tuple[int, int]  # characters, begin inclusive, end exclusive


@dataclass(frozen=True)
class Part:
    """The tokens of a part of a row, markers included, and in parallel what they stand for, as of `Row`.

    Where all parts of a row lack a parallel list, it is empty.
    """

    tokens: list[str]
    elements: list[int | None] = field(default_factory=list)
    characters: list[Span | None] = field(default_factory=list)


@dataclass(frozen=True)
class Row:
    """A record as the model reads it, or one chunk, one choice or one window of it.

    Attributes:
        number: of the chunk, choice or window, from 0.
        count: how many the record has.
        streams: names and tokens of the lines to write. `source`: `<s> s1 <s> s2`, and `</s> </s>` before a second part
            such as a text after its question, without the final `</s>` that `binarize_block` appends; `target`;
            `role`, one for each token of the source; `label`, whose form depends on the kind (docs/data.md). What is
            not known is missing.
        elements: for each token of the source the number of the segment, word, paragraph or candidate that it stands
            for, None for others. Empty for kinds without.
        characters: for each token of the source the characters of the context that it stands for, None for others.
            Empty for kinds without.
    """

    id: str
    number: int
    count: int
    streams: dict[str, list[str]]
    elements: list[int | None] = field(default_factory=list)
    characters: list[Span | None] = field(default_factory=list)

    @property
    def tokens(self) -> list[str]:
        """Returns the tokens of the source."""
        return self.streams["source"]

    @property
    def label(self) -> list[str] | None:
        """Returns the tokens of the label, or None."""
        return self.streams.get("label")

    @cached_property
    def segments(self) -> int:
        """Returns the number of its markers."""
        return self.tokens.count(BOS_TOKEN)


def marked(segments: Sequence[Sequence[str]]) -> list[str]:
    """Returns the tokens of segments, each after its marker."""
    tokens: list[str] = []
    for segment in segments:
        tokens.append(BOS_TOKEN)
        tokens += segment
    return tokens


def at_markers(segments: Sequence[Sequence[object]], values: Iterable[Value | None]) -> list[Value | None]:
    """Returns what the tokens of `marked` segments stand for where markers alone stand for something."""
    return [each for value, segment in zip(values, segments, strict=True) for each in (value, *[None] * len(segment))]


def marked_pairs(segments: Sequence[Sequence[tuple[str, Value | None]]]) -> tuple[list[str], list[Value | None]]:
    """Returns the tokens of `marked` segments of pairs, and what stands beside them; None for markers."""
    beside = [each for segment in segments for each in (None, *(value for _, value in segment))]
    return marked([[token for token, _ in segment] for segment in segments]), beside


SEPARATOR_PART = Part([EOS_TOKEN] * SEPARATORS)  # as in RoBERTa (Liu et al. 2019)


def joined(parts: Sequence[Part]) -> Part:
    """Returns parts one after the other, with `</s> </s>` between them."""
    has_elements, has_characters = (any(getattr(part, name) for part in parts) for name in ("elements", "characters"))
    whole = Part([])
    for number, part in enumerate(parts):
        for each in ([SEPARATOR_PART] if number else []) + [part]:
            nothing: list[None] = [None] * len(each.tokens)
            whole.tokens.extend(each.tokens)
            whole.elements.extend((each.elements or nothing) if has_elements else [])
            whole.characters.extend((each.characters or nothing) if has_characters else [])
    return whole


@dataclass
class RowEncoder:
    """Makes rows of the divided texts of records; what a record is, kinds of data know."""

    settings: Settings
    bpe: Bpe
    policies: tuple[str, ...] = POLICIES  # for sources that are too long, of the kind of data
    chunk_by_source: bool = False  # chunks of aligned documents end where the source alone decides, as at inference
    counts: Counter[str] = field(default_factory=Counter)  # takes everything replaced, cut or lost
    # `source_tokens` and `target_tokens`, before anything was cut, without markers and separators. A
    # text that several rows share counts once.
    totals: Counter[str] = field(default_factory=Counter)
    round_trip: Counter[str] | None = None  # takes the sums of `round_trip.compare`; None: targets are not compared
    needed: Counter[str] = field(default_factory=Counter)  # takes by option the least limit that truncates no source

    def limit(self, side: str) -> int | None:
        """Returns the longest source or target without its `</s>`."""
        longest = getattr(self.settings, f"max_{side}_tokens")
        return None if longest is None else longest - 1

    def tokenize(self, sentences: Sequence[Sentence], side: str) -> list[list[str]]:
        """Returns the tokens of each sentence of the source or the target.

        Joined, the tokens decode to the sentences joined by single spaces.
        """
        encode, separator = self.bpe.encode, self.bpe.separator
        tokens = [encode(separator + each.words if number else each.words) for number, each in enumerate(sentences)]
        if self.bpe.loses:
            for each in sentences:
                self.counts.update(self.bpe.losses(each.words))
        lengths = list(map(len, tokens))
        self.totals[f"{side}_tokens"] += sum(lengths)
        self.counts[f"{side}_sentences_over_{LONG_SENTENCE}_tokens"] += sum(map(LONG_SENTENCE.__lt__, lengths))
        return tokens

    def target(self, target: Divided) -> list[list[str]]:
        """Returns the tokens of each sentence or segment of a target; counts which of them come back."""
        segments, settings = self.tokenize(target.sentences, "target"), self.settings
        is_exact = settings.target_tokenizer == "none" and self.bpe.kind != "sentencepiece"  # each comes back
        if self.round_trip is not None and not is_exact:
            texts = [each.text for each in target.sentences]
            back = [running_text([self.bpe.decode(each)], settings, "target") for each in segments]
            self.round_trip.update(compare(texts, back, settings.target_language))
        return segments

    def units(self, text: Divided) -> list[list[str]]:
        """Returns the tokens of each sentence, segment or word of a text, without markers."""
        units = self.tokenize(text.sentences, "source")
        is_whole = text.may_be_whole and len(units) == 1 and len(units[0]) > LONG_TEXT
        self.counts[f"texts_of_one_sentence_over_{LONG_TEXT}_tokens"] += is_whole
        return units

    def segments(self, units: list[list[Token]], whole: bool | None = None) -> list[list[Token]]:
        """Returns the segments of a text, which get a marker each; `whole`: one, unless segments are packed."""
        if self.settings.segments == "packed":
            room = self.settings.segment_length - 2  # beside its marker, and a </s> that may follow
            self.counts["sentences_longer_than_segment"] += sum(len(each) > room for each in units)
            return pack_segments(units, room)
        return [list(chain.from_iterable(units))] if (self.settings.whole if whole is None else whole) else units

    def text(self, text: Divided) -> list[list[str]]:
        """Returns the segments of a text."""
        return self.segments(self.units(text))

    def one_segment(self, text: Divided) -> list[str]:
        """Returns a short text as one segment."""
        return list(chain.from_iterable(self.units(text)))

    def row(self, record: Record, parts: Sequence[Part], truncated: int | None = None) -> Part:
        """Returns one row of parts; `truncated` as of `long_input.fit_parts`."""
        ends = self._ends(record, [part.tokens for part in parts], "source", "rows_over_limit", truncated)
        pairs = zip(parts, ends, strict=True)
        return joined([Part(part.tokens[:end], part.elements[:end], part.characters[:end]) for part, end in pairs])

    def truncate(self, record: Record, tokens: list[str], side: str) -> list[str]:
        """Returns a source or a target, truncated if it is too long; LongInputError by the policy `error`."""
        return tokens[: self._ends(record, [tokens], side, f"{side}_documents_over_limit")[0]]

    def _ends(
        self, record: Record, parts: Sequence[Sequence[str]], side: str, name: str, truncated: int | None = None
    ) -> list[int]:
        """How many tokens of each part of a row stay by the policy; `name` counts the rows that are too long."""
        settings, lengths = self.settings, list(map(len, parts))
        longest = getattr(settings, f"max_{side}_tokens")
        most_segments = settings.max_segments if side == "source" else None
        fits = longest is None or sum(lengths) + SEPARATORS * (len(parts) - 1) + 1 <= longest
        if fits and most_segments is None:  # the usual case: nobody needs to know where the markers are
            return lengths
        markers = [list(map(BOS_TOKEN.__eq__, part)) for part in parts]
        policies = self.policies[1:] if side == "source" else ("truncate",)
        advice = f"choose --long-{side} {' or '.join(policies)}"
        limits = []
        if longest is not None:
            limits.append(token_limit(markers, longest, f"--max-{side}-tokens"))
        if most_segments is not None:
            limits.append(segment_limit(markers, most_segments, settings.segment_length))
        try:
            ends, cost = fit_parts(markers, limits, getattr(settings, f"long_{side}"), advice, truncated)
        except LongInputError as error:
            raise LongInputError(f"{record.name}: its {side} is too long: {error}") from error
        self.counts[name] += bool(cost)
        for limit in limits if cost and side == "source" else ():
            if limit.total > limit.most:
                self.needed[limit.option] = max(self.needed[limit.option], limit.total)
        for what, number in cost.items():
            # Targets have no markers, and sequences no sentences that could stay whole.
            if "sentences" not in what or (side == "source" and "truncate-sentences" in self.policies):
                self.counts[f"{side}_{what}"] += number
        return ends
