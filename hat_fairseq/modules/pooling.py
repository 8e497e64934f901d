"""Pooling along the sequence: the states of a cell, which is K neighbouring tokens, become one state.

Zhang et al. 2021 (Poolingformer), section 2.2.2, equations 6, 7 and 9 to 11. Cell j holds the tokens from j to
j + kernel - 1. Padding does not count: the mean divides by the number of real tokens, the softmax of LDConv runs over
them. LDConv takes the weights of a cell from its middle token, or from its first where the middle is beyond the
document's end; mean-LDConv takes them from the cell's mean. O(T kernel) operations. With kernel 1 every pooling is the
identity.

Legend: B documents, H heads, T tokens, E channels of a head, M cells, K tokens of a cell.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CELL_POOLINGS = ("mean", "max", "ldconv", "mean-ldconv")


class Pooling(nn.Module):
    """States of tokens -> states of cells.

    Args:
        name: one of `CELL_POOLINGS`.
        kernel: K.
        num_heads, head_dim: H and E. LDConv has weights for each head.
    """

    def __init__(self, name: str, kernel: int, num_heads: int, head_dim: int) -> None:
        super().__init__()
        assert name in CELL_POOLINGS and kernel >= 1
        self.name, self.kernel = name, kernel
        # W_p of equation 10; zeros, so that training starts from the mean
        self.weight = nn.Parameter(torch.zeros(num_heads, kernel, head_dim)) if "ldconv" in name else None

    def forward(self, x: Tensor, real: Tensor) -> Tensor:
        """Maps (B, H, T, E), and (B or 1, M, K) True = a real token -> (B, H, M, E); zeros for a cell of padding."""
        num_cells = real.size(1)
        x = F.pad(x, (0, 0, 0, max(0, num_cells - 1 + self.kernel - x.size(2))))
        real = real.unsqueeze(1)  # B x 1 x M x K
        if self.name != "max":
            return _weighted_sum(x, self._weights(x, real))
        lowest = torch.finfo(x.dtype).min
        tokens = [_tokens(x, i, num_cells) for i in range(self.kernel)]  # K times B x H x M x E
        hidden = [token.masked_fill(~real[..., i : i + 1], lowest) for i, token in enumerate(tokens)]
        return torch.stack(hidden).amax(dim=0).masked_fill(~real.any(dim=-1, keepdim=True), 0)

    def _weights(self, x: Tensor, real: Tensor) -> Tensor:
        """(B, H or 1, M, K) weights of the tokens of each cell; their sum is 1, or 0 for a cell of padding."""
        mean = real.to(x.dtype) / real.sum(dim=-1, keepdim=True).clamp(min=1)
        if self.weight is None:
            return mean
        # B x H x T x K, of a cell whose context is this token; packed projections give bf16, this weight stays fp32
        scores = x @ self.weight.to(x.dtype).transpose(1, 2)
        if self.name == "ldconv":
            middle = self.kernel // 2  # the token number ceil((1 + K) / 2), counted from 1
            first, centre = (_tokens(scores, i, real.size(2)) for i in (0, middle))
            scores = torch.where(real[..., middle : middle + 1], centre, first)
        else:
            scores = _weighted_sum(scores, mean)
        return scores.masked_fill(~real, float("-inf")).softmax(dim=-1).masked_fill(~real, 0)


def _tokens(x: Tensor, number: int, num_cells: int) -> Tensor:
    """(B, H, T, E) -> (B, H, M, E), the token of this number of each cell, from 0."""
    return x[:, :, number : number + num_cells]


def _weighted_sum(x: Tensor, weights: Tensor) -> Tensor:
    """(B, H, T, E) states, and (B, H or 1, M, K) weights of the tokens of the cells -> (B, H, M, E).

    No tensor of K states a cell is kept: autograd saves views of `x`.
    """
    num_cells, kernel = weights.shape[2:]
    out = _tokens(x, 0, num_cells) * weights[..., :1]
    for i in range(1, kernel):
        out = torch.addcmul(out, _tokens(x, i, num_cells), weights[..., i : i + 1])
    return out


def cells_of(real: Tensor, num_cells: int, kernel: int) -> Tensor:
    """Maps (B, T) True = a real token -> (B, M, K) whether the k-th token of the m-th cell is real."""
    missing = num_cells - 1 + kernel - real.size(1)
    return F.pad(real, (0, max(0, missing))).unfold(1, kernel, 1)[:, :num_cells]
