"""Poolingformer (Zhang et al. 2021): sliding windows, and a second level of pooled keys in some layers.

The architectures are `hat_roberta` (for question answering, from RoBERTa or XLM-R) and `hat_bart` (for summarization)
without hierarchy and with `--encoder-attention pooling`. Sizes are those of section 3.2; we count its "6th to 11th"
layers of 12 from 0. Positions beyond the pretrained ones are copies (`tile`), as in Longformer.
"""

from argparse import Namespace

from fairseq.models import register_model_architecture

from .hat_bart import hat_bart_base, hat_bart_large
from .hat_roberta import hat_roberta_base, hat_roberta_large, hat_roberta_tiny
from .hat_transformer import set_defaults


def pooling(args: Namespace, layers: str, global_tokens: str) -> None:
    """Windows of 128 and 512 tokens, kernel 5, stride 4: the defaults of the options."""
    set_defaults(args, no_hierarchy=True, encoder_attention="pooling", encoder_attention_layers=layers)
    set_defaults(args, global_tokens=global_tokens, extend_positions="tile")


@register_model_architecture("hat_roberta", "poolingformer_base")
def poolingformer_base(args: Namespace) -> None:
    """RoBERTa-base's sizes, 4096 tokens; two levels in a quarter of the layers, the paper's best (Table 7)."""
    pooling(args, "6-8", "question")
    set_defaults(args, max_positions=4096)
    hat_roberta_base(args)


@register_model_architecture("hat_roberta", "poolingformer_large")
def poolingformer_large(args: Namespace) -> None:
    """The sizes of RoBERTa-large and XLM-R-large, 4096 tokens."""
    pooling(args, "15-20", "question")
    set_defaults(args, max_positions=4096)
    hat_roberta_large(args)


@register_model_architecture("hat_roberta", "poolingformer_tiny")
def poolingformer_tiny(args: Namespace) -> None:
    """4 layers of 64/128, windows of 8 and 32: for tests and for trying things out."""
    pooling(args, "2-3", "question")
    set_defaults(args, attention_window=8, pooling_window=32)
    hat_roberta_tiny(args)


@register_model_architecture("hat_bart", "poolingformer_bart_large")
def poolingformer_bart_large(args: Namespace) -> None:
    """BART-large's sizes; `--max-source-positions` 4096 or 16384."""
    pooling(args, "6-11", "first")
    hat_bart_large(args)


@register_model_architecture("hat_bart", "poolingformer_bart_base")
def poolingformer_bart_base(args: Namespace) -> None:
    """BART-base's sizes, two levels in the upper half of the layers."""
    pooling(args, "3-5", "first")
    hat_bart_base(args)
