"""`hat_bart`: HAT with the architecture of BART, so that it can start from BART's weights (Rohde et al. 2021, section
4.1).

12+12 layers of 1024/4096 with 16 heads, learned positions, GELU, layer norm on embeddings, source, target and output
embeddings shared: 471M parameters at 3072 source positions, its baseline without hierarchy 408M.
"""

from argparse import Namespace

from fairseq.models import register_model, register_model_architecture

from .embedding import initialise
from .hat_transformer import HatTransformerModel, base_architecture, set_both_sides, set_defaults


@register_model("hat_bart")
class HatBartModel(HatTransformerModel):
    """HAT with BART's initialisation."""

    def initialise(self) -> None:
        initialise(self)


@register_model_architecture("hat_bart", "hat_bart_large")
def hat_bart_large(args: Namespace) -> None:
    """BART-large's sizes; `--max-source-positions 3072` for long documents."""
    set_both_sides(args, embed_dim=1024, ffn_embed_dim=4096, attention_heads=16, layers=12, learned_pos=True)
    set_defaults(args, share_all_embeddings=True, layernorm_embedding=True, no_scale_embedding=True)
    set_defaults(args, activation_fn="gelu")
    base_architecture(args)


@register_model_architecture("hat_bart", "hat_bart_base")
def hat_bart_base(args: Namespace) -> None:
    """BART-base's sizes."""
    set_both_sides(args, embed_dim=768, ffn_embed_dim=3072, attention_heads=12, layers=6)
    hat_bart_large(args)
