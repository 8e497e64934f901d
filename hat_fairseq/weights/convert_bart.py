"""Old name of `hat import bart`, for one version."""

from __future__ import annotations

import argparse
import sys

from . import command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_files(parser)
    parser.set_defaults(release="bart", segment_positions=None)


def main(args: argparse.Namespace) -> int:
    print("hat convert-bart is now `hat import bart`; it will be removed in the next version", file=sys.stderr)
    return command.main(args)
