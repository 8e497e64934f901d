"""`hat_roberta`: RoBERTa with an attention to the sentences in every layer (Rohde et al. 2021, section 7).

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`. Starts from fairseq's RoBERTa; with `--no-hierarchy` it computes the same.
The base model has 153.1M parameters (124.7M with `--no-hierarchy`), the large one 456.2M (355.4M).
"""

from argparse import Namespace
from typing import Any, ClassVar

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder, register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.heads import ClassificationHead, MaskedLMHead, PairClassificationHead
from ..modules.representatives import Representatives
from .config import HatRobertaConfig, RobertaConfig
from .embedding import token_table
from .encoder import Encoder, EncoderOut, SentenceAttendingEncoder
from .encoder_attention import NEW_PARTS
from .encoder_model import EncoderModel
from .fingerprint import fingerprint
from .hat_transformer import set_defaults
from .shown import ShownAttention


class HatRobertaEncoder(FairseqEncoder):
    """An `Encoder` and a masked-LM head, with the names of fairseq's RoBERTa (`sentence_encoder`, `lm_head`)."""

    def __init__(self, config: RobertaConfig, dictionary: Dictionary, encoder_class: type[Encoder]) -> None:
        super().__init__(dictionary)
        assert config.max_positions is not None
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        table = token_table(len(dictionary), config.encoder_embed_dim, dictionary.pad())
        self.sentence_encoder = encoder_class(config, dictionary, table, config.max_positions)
        shared = None if config.untie_weights_roberta else table.weight
        self.lm_head: MaskedLMHead | None = MaskedLMHead(
            config.encoder_embed_dim, len(dictionary), str(config.activation_fn), shared, config.layer_norm_eps
        )

    def forward(self, src_tokens: Tensor, roll: int = 0) -> EncoderOut:
        """Encodes (B, T) token ids; see `Encoder.forward`."""
        return self.sentence_encoder(src_tokens, roll=roll)

    def units(self, tokens: Tensor) -> tuple[str, Tensor]:
        """See `Encoder.units`."""
        return self.sentence_encoder.units(tokens)

    def shown_attentions(self) -> list[ShownAttention]:
        return self.sentence_encoder.shown_attentions()

    def max_positions(self) -> int:
        return self.sentence_encoder.max_positions()


@register_model("hat_roberta")
class HatRobertaModel(EncoderModel):
    """The state of a document is that of its first token."""

    config_class: ClassVar[type[RobertaConfig]] = HatRobertaConfig
    encoder_class: ClassVar[type[Encoder]] = SentenceAttendingEncoder
    new_parts = ("sentence_attn.", "sentence_attn_layer_norm.", *NEW_PARTS)
    reads_first_token = True

    @classmethod
    def build_encoder(cls, config: RobertaConfig, task: Any) -> nn.Module:
        return HatRobertaEncoder(config, task.source_dictionary, cls.encoder_class)

    def initialisation(self) -> str:
        return str(self.config.init)

    def build_classification_head(self, num_classes: int, inner_dim: int | None, of: str) -> ClassificationHead:
        width, dropout = self.config.encoder_embed_dim, self.config.pooler_dropout
        inner_dim = inner_dim or self.config.pooler_inner_dim or width
        activation = str(self.config.pooler_activation_fn)
        if of == "pair":
            return PairClassificationHead(width, inner_dim, num_classes, dropout, activation)
        return ClassificationHead(width, inner_dim, num_classes, dropout, dropout, of, activation)

    def document_state(self, head: ClassificationHead, encoded: EncoderOut, src_tokens: Tensor) -> Tensor:
        """(B, C): the state of the first token of each document, RoBERTa's `<s>`."""
        first = self.starts(src_tokens).to(src_tokens).argmax(dim=1, keepdim=True)
        return Representatives(first).gather(encoded.tokens).squeeze(1)


@register_model_architecture("hat_roberta", "hat_roberta_base")
def hat_roberta_base(args: Namespace) -> None:
    """12 layers of 768/3072, 12 heads, post-norm, learned positions, GELU."""
    set_defaults(args, encoder_embed_dim=768, encoder_ffn_embed_dim=3072, encoder_attention_heads=12, encoder_layers=12)
    set_defaults(args, encoder_learned_pos=True, layernorm_embedding=True, no_scale_embedding=True)
    set_defaults(args, activation_fn="gelu", dropout=0.1, attention_dropout=0.1)
    set_defaults(args, max_positions=getattr(args, "tokens_per_sample", None) or 512)


@register_model_architecture("hat_roberta", "hat_roberta_large")
def hat_roberta_large(args: Namespace) -> None:
    """24 layers of 1024/4096, 16 heads."""
    sizes = {"embed_dim": 1024, "ffn_embed_dim": 4096, "attention_heads": 16, "layers": 24}
    set_defaults(args, **{f"encoder_{name}": value for name, value in sizes.items()})
    hat_roberta_base(args)


@register_model_architecture("hat_roberta", "hat_roberta_tiny")
def hat_roberta_tiny(args: Namespace) -> None:
    """4 layers of 64/128, 4 heads: for tests and for trying things out."""
    sizes = {"embed_dim": 64, "ffn_embed_dim": 128, "attention_heads": 4, "layers": 4}
    set_defaults(args, **{f"encoder_{name}": value for name, value in sizes.items()})
    hat_roberta_base(args)
