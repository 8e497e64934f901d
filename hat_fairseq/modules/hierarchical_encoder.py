"""The hierarchical encoder: encoder layers over the states of the sentences' BOS tokens.

Rohde et al. 2021, section 3.2 and Figure 1 (one layer works best). Its inputs are outputs of the token-level encoder.
They already contain positions, so there are no further position embeddings. The token states stay unchanged. O(S^2)
operations per layer.

Legend: B documents, T tokens, S sentences, C channels.
"""

from collections.abc import Iterable

from torch import Tensor, nn

from .batch_layout import BatchLayout


class HierarchicalEncoder(nn.Module):
    """Encoder layers over gathered BOS states.

    Args:
        layers: modules that take (x, layout), usually `EncoderLayer`; at least one.
        layer_norm: applied at the end of a pre-norm stack, None for post-norm.
    Raises:
        ValueError: no layer.
    """

    def __init__(self, layers: Iterable[nn.Module], layer_norm: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        if not len(self.layers):
            raise ValueError("a hierarchical encoder needs at least one layer")
        self.layer_norm = layer_norm

    def forward(self, x: Tensor, layout: BatchLayout) -> Tensor:
        """(B, T, C) outputs of the token-level encoder -> (B, S, C) states of `layout.representatives`."""
        assert layout.representatives is not None
        states = layout.representatives.gather(x)
        for layer in self.layers:
            states = layer(states, layout.among)
        return states if self.layer_norm is None else self.layer_norm(states)
