"""fairseq's side of HAT: `hat_transformer` and `hat_bart`, the encoder-decoder of Rohde et al. 2021.

Sections 3 and 4. With `--no-hierarchy` every architecture builds its baseline: the same network without hierarchical
encoder and without cross-attention to sentences.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq import models as base
from fairseq.data import Dictionary
from fairseq.models import register_model
from torch import Tensor

from ..kernels import set_precision
from ..networks.encoder import EncoderOut, Vocabulary
from ..networks.hat import ENCODER_DECODERS, Decoder, HatConfig, HatEncoder, build_parts
from .adapting import adapt_state, declare, fingerprint, is_roberta, start_encoder_from_roberta

CACHE = "hat_decoder"  # key of the decoder's cache in fairseq's incremental_state


def vocabulary(dictionary: Dictionary) -> Vocabulary:
    return Vocabulary(len(dictionary), dictionary.bos(), dictionary.pad(), dictionary.eos())


class FairseqEncoder(HatEncoder, base.FairseqEncoder):
    """The encoder as fairseq calls it."""

    def __init__(self, *arguments: Any) -> None:
        base.FairseqEncoder.__init__(self, None)
        HatEncoder.__init__(self, *arguments)

    def forward_torchscript(self, net_input: dict[str, Tensor]) -> EncoderOut:
        """Encodes a batch for fairseq's own generator."""
        return self(src_tokens=net_input["src_tokens"], roles=net_input.get("roles"))

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Selects one row for each hypothesis; fairseq's own generator calls it."""
        return encoder_out.select(new_order)

    def max_positions(self) -> int:
        return self.max_tokens


class FairseqDecoder(Decoder, base.FairseqIncrementalDecoder):
    """The decoder as fairseq calls it."""

    def __init__(self, *arguments: Any) -> None:
        base.FairseqIncrementalDecoder.__init__(self, None)
        Decoder.__init__(self, *arguments)

    def max_positions(self) -> int:
        return self.embedding_sizes.positions

    def forward(  # type: ignore[override]
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Maps (B, U) target ids, shifted right -> (B, U, V) logits, or (B, U, C) states; see `extract_features`.

        Beside states a row of the output projection is returned, because DDP searches the outputs for unused
        parameters.
        """
        x, extra = self.extract_features(prev_output_tokens, encoder_out, incremental_state)
        if features_only:
            return x, extra | {"projection": self.output_projection.weight[:1]}
        return self.output_layer(x), extra

    def extract_features(
        self,
        prev_output_tokens: Tensor,
        encoder_out: EncoderOut | None = None,
        incremental_state: dict[str, Any] | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Maps (B, U) target ids -> (B, U, C) states, or those of the tokens after the cached ones.

        Args:
            incremental_state: fairseq's dictionary for the cache; None: no token is cached.
        Returns:
            The states, and {"attn": [None]} as fairseq expects.
        """
        assert encoder_out is not None
        if incremental_state is None:
            return self.states(prev_output_tokens, encoder_out), {"attn": [None]}
        if CACHE not in incremental_state:
            incremental_state[CACHE] = self.new_cache()
        cache = incremental_state[CACHE]
        return self.states(prev_output_tokens[:, cache.length :], encoder_out, cache), {"attn": [None]}

    def output_layer(self, features: Tensor) -> Tensor:
        """Maps (B, U, C) -> (B, U, V)."""
        return self.logits(features)

    def reorder_incremental_state_scripting(self, incremental_state: dict[str, Any], new_order: Tensor) -> None:
        """Lets row i continue row `new_order[i]`; fairseq's own generator has a row for each hypothesis."""
        if CACHE in incremental_state:
            self.reorder_beams(incremental_state, new_order, new_order)

    def reorder_beams(self, incremental_state: dict[str, Any], rows: Tensor, documents: Tensor | None) -> None:
        """Reorders for `SharedMemory`, whose hypotheses share their document's memory; see `DecoderCache.reorder`."""
        incremental_state[CACHE].reorder(rows, documents)


@register_model("hat_transformer")
class HatTransformerModel(base.FairseqEncoderDecoderModel):
    """Token-level encoder, hierarchical encoder, and a decoder that attends to both."""

    network = "hat_transformer"
    encoder_from: str | None = None
    encoder: FairseqEncoder
    decoder: FairseqDecoder

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        declare(parser, HatConfig)
        text = "start the encoder from this checkpoint or folder of a BERT or RoBERTa; the decoder is new"
        parser.add_argument("--encoder-from", metavar="FILE", help=text)

    @classmethod
    def read_config(cls, args: Namespace) -> HatConfig:
        """Reads the config from the flags of a run or of a checkpoint."""
        return ENCODER_DECODERS[cls.network].from_args(args)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "HatTransformerModel":
        config = cls.read_config(args)
        source, target = task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings and source.symbols != target.symbols:
            raise ValueError("--share-all-embeddings needs one dictionary: run fairseq-preprocess --joined-dictionary")
        roles = getattr(task, "role_dictionary", None)
        encoder, decoder = build_parts(
            FairseqEncoder,
            FairseqDecoder,
            config,
            vocabulary(source),
            vocabulary(target),
            (args.max_source_positions, args.max_target_positions),
            0 if roles is None else len(roles),
        )
        encoder.dictionary, decoder.dictionary = source, target
        encoder.register_buffer("dictionary_fingerprint", fingerprint(source))
        if roles is not None:
            encoder.register_buffer("segment_dictionary_fingerprint", fingerprint(roles))  # as checkpoints name it
        decoder.register_buffer("dictionary_fingerprint", fingerprint(target))
        model = cls(encoder, decoder)
        model.config, model.has_mask = config, "<mask>" in target
        model.encoder_from = getattr(args, "encoder_from", None)
        return model

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        prev_output_tokens: Tensor,
        roles: Tensor | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Maps (B, T) source and (B, U) shifted target ids -> (B, U, V) logits, or (B, U, C) states, `features_only`.

        `roles`: (B, T) ids, with --role-stream.
        """
        return self.decoder(prev_output_tokens, self.encoder(src_tokens, roles), features_only=features_only)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Sets the precision (--fp16, --bf16, --cpu-precision); fairseq calls it before generation.

        Raises:
            ValueError: --retain-dropout; two precisions, or one that the device does not support.
        """
        if getattr(getattr(cfg, "generation", None), "retain_dropout", False):
            raise ValueError("--retain-dropout is not supported: this model generates without dropout; remove it")
        super().prepare_for_inference_(cfg)
        common = getattr(cfg, "common", None)
        names = {name for name in ("fp16", "bf16") if getattr(common, name, False)}
        of_cpu, device = (
            str(getattr(getattr(cfg, "task", None), "cpu_precision", "fp32")),
            next(self.parameters()).device,
        )
        if of_cpu != "fp32" and device.type != "cpu":
            raise ValueError(f"--cpu-precision {of_cpu}: the model is on {device}; give --fp16 or --bf16 there")
        names |= {of_cpu} - {"fp32"}
        if len(names) > 1:
            raise ValueError(f"choose one precision, not {' and '.join(sorted(names))}")
        set_precision(self, names.pop() if names else "fp32")

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """Adapts a checkpoint without hierarchy, or of an encoder, before loading; ValueError if it does not fit."""
        if is_roberta(state_dict):
            if self.encoder_from is None:
                raise ValueError("it is a BERT or RoBERTa, which has no decoder: start from it with --encoder-from")
            start_encoder_from_roberta(state_dict, self)
        adapt_state(state_dict, self)


@register_model("hat_bart")
class HatBartModel(HatTransformerModel):
    """HAT with the architecture and the initialisation of BART, so that it can start from BART's weights."""

    network = "hat_bart"
