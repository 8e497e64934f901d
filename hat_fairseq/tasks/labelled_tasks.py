"""The labelled tasks: each defines the kind of its data, its head, and how labels become targets."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.tasks import register_task
from torch import Tensor

from ..data.labels import ANSWER_TYPES, RIGHT
from ..data.rows import Chunk
from .bin_folder import load_ids, recorded_kind
from .config import EncoderTaskConfig
from .encoder_task import EncoderTask
from .row_dataset import ChoiceDataset, PairDataset, RowDataset
from .row_targets import (
    CandidateTargets,
    DocumentAnswerTargets,
    RowTargets,
    SegmentTargets,
    SpanTargets,
    TokenTargets,
    answer_positions,
    candidate_markers,
)


@register_task("document_classification", dataclass=EncoderTaskConfig)
class DocumentClassificationTask(EncoderTask):
    """A label for each document, or for each pair of texts: targets (B,), logits (B, K)."""

    kind = "classification"


@register_task("segment_classification", dataclass=EncoderTaskConfig)
class SegmentClassificationTask(EncoderTask):
    """A label for each of N segments, from the state at its `<s>`: targets (B, N), logits (B, N, K)."""

    kind = "segments"
    head_level = "segment"
    targets_class = SegmentTargets


@register_task("token_classification", dataclass=EncoderTaskConfig)
class TokenClassificationTask(EncoderTask):
    """A label for each word, at its first BPE piece: targets (B, T), logits (B, T, K); other tokens have no label."""

    kind = "tokens"
    head_level = "token"
    targets_class = TokenTargets


@register_task("sequence_classification", dataclass=EncoderTaskConfig)
class SequenceClassificationTask(EncoderTask):
    """A label for each sequence of symbols, or for each pair of two: targets (B,), logits (B, K).

    A sequence is a row. A pair is two consecutive rows, and the head reads the states of both.
    """

    kind = "sequence"
    pair = "byte_pair"

    def __init__(self, cfg: EncoderTaskConfig) -> None:
        found = recorded_kind(cfg.data)
        if found in ("byte_sequence", self.pair):
            self.kind = found
        self.head_level = "pair" if self.kind == self.pair else "document"
        super().__init__(cfg)

    def build_dataset(
        self, rows: Any, what: str, targets: RowTargets | None = None, chunks: Sequence[Chunk] | None = None
    ) -> RowDataset:
        if self.kind != self.pair:
            return super().build_dataset(rows, what, targets, chunks)
        if chunks is None:
            chunks = load_ids(Path(self.cfg.data) / f"{what}.ids", len(rows), "it says which rows are a pair")
        return PairDataset(rows, targets, self._removed(rows, what), self.dictionary.pad(), chunks=chunks, what=what)


@register_task("multiple_choice", dataclass=EncoderTaskConfig)
class MultipleChoiceTask(EncoderTask):
    """The right one of several continuations: targets (B,), logits (B, K) for the K choices of the example with most.

    Each choice is a row of text, question and choice, and gets one logit (Rohde et al. 2021, section 7, on RACE; Liu et
    al. 2019). Examples may have different numbers of choices.
    """

    kind = "choice"
    part_to_cut = "first"  # the text; question and choice stay
    num_scores = 1

    def build_dataset(
        self, rows: Any, what: str, targets: RowTargets | None = None, chunks: Sequence[Chunk] | None = None
    ) -> ChoiceDataset:
        if chunks is None:
            path = Path(self.cfg.data) / f"{what}.ids"
            chunks = load_ids(path, len(rows), "it says which rows are the choices of an example")
        labels = self.label_dictionary
        right = 0 if labels is None else labels.index(RIGHT) - labels.nspecial
        removed = self._removed(rows, what)
        return ChoiceDataset(rows, targets, removed, self.dictionary.pad(), chunks=chunks, right=right, what=what)

    def logits(self, model: Any, sample: dict[str, Any]) -> Tensor:
        """(B, K) scores in fp32, -inf beyond an example's choices."""
        scores, counts = super().logits(model, sample).float().squeeze(-1), sample["choices"]
        exists = torch.arange(int(counts.max()), device=scores.device) < counts[:, None]
        return scores.new_full(exists.shape, float("-inf")).masked_scatter(exists, scores)


@register_task("candidate_selection", dataclass=EncoderTaskConfig)
class CandidateSelectionTask(EncoderTask):
    """The candidate that answers a question on a text: targets (B,), logits (B, K) for up to K candidates.

    A row is `<s> question </s> <s> candidate 1 <s> candidate 2 ... </s> </s> <s> text`. The logit of a candidate is
    computed from the state at its `<s>` (Liu et al. 2022, section 4.2.3).
    """

    kind = "candidates"
    head_level = "segment"
    part_to_cut = "last"  # the text; question and candidates stay
    targets_class = CandidateTargets
    num_scores = 1

    def logits(self, model: Any, sample: dict[str, Any]) -> Tensor:
        """(B, K) scores in fp32, -inf beyond a row's candidates."""
        scores = super().logits(model, sample).float().squeeze(-1)  # of all markers; the first one is the question's
        counts = candidate_markers(sample["net_input"]["src_tokens"], self.dictionary).sum(dim=1)
        scores = scores[:, 1 : 1 + int(counts.max())]
        beyond = torch.arange(scores.size(1), device=scores.device) >= counts[:, None]
        return scores.masked_fill(beyond, float("-inf"))


@register_task("question_answering", dataclass=EncoderTaskConfig)
class QuestionAnsweringTask(EncoderTask):
    """A span of a text as answer, or no answer: targets (B, 2), first and last token, 0 0 for no answer.

    As for SQuAD 2.0 (Rajpurkar et al. 2018; Devlin et al. 2019): the logits (B, T, 2) score each token as the first and
    as the last of the answer; the first token of the row stands for "no answer". A row is a window of the text.
    """

    kind = "qa"
    default_criterion = "answer_spans"
    head_level = "token"
    part_to_cut = "last"  # the text; the question stays
    targets_class = SpanTargets
    num_scores = 2

    def logits(self, model: Any, sample: dict[str, Any]) -> Any:
        """(B, T, 2) scores in fp32, -inf where no answer may begin or end."""
        possible = answer_positions(sample["net_input"]["src_tokens"], self.dictionary)
        return super().logits(model, sample).float().masked_fill(~possible.unsqueeze(-1), float("-inf"))

    def scores(self, logits: Any) -> Any:
        """The logits, by which `hat predict` compares the windows of a text."""
        return logits


@register_task("document_question_answering", dataclass=EncoderTaskConfig)
class DocumentQuestionAnsweringTask(QuestionAnsweringTask):
    """A paragraph of a document, a span, yes or no as answer, or no answer: targets (B, 4).

    A row is a window: `<s> question </s> </s> <s> paragraph 1 <s> paragraph 2 ... </s>`. A forward pass computes three
    heads (Zhang et al. 2021, section 3.2): each token as the first and as the last of the short answer; each paragraph,
    from the mean of its tokens; and the `ANSWER_TYPES`, from the mean of the paragraphs. The logit of "in no paragraph"
    is 0, so those of the paragraphs are relative to it.
    """

    kind = "document_qa"
    default_criterion = "document_answers"
    num_scores = len(ANSWER_TYPES)
    targets_class = DocumentAnswerTargets

    def heads(self) -> dict[str, tuple[str, int]]:
        return {
            "answer_span": ("token", 2),
            "answer_paragraph": ("paragraph", 1),
            "answer_type": ("paragraphs", len(ANSWER_TYPES)),
        }

    def logits(self, model: Any, sample: dict[str, Any]) -> dict[str, Tensor]:
        """Scores in fp32, -inf where there is no such answer.

        Returns:
            `span` (B, T, 2), as in `question_answering`; `paragraph` (B, 1 + N): none, and by the number of the marker
            in the row; `type` (B, 5).
        """
        tokens = sample["net_input"]["src_tokens"]
        found = model(**sample["net_input"], classification_head_name=list(self.heads()))[0]
        spans, paragraphs, types = (found[name].float() for name in self.heads())
        possible = answer_positions(tokens, self.dictionary)
        counts = tokens.eq(self.dictionary.bos()).sum(dim=1, keepdim=True) - 1  # the first one is the question's
        beyond = torch.arange(paragraphs.size(1), device=tokens.device) >= counts
        paragraphs = paragraphs.squeeze(-1).masked_fill(beyond, float("-inf"))
        return {
            "span": spans.masked_fill(~possible.unsqueeze(-1), float("-inf")),
            "paragraph": torch.cat([paragraphs.new_zeros(len(tokens), 1), paragraphs], dim=1),
            "type": types,
        }
