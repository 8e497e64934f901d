"""Print the folder that fairseq's commands need as --user-dir."""

import argparse
from pathlib import Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds none."""


def main(args: argparse.Namespace) -> int:
    """Prints the path of the package."""
    print(Path(__file__).resolve().parent)
    return 0
