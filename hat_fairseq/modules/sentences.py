"""Sentences of a document: a sentence starts at its marker, a BOS token, and the state of this token represents it.

Rohde et al. 2021, section 3.1. A document without markers is one sentence, so that every parameter gets a gradient in
every step. Linear in the number of tokens, no loop over the batch.

Legend: B documents, T tokens.
"""

import torch
from torch import Tensor


def sentence_starts(tokens: Tensor, bos: int, pad: int) -> Tensor:
    """True where a sentence starts: at every BOS marker, and always at a document's first token.

    Args:
        tokens: (B, T) token ids, padded on either side.
    Returns:
        (B, T) bool, at least one True per row (also in a row of nothing but padding: its first position).
    """
    first = tokens.ne(pad).to(torch.uint8).argmax(dim=1, keepdim=True)
    return tokens.eq(bos).scatter(1, first, True)


def sentence_of_each_token(starts: Tensor) -> Tensor:
    """(B, T) bool starts -> (B, T) position where each token's sentence starts; 0 for padding on the left."""
    index = torch.arange(starts.size(1), device=starts.device)
    return torch.where(starts, index, 0).cummax(dim=1).values
