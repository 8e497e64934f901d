"""An encoder of the units of a document, its turns or sentences, and heads over their vectors.

The token layers are RoBERTa's (or BERT's, of which they start). They read each question and each turn or sentence as a
row `<s> ... </s>` of its own; one that is longer than `segment_length` is several rows. Its vector is the mean of the
states of its tokens, markers included, and has length 1, as in sentence-transformers (Reimers and Gurevych 2019). They
also read the document in overlapping chunks of `segment_length` tokens, for vectors in context (`modules.in_context`).
Kept vectors of a frozen encoder are computed once, so that a training takes seconds.

The heads are in `heads`, the label of a document and the label of each unit, and in `evidence_head`, what answers
questions.

Legend: B documents, T tokens, S questions and units of the document with most, N units, C channels.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..kernels import AUTO, choose_precision, set_precision
from ..modules.batch_layout import safe_padding_mask
from ..modules.in_context import Ids, means_in_context
from ..modules.layers import EncoderLayer
from ..networks import register_encoder
from ..networks.encoder import UNLIMITED, EncoderOut, Vocabulary, build_attentions
from ..networks.roberta import RobertaConfig, RobertaEncoder
from ..options import changed, option, options_of
from .evidence_head import EvidenceHead, evidence_scores
from .heads import DocumentHead, UnitHead
from .layers import NONE, UnitSizes
from .vector_cache import VectorCache, digest_of
from .vector_file import VectorFile

logger = logging.getLogger(__name__)

UNIT_VECTORS = ("alone", "context", "both")
TOKENS_OF_BATCH = 4096  # that are encoded at once, padding included
MOST_PADDING, LITTLE_PADDING = 0.1, 128  # the share of a batch that may be padding, and tokens that always may
NO_CHOICES = (
    "hat_units has no head for choices: it encodes each sentence by itself and would pool a choice with its text, not "
    "compare the two; use a network that reads both together, --arch hat_roberta_* or hierarchical_transformer_*"
)


@dataclass
class HatUnitsConfig(RobertaConfig):
    """A RoBERTa over turns or sentences, and heads over their vectors."""

    no_hierarchy: bool = changed(RobertaConfig, "no_hierarchy", True)
    segment_length: int = option(
        512,
        "encode at most this many tokens together, with <s> and </s>; a longer turn or sentence is divided, and a "
        "document is read in chunks that overlap",
        least=3,
    )
    freeze_encoder: bool = option(
        False, "train only the layers over turns or sentences; each turn or sentence is encoded once"
    )
    freeze_layers: int = option(
        0,
        "do not train the embeddings and this many token layers, counted from the first",
        least=0,
        excludes="freeze_encoder",
    )
    vectors: str | None = option(
        None, "with --freeze-encoder: keep the vectors for other trainings in this file (.npz)", needs="freeze_encoder"
    )
    unit_vectors: str = option(
        "alone",
        "labels: read the vector of each sentence alone, or in the context of its document, or both; evidence has both",
        choices=UNIT_VECTORS,
    )
    unit_layout: str | None = option(
        None,
        "the layers over turns or sentences, with | between them: N over neighbours, D over the document; or none "
        "(default: N|D, and for labels of documents none)",
    )
    unit_neighbours: int = option(12, "the number of turns or sentences on either side that a layer N reads", least=1)
    unit_dim: int = option(32, "the width of the layers over turns or sentences", least=2)
    unit_ffn_dim: int = option(64, "the width of the feed-forward networks in these layers", least=1)
    unit_attention_heads: int = option(4, "the number of attention heads in these layers", least=1)
    unit_dropout: float = option(
        0.15, "the dropout of these layers; that of the vectors is twice as much", least=0, most=1
    )
    no_words: bool = option(False, "labels: no regression over words beside the network")
    own_options = ("segment_length",)
    unlimited = True  # documents have any length
    training_only: ClassVar[tuple[str, ...]] = ("freeze_encoder", "freeze_layers", "vectors")

    def check(self) -> None:
        super().check()
        self.unit_sizes()
        for name in ("pooler_dropout", "pooler_activation_fn", "pooler_inner_dim"):
            if (each := options_of(RobertaConfig)[name]).is_set(value := getattr(self, name)):
                logger.warning("%s has no effect in a network over units", each.typed(value))
        if not self.no_hierarchy:
            raise self.error("a network over units has its hierarchy in the layers over these: give {no_hierarchy}")
        if self.freeze_layers > self.encoder_layers:
            raise self.error(f"{{freeze_layers}}: the encoder has {self.encoder_layers} layers")
        if self.max_positions is not None and self.segment_length > self.max_positions:
            raise self.error("{segment_length} is more than {max_positions}")

    def unit_sizes(self, layout: str = "N|D") -> UnitSizes:
        """Returns the sizes of the layers over turns or sentences; `layout`: where no setting says another one."""
        stated = {item.name: getattr(self, f"unit_{item.name}") for item in fields(UnitSizes)}
        return UnitSizes(**stated | {"layout": stated["layout"] or layout})


class UnitsEncoder(RobertaEncoder):
    """Encodes the turns or sentences of documents, and questions on them."""

    config_class: ClassVar[type[HatUnitsConfig]] = HatUnitsConfig
    has_questions: Any = False  # before the first `</s>` of a row, which a head of evidence says
    has_masked_lm = False
    reads_first_token = False
    of_units, no_choices = True, NO_CHOICES
    config: HatUnitsConfig

    def __init__(self, config: HatUnitsConfig, vocabulary: Vocabulary) -> None:
        sizes, attentions = config.encoder_sizes(), build_attentions(config, config.encoder_layers)
        super().__init__(config, vocabulary, [EncoderLayer(sizes, attention) for attention in attentions])
        self.max_tokens, self.longest = UNLIMITED, config.segment_length - 2  # without <s> and </s>
        self.cache: VectorCache | None = None  # in a training, also for its validation
        self.store: VectorFile | None = None  # of the cache, for `--vectors`; a task opens it, and saves new vectors
        self.digest = b""  # of its settings and weights, once they are loaded
        self.register_load_state_dict_post_hook(forget_vectors)
        if config.freeze_encoder:
            self.requires_grad_(False)
        elif config.freeze_layers:
            self.requires_grad_(False)
            self.layers[config.freeze_layers :].requires_grad_(True)
            if self.layer_norm is not None:
                self.layer_norm.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """Sets the mode; what is frozen has no dropout, and keeps its vectors from its first training mode on.

        ValueError for `--vectors` with a task that does not set a store.
        """
        frozen = self.config.freeze_encoder
        super().train(mode and not frozen)
        if frozen and mode and self.cache is None:
            if self.config.vectors is not None and self.store is None:
                raise ValueError(f"--vectors {self.config.vectors} is for tasks of hat_fairseq: remove it")
            self.cache = VectorCache(self.store)
        return self

    def keep_vectors(self, path: str) -> None:
        """Takes the vectors of a file in inference; `save_vectors` adds new ones."""
        self.cache = VectorCache(VectorFile(path))
        self.__dict__["in_training"] = self  # in place of a copy: its weights are those of inference already

    def open_store(self) -> None:
        if self.config.vectors:
            self.store = VectorFile(self.config.vectors)

    def save_vectors(self) -> None:
        if self.cache is not None:
            self.cache.save()

    def read_training_data(self, heads: Iterable[Any], dataset: Any) -> None:
        """Tells heads of evidence how rare questions are, and fits the words of heads for labels."""
        from .fit_words import fit_head

        for head in heads:
            if head.level == EvidenceHead.level:
                head.count_questions(dataset.questions())
            elif head.words is not None and dataset.labels is not None:
                fit_head(head, dataset)

    def after_validation(self, heads: Iterable[Any], sums: Mapping[str, Any]) -> None:
        """Keeps the best thresholds for evidence in its head."""
        from .criterion import SUM_NAMES, set_thresholds

        for head in heads:
            if head.level == EvidenceHead.level and SUM_NAMES[0] in sums:
                set_thresholds({name: sums[name].sum for name in SUM_NAMES}, head)

    def check_levels(self, levels: Set[str]) -> None:
        if EvidenceHead.level in levels and len(levels) > 1:
            raise ValueError("a head of evidence reads questions before the units, so no other head can be beside it")

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds a head over turns or sentences; ValueError for a head of another level."""
        config, width = self.config, self.config.encoder_embed_dim
        self.has_questions = level == EvidenceHead.level
        if self.has_questions:
            return EvidenceHead(width, self.vocabulary.size, config.unit_sizes())
        width *= 1 + (config.unit_vectors == "both")
        if level == DocumentHead.level:
            return DocumentHead(width, num_classes, config.unit_sizes(NONE), words=not config.no_words)
        if level == UnitHead.level:
            return UnitHead(width, num_classes, config.unit_sizes(), words=not config.no_words)
        raise ValueError(
            "hat_units is for labels of documents or segments and for evidence (--kind classification, segments, "
            "evidence); for others use --arch hat_roberta_*"
        )

    def initialise_head(self, head: nn.Module) -> None:
        """Does nothing: these heads have initial weights of their own."""

    def head_logits(self, head: Any, encoded: EncoderOut, tokens: Tensor) -> Tensor:
        """Computes the logits of a head over the units of (B, T) ids; see `EncoderWithHeads.head_logits`."""
        assert encoded.spans is not None and encoded.spans_padding is not None
        if head.level == EvidenceHead.level:
            rows = [self.parts(row) for row in tokens.tolist()]
            return evidence_scores(head, encoded.spans, rows, self.embed_tokens.weight)
        return head(encoded.spans, safe_padding_mask(encoded.spans_padding), tokens).to(encoded.spans)

    def forward(
        self, src_tokens: Tensor, roles: Tensor | None = None, roll: int = 0, embeddings: Tensor | None = None
    ) -> EncoderOut:
        """Maps (B, T) ids -> (B, S, E) `spans` of the units, of evidence of the questions before; `tokens` is the same.

        A vector is of the unit alone, of length 1, or the mean of the states of its tokens in context, scaled to length
        1; or it is both, one after the other. Of evidence it is both, where the second one is not scaled, and is once
        more the first one for a question.

        ValueError for roles, for a roll, which would divide units elsewhere, and for embeddings of tokens.
        """
        if roles is not None:
            raise ValueError("roles: a network over units has no embeddings of speakers")
        if roll:
            raise ValueError(f"roll {roll}: the tokens of turns or sentences cannot be rolled")
        if embeddings is not None:
            raise ValueError("embeddings of tokens: turns or sentences are encoded from their ids")
        rows = src_tokens.tolist()
        vectors = self.vectors_with_questions(rows) if self.has_questions else self.vectors_of_units(rows)
        spans = nn.utils.rnn.pad_sequence(vectors, batch_first=True)
        lengths = torch.tensor(list(map(len, vectors)), device=spans.device)
        padding = torch.arange(spans.size(1), device=spans.device) >= lengths.unsqueeze(1)
        return EncoderOut(spans, spans=spans, spans_padding=padding)

    def vectors_with_questions(self, ids: Sequence[list[int]]) -> list[Tensor]:
        """Returns (S, 2 C) vectors of the questions and of the units of each row."""
        rows = [self.parts(row) for row in ids]
        flat = [unit for both in rows for part in both for unit in part]
        if not flat:
            raise ValueError("no row has <s>, which marks each question, turn or sentence")
        alone = self.alone(flat)
        contexts = self.kept_or_new([units for _, units in rows if units], self.encode_in_context, "context")
        return list(beside(alone, contexts, rows))

    def alone(self, units: Sequence[Ids]) -> Tensor:
        """Returns the (S, C) vectors of units, each encoded by itself; of equal ones a training keeps one."""
        return torch.cat(self.kept_or_new([[unit] for unit in units], self.encode, "alone"))

    def vectors_of_units(self, ids: Sequence[list[int]]) -> list[Tensor]:
        """Returns (N, E) vectors of the units of each row."""
        rows = [list(self.units(row)) for row in ids]
        if not all(rows):
            raise ValueError("a row has no <s>, which marks each sentence or segment")
        chosen, parts = self.config.unit_vectors, list[Sequence[Tensor]]()
        if chosen != "context":
            parts.append(self.alone([unit for row in rows for unit in row]).split([*map(len, rows)]))
        if chosen != "alone":
            contexts = self.kept_or_new(rows, self.encode_in_context, "context")
            parts.append([F.normalize(each, dim=1) for each in contexts])
        return [torch.cat(vectors, dim=1) for vectors in zip(*parts, strict=True)]

    def kept_or_new(
        self, texts: list[list[Ids]], encode: Callable[[list[Any]], Iterable[Tensor]], name: str
    ) -> list[Tensor]:
        """Encodes texts, or takes what a training has kept of them."""
        if self.cache is None:
            return [*encode(texts)]
        return self.cache.get(texts, self, getattr(self.in_training, encode.__name__), name)

    @cached_property
    def in_training(self) -> "UnitsEncoder":
        """Returns the encoder that computes vectors which are kept: on a CPU a copy, as fast as that can be."""
        device = self.embed_tokens.weight.device
        if device.type != "cpu":
            return self
        cache, self.cache = self.cache, None
        copied, self.cache = deepcopy(self), cache
        set_precision(copied, choose_precision(AUTO, device))
        return copied

    def parts(self, ids: list[int]) -> tuple[list[Ids], list[Ids]]:
        """Returns the tokens of each question of a row, and those of each turn or sentence."""
        eos = self.vocabulary.eos
        end = ids.index(eos) if eos in ids else len(ids)
        return list(self.units(ids[:end])), list(self.units(ids[end:]))

    def units(self, ids: list[int]) -> Iterator[Ids]:
        """Yields the tokens of each question, turn or sentence of a row, without `<s>` and `</s>`."""
        unit: list[int] | None = None
        for token in ids:
            if token == self.vocabulary.bos:
                if unit is not None:
                    yield tuple(unit)
                unit = []
            elif unit is not None and token not in (self.vocabulary.eos, self.vocabulary.pad):
                unit.append(token)
        if unit is not None:
            yield tuple(unit)

    def encode(self, texts: Iterable[Sequence[Ids]]) -> Iterator[Tensor]:
        """Yields the (1, C) vector of each text, which is one unit by itself."""
        pieces, owners = [], []
        for number, (unit,) in enumerate(texts):
            for begin in range(0, max(1, len(unit)), self.longest):
                pieces.append(unit[begin : begin + self.longest])
                owners.append(number)
        sums: list[Any] = [None] * len(pieces)
        for index, states in self.states_of(pieces):
            sums[index] = states.sum(dim=0)
        totals = torch.zeros(owners[-1] + 1, self.embed_tokens.embedding_dim).to(sums[0])
        totals = totals.index_add(0, torch.tensor(owners, device=totals.device), torch.stack(sums))
        yield from F.normalize(totals, dim=1).split(1)

    def encode_in_context(self, documents: Iterable[Sequence[Ids]]) -> Iterator[Tensor]:
        """Yields (N, C) means of the states of the tokens of each unit of a document, which is read in chunks."""
        for document in documents:
            yield from means_in_context([document], self.longest, self.states_of)

    def states_of(self, pieces: Sequence[Sequence[int]]) -> Iterator[tuple[int, Tensor]]:
        """Yields the index of each piece and its (T, C) states, markers included, in the order of their lengths."""
        bos, pad, eos = self.vocabulary.bos, self.vocabulary.pad, self.vocabulary.eos
        device = self.embed_tokens.weight.device
        for batch in batches_of([len(piece) + 2 for piece in pieces]):
            rows = [torch.tensor([bos, *pieces[index], eos], device=device) for index in batch]
            tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
            with torch.no_grad() if self.config.freeze_encoder else nullcontext():
                states = super().forward(tokens).tokens
            yield from ((index, state[: len(row)]) for index, row, state in zip(batch, rows, states, strict=True))


def beside(alone: Tensor, contexts: Sequence[Tensor], rows: Sequence[tuple[list[Ids], list[Ids]]]) -> Iterator[Tensor]:
    """Yields the (S, 2 C) spans of each row, of vectors alone and in context."""
    inside = iter(contexts)
    for vectors, (questions, units) in zip(alone.split([sum(map(len, both)) for both in rows]), rows, strict=True):
        context = [next(inside)] if units else []
        yield torch.cat([vectors, torch.cat([vectors[: len(questions)], *context])], dim=1)


def batches_of(lengths: list[int]) -> Iterator[list[int]]:
    """Yields batches of rows of about the same length, of at most `TOKENS_OF_BATCH` tokens or one row.

    A batch ends where a longer row would leave more than `MOST_PADDING` of it empty, and `LITTLE_PADDING` tokens.
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        size = (len(batch) + 1) * lengths[index]
        padding = size - tokens - lengths[index]
        if batch and (size > TOKENS_OF_BATCH or padding > max(MOST_PADDING * size, LITTLE_PADDING)):
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def forget_vectors(encoder: UnitsEncoder, _: object) -> None:
    """Drops the kept vectors of an encoder that has loaded other weights, and says which ones are of it.

    That is known before the weights are packed for inference, so that baselines find the vectors of a training.
    """
    encoder.digest = digest_of(encoder)
    encoder.__dict__.pop("in_training", None)
    if encoder.cache is not None:
        encoder.cache.forget()


register_encoder("hat_units", UnitsEncoder)
