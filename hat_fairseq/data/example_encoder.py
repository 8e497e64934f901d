"""From an example to rows of tokens with their labels, the same in training and inference.

A row is ``<s> s1 <s> s2 </s> </s> <s> t1 <s> t2``: a marker before each segment, RoBERTa's two separators between
parts (Liu et al. 2019).
Each token is paired with its label: that of its word, or its characters in the context.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from hat_fairseq.data import long_example
from hat_fairseq.data.answers import label_answers
from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.encoded import BOS, EOS, EncodedRow
from hat_fairseq.data.example import Example, Text
from hat_fairseq.data.example_json import check_kind
from hat_fairseq.data.example_text import clean_sentences, main_part
from hat_fairseq.data.labels import NO_LABEL, RIGHT, WRONG, label_token
from hat_fairseq.data.packing import pack_rows, pack_segments
from hat_fairseq.data.prepare import ready_for_bpe
from hat_fairseq.data.settings import Settings
from hat_fairseq.data.token_spans import kept_characters, token_spans
from hat_fairseq.data.windows import cut_windows

Unit = list[tuple[str, Any]]  # tokens of a sentence, a word or a segment, each with what belongs to it, or None

BETWEEN: Unit = [(EOS, None), (EOS, None)]


@dataclass
class ExampleEncoder:
    """Encodes examples of the kind ``settings.task``.

    Args:
        settings: see ``Settings``.
        bpe: any ``Bpe``.
        counts: takes everything replaced, cut or lost.
        source_tokens: BPE tokens so far, before anything was cut, without markers; what choices share counts once.
    """

    settings: Settings
    bpe: Bpe
    counts: Counter[str] = field(default_factory=Counter)
    source_tokens: int = 0

    def rows(self, example: Example) -> list[EncodedRow]:
        """The rows of an example: one, or one for each choice, each window of a text, each row of pre-training.

        Raises:
            EmptyDocumentError: a part of it is empty.
            LongSourceError: it is too long and the policy is ``error``, or one part leaves no room for the other.
            ValueError: it is not of this kind, or has running text with the splitter ``given``.
        """
        check_kind(example, self.settings.task)
        if self.settings.task == "mlm":
            rows = list(pack_rows([self.units(example)], *self.packing))
            return [EncodedRow(example.id, part, len(rows), tokens) for part, tokens in enumerate(rows)]
        if self.settings.task == "qa":
            return self._question(example)
        main = main_part(self.settings.task)
        first = self._segments(example, example.inputs[0][0], main == 0)  # all choices share it
        inputs = [
            [first, *(self._segments(example, text, main == 1) for text in parts[1:])] for parts in example.inputs
        ]
        return [
            self._row(example, number, self._fit(example, list(map(_marked, parts))))
            for number, parts in enumerate(inputs)
        ]

    def units(self, example: Example) -> list[list[str]]:
        """The segments of a document for pre-training, without markers, for ``packing.pack_rows``.

        Raises:
            EmptyDocumentError: it is empty.
        """
        return [[token for token, _ in unit] for unit in self._segments(example, example.inputs[0][0], True)]

    @property
    def packing(self) -> tuple[int | None, bool, Counter[str], int | None]:
        """The other arguments of ``packing.pack_rows``."""
        settings = self.settings
        return settings.max_source_tokens, settings.segments != "none", self.counts, settings.max_segments

    def _segments(self, example: Example, text: Text, is_main: bool) -> list[Unit]:
        """The segments of a part, to be marked one by one; every token comes with its label or its characters."""
        sentences = clean_sentences(example, text, is_main, self.settings, self.counts)
        ready = ready_for_bpe(sentences, self.settings, self.counts)
        pieces = [
            self.bpe.encode(sentence if index == 0 else self.bpe.separator + sentence)
            for index, sentence in enumerate(ready)
        ]
        self.source_tokens += sum(map(len, pieces))
        token_labels: list[list[Any]] = [[None] * len(tokens) for tokens in pieces]
        if self.settings.task == "tokens" and example.labels is not None:
            for row, label in zip(token_labels, example.labels, strict=True):
                row[0] = label_token(label)
        if self.settings.task == "qa" and is_main:
            assert isinstance(text, str)
            token_labels = list(token_spans(sentences, ready, pieces, kept_characters(text), self.bpe))
        units = [list(zip(*both, strict=True)) for both in zip(pieces, token_labels, strict=True)]
        return self._grouped(units)

    def _grouped(self, units: list[Unit]) -> list[Unit]:
        settings = self.settings
        if settings.segments == "packed":
            room = settings.segment_length - 2  # beside its marker, and a </s> that may follow
            self.counts["sentences_longer_than_segment"] += sum(len(unit) > room for unit in units)
            return pack_segments(units, room)
        if settings.task == "tokens" or (settings.segments == "none" and settings.task != "mlm"):
            return [list(chain.from_iterable(units))]
        return units

    def _fit(self, example: Example, parts: list[Unit]) -> Unit:
        """One row of an example's parts, truncated by the policy if it is too long."""
        limit = self.settings.max_source_tokens
        if limit is not None:
            is_bos = [[token == BOS for token, _ in part] for part in parts]
            try:
                ends = long_example.fit(is_bos, limit, self.settings.long_source, self.settings.task, self.counts)
            except long_example.LongSourceError as error:
                raise long_example.LongSourceError(f"{example.name} is too long: {error}") from error
            parts = [part[:end] for part, end in zip(parts, ends, strict=True)]
        return [pair for number, part in enumerate(parts) for pair in (*(BETWEEN if number else ()), *part)]

    def _row(self, example: Example, number: int, pairs: Unit) -> EncodedRow:
        tokens = [token for token, _ in pairs]
        label = None
        if self.settings.task == "choice" and example.label is not None:
            label = [RIGHT if number == int(example.label) else WRONG]
        elif self.settings.task == "segments" and example.labels is not None:
            label = [label_token(name) for name in example.labels[: tokens.count(BOS)]]
            self.counts["labels_lost"] += len(example.labels) - len(label)
        elif self.settings.task == "tokens" and example.labels is not None:
            label = [name or NO_LABEL for _, name in pairs]
            self.counts["labels_lost"] += len(example.labels) - sum(name is not None for _, name in pairs)
        elif example.label is not None:
            label = [label_token(example.label)]
        return EncodedRow(example.id, number, len(example.inputs), tokens, label)

    def _question(self, example: Example) -> list[EncodedRow]:
        question, context = (self._segments(example, text, index == 1) for index, text in enumerate(example.inputs[0]))
        limit = self.settings.max_source_tokens
        if self.settings.long_source == "chunk" and limit is not None:
            before = [*_marked(question), *BETWEEN]
            if (room := limit - len(before)) < 2:
                raise long_example.LongSourceError(
                    f"{example.name}: windows of {limit} tokens are too small for its question of {len(before) - 2}; "
                    "raise --max-source-tokens, or remove the example"
                )
            windows = [before + window for window in self._windows(context, room)]
        else:
            windows = [self._fit(example, [_marked(question), _marked(context)])]
        rows = [
            EncodedRow(example.id, number, len(windows), [t for t, _ in pairs], spans=[span for _, span in pairs])
            for number, pairs in enumerate(windows)
        ]
        return label_answers(example, rows, self.counts)

    def _windows(self, context: Sequence[Unit], room: int) -> list[Unit]:
        lengths = list(map(len, context))
        # Beside a long question, windows would hardly move with the whole overlap.
        overlap = min(self.settings.window_overlap, (room - 1) // 2)
        windows = cut_windows(lengths, room, overlap)
        if len(windows) > 1:
            self.counts["examples_cut_into_windows"] += 1
            self.counts["windows"] += len(windows)
            self.counts["windows_with_less_overlap"] += len(windows) * (overlap < self.settings.window_overlap)
            self.counts["segments_longer_than_window"] += sum(1 + length > room for length in lengths)
        return [_marked([context[index][begin:end] for index, begin, end in window]) for window in windows]


def _marked(segments: Sequence[Unit]) -> Unit:
    return [pair for segment in segments for pair in ((BOS, None), *segment)]
