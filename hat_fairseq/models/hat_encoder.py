"""Token-level encoder with a hierarchical encoder on top (Rohde et al. 2021, section 3.2).

Legend: B documents, T source tokens, S sentences, C channels.
"""

from __future__ import annotations

from fairseq.data import Dictionary
from torch import Tensor, nn

from ..modules.batch_layout import BatchLayout
from ..modules.hierarchical_encoder import HierarchicalEncoder
from ..modules.transformer_layer import EncoderLayer
from .config import HatConfig
from .encoder import Encoder, EncoderOut
from .fingerprint import fingerprint


class HatEncoder(Encoder):
    """The encoder, and unless `config.no_hierarchy` encoder layers over the sentences' states.

    Args:
        role_dictionary: of the role stream; None: the model has no role embeddings.
        config, dictionary, embed_tokens, max_positions: of `Encoder`.
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

    def reorder_encoder_out(self, encoder_out: EncoderOut, new_order: Tensor) -> EncoderOut:
        """For fairseq's own generator: a row for each of its hypotheses."""
        return encoder_out.select(new_order)
