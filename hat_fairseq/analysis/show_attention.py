"""Draw which tokens attend to which under an encoder attention, as an SVG picture.

The picture is derived from the function `allowed` of the attention, the same one that the tests compare with.
"""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ..modules.batch_layout import BatchLayout
from ..modules.options import options_of, read
from ..networks.config import ATTENTIONS, entry

CELL = 8  # pixels a token
SPAN = 8  # tokens: the lengths of training would cover a short document whole
DEFAULTS = {"sparse_block": 4, "sparse_window": 3, "sparse_random": 3, "sparse_first": 1, "sparse_last": 1}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=f"one of {', '.join(ATTENTIONS)}")
    parser.add_argument(
        "--tokens", type=int, default=48, metavar="N", help="length of the document (default: %(default)s)"
    )
    options = {name: (field, kind) for entries in ATTENTIONS.values() for name, field, kind in options_of(entries)}
    for name, (field, value_type) in sorted(options.items()):
        default: Any = DEFAULTS.get(name, SPAN) if value_type is int else None
        default = "token" if name == "pooling_cells" else default
        if default is not None and name != "encoder_qkv_dim":
            flag, choices = f"--{name.replace('_', '-')}", field.metadata["choices"]
            text = f"as in fairseq-train (default here: {default})"
            metavar = None if choices else "N"
            parser.add_argument(flag, type=value_type, default=default, choices=choices, metavar=metavar, help=text)
    parser.add_argument("--out", type=Path, metavar="FILE", help="file to write (default: NAME.svg)")


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
    positions = torch.arange(args.tokens)
    attention = read(entry(args.name), args).build(1, 1, 0.0)
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
