"""The models of hat_fairseq for transformers: hierarchical and sparse attention for long documents.

HAT (Rohde, Wu and Liu 2021): each sentence of the source begins with `<s>`. Token layers, then layers over the states
at the `<s>` tokens; each decoder layer attends to the tokens and then to the sentences. The encoder-only HAT attends to
the sentences in each layer. Poolingformer (Zhang et al. 2021): windows, and pooled keys on top. ERNIE-Sparse (Liu et
al. 2022): BigBird's blocks, and representative tokens that attend to each other.

Parameters have fairseq's names. Needs torch and transformers.

Legend: B documents, T source tokens, U target tokens, S sentences or representatives, C channels, H heads, E = C / H, V
vocabulary, M cells of K tokens.
"""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.generation.logits_process import (
    ForcedEOSTokenLogitsProcessor,
    LogitsProcessor,
    LogitsProcessorList,
)
from transformers.modeling_outputs import MaskedLMOutput, Seq2SeqLMOutput, SequenceClassifierOutput

from .layers_hat_fairseq import ACTIVATIONS, EOS, PAD, EncoderOutput, HatDecoder, HatEncoder


class HatFairseqConfig(PretrainedConfig):
    """Settings of hat_fairseq under their names there (`settings`), and what transformers has to know."""

    model_type = "hat_fairseq"

    def __init__(self, settings: dict | None = None, **kwargs):
        self.settings = settings or {}
        super().__init__(**kwargs)


class HatPreTrainedModel(PreTrainedModel):
    config_class = HatFairseqConfig
    _supports_sdpa = True

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.embed_tokens

    def get_output_embeddings(self) -> None:
        return None


class HatForConditionalGeneration(HatPreTrainedModel, GenerationMixin):
    """Encoder and decoder, with `generate`: beam search gives the best hypothesis of fairseq, and its score."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.shared = settings.share_all_embeddings
        self.encoder, self.decoder = HatEncoder(config, settings), HatDecoder(config, settings)
        self.post_init()

    def get_encoder(self, *args, **kwargs) -> HatEncoder:
        return self.encoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: EncoderDecoderCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **unused,
    ) -> Seq2SeqLMOutput:
        """(B, T) source ids, and (B, U) target ids that begin with `</s>`, or `labels`, which are shifted -> logits."""
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask, role_ids)
        if decoder_input_ids is None:
            if labels is None:
                raise ValueError("give decoder_input_ids, or labels, or call generate")
            decoder_input_ids = F.pad(labels[:, :-1].masked_fill(labels[:, :-1] < 0, PAD), (1, 0), value=EOS)
        if use_cache and labels is None and past_key_values is None:
            past_key_values = EncoderDecoderCache(DynamicCache(), DynamicCache())
        table = (self.encoder if self.shared else self.decoder).embed_tokens.weight
        logits = self.decoder(decoder_input_ids, table, encoder_outputs, past_key_values)
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), labels.masked_fill(labels.eq(PAD), -100).flatten())
        states = encoder_outputs.last_hidden_state
        return Seq2SeqLMOutput(loss, logits, past_key_values, encoder_last_hidden_state=states)

    def _get_logits_processor(self, generation_config, *args, **kwargs) -> LogitsProcessorList:
        """At the greatest length fairseq allows `</s>` only, and counts its probability; transformers counts 1."""
        processors = super()._get_logits_processor(generation_config, *args, **kwargs)
        last = OnlyEos(generation_config.max_length)
        return LogitsProcessorList(last if isinstance(p, ForcedEOSTokenLogitsProcessor) else p for p in processors)


class ClassificationHead(nn.Module):
    """Dropout, dense, activation, dropout, projection, as RoBERTa's."""

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
        super().__init__()
        width = settings.encoder_embed_dim
        self.dense = nn.Linear(width, config.classifier_inner_dim)
        self.out_proj = nn.Linear(config.classifier_inner_dim, config.num_labels)
        self.activation, self.dropout = ACTIVATIONS[settings.pooler_activation_fn], nn.Dropout(settings.pooler_dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.out_proj(self.dropout(self.activation(self.dense(self.dropout(x)))))


class HatForSequenceClassification(HatPreTrainedModel):
    """Scores of a document's classes, from its first token or from its pooled representatives."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.encoder, self.classifier = HatEncoder(config, settings), ClassificationHead(config, settings)
        self.pooling = getattr(settings, "document_pooling", "first") if self.encoder.inserts else "first"
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **unused
    ) -> SequenceClassifierOutput:
        """(B, T) ids, and (B,) numbers of the right classes for the loss -> (B, classes) logits."""
        encoded = self.encoder(input_ids, attention_mask)
        logits = self.classifier(self.document_states(encoded))
        return SequenceClassifierOutput(None if labels is None else F.cross_entropy(logits, labels), logits)

    def document_states(self, encoded: EncoderOutput) -> Tensor:
        """The (B, C) states that the head reads."""
        if self.pooling == "first":
            first = encoded.tokens_mask.to(torch.uint8).argmax(dim=1)
            return encoded.last_hidden_state[torch.arange(len(first), device=first.device), first]
        mask = encoded.sentences_mask | ~encoded.sentences_mask.any(dim=1, keepdim=True)
        spans, mask = encoded.sentences, mask.unsqueeze(-1)
        if self.pooling == "mean":
            return (spans * mask).sum(dim=1) / mask.sum(dim=1)
        sign = 1 if self.pooling == "max" else -1
        return sign * (sign * spans).masked_fill(~mask, -math.inf).amax(dim=1)


class MaskedLMHead(nn.Module):
    """Dense, activation, layer norm, and the table of tokens (or one of its own) with a bias."""

    def __init__(self, config: HatFairseqConfig, settings: SimpleNamespace):
        super().__init__()
        width = settings.encoder_embed_dim
        self.dense, self.layer_norm = nn.Linear(width, width), nn.LayerNorm(width, eps=settings.layer_norm_eps)
        self.activation, self.bias = ACTIVATIONS[settings.activation_fn], nn.Parameter(torch.zeros(config.vocab_size))
        self.weight = nn.Parameter(torch.zeros(config.vocab_size, width)) if settings.untie_weights_roberta else None

    def forward(self, x: Tensor, table: Tensor) -> Tensor:
        x = self.layer_norm(self.activation(self.dense(x)))
        return F.linear(x, table if self.weight is None else self.weight, self.bias)


class HatForMaskedLM(HatPreTrainedModel):
    """Scores of words."""

    def __init__(self, config: HatFairseqConfig):
        super().__init__(config)
        settings = SimpleNamespace(**config.settings)
        self.encoder, self.lm_head = HatEncoder(config, settings), MaskedLMHead(config, settings)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, labels: Tensor | None = None, **unused
    ) -> MaskedLMOutput:
        """(B, T) ids, and (B, T) the right ones for the loss, -100 elsewhere -> (B, T, V) logits."""
        states = self.encoder(input_ids, attention_mask).last_hidden_state
        logits = self.lm_head(states, self.encoder.embed_tokens.weight)
        return MaskedLMOutput(
            None if labels is None else F.cross_entropy(logits.flatten(0, 1), labels.flatten()), logits
        )


class OnlyEos(LogitsProcessor):
    def __init__(self, max_length: int):
        self.max_length = max_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) != self.max_length - 1:
            return scores
        only = torch.full_like(scores, -math.inf)
        only[:, EOS] = scores[:, EOS]
        return only
