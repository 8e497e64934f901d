"""`hat_transformer`: the hierarchical encoder-decoder of Rohde et al. 2021, and its architectures for translation.

Sections 3 and 4.2. With `--no-hierarchy` every architecture builds its baseline: the same network without hierarchical
encoder and without cross-attention to sentences.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderDecoderModel, register_model, register_model_architecture
from torch import Tensor, nn

from ..kernels import chosen_precision, set_precision
from ..modules.batch_layout import BatchLayout
from ..modules.hierarchical_encoder import HierarchicalEncoder
from ..modules.transformer_layer import EncoderLayer
from .config import HatConfig
from .embedding import token_table
from .encoder import Encoder, EncoderOut
from .encoder_attention import NEW_PARTS
from .fingerprint import fingerprint
from .hat_decoder import HatDecoder
from .loading.common import adapt_state
from .shown import ShownAttention


class HatEncoder(Encoder):
    """Section 3.2: token-level encoder layers and, without `config.no_hierarchy`, a hierarchical encoder on top.

    Args:
        role_dictionary: of the role stream; None: the model has no role embeddings.
        config, dictionary, embed_tokens, max_positions: as for `Encoder`.
    """

    def __init__(
        self,
        config: HatConfig,
        dictionary: Dictionary,
        embed_tokens: nn.Embedding,
        max_positions: int,
        role_dictionary: Dictionary | None = None,
    ) -> None:
        num_roles = 0 if role_dictionary is None else len(role_dictionary)
        super().__init__(config, dictionary, embed_tokens, max_positions, num_roles)
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        if role_dictionary is not None:
            self.register_buffer("segment_dictionary_fingerprint", fingerprint(role_dictionary))
        self.hierarchical_encoder = None
        if not config.no_hierarchy:
            layers = [EncoderLayer(config.encoder_sizes()) for _ in range(config.hierarchical_encoder_layers)]
            self.hierarchical_encoder = HierarchicalEncoder(layers, self.final_norm())

    def finish(self, x: Tensor, layout: BatchLayout) -> EncoderOut:
        encoded = super().finish(x, layout)
        if self.hierarchical_encoder is None:
            return encoded
        assert layout.representatives is not None
        sentences = self.hierarchical_encoder(x, layout)
        return encoded._replace(spans=sentences, spans_padding=layout.representatives.padding)

    def shown_attentions(self) -> list[ShownAttention]:
        if self.hierarchical_encoder is None:
            return super().shown_attentions()
        layers = {i: layer.self_attn for i, layer in enumerate(self.hierarchical_encoder.layers)}
        return [ShownAttention("attention among sentences", layers), *super().shown_attentions()]

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """For fairseq's own generator: one row for each hypothesis."""
        return encoder_out.select(new_order)


@register_model("hat_transformer")
class HatTransformerModel(FairseqEncoderDecoderModel):
    """Token-level encoder, hierarchical encoder, and a decoder that attends to both."""

    # Parts that may be missing in a checkpoint: the hierarchy, role embeddings, a second level of attention.
    new_parts = ("hierarchical_encoder.", "sentence_attn.", "sentence_attn_layer_norm.", "embed_segments.", *NEW_PARTS)
    encoder: HatEncoder
    decoder: HatDecoder

    def __init__(self, config: HatConfig, encoder: HatEncoder, decoder: HatDecoder) -> None:
        super().__init__(encoder, decoder)
        self.config = config

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        gen_parser_from_dataclass(parser, HatConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "HatTransformerModel":
        config = HatConfig.from_args(args)
        source, target = task.source_dictionary, task.target_dictionary
        encoder_table = token_table(len(source), config.encoder_embed_dim, source.pad())
        decoder_table = encoder_table
        if not config.share_all_embeddings:
            decoder_table = token_table(len(target), config.decoder_embed_dim, target.pad())
        elif source.symbols != target.symbols:
            raise ValueError("--share-all-embeddings needs one dictionary: run fairseq-preprocess --joined-dictionary")
        segments = getattr(task, "segment_dictionary", None)
        encoder = HatEncoder(config, source, encoder_table, args.max_source_positions, segments)
        decoder = HatDecoder(config, target, decoder_table, args.max_target_positions)
        model = cls(config, encoder, decoder)
        model.initialise()
        return model

    def initialise(self) -> None:
        """Does nothing, because the modules are initialised as in Vaswani et al.; `HatBartModel` overrides it."""

    def forward(
        self,
        src_tokens: Tensor,
        src_lengths: Tensor | None,
        prev_output_tokens: Tensor,
        segments: Tensor | None = None,
        features_only: bool = False,
    ) -> tuple[Tensor, dict[str, Any]]:
        """(B, T) source ids and (B, U) shifted target ids -> (B, U, V) logits; `segments` (B, T) with --role-stream."""
        encoder_out = self.encoder(src_tokens, src_lengths, segments=segments)
        return self.decoder(prev_output_tokens, encoder_out, features_only=features_only)

    def prepare_for_inference_(self, cfg: Any) -> None:
        """fairseq's hook before generation: precision (--fp16, --bf16, --cpu-precision) and --decoding compile.

        Raises:
            ValueError: --retain-dropout; two precisions, or one that the device does not support; --decoding compile
                with a reduced precision on a CPU.
        """
        if getattr(getattr(cfg, "generation", None), "retain_dropout", False):
            raise ValueError("--retain-dropout is not supported: this model generates without dropout; leave it out")
        super().prepare_for_inference_(cfg)
        common = getattr(cfg, "common", None)
        fp16, bf16 = (bool(getattr(common, name, False)) for name in ("fp16", "bf16"))
        task = getattr(cfg, "task", None)
        precision = chosen_precision(fp16, bf16, str(getattr(task, "cpu_precision", "fp32")))
        if str(getattr(task, "decoding", "eager")) == "compile":
            on_cpu = next(self.parameters()).device.type == "cpu"
            if on_cpu and precision != "fp32":
                raise ValueError(f"--decoding compile computes in fp32 on a CPU; leave out {precision}, or --decoding")
            for layer in self.encoder.layers:
                layer.compile(dynamic=True)
            if on_cpu:  # the compiler cannot read packed weights
                return
        set_precision(self, precision)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook before loading: adapts a checkpoint without hierarchy; ValueError if it does not fit."""
        adapt_state(state_dict, self)


def set_defaults(args: Namespace, **defaults: Any) -> None:
    """Sets the attributes that the user has not set, as fairseq's architecture functions do."""
    for name, value in defaults.items():
        if getattr(args, name, None) is None:
            setattr(args, name, value)


def set_both_sides(args: Namespace, **defaults: Any) -> None:
    set_defaults(
        args, **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in defaults.items()}
    )


@register_model_architecture("hat_transformer", "hat_transformer")
def base_architecture(args: Namespace) -> None:
    """Transformer base: what is not set here gets the default of `HatConfig`."""
    set_defaults(args, max_source_positions=1024, max_target_positions=1024)


@register_model_architecture("hat_transformer", "hat_transformer_wmt_en_de")
def wmt_en_de(args: Namespace) -> None:
    """6+6 layers, 1024/4096, 16 heads, shared embeddings: 260M parameters, baseline 222M (section 4.2)."""
    set_both_sides(args, embed_dim=1024, ffn_embed_dim=4096, attention_heads=16)
    set_defaults(args, share_all_embeddings=True, activation_fn="gelu", dropout=0.1)
    base_architecture(args)


@register_model_architecture("hat_transformer", "hat_transformer_wmt_en_cs")
def wmt_en_cs(args: Namespace) -> None:
    """As En-De with dropout 0.2 (section 4.2)."""
    set_defaults(args, dropout=0.2)
    wmt_en_de(args)


@register_model_architecture("hat_transformer", "hat_transformer_ted_zh_en")
def ted_zh_en(args: Namespace) -> None:
    """6+6 layers, 512/1024, 4 heads, shared embeddings, dropout 0.3: 64M parameters, baseline 55M (section 4.2)."""
    set_both_sides(args, embed_dim=512, ffn_embed_dim=1024, attention_heads=4)
    set_defaults(args, share_all_embeddings=True, activation_fn="gelu", dropout=0.3)
    base_architecture(args)


@register_model_architecture("hat_transformer", "hat_transformer_tiny")
def tiny(args: Namespace) -> None:
    """2+2 layers, 64/128, 4 heads: for tests and for trying things out."""
    set_both_sides(args, embed_dim=64, ffn_embed_dim=128, attention_heads=4, layers=2)
    set_defaults(args, share_all_embeddings=True, dropout=0.1)
    base_architecture(args)
