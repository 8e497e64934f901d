"""HAT's encoder and decoder as a model of transformers, whose `generate` finds the hypotheses of `hat generate`.

The hypotheses of a document share its memory: `generate` repeats the target, not the source.

Legend: B documents, T source tokens, R hypotheses (B x beam), U target tokens, V words.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin
from transformers.generation.logits_process import (
    ForcedEOSTokenLogitsProcessor,
    LogitsProcessor,
    LogitsProcessorList,
)
from transformers.loss.loss_utils import ForMaskedLMLoss
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput

from ..data.dictionary import EOS, PAD
from ..modules.cache import DecoderCache
from ..networks.encoder import Encoder, EncoderOut, Vocabulary
from ..networks.hat import ENCODER_DECODERS, Decoder, HatEncoder, build_parts
from .modeling import LOSS, HatConfig, HatPreTrainedModel, known_arguments, masked


@dataclass
class EncoderOutput(ModelOutput):
    """What the encoder returns, and its states, which are all that transformers reads."""

    last_hidden_state: Tensor | None = None
    memory: EncoderOut | None = None


class SourceEncoder(HatEncoder):
    """The encoder as `generate` calls it."""

    main_input_name = "input_ids"

    def forward(  # type: ignore[override]
        self, input_ids: Tensor, attention_mask: Tensor | None = None, role_ids: Tensor | None = None, **unused: Any
    ) -> EncoderOutput:
        """Encodes (B, T) ids; `role_ids` (B, T) for a model with roles."""
        out = super().forward(masked(input_ids, attention_mask), role_ids)
        return EncoderOutput(out.tokens, out)


class GenerationCache(DecoderCache):
    """The decoder's cache under the names that `generate` uses."""

    is_compileable = is_croppable = False

    def get_seq_length(self, layer: int = 0) -> int:
        return self.length

    def reorder_cache(self, beam_idx: Tensor) -> None:
        self.reorder(beam_idx, None)


class HatForConditionalGeneration(HatPreTrainedModel, GenerationMixin):
    """Encoder and decoder. Beam search gives the best hypothesis of fairseq, and its score."""

    def __init__(self, config: HatConfig):
        super().__init__(config)
        source, target = Vocabulary(config.source_vocab_size), Vocabulary(config.vocab_size)
        positions = config.max_source_positions, config.max_target_positions
        network = config.network_config(ENCODER_DECODERS)
        parts = build_parts(SourceEncoder, Decoder, network, source, target, positions, config.num_roles)
        self.encoder, self.decoder = parts
        self.post_init()

    @property
    def core(self) -> Encoder:
        return self.encoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: GenerationCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **loss: Any,
    ) -> Seq2SeqLMOutput:
        """Computes the (R, U, V) logits of the word after each target token.

        Args:
            input_ids, attention_mask, role_ids: (B, T) of the source.
            decoder_input_ids: (R, U) ids, of which the first is `</s>`; default: the shifted `labels`. With
                `past_key_values` those after the cached ones. Hypotheses of a document are consecutive rows.
            encoder_outputs: of the B documents, instead of the source.
            labels: (B, U) ids without the first `</s>`, -100 or <pad> for none.
            loss: further arguments of the loss, such as `num_items_in_batch`.
        """
        loss = known_arguments(loss, self.config, LOSS)
        out: Any = self.encoder(input_ids, attention_mask, role_ids) if encoder_outputs is None else encoder_outputs
        if decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if past_key_values is None and use_cache:
            past_key_values = GenerationCache(len(self.decoder.layers))
        logits = self.decoder(decoder_input_ids, out.memory, past_key_values)
        if labels is not None:
            right = labels.masked_fill(labels == PAD, -100)
            return Seq2SeqLMOutput(ForMaskedLMLoss(logits, right, logits.size(-1), **loss), logits)
        return Seq2SeqLMOutput(logits=logits, past_key_values=past_key_values)  # type: ignore[arg-type]

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor | None) -> Tensor:
        """Shifts (B, U) ids, -100 for none, after a `</s>`; collators call this."""
        if labels is None:
            raise ValueError("give decoder_input_ids, or labels, or call generate")
        return F.pad(labels[:, :-1].masked_fill(labels[:, :-1] < 0, PAD), (1, 0), value=EOS)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """`forward` makes the cache."""
        return False

    def _expand_inputs_for_generation(  # type: ignore[override]
        self, expand_size: int = 1, is_encoder_decoder: bool = True, input_ids: Tensor | None = None, **others: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Repeats the target ids for each hypothesis; the source stays one row for each document."""
        assert input_ids is not None
        return input_ids.repeat_interleave(expand_size, dim=0), others

    def _get_logits_processor(self, generation_config: Any, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """At the greatest length fairseq allows `</s>` only, and counts its probability; transformers counts 1."""
        processors = super()._get_logits_processor(generation_config, *args, **kwargs)  # type: ignore[misc]
        last = OnlyEos(generation_config.max_length)
        return LogitsProcessorList(last if isinstance(p, ForcedEOSTokenLogitsProcessor) else p for p in processors)


class OnlyEos(LogitsProcessor):
    """Allows `</s>` only as the last token of the greatest length."""

    def __init__(self, max_length: int):
        self.max_length = max_length

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) != self.max_length - 1:
            return scores
        only = torch.full_like(scores, -math.inf)
        only[:, EOS] = scores[:, EOS]
        return only
