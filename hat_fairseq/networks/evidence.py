"""An encoder of the turns or sentences of a document, each by itself, and layers over them that find evidence.

The token layers are RoBERTa's (or BERT's, of which they start). They read each question and each turn or sentence as a
row `<s> ... </s>` of its own; one that is longer than `segment_length` is several rows. Its vector is the mean of the
states of its tokens, markers included, and has length 1, as in sentence-transformers (Reimers and Gurevych 2019). The
layers over all vectors of a document are `modules.evidence`.

Legend: B documents, T tokens, S questions and units of the document with most, C channels.
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass, fields
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ..modules.evidence import EvidenceHead, EvidenceSizes
from ..modules.fields import changed, option
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
        128,
        "encode at most this many tokens together, with <s> and </s>; a longer turn or sentence is divided",
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
        24, "the number of turns or sentences in each part that a layer N divides a document into", least=1
    )
    evidence_dim: int = option(32, "the width of the layers over turns or sentences", least=2)
    evidence_ffn_dim: int = option(64, "the width of the feed-forward networks in these layers", least=1)
    evidence_attention_heads: int = option(4, "the number of attention heads in these layers", least=1)
    evidence_dropout: float = option(0.1, "the dropout of these layers", least=0, most=1)
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
        self.register_load_state_dict_post_hook(forget_vectors)
        if config.freeze_encoder:
            self.requires_grad_(False)
        elif config.freeze_layers:
            self.requires_grad_(False)
            self.layers[config.freeze_layers :].requires_grad_(True)
            if self.layer_norm is not None:
                self.layer_norm.requires_grad_(True)

    def train(self, mode: bool = True) -> Self:
        """Sets the mode; what is frozen has no dropout. New vectors are written."""
        frozen = self.config.freeze_encoder
        super().train(mode and not frozen)
        if frozen and self.cache is not None:
            self.cache.save()
        elif frozen and mode:
            self.cache = KeptVectors(self.config.vectors)
        return self

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        """Builds the layers over turns or sentences; ValueError for a head of another level."""
        if level != EvidenceHead.level:
            raise ValueError("hat_evidence is for data of --kind evidence; for others use --arch hat_roberta_*")
        return EvidenceHead(self.config.encoder_embed_dim, self.config.evidence_sizes())

    def forward(
        self, src_tokens: Tensor, roles: Tensor | None = None, roll: int = 0, words: Tensor | None = None
    ) -> EncoderOut:
        """Maps (B, T) ids -> (B, S, C) `spans`: of the questions, then of the units; `tokens` has the same.

        ValueError for roles, for a roll, which would divide turns elsewhere, and for embeddings of tokens.
        """
        if roles is not None:
            raise ValueError("roles: hat_evidence has no embeddings of speakers")
        if roll:
            raise ValueError(f"roll {roll}: the tokens of turns or sentences cannot be rolled")
        if words is not None:
            raise ValueError("embeddings of tokens: turns or sentences are encoded from their ids")
        rows = [list(self.units(row)) for row in src_tokens.tolist()]
        flat = [unit for row in rows for unit in row]
        if not flat:
            raise ValueError("no row has <s>, which marks each question, turn or sentence")
        vectors = self.encode(flat) if self.cache is None else self.cache.get(flat, self)
        spans = nn.utils.rnn.pad_sequence(list(vectors.split(list(map(len, rows)))), batch_first=True)
        lengths = torch.tensor(list(map(len, rows)), device=spans.device)
        padding = torch.arange(spans.size(1), device=spans.device) >= lengths.unsqueeze(1)
        return EncoderOut(spans, spans=spans, spans_padding=padding)

    def units(self, ids: list[int]) -> Iterator[tuple[int, ...]]:
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

    def encode(self, units: Iterable[tuple[int, ...]]) -> Tensor:
        """Computes the (N, C) vectors of units, in batches of about the same length."""
        bos, pad, eos = self.vocabulary.bos, self.vocabulary.pad, self.vocabulary.eos
        pieces, owners = [], []
        for number, unit in enumerate(units):
            for begin in range(0, max(1, len(unit)), self.longest):
                pieces.append((bos, *unit[begin : begin + self.longest], eos))
                owners.append(number)
        table = self.embed_tokens.weight
        sums: list[Tensor] = [table.new_zeros(())] * len(pieces)
        with torch.no_grad() if self.config.freeze_encoder else nullcontext():
            for batch in batches_of(list(map(len, pieces))):
                rows = [torch.tensor(pieces[index], device=table.device) for index in batch]
                tokens = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad)
                states = super().forward(tokens).tokens
                real = tokens.ne(pad).unsqueeze(-1)
                for index, total in zip(batch, states.masked_fill(~real, 0).sum(dim=1), strict=True):
                    sums[index] = total
        stacked = torch.stack(sums)
        totals = stacked.new_zeros(owners[-1] + 1, stacked.size(1))
        totals = totals.index_add(0, torch.tensor(owners, device=table.device), stacked)
        return F.normalize(totals, dim=1)


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
