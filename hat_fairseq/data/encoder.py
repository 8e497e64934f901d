"""`Encoder`: the steps from clean sentences to rows of tokens that all kinds of data share."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from hat_fairseq.data import long_input
from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.clean import clean_sentences, ready_for_bpe
from hat_fairseq.data.options import Settings
from hat_fairseq.data.packing import pack_segments
from hat_fairseq.data.record import Record, Text
from hat_fairseq.data.rows import BOS, EOS, Unit, marked, unit

if TYPE_CHECKING:
    from hat_fairseq.data.kinds import Kind

#: From clean sentences, the same ready for the BPE, and the tokens of each, to what each token stands for.
Refer = Callable[[list[str], list[str], list[list[str]]], Sequence[Sequence[Any]]]

GIANT = 512  # tokens: such a sentence was probably not split
BETWEEN = unit((EOS, EOS))  # the parts of a row, as in RoBERTa (Liu et al. 2019)


@dataclass
class Encoder:
    """Encodes records of one kind."""

    kind: "Kind"
    settings: Settings
    bpe: Bpe
    by_source: bool = False  # chunks of aligned documents end where the source alone decides, as at inference
    counts: Counter[str] = field(default_factory=Counter)  # takes everything replaced, cut or lost
    # `source_tokens` and `target_tokens`, before anything was cut, without markers and separators; shared ones once
    totals: Counter[str] = field(default_factory=Counter)

    def limit(self, side: str) -> int | None:
        """Longest source or target without its `</s>`."""
        longest = getattr(self.settings, f"max_{side}_tokens")
        return None if longest is None else longest - 1

    @property
    def source_limit(self) -> int | None:
        """Longest source without its `</s>`."""
        return self.limit("source")

    @property
    def packs(self) -> bool:
        """Whether rows are filled with the segments of several records, up to the limit."""
        return self.kind.packs and self.source_limit is not None

    def units(self, record: Record, number: int, text: Text, refer: Refer | None = None) -> list[Unit]:
        """The tokens of each unit of part `number`, without markers; `refer` says what they stand for."""
        sentences = clean_sentences(record, number, text, self.kind, self.settings, self.counts)
        ready, pieces = self.pieces(sentences, "source")
        if refer is None:
            return [unit(tokens) for tokens in pieces]
        references = refer(sentences, ready, pieces)
        return [list(zip(*both, strict=True)) for both in zip(pieces, references, strict=True)]

    def segments(self, record: Record, number: int, text: Text, refer: Refer | None = None) -> list[Unit]:
        """The segments of a part: what gets a marker each, by the setting of that name."""
        units, settings = self.units(record, number, text, refer), self.settings
        if settings.segments == "packed":
            room = settings.segment_length - 2  # beside its marker, and a </s> that may follow
            self.counts["sentences_longer_than_segment"] += sum(len(each) > room for each in units)
            return pack_segments(units, room)
        if self.kind.words or (settings.segments == "none" and not self.kind.packs):
            return [list(chain.from_iterable(units))]
        return units

    def pieces(self, sentences: list[str], side: str) -> tuple[list[str], list[list[str]]]:
        """Clean sentences of the source or the target ready for the BPE, and the tokens of each.

        Joined, the tokens decode to the sentences joined by single spaces.
        """
        ready = ready_for_bpe(sentences, side, self.settings, self.counts)
        pieces = [self.bpe.encode(text if i == 0 else self.bpe.separator + text) for i, text in enumerate(ready)]
        self.totals[f"{side}_tokens"] += sum(map(len, pieces))
        self.counts[f"{side}_sentences_over_{GIANT}_tokens"] += sum(len(tokens) > GIANT for tokens in pieces)
        return ready, pieces

    def row(self, record: Record, parts: Sequence[Sequence[Unit]]) -> Unit:
        """One row of the segments of each part, truncated by the policy if it is too long."""
        return self.fit(record, [marked(segments) for segments in parts])

    def fit(self, record: Record, parts: list[Unit]) -> Unit:
        """One row of parts with their markers, truncated by the policy if it is too long."""
        is_bos, settings = [[token == BOS for token, _ in part] for part in parts], self.settings
        limits = long_input.row_measures(
            is_bos, settings.max_source_tokens, settings.max_segments, settings.segment_length
        )
        policy, offered = settings.long_source, self.kind.policies[1:]
        try:
            ends, cost = long_input.fit_parts(is_bos, limits, policy, self.kind.truncated, offered)
        except long_input.LongInputError as error:
            raise long_input.LongInputError(f"{record.name} is too long: {error}") from error
        self.counts.update(cost)
        parts = [part[:end] for part, end in zip(parts, ends, strict=True)]
        return [pair for number, part in enumerate(parts) for pair in (*(BETWEEN if number else ()), *part)]

    def slices(self, record: Record, tokens: Sequence[str], side: str) -> list[slice]:
        """The slices of a source or target to keep: one, or for chunks several."""
        limit, policy = self.limit(side), getattr(self.settings, f"long_{side}")
        if limit is None or len(tokens) <= limit:
            return [slice(0, len(tokens))]
        offered = self.kind.policies[1:] if side == "source" else ("truncate",)
        try:
            kept, cost = long_input.fit([token == BOS for token in tokens], limit, policy, offered)
        except long_input.LongInputError as error:
            raise long_input.LongInputError(f"{record.name}: its {side} is too long: {error}") from error
        for name, number in cost.items():
            # Targets have no markers, and sequences no sentences.
            if "sentences" not in name or (side == "source" and self.kind.is_text):
                self.counts[f"{side}_{name}"] += number
        return kept
