"""HAT's encoder and decoder as a model of transformers, whose `generate` finds the hypotheses of `hat generate`.

The hypotheses of a document share its memory: `generate` repeats the target, not the source.

Legend: B documents, T source tokens, R hypotheses (B x beam), U target tokens, V words.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import GenerationMixin, PretrainedConfig
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
from .config import HatConfig
from .pretrained import LOSS, HatPreTrainedModel, ids_of, known_arguments, reads_markers
from .recording import Recording

# Options of generation: of assisted decoding, of caches, of prompts, and one that compares tokens with their texts.
REFUSED = (
    "prompt_lookup_num_tokens",
    "assistant_early_exit",
    "use_mtp",
    "cache_implementation",
    "prefill_chunk_size",
    "guidance_scale",
    "stop_strings",
)


@dataclass
class EncoderOutput(ModelOutput):
    """What the encoder returns, and its states, which are all that transformers reads."""

    last_hidden_state: Tensor | None = None
    memory: EncoderOut | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None
    sentence_attentions: tuple[Tensor, ...] | None = None


@dataclass
class HatSeq2SeqOutput(Seq2SeqLMOutput):
    """What transformers returns, and the weights on sentences; see `Recording`.

    `sentence_attentions` are among sentences of the source, `sentence_cross_attentions` those of the decoder on them.
    """

    sentence_attentions: tuple[Tensor, ...] | None = None
    sentence_cross_attentions: tuple[Tensor, ...] | None = None


class SourceEncoder(HatEncoder):
    """The encoder as `generate` calls it."""

    main_input_name = "input_ids"

    def forward(  # type: ignore[override]
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        role_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **asked: Any,
    ) -> Any:
        """Encodes (B, T) ids; see `HatModel.forward`. `use_cache`, which `generate` sets, has no effect."""
        asked.pop("use_cache", None)
        wanted, _ = known_arguments(asked, PretrainedConfig())
        states, weights = wanted.states, wanted.weights
        tokens = ids_of(input_ids, attention_mask, inputs_embeds, self.config)
        with Recording(self, states=states, weights=weights) as recording:
            out = super().forward(tokens, role_ids, embeddings=inputs_embeds)
        hidden = (*recording.hidden[:-1], out.tokens) if states else None
        output = EncoderOutput(out.tokens, out, hidden, recording.attentions or None, recording.sentences or None)
        return wanted.answer(output)


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
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: EncoderOutput | None = None,
        past_key_values: GenerationCache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        inputs_embeds: Tensor | None = None,
        **others: Any,
    ) -> Any:
        """Computes the (R, U, V) logits of the word after each target token.

        Args:
            input_ids, attention_mask, role_ids: (B, T) of the source.
            inputs_embeds: (B, T, C) embeddings of the source's tokens in place of those of the table.
            decoder_input_ids: (R, U) ids, of which the first is `</s>`; default: the shifted `labels`. With
                `past_key_values` those after the cached ones. Hypotheses of a document are consecutive rows.
            decoder_attention_mask: (R, U) or with the cached ones, 0 for padding, which is on the right.
            encoder_outputs: of the B documents, instead of the source; the decoder reads their `last_hidden_state`.
            labels: (B, U) ids without the first `</s>`, -100 or <pad> for none.
            others: `output_hidden_states`, `output_attentions`, `return_dict`, and further arguments of the loss.

        Raises:
            ValueError: targets with padding on the left; an argument that does not exist; an `attention_mask` beside
                `encoder_outputs` that hides tokens which the encoder has read.
        """
        asked, loss = known_arguments(others, self.config, LOSS)
        out: Any = encoder_outputs
        if out is None:
            wanted = {"output_hidden_states": asked.states, "output_attentions": asked.weights}
            out = self.encoder(input_ids, attention_mask, role_ids, inputs_embeds, **wanted)
        if not isinstance(out, EncoderOutput):
            raise ValueError(
                f"encoder_outputs is a {type(out).__name__}: give what get_encoder() of this model returns"
            )
        memory: Any = out.memory
        if encoder_outputs is not None and attention_mask is not None and past_key_values is None:
            check_mask(attention_mask, memory.tokens_padding)
        if out.last_hidden_state is not memory.tokens:  # else the same, whose masks are made once for all steps
            memory = replace(memory, tokens=out.last_hidden_state)
        if decoder_input_ids is None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        if decoder_attention_mask is not None:
            decoder_input_ids = masked_targets(decoder_input_ids, decoder_attention_mask)
        if past_key_values is None and use_cache:
            past_key_values = GenerationCache(len(self.decoder.layers))
        with Recording(self.encoder, self.decoder, asked.states, asked.weights) as recording:
            logits = self.decoder(decoder_input_ids, memory, past_key_values)
        value = None
        if labels is not None:
            right = labels.masked_fill(labels == PAD, -100)
            value = ForMaskedLMLoss(logits, right, logits.size(-1), **loss)
        result = HatSeq2SeqOutput(
            loss=value,
            logits=logits,
            past_key_values=past_key_values,
            decoder_hidden_states=recording.decoder_hidden or None,
            decoder_attentions=recording.decoder_attentions or None,
            cross_attentions=recording.cross or None,
            encoder_last_hidden_state=out.last_hidden_state,
            encoder_hidden_states=out.hidden_states,
            encoder_attentions=out.attentions,
            sentence_attentions=out.sentence_attentions,
            sentence_cross_attentions=recording.cross_sentences or None,
        )
        return asked.answer(result)

    def generate(self, *args: Any, **options: Any) -> Any:
        """Generates as transformers does; ValueError for what needs another cache or vocabulary than these have."""
        refuse("assistant_model", options.get("assistant_model"))
        if options.get("inputs_embeds") is not None and reads_markers(self.encoder.config):
            raise ValueError(
                "inputs_embeds: generate takes encoder_outputs=model.get_encoder()(input_ids=..., attention_mask=..., "
                "inputs_embeds=...) of a model that reads the markers of sentences"
            )
        if (begun := options.get("decoder_input_ids")) is not None and bool((begun == PAD).any()):
            raise ValueError("decoder_input_ids with <pad>: generate continues beginnings of one length")
        return super().generate(*args, **options)

    def _prepare_generation_config(self, *args: Any, **options: Any) -> tuple[Any, dict[str, Any]]:
        """Returns the options of a call and of the model's own configuration together, and all other arguments."""
        merged, others = super()._prepare_generation_config(*args, **options)
        for name in REFUSED:
            refuse(name, getattr(merged, name, None))
        return merged, others

    def get_output_embeddings(self) -> Any:
        return self.decoder.output_projection

    def get_decoder(self) -> Any:
        return self.decoder

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor | None) -> Tensor:
        """Shifts (B, U) ids, -100 for none, after a `</s>`; collators call this."""
        if labels is None:
            raise ValueError("give decoder_input_ids, or labels, or call generate")
        return F.pad(labels[:, :-1].masked_fill(labels[:, :-1] < 0, PAD), (1, 0), value=EOS)

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """`forward` makes the cache."""
        return False

    def _expand_inputs_for_generation(
        self, expand_size: int = 1, is_encoder_decoder: bool = True, input_ids: Tensor | None = None, **others: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        """Repeats the target ids for each hypothesis; the source stays one row for each document."""
        assert input_ids is not None
        if (mask := others.get("decoder_attention_mask")) is not None:
            others["decoder_attention_mask"] = mask.repeat_interleave(expand_size, dim=0)
        return input_ids.repeat_interleave(expand_size, dim=0), others

    def _get_logits_processor(self, generation_config: Any, *args: Any, **kwargs: Any) -> LogitsProcessorList:
        """Forbids `<pad>`, and at the greatest length everything but `</s>`, as fairseq does.

        The score counts the probability of this `</s>`; transformers counts 1.
        """
        processors = super()._get_logits_processor(generation_config, *args, **kwargs)
        forced = ForcedEOSTokenLogitsProcessor
        return LogitsProcessorList(
            (WithoutPad(), *(OnlyEos(p.max_length, p.eos_token_id) if isinstance(p, forced) else p for p in processors))
        )


def refuse(name: str, value: Any) -> None:
    """Raises ValueError for an option that is set."""
    if value not in (None, False):
        raise ValueError(f"{name}: the decoders of hat_fairseq do not have this; remove it")


def check_mask(mask: Tensor, padding: Tensor | None) -> None:
    """Raises ValueError for a (B, T) mask that hides tokens which are no padding; a row of nothing else is read."""
    hidden = (mask == 0) & mask.any(dim=1, keepdim=True)
    if bool((hidden if padding is None else hidden & ~padding).any()):
        raise ValueError(
            "attention_mask hides tokens that encoder_outputs were computed from: give the mask to get_encoder()"
        )


def masked_targets(tokens: Tensor, mask: Tensor) -> Tensor:
    """Returns the (R, U) target ids with <pad> where the last U columns of the mask are 0."""
    real = mask != 0
    if bool((real[:, 1:] & ~real[:, :-1]).any()):
        raise ValueError(
            "decoder_attention_mask: a token after padding; targets are padded on the right, as the tokenizer does, "
            "and generate continues beginnings of one length"
        )
    return tokens.masked_fill(mask[:, -tokens.size(1) :] == 0, PAD)


class WithoutPad(LogitsProcessor):
    """Forbids `<pad>`, which is not part of a text."""

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        return scores.index_fill(-1, torch.tensor([PAD], device=scores.device), -math.inf)


class OnlyEos(LogitsProcessor):
    """Allows only the forced ids, such as `</s>`, as the last token of the greatest length.

    Where they are forbidden, because the least length is the greatest one, they count as certain, as in transformers.
    """

    def __init__(self, max_length: int, ids: Tensor):
        self.max_length, self.ids = max_length, ids

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        if input_ids.size(1) != self.max_length - 1:
            return scores
        only, own = torch.full_like(scores, -math.inf), scores[:, self.ids]
        only[:, self.ids] = own.masked_fill(own == -math.inf, 0)
        return only
