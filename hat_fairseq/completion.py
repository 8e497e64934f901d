"""Print a script that lets a shell complete commands and flags.

It needs the package shtab. `hat completion bash > ~/.local/share/bash-completion/completions/hat` installs it.
"""

import argparse
import logging

from hat_fairseq import cli

SHELLS = ("bash", "zsh", "tcsh")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="the shell that the script is for")


def main(args: argparse.Namespace) -> int:
    """Prints the script, with the flags of all verbs."""
    try:
        import shtab
    except ImportError as error:
        raise ValueError("shtab is not installed: pip install shtab") from error
    logging.getLogger("shtab").setLevel(logging.WARNING)  # it describes every step
    parser = argparse.ArgumentParser("hat")
    verbs = parser.add_subparsers()
    for verb in cli.VERBS:
        cli.import_verb(verb).add_arguments(verbs.add_parser(verb, help=cli.verb_help(verb).replace("%", "%%")))
    print(shtab.complete(parser, args.shell))
    return 0
