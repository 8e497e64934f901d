"""Draw which tokens attend to which under an encoder attention, as an SVG picture.

The picture is derived from the function `allowed` of the attention, the same one that the tests compare with.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..models.encoder_attention import ATTENTIONS, layer_attentions
from ..modules.batch_layout import BatchLayout
from ..modules.pooling_attention import CELLS

CELL = 8  # pixels a token
NOT_LENGTHS = {
    "encoder_qkv_dim",
    "global_tokens",
    "key_pooling",
    "pooling_cells",
    "pooling_variant",
}  # options that are no lengths
SPAN = 8  # tokens: the lengths of training would cover a short document whole
DEFAULTS = {"sparse_block": 4, "sparse_window": 3, "sparse_random": 3, "sparse_first": 1, "sparse_last": 1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", help=f"one of {', '.join(ATTENTIONS)}")
    parser.add_argument("--tokens", type=int, default=48, help="length of the document (default: 48)")
    for name in sorted({name for entry in ATTENTIONS.values() for name in entry.options} - NOT_LENGTHS):
        flag, default = f"--{name.replace('_', '-')}", DEFAULTS.get(name, SPAN)
        parser.add_argument(flag, type=int, default=default, help=f"as in fairseq-train (here: {default})")
    parser.add_argument("--pooling-cells", choices=CELLS, default="token", help="as in fairseq-train (default: token)")
    parser.add_argument("--out", type=Path, help="file to write; default: NAME.svg")


def main(args: argparse.Namespace) -> int:
    if args.tokens < 1:
        raise ValueError(f"--tokens {args.tokens}: it must be at least 1")
    out = args.out or Path(f"{args.name}.svg")
    if out.exists():
        raise ValueError(f"{out} exists; name another file with --out")
    allowed = pattern(args)
    out.write_text(svg(allowed), encoding="utf-8")
    share = float(allowed.float().mean())
    print(f"wrote {out}: {args.tokens} tokens, each attends to {share:.0%} of them on average")
    return 0


def pattern(args: Any) -> Tensor:
    """(T, T) bool: row t says which tokens token t attends to."""
    args.encoder_attention, args.encoder_attention_layers = args.name, None
    (build,) = layer_attentions(args, 1)
    positions = torch.arange(args.tokens)
    attention: Any = build(1, 1, 0.0)
    allowed = attention.allowed(positions[:, None], positions[None, :], BatchLayout())
    return allowed.flatten(0, -3)[0] if allowed.dim() > 2 else allowed.expand(args.tokens, args.tokens)


def svg(allowed: Tensor) -> str:
    """A square grid: queries from top to bottom, keys from left to right, a filled cell where a query attends."""
    size = CELL * len(allowed)
    cells = [
        f'<rect x="{CELL * key}" y="{CELL * query}" width="{CELL - 1}" height="{CELL - 1}"/>'
        for query, key in allowed.nonzero().tolist()
    ]
    frame = f'<rect width="{size}" height="{size}" fill="none" stroke="#888"/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" width="{size}" height="{size}">\n'
        f'{frame}\n<g fill="#3465a4">\n' + "\n".join(cells) + "\n</g>\n</svg>\n"
    )
