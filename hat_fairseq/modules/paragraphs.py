"""Mean pooling by paragraph: the mean state of each paragraph of a row, and the mean of these means for the row.

Zhang et al. 2021 (Poolingformer), section 3.2. A row is `<s> question </s> </s> <s> paragraph 1 <s> paragraph 2 </s>`.
A paragraph is the tokens after a marker `<s>` in the last part of the row. Tokens of earlier parts, markers and
separators belong to no paragraph. O(T C), no loop over the batch.

Legend: B rows, T tokens, N paragraphs of the row with most, C channels.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from ..kernels import naive


def paragraph_numbers(tokens: Tensor, starts: Tensor, bos: int, eos: int, pad: int) -> tuple[Tensor, Tensor]:
    """The paragraph of each token.

    Args:
        tokens: (B, T) token ids, padded on either side.
        starts: (B, T) True = a sentence or segment starts.
    Returns:
        (B, T) number of each token's paragraph, from 0; -1 for tokens in no paragraph. (B,) paragraphs of each row: at
        least one, which may be empty; 0 in a row of padding.
    """
    is_end = tokens.eq(eos)
    parts = is_end.sum(dim=1, keepdim=True)
    in_last = ((is_end.cumsum(dim=1) - is_end.long()) == (parts - 1).clamp(min=0)) & tokens.ne(pad)
    begins = in_last & ~F.pad(in_last[:, :-1], (1, 0))  # also without a marker
    numbers = (in_last & (starts | begins)).cumsum(dim=1)
    inside = in_last & ~is_end & tokens.ne(bos)
    return (numbers - 1).masked_fill(~inside, -1), numbers[:, -1]


def paragraph_means(states: Tensor, numbers: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """The mean state of each paragraph, summed in fp32 or wider.

    Args:
        states: (B, T, C).
        numbers: (B, T) as `paragraph_numbers` gives them.
        most: N.
    Returns:
        (B, N, C) means, zeros for a paragraph without tokens; and (B, N), True = a paragraph without tokens.
    """
    # The states of tokens in no paragraph go to a spare last slot.
    slots = torch.where(numbers < 0, most, numbers)
    summed = naive.wide(states)
    total = summed.new_zeros(len(states), most + 1, states.size(2))
    total = total.scatter_add(1, slots.unsqueeze(-1).expand_as(summed), summed)[:, :most]
    sizes = summed.new_zeros(len(states), most + 1).scatter_add(1, slots, torch.ones_like(slots, dtype=summed.dtype))
    sizes = sizes[:, :most]
    return (total / sizes.clamp(min=1).unsqueeze(-1)).to(states), sizes.eq(0)


def mean_of_paragraphs(paragraphs: Tensor, empty: Tensor) -> Tensor:
    """(B, N, C) states of paragraphs and (B, N), True = left out -> (B, C) their means; zeros for a row without any."""
    kept = (~empty).unsqueeze(-1).to(paragraphs)
    return (paragraphs * kept).sum(dim=1) / kept.sum(dim=1).clamp(min=1)
