"""`RowEncoder`: the steps from clean sentences to rows of tokens that all kinds of data share."""

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
from hat_fairseq.data.rows import BOS, EOS, Unit, unit

if TYPE_CHECKING:
    from hat_fairseq.data.kinds import Kind

#: From clean sentences, the same ready for the BPE, and the tokens of each, to what each token stands for.
Refer = Callable[[list[str], list[str], list[list[str]]], Sequence[Sequence[Any]]]

LONG_SENTENCE = 512  # tokens: such a sentence was probably not split
PART_SEPARATOR = unit((EOS, EOS))  # as in RoBERTa (Liu et al. 2019)


@dataclass
class RowEncoder:
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
    def packs(self) -> bool:
        """Whether rows are filled with the segments of several records, up to the limit."""
        return self.kind.packs and self.settings.max_source_tokens is not None

    @property
    def whole(self) -> bool:
        """Whether parts are not divided into segments."""
        return self.settings.segments == "none"

    def units(
        self, record: Record, text: Text, split: bool = True, element: str | None = None, refer: Refer | None = None
    ) -> list[Unit]:
        """Returns the tokens of each unit of a text, without markers.

        `split`, `element`: see `clean_sentences`; `refer` says what the tokens stand for.
        """
        sentences = clean_sentences(record, text, self.settings, self.counts, split, element)
        ready, pieces = self.pieces(sentences, "source")
        if refer is None:
            return [unit(tokens) for tokens in pieces]
        references = refer(sentences, ready, pieces)
        return [list(zip(*both, strict=True)) for both in zip(pieces, references, strict=True)]

    def segments(self, units: list[Unit], whole: bool | None = None) -> list[Unit]:
        """Returns the segments of a text, which get a marker each; `whole`: one if they are not packed."""
        if self.settings.segments == "packed":
            room = self.settings.segment_length - 2  # beside its marker, and a </s> that may follow
            self.counts["sentences_longer_than_segment"] += sum(len(each) > room for each in units)
            return pack_segments(units, room)
        return [list(chain.from_iterable(units))] if (self.whole if whole is None else whole) else units

    def text(self, record: Record, text: Text, refer: Refer | None = None) -> list[Unit]:
        """Returns the segments of a text that may be long."""
        return self.segments(self.units(record, text, not self.whole, refer=refer))

    def short_text(self, record: Record, text: Text) -> list[Unit]:
        """Returns the segments of a question, a choice or the like, which stays whole with `--splitter given`."""
        split = not self.whole and self.settings.splitter != "given"
        return self.segments(self.units(record, text, split))

    def one_segment(self, record: Record, text: Text) -> Unit:
        """Returns a short text as one segment."""
        return list(chain.from_iterable(self.units(record, text, self.settings.splitter != "given")))

    def pieces(self, sentences: list[str], side: str) -> tuple[list[str], list[list[str]]]:
        """Returns clean sentences of the source or the target ready for the BPE, and the tokens of each.

        Joined, the tokens decode to the sentences joined by single spaces.
        """
        ready = ready_for_bpe(sentences, side, self.settings, self.counts)
        pieces = [self.bpe.encode(text if i == 0 else self.bpe.separator + text) for i, text in enumerate(ready)]
        self.totals[f"{side}_tokens"] += sum(map(len, pieces))
        self.counts[f"{side}_sentences_over_{LONG_SENTENCE}_tokens"] += sum(len(p) > LONG_SENTENCE for p in pieces)
        return ready, pieces

    def row(self, record: Record, parts: Sequence[Unit], truncated: int | None = None) -> Unit:
        """Returns one row of parts with their markers; `truncated` as of `long_input.fit_parts`."""
        parts = self.fit(record, parts, "source", "rows_over_limit", truncated)
        return [pair for number, part in enumerate(parts) for pair in (*(PART_SEPARATOR if number else ()), *part)]

    def document(self, record: Record, tokens: Unit, side: str) -> Unit:
        """Truncates a source or a target by the policy if it is too long."""
        return self.fit(record, [tokens], side, f"{side}_documents_over_limit")[0]

    def fit(
        self, record: Record, parts: Sequence[Unit], side: str, name: str, truncated: int | None = None
    ) -> list[Unit]:
        """Truncates the parts of a row by the policy if they are too long; `name` counts these rows."""
        flags, settings = [[token == BOS for token, _ in part] for part in parts], self.settings
        policies = self.kind.policies[1:] if side == "source" else ("truncate",)
        advice = f"choose --long-{side} {' or '.join(policies)}"
        limits = []
        if (longest := getattr(settings, f"max_{side}_tokens")) is not None:
            limits.append(long_input.token_limit(flags, longest, f"--max-{side}-tokens"))
        if side == "source" and settings.max_segments is not None:
            limits.append(long_input.segment_limit(flags, settings.max_segments, settings.segment_length))
        try:
            ends, cost = long_input.fit_parts(flags, limits, getattr(settings, f"long_{side}"), truncated, advice)
        except long_input.LongInputError as error:
            raise long_input.LongInputError(f"{record.name}: its {side} is too long: {error}") from error
        self.counts[name] += cost.pop("over_limit", 0)
        for what, number in cost.items():
            # Targets have no markers, and sequences no sentences.
            if "sentences" not in what or (side == "source" and self.kind.is_text):
                self.counts[f"{side}_{what}"] += number
        return [part[:end] for part, end in zip(parts, ends, strict=True)]
