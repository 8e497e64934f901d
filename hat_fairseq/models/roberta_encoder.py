"""The encoder of `hat_roberta`: embeddings, layers and the masked-LM head, under the names of fairseq's RoBERTa.

Legend: B documents, T tokens, C channels, V vocabulary.
"""

from __future__ import annotations

from fairseq.data import Dictionary
from fairseq.models import FairseqEncoder
from torch import Tensor, nn

from ..modules.attention import safe_padding_mask
from ..modules.heads import MaskedLMHead
from ..modules.hierarchical_encoder_layer import HierarchicalEncoderLayer
from ..modules.sentences import sentence_positions, sentence_starts
from ..modules.transformer_layer import TransformerEncoderLayer
from .checkpointing import run_layer
from .config import HatRobertaConfig
from .embedding import EmbedsTokens, token_table
from .fingerprint import fingerprint


class SentenceEncoder(EmbedsTokens, nn.Module):
    """Embeddings and layers, hierarchical ones unless `config.no_hierarchy`."""

    def __init__(self, config: HatRobertaConfig, embed_tokens: nn.Embedding, bos: int) -> None:
        super().__init__()
        assert config.max_positions is not None
        self.build_embedding(config, "encoder", embed_tokens, config.max_positions)
        sizes = config.encoder_sizes()
        self.hierarchical = not config.no_hierarchy

        def layer() -> nn.Module:
            if self.hierarchical:
                return HierarchicalEncoderLayer(sizes, str(config.sentence_queries))
            return TransformerEncoderLayer(sizes)

        self.layers = nn.ModuleList(layer() for _ in range(config.encoder_layers))
        self.layer_norm = sizes.layer_norm() if sizes.normalize_before else None
        self.bos = bos
        self.checkpoint_activations = config.checkpoint_activations

    def forward(self, tokens: Tensor) -> Tensor:
        """(B, T) token ids, padded on either side -> (B, T, C); the states of padding mean nothing."""
        pad = self.embed_tokens.padding_idx
        assert pad is not None
        padding = tokens.eq(pad)
        tokens_padding = safe_padding_mask(padding) if bool(padding.any()) else None
        sentences = sentence_positions(sentence_starts(tokens, self.bos, pad)) if self.hierarchical else ()
        x = self.embed(tokens)
        for layer in self.layers:
            x = run_layer(layer, x, tokens_padding, *sentences, checkpoint=self.checkpoint_activations)
        return x if self.layer_norm is None else self.layer_norm(x)


class HatRobertaEncoder(FairseqEncoder):
    """`sentence_encoder` and `lm_head`."""

    def __init__(self, config: HatRobertaConfig, dictionary: Dictionary) -> None:
        super().__init__(dictionary)
        self.register_buffer("dictionary_fingerprint", fingerprint(dictionary))
        table = token_table(len(dictionary), config.encoder_embed_dim, dictionary.pad())
        self.sentence_encoder = SentenceEncoder(config, table, dictionary.bos())
        shared = None if config.untie_weights_roberta else table.weight
        self.lm_head: MaskedLMHead | None = MaskedLMHead(
            config.encoder_embed_dim, len(dictionary), str(config.activation_fn), shared, config.layer_norm_eps
        )

    def forward(self, src_tokens: Tensor) -> Tensor:
        """(B, T) token ids -> (B, T, C)."""
        return self.sentence_encoder(src_tokens)

    def max_positions(self) -> int:
        return self.sentence_encoder.embed_positions.max_positions
