"""`hat_roberta`: RoBERTa with an attention over the sentences in every layer (Rohde et al. 2021, section 7).

For `masked_document_lm`, the tasks with labels (`document_classification`, ...) and fairseq's own `masked_lm`,
`sentence_prediction` and `sentence_ranking`; starts from fairseq's RoBERTa. RoBERTa's sizes: 124.7M parameters become
153.1M, large 355.4M become 456.2M. With `--no-hierarchy` it is fairseq's RoBERTa in numbers.
"""

from argparse import ArgumentParser, Namespace
from typing import Any

from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import FairseqEncoderModel, register_model, register_model_architecture
from torch import Tensor, nn

from ..modules.heads import ClassificationHead
from ..modules.sentences import gather_sentences, sentence_of_each_token
from .classification import HasClassificationHeads
from .config import HatRobertaConfig
from .embedding import initialise_as_bert
from .hat_transformer import set_defaults
from .restore import adapt_state
from .restore_heads import adapt_heads
from .roberta_encoder import HatRobertaEncoder
from .roberta_restore import rename_old_layout


@register_model("hat_roberta")
class HatRobertaModel(HasClassificationHeads, FairseqEncoderModel):
    """Encoder with a masked-LM head, or with classification heads."""

    encoder: HatRobertaEncoder

    def __init__(self, config: HatRobertaConfig, encoder: HatRobertaEncoder) -> None:
        super().__init__(encoder)
        self.config = config
        initialise_as_bert(self)
        self.classification_heads = nn.ModuleDict()

    @staticmethod
    def add_args(parser: ArgumentParser) -> None:
        gen_parser_from_dataclass(parser, HatRobertaConfig(), delete_default=True)

    @classmethod
    def build_model(cls, args: Namespace, task: Any) -> "HatRobertaModel":
        config = HatRobertaConfig.from_args(args)
        return cls(config, HatRobertaEncoder(config, task.source_dictionary))

    def forward(
        self,
        src_tokens: Tensor,
        features_only: bool = False,
        masked_tokens: Tensor | None = None,
        classification_head_name: str | None = None,
        from_sentences: bool = False,
        **unused: Any,
    ) -> tuple[Tensor, dict[str, Any]]:
        """Encodes (B, T) token ids; fairseq's tasks also send lengths and ids, which are not needed.

        Args:
            features_only: return the (B, T, C) states.
            masked_tokens: (B, T) bool; return the (N, V) logits of these N tokens only.
            classification_head_name: return this head's logits, (B, K), (B, N, K) for the N markers of the longest
                document, or (B, T, K).
            from_sentences: add `sentence_logits`, the same logits from the state of each token's sentence alone.
        Returns:
            What is asked, or the (B, T, V) logits of all tokens; and a dictionary, empty but for `from_sentences`.
        """
        x = self.encoder(src_tokens)
        if classification_head_name is not None:
            head = self.classification_head(classification_head_name)
            document = head.of == "document"
            return head(self.first_states(x, src_tokens) if document else self.states_of(head.of, x, src_tokens)), {}
        if features_only:
            return x, {}
        extra = {}
        if from_sentences:
            states = gather_sentences(x, sentence_of_each_token(self.starts(src_tokens)))
            extra["sentence_logits"] = self._logits_of(states, masked_tokens)
        return self._logits_of(x, masked_tokens), extra

    def _logits_of(self, states: Tensor, masked_tokens: Tensor | None) -> Tensor:
        return self.word_logits(states if masked_tokens is None else states[masked_tokens])

    def first_states(self, x: Tensor, src_tokens: Tensor) -> Tensor:
        """(B, C): the (B, T, C) states at the first token of each document, RoBERTa's `<s>`."""
        first = self.starts(src_tokens).to(src_tokens).argmax(dim=1, keepdim=True)
        return gather_sentences(x, first).squeeze(1)

    def build_classification_head(self, num_classes: int, inner_dim: int | None, of: str) -> ClassificationHead:
        width, dropout = self.config.encoder_embed_dim, self.config.pooler_dropout
        return ClassificationHead(width, inner_dim or width, num_classes, dropout, input_dropout=dropout, of=of)

    def upgrade_state_dict_named(self, state_dict: dict[str, Tensor], name: str) -> None:
        """fairseq's hook before loading: makes a RoBERTa checkpoint fit, or says what does not."""
        rename_old_layout(state_dict)
        adapt_heads(state_dict, self)
        adapt_state(
            state_dict,
            self,
            dictionary_has_mask="<mask>" in self.encoder.dictionary,
            strategy=str(self.config.extend_positions),
            random_from=self.config.extend_positions_from,
        )


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
