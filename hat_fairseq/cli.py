"""The `hat` command: one sub-command per verb, each in a module of its own.

A verb's module has a docstring (its first line is the help text), `add_arguments(parser)` and `main(args) -> int`. One
with `PASSES_FLAGS_ON` gets the flags that it does not know as `args.others`; of all others they are an error.
Only the module of the verb that is called is imported, so `hat --help` and `hat doctor` work in a broken installation.
"""

import argparse
import ast
import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

PACKAGE = "hat_fairseq"
VERBS = {
    "doctor": "doctor.command",
    "recipe": "recipes.command",
    "plan": "planning.command",
    "preprocess": "data.preprocess",
    "generate": "generation.command",
    "join": "generation.join_chunks",
    "predict": "inference.predict",
    "classify": "inference.labels",
    "score": "scoring.command",
    "baselines": "scoring.baselines",
    "summarize": "inference.texts",
    "show": "scoring.show",
    "show-attention": "analysis.show_attention",
    "import": "weights.command",
    "export": "weights.export",
}
OLD_NAMES = {"convert-bart": ["import", "bart"]}  # for one version
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


class WideHelp(argparse.HelpFormatter):
    """Help texts in one column, beside the longest verb."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=18)


def verb_help(verb: str) -> str:
    """First line of the docstring of `verb`'s module, read without importing it."""
    path = Path(__file__).resolve().parent.joinpath(*VERBS[verb].split(".")).with_suffix(".py")
    if not path.is_file():
        return "(not part of this installation)"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def import_verb(verb: str) -> ModuleType:
    """The module of `verb`; ValueError where something that it needs cannot be imported."""
    try:
        return importlib.import_module(f"{PACKAGE}.{VERBS[verb]}")
    except ImportError as error:
        raise ValueError(f"`hat {verb}` cannot be loaded ({error}); `hat doctor` says what to install") from error


def build_parser(verb: str | None) -> argparse.ArgumentParser:
    """Parser that knows the names of all verbs, and the arguments of `verb` only."""
    description = "Hierarchical attention for long documents on fairseq. `hat VERB --help` explains a verb."
    parser = argparse.ArgumentParser(prog="hat", description=description, formatter_class=WideHelp)
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for name in VERBS:
        text = verb_help(name).replace("%", "%%")
        subparser = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        if name == verb:
            module = import_verb(name)
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.main, passes_flags_on=getattr(module, "PASSES_FLAGS_ON", False))
    return parser


def describe(error: Exception) -> str:
    """One line for `error`, without the number that OSError prints."""
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    else:
        text = str(error) or type(error).__name__
    return " ".join(text.split())


def main(argv: Sequence[str] | None = None) -> int:
    """Run `hat` with `argv` (default: the process's arguments) and return the exit status.

    A user's mistake (ValueError, OSError) is one line on stderr and status 2; HAT_TRACEBACK=1 shows where it came from.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments and (new := OLD_NAMES.get(arguments[0])):
        print(
            f"hat {arguments[0]} is now `hat {' '.join(new)}`; it will be removed in the next version", file=sys.stderr
        )
        arguments[:1] = new
    verb = arguments[0] if arguments and arguments[0] in VERBS else None
    try:
        parser = build_parser(verb)
        args, others = parser.parse_known_args(arguments)
        if others and not args.passes_flags_on:
            parser.error(f"unrecognized arguments: {' '.join(others)}")
        args.others = others
        status = int(args.run(args))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        print("hat: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of a pipe (`hat ... | head`) has gone: end quietly, also when Python flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except (ValueError, OSError) as error:
        if os.environ.get("HAT_TRACEBACK"):
            raise
        print(f"hat: error: {describe(error)}", file=sys.stderr)
        return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
