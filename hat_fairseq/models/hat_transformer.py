"""fairseq's side of HAT: `hat_transformer` and `hat_bart`, the encoder-decoder of Rohde et al. 2021.

Sections 3 and 4. With `--no-hierarchy` every architecture builds its baseline: the same network without hierarchical
encoder and without cross-attention to sentences.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, FairseqEncoderDecoderModel, FairseqIncrementalDecoder, register_model
from torch import Tensor

from ..kernels import set_precision
from ..modules.embedding import initialise
from ..modules.options import add_options
from ..networks.encoder import Encoder, EncoderOut, Vocabulary
from ..networks.hat import LIKE_BERT, Decoder, HatConfig, hat_encoder_parts, token_tables
from .loading import adapt_state, fingerprint, is_roberta, start_encoder_from_roberta


def vocabulary(dictionary: Dictionary) -> Vocabulary:
    return Vocabulary(len(dictionary), dictionary.bos(), dictionary.pad(), dictionary.eos())


class HatEncoder(Encoder, FairseqEncoder):
    """The encoder as fairseq calls it."""

    def __init__(self, dictionary: Dictionary, *arguments: Any) -> None:
        FairseqEncoder.__init__(self, dictionary)
        self.compose(*arguments)

    def forward_torchscript(self, net_input: dict[str, Tensor]) -> EncoderOut:
        """Encodes a batch for fairseq's own generator."""
        return self(src_tokens=net_input["src_tokens"], roles=net_input.get("roles"))

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """Selects one row for each hypothesis; fairseq's own generator calls it."""
        return encoder_out.select(new_order)

    def max_positions(self) -> int:
        return self.max_tokens


class HatDecoder(Decoder, FairseqIncrementalDecoder):
    """The decoder as fairseq calls it."""

    def __init__(self, dictionary: Dictionary, *arguments: Any) -> None:
        FairseqIncrementalDecoder.__init__(self, dictionary)
        self.compose(*arguments)

    def max_positions(self) -> int:
        return self.embedding_sizes.positions


@register_model("hat_transformer")
class HatTransformerModel(FairseqEncoderDecoderModel):
    """Token-level encoder, hierarchical encoder, and a decoder that attends to both."""

    network = "hat_transformer"
    encoder_from: str | None = None
    encoder: HatEncoder
    decoder: HatDecoder

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        add_options(parser, HatConfig)
        text = "start the encoder from this checkpoint or package of a BERT or RoBERTa; the decoder is new"
        parser.add_argument("--encoder-from", metavar="FILE", help=text)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "HatTransformerModel":
        config, source, target = HatConfig.from_args(args), task.source_dictionary, task.target_dictionary
        if config.share_all_embeddings and source.symbols != target.symbols:
            raise ValueError("--share-all-embeddings needs one dictionary: run fairseq-preprocess --joined-dictionary")
        roles = getattr(task, "role_dictionary", None)
        words, num_roles = vocabulary(source), 0 if roles is None else len(roles)
        tables = token_tables(config, words, vocabulary(target))
        parts = hat_encoder_parts(config, words, tables[0], args.max_source_positions, num_roles)
        encoder = HatEncoder(source, parts)
        encoder.register_buffer("dictionary_fingerprint", fingerprint(source))
        if roles is not None:
            encoder.register_buffer("segment_dictionary_fingerprint", fingerprint(roles))  # as checkpoints name it
        decoder = HatDecoder(target, config, tables[1], args.max_target_positions)
        decoder.register_buffer("dictionary_fingerprint", fingerprint(target))
        model = cls(encoder, decoder)
        model.config, model.has_mask = config, "<mask>" in target
        model.encoder_from = getattr(args, "encoder_from", None)
        if cls.network in LIKE_BERT:
            initialise(model)
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
            raise ValueError("--retain-dropout is not supported: this model generates without dropout; leave it out")
        super().prepare_for_inference_(cfg)
        common = getattr(cfg, "common", None)
        names = {name for name in ("fp16", "bf16") if getattr(common, name, False)}
        names |= {str(getattr(getattr(cfg, "task", None), "cpu_precision", "fp32"))} - {"fp32"}
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
