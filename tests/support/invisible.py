"""Texts that show nothing, drawn by properties of Unicode, and texts in which invisible characters have a meaning."""

import random

import regex

CHARACTERS = "".join(map(chr, [*range(0x20000), *range(0xE0000, 0xE1000)]))  # no others have these properties
_PROPERTIES = (
    r"\p{White_Space}",
    r"\p{Cc}",
    r"[\udc00-\udfff]",
    r"[\p{DI}--[\U000e0000-\U000e0fff]]",
    r"\p{DI}",
    "\u2800",
)
GROUPS = [regex.findall(f"(?V1){each}", CHARACTERS) for each in _PROPERTIES]
INVISIBLE = ["\ufeff", "\u3164", "\u2800 \u200f", "\ufe0f", "\u034f\u00a0"]
VISIBLE = ["می‌خواهم", "क्‍ष", "👩‍👩‍👧 ❤️", "Donau\u00addampf\u00adschiff", "\u2060x\u200b y\ufeff", "\u0301", "\u0600"]


def drawn(seed: object, number: int = 3, without: str = "") -> list[str]:
    """Draws texts of one to four invisible characters, the same for a seed; `without`: characters that they lack."""
    draw, texts = random.Random(str(seed)), list[str]()
    while len(texts) < number:
        text = "".join(draw.choice(draw.choice(GROUPS)) for _ in range(draw.randint(1, 4)))
        texts += [text] * (not set(text) & set(without))
    return texts


WHITE_SPACE, _, SURROGATES, *_ = map("".join, GROUPS)
