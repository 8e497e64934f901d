"""The global tokens of a document: they attend to all tokens, and all tokens attend to them.

Zhang et al. 2021 (Poolingformer), section 3.2: the question for question answering, the first token for summarization.

Legend: B documents, T tokens.
"""

from torch import Tensor

RULES = ("first", "question")


def global_tokens(tokens: Tensor, rule: str, pad: int, eos: int) -> Tensor:
    """(B, T) True = a global token.

    Args:
        tokens: (B, T) token ids, padded on either side.
        rule: `first`, the first token; or `question`, the tokens before the first `</s>` that is not the last token.
    Raises:
        ValueError: unknown rule.
    """
    if rule not in RULES:
        raise ValueError(f"unknown global tokens {rule!r}; choose one of {', '.join(RULES)}")
    real = tokens.ne(pad)
    number = real.cumsum(dim=1)
    if rule == "first":
        return real & (number == 1)
    ends = tokens.eq(eos) & (number < number[:, -1:])
    return real & (ends.cumsum(dim=1) == 0) & ends.any(dim=1, keepdim=True)
