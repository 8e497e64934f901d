"""Scores of the turns or sentences of a document for each question: passages, lines, and whether anything answers.

A linear map of what words and vectors say (`units.features`) is the score with which a training begins. Beside
it layers of an encoder read the states of all units for a question: products of the vectors of unit and question, the
same features, and the place of the unit; the layers are those of `units.layers`. All questions are independent of each
other. O(Q N^2).

There are two scores of a unit: is it part of a passage about the question, and is it one of the lines that the answer
rests on? A third one is of the document: does anything in it answer the question?

Legend: Q questions, N units, T tokens of all units, U terms, E channels of the vectors, C channels of the layers.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..modules.batch_layout import BatchLayout
from ..modules.embedding import sines_and_cosines
from ..modules.in_context import Ids, middles_of
from . import features as unit_features
from .features import bm25_terms, features_of_vectors, features_of_words
from .layers import SCALE, UnitSizes, layers_over_units, places_of_units, reset_parts

OUTPUTS = ("passage", "line")  # the scores of a unit
RARE = -2.0  # the first bias of the scores: few units are evidence


@dataclass(frozen=True)
class UnitsAndQuestions:
    """What the head reads of a document.

    Attributes:
        questions, tokens, sizes: ids of each question, (T,) ids of all units, and (N,) tokens of each unit.
        embeddings: (V, E) table of the embeddings of all tokens.
        question_vectors, unit_vectors: (Q, E) and (N, E) of length 1, each encoded alone.
        contexts: (N, E) means of the states of the units in context, of any length.
    """

    questions: Sequence[Tensor]
    tokens: Tensor
    sizes: Tensor
    embeddings: Tensor
    question_vectors: Tensor
    unit_vectors: Tensor
    contexts: Tensor


class EvidenceHead(nn.Module):
    """Scores units for questions.

    Buffers: `rarity`, a factor of the weight that each token of the dictionary has as a term of a question
    (`count_questions`); and what a validation sets (`tasks.encoder_task`): `thresholds`, from which on a unit is in a
    passage or a line; `relative`, True for one that is a distance of log-odds below the best unit of a question;
    `answers`, the probability from which on a document answers a question. A threshold of -1 is of an output that was
    not trained.
    """

    level = "evidence"
    own_init = True  # whatever `init` of the model says
    rarity: Tensor
    thresholds: Tensor
    relative: Tensor
    answers: Tensor

    def __init__(self, vector_dim: int, num_tokens: int, sizes: UnitSizes) -> None:
        super().__init__()
        dim, outputs = sizes.dim, len(OUTPUTS)
        self.term_proj, self.linear = nn.Linear(vector_dim, 1), nn.Linear(unit_features.NUMBER, outputs)
        self.unit_proj, self.context_proj = nn.Linear(vector_dim, dim), nn.Linear(vector_dim, dim)
        self.question_proj = nn.Linear(vector_dim, dim)
        self.feature_proj, self.place_proj = nn.Linear(unit_features.NUMBER, dim), nn.Linear(3, dim)
        self.dropout = nn.Dropout(sizes.vector_dropout)
        self.layers = layers_over_units(sizes)
        self.layer_norm, self.out_proj = nn.LayerNorm(dim), nn.Linear(dim, outputs)
        self.document_proj = nn.Linear(outputs + unit_features.NUMBER + dim, outputs)
        self.register_buffer("rarity", torch.ones(num_tokens))
        self.register_buffer("thresholds", torch.full((outputs,), -1.0))
        self.register_buffer("relative", torch.zeros(outputs, dtype=torch.bool))
        self.register_buffer("answers", torch.tensor(0.0))
        self._begin_as_a_regression()

    def reset_parameters(self) -> None:
        """Initialises everything as the constructor does."""
        reset_parts(self)
        nn.init.ones_(self.rarity)
        nn.init.constant_(self.thresholds, -1.0)
        nn.init.zeros_(self.relative)
        nn.init.zeros_(self.answers)
        self._begin_as_a_regression()

    def _begin_as_a_regression(self) -> None:
        """Lets all terms have the same weight, and the layers add nothing to the linear map, which says `RARE`."""
        for linear in (self.term_proj, self.linear, self.out_proj, self.document_proj):
            nn.init.zeros_(linear.weight)
            nn.init.zeros_(linear.bias)
        nn.init.constant_(self.linear.bias, RARE)

    def count_questions(self, questions: Iterable[Tensor]) -> None:
        """Sets the factor of each token to its squared inverse document frequency among questions, at most 1.

        `what`, `did` and `discuss` are in most questions of QMSum and say nothing about where an answer is. BM25 gains
        more from this than from a list of stop words, and needs none of any language (docs/results.md).
        """
        counts, number = torch.zeros(len(self.rarity)), 0
        for question in questions:
            counts[question.unique().cpu()] += 1
            number += 1
        self.rarity.copy_((torch.log((number + 1) / (counts + 0.5)) / math.log((number + 1) / 0.5)).square())

    def forward(self, document: UnitsAndQuestions) -> Tensor:
        """Computes (Q, 1 + N, 2) logits: of the document, then of the units, each as passage and as line."""
        features = self.features(document).to(self.linear.weight)  # Q x N x F
        scores, states = self.linear(features), self.states(document, features)
        scores = scores + self.out_proj(states)
        best = torch.cat([scores, features, states], dim=2).amax(dim=1)
        return torch.cat([self.document_proj(best).unsqueeze(1), scores], dim=1)

    def features(self, document: UnitsAndQuestions) -> Tensor:
        """Computes the (Q, N, F) features of `units.features`, in fp32 at least, also in an autocast."""
        sizes, exact = document.sizes, torch.promote_types(document.contexts.dtype, torch.float32)
        questions, units = document.question_vectors.to(exact), document.unit_vectors.to(exact)
        with torch.autocast(sizes.device.type, enabled=False):
            terms = bm25_terms(document.questions, document.tokens, sizes, exact)
            weights = (self.rarity[terms.ids] * self.term_weights(document.embeddings[terms.ids])).to(exact)
            words = features_of_words(terms, weights, middles_of(sizes, exact))
            return torch.stack(
                [*words, *features_of_vectors(questions, units, document.contexts.to(exact), sizes)], dim=2
            )

    def term_weights(self, embeddings: Tensor) -> Tensor:
        """Maps (U, E) embeddings of terms -> (U,) weights > 0 (as Dai and Callan 2019, DeepCT, section 3)."""
        scaled = F.layer_norm(embeddings, embeddings.shape[1:])
        return F.softplus(self.term_proj(scaled.to(self.term_proj.weight))).squeeze(1)

    def states(self, document: UnitsAndQuestions, features: Tensor) -> Tensor:
        """Computes the (Q, N, C) states of all units for each question, after the layers."""
        unit, context = document.unit_vectors, F.normalize(document.contexts, dim=1)
        x = self.unit_proj(self.dropout(unit.to(features)) * SCALE)
        x = x + self.context_proj(self.dropout(context.to(features)) * SCALE)
        questions = self.question_proj(self.dropout(document.question_vectors.to(features)) * SCALE)
        states = x * questions.unsqueeze(1) + x + self.feature_proj(features) + self._places(x)
        layout = BatchLayout()
        for layer in self.layers:
            states = layer(states, layout)
        return self.layer_norm(states)

    def _places(self, x: Tensor) -> Tensor:
        """Embeds the number of each unit, its share of the document, and the length of the document."""
        count = len(x)
        (features,) = places_of_units(torch.tensor([count], device=x.device), count)
        return self.place_proj(features.to(x)) + sines_and_cosines(count, x.size(1), x.device).to(x)


def evidence_scores(
    head: EvidenceHead, spans: Tensor, rows: Sequence[tuple[Sequence[Ids], Sequence[Ids]]], embeddings: Tensor
) -> Tensor:
    """Scores the units of each document for its questions.

    Args:
        spans: (B, S, 2 E) vectors of the questions, then of the units of each document: alone, and in context.
        rows: the tokens of the questions and of the units of each document.
        embeddings: (V, E) table of the embeddings of tokens.
    Returns:
        (B, Q, 1 + N, 2), zeros where a document has fewer.
    """
    results, device = [], spans.device
    for (questions, units), vectors in zip(rows, spans, strict=True):
        if not questions or not units:
            results.append(spans.new_zeros(len(questions), 1 + len(units), len(OUTPUTS)))
            continue
        both = vectors[: len(questions) + len(units)]
        alone, inside = both.chunk(2, dim=1)
        terms = [torch.tensor(question, dtype=torch.long, device=device) for question in questions]
        tokens = torch.tensor([*chain(*units)], dtype=torch.long, device=device)
        sizes = torch.tensor([*map(len, units)], device=device)
        asked = alone[: len(questions)], alone[len(questions) :], inside[len(questions) :]
        results.append(head(UnitsAndQuestions(terms, tokens, sizes, embeddings, *asked)).to(spans))
    most = [max(result.size(dim) for result in results) for dim in range(2)]
    return torch.stack([F.pad(x, (0, 0, 0, most[1] - x.size(1), 0, most[0] - x.size(0))) for x in results])
