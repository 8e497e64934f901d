"""Draw the pictures of encoder attentions, `attention_NAME.svg` in this folder: a filled cell where a token attends.

    python docs/draw_attention.py [FOLDER]

Queries are from top to bottom, keys from left to right. A cell is what `attention_patterns.py` says, the
definition that tests compare with.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import torch
from attention_patterns import attends_to

from hat_fairseq.modules.attention import AttentionSizes
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.networks.config import ATTENTIONS, EncoderConfig
from hat_fairseq.options import read_options

CELL = 8  # pixels a token
#: Name of the attention -> tokens of the document, and options.
PICTURES = {
    "segments": (24, {"segment_length": 6}),
    "window": (48, {"attention_window": 3}),
    "block-sparse": (64, {"sparse_block": 4, "sparse_random": 1}),
    "pooling": (
        48,
        {
            "attention_window": 3,
            "pooling_window": 16,
            "pooling_kernel": 5,
            "pooling_stride": 4,
        },
    ),
}


def svg(name: str, length: int, options: dict) -> str:
    """Draws an attention with these options on a document of this length."""
    positions = torch.arange(length)
    attention = ATTENTIONS[name].build(read_options(EncoderConfig, SimpleNamespace(**options)), AttentionSizes(1, 1), 0)
    allowed = attends_to(attention, positions[:, None], positions[None, :], BatchLayout())
    cells = [
        f'<rect x="{CELL * key}" y="{CELL * query}" width="{CELL - 1}" height="{CELL - 1}"/>'
        for query, key in allowed.reshape(-1, length, length)[0].nonzero().tolist()
    ]
    size = CELL * length
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}">\n'
        f'<rect width="{size}" height="{size}" fill="none" stroke="#888"/>\n<g fill="#3465a4">\n'
        + "\n".join(cells)
        + "\n</g>\n</svg>\n"
    )


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for picture, (tokens, settings) in PICTURES.items():
        path = folder / f"attention_{picture.replace('-', '_')}.svg"
        path.write_text(svg(picture, tokens, settings), encoding="utf-8")
