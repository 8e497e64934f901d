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
        own = verbs.add_parser(verb, help=cli.verb_help(verb).replace("%", "%%"))
        cli.import_verb(verb).add_arguments(own)
        if all(action.option_strings for action in own._actions):
            own.add_argument("arguments", nargs="*")  # of fairseq, whose flags are not known here
    complete_files(parser, shtab.FILE)
    print(shtab.complete(parser, args.shell))
    return 0


def complete_files(parser: argparse.ArgumentParser, files: object) -> None:
    """Lets every argument without choices be completed as the name of a file, which shells do without a script."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                complete_files(each, files)
        elif action.choices is None and action.nargs != 0:
            setattr(action, "complete", files)  # noqa: B010 - shtab reads it
