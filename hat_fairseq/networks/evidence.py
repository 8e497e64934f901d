"""An encoder of the turns or sentences of a document, and layers over them that find what answers questions.

The token layers are RoBERTa's (or BERT's, of which they start). They read each question and each turn or sentence as a
row `<s> ... </s>` of its own; one that is longer than `segment_length` is several rows. Its vector is the mean of the
states of its tokens, markers included, and has length 1, as in sentence-transformers (Reimers and Gurevych 2019). They
also read the document in overlapping chunks of `segment_length` tokens, for vectors in context (`modules.in_context`).
The layers over all vectors of a document are `modules.evidence`.

Legend: B documents, T tokens, S questions and units of the document with most, N units, C channels.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..modules.evidence import EvidenceHead, EvidenceSizes
from ..modules.fields import changed, option
from ..modules.in_context import Ids, means_in_context
from ..modules.layers import EncoderLayer
from .encoder import EncoderOut, Vocabulary, build_attentions
from .kept_vectors import KeptVectors
from .roberta import RobertaConfig, RobertaEncoder

UNLIMITED = 2**31 - 1  # tokens of a document
TOKENS_OF_BATCH = 4096  # that are encoded at once, padding included


@dataclass
class HatEvidenceConfig(RobertaConfig):
    """A RoBERTa over turns or sentences, and layers over these."""

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
        0, "do not train the embeddings and this many token layers, counted from the first", least=0
    )
    vectors: str | None = option(
        None, "with --freeze-encoder: keep the vectors for other trainings in this file (.npz)"
    )
    evidence_layout: str = option(
        "N|D", "the layers over turns or sentences, with | between them: N over neighbours, D over the document"
    )
    evidence_neighbours: int = option(
        12, "the number of turns or sentences on either side that a layer N reads", least=1
    )
    evidence_dim: int = option(32, "the width of the layers over turns or sentences", least=2)
    evidence_ffn_dim: int = option(64, "the width of the feed-forward networks in these layers", least=1)
    evidence_attention_heads: int = option(4, "the number of attention heads in these layers", least=1)
    evidence_dropout: float = option(
        0.1, "the dropout of these layers; that of the vectors is twice as much", least=0, most=1
    )
    own_options = ("segment_length",)
    training_only: ClassVar[tuple[str, ...]] = ("freeze_encoder", "freeze_layers", "vectors")

    def check(self) -> None:
        super().check()
        self.evidence_sizes()
        if not self.no_hierarchy:
            raise ValueError("hat_evidence has its hierarchy in the layers over turns: give --no-hierarchy")
        if self.freeze_layers and self.freeze_encoder:
            raise ValueError(
                "--freeze-layers has no effect with --freeze-encoder, which freezes all: remove one of them"
            )
        if self.freeze_layers > self.encoder_layers:
            raise ValueError(f"--freeze-layers {self.freeze_layers}: the encoder has {self.encoder_layers} layers")
        if self.vectors is not None and not self.freeze_encoder:
            raise ValueError("--vectors has no effect without --freeze-encoder: add that, or remove it")
        if self.max_positions is not None and self.segment_length > self.max_positions:
            raise ValueError(
                f"--segment-length {self.segment_length} is more than --max-positions {self.max_positions}"
            )

    def evidence_sizes(self) -> EvidenceSizes:
        """Returns the sizes of the layers over turns or sentences."""
        return EvidenceSizes(*(getattr(self, f"evidence_{item.name}") for item in fields(EvidenceSizes)))


class EvidenceEncoder(RobertaEncoder):
    """Encodes the questions and the turns or sentences of documents, each by itself."""

    config_class = HatEvidenceConfig
    has_masked_lm = False
    counts_in_segments = True
    reads_first_token = False
    config: HatEvidenceConfig

    def __init__(self, config: HatEvidenceConfig, vocabulary: Vocabulary) -> None:
        sizes, attentions = config.encoder_sizes(), build_attentions(config, config.encoder_layers)
        super().__init__(config, vocabulary, [EncoderLayer(sizes, attention) for attention in attentions])
        self.max_tokens, self.longest = UNLIMITED, config.segment_length - 2  # without <s> and </s>
        self.cache: KeptVectors | None = None  # in a training, also for its validation
        self.trains = False  # the mode that `train` was asked for, also of an encoder that is frozen
        self.register_load_state_dict_post_hook(forget_vectors)
        if config.freeze_encoder:
            self.requires_grad_(False)
        elif config.freeze_layers:
            self.requires_grad_(False)
            self.layers[config.freeze_layers :].requires_grad_(True)
            if self.layer_norm is not None:
                self.layer_norm.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """Sets the mode; what is frozen has no dropout. New vectors are written after an epoch and a validation."""
        frozen, changed_mode = self.config.freeze_encoder, mode != self.trains
        self.trains = mode
        super().train(mode and not frozen)
        if frozen and mode and self.cache is None:
            self.cache = KeptVectors(self.config.vectors)
        elif self.cache is not None and changed_mode:
            self.cache.save()
        return self

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds the layers over turns or sentences; ValueError for a head of another level."""
        if level != EvidenceHead.level:
            raise ValueError("hat_evidence is for data of --kind evidence; for others use --arch hat_roberta_*")
        return EvidenceHead(self.config.encoder_embed_dim, self.vocabulary.size, self.config.evidence_sizes())

    def forward(
        self, src_tokens: Tensor, roles: Tensor | None = None, roll: int = 0, words: Tensor | None = None
    ) -> EncoderOut:
        """Maps (B, T) ids -> (B, S, 2 C) `spans`: of the questions, then of the units; `tokens` has the same.

        The first C channels are a span by itself, of length 1; the others are the mean of the states of its tokens in
        context, those of a question once more the first.

        ValueError for roles, for a roll, which would divide turns elsewhere, and for embeddings of tokens.
        """
        if roles is not None:
            raise ValueError("roles: hat_evidence has no embeddings of speakers")
        if roll:
            raise ValueError(f"roll {roll}: the tokens of turns or sentences cannot be rolled")
        if words is not None:
            raise ValueError("embeddings of tokens: turns or sentences are encoded from their ids")
        rows = [self.parts(row) for row in src_tokens.tolist()]
        flat = [unit for both in rows for part in both for unit in part]
        if not flat:
            raise ValueError("no row has <s>, which marks each question, turn or sentence")
        alone = torch.cat(self.kept_or_new([[unit] for unit in flat], self.encode, "alone"))
        contexts = self.kept_or_new([units for _, units in rows if units], self.encode_in_context, "context")
        spans = nn.utils.rnn.pad_sequence(list(beside(alone, contexts, rows)), batch_first=True)
        lengths = torch.tensor([sum(map(len, both)) for both in rows], device=spans.device)
        padding = torch.arange(spans.size(1), device=spans.device) >= lengths.unsqueeze(1)
        return EncoderOut(spans, spans=spans, spans_padding=padding)

    def kept_or_new(
        self, texts: list[list[Ids]], encode: Callable[[list[Any]], Iterable[Tensor]], name: str
    ) -> list[Tensor]:
        """Encodes texts, or takes what a training has kept of them."""
        return [*encode(texts)] if self.cache is None else self.cache.get(texts, self, encode, name)

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
    """Yields batches of rows of about the same length, of at most `TOKENS_OF_BATCH` tokens or one row."""
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[index] > TOKENS_OF_BATCH:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def forget_vectors(encoder: EvidenceEncoder, _: object) -> None:
    """Drops the kept vectors of an encoder that has loaded other weights."""
    if encoder.cache is not None:
        encoder.cache = KeptVectors(encoder.config.vectors)
