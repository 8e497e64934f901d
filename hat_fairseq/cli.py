"""The `hat` command. Each of its verbs, such as `hat score`, is a module of its own, listed in `GROUPS`.

The module has `add_arguments(parser)` and `main(args) -> int`; the first line of its docstring is the help text. Flags
that the parser does not know are an error; with `PASSES_FLAGS_ON` the module gets them as `args.others`, and so does
`--help` beside one of the flags in its `HELP_IS_ON`. With `SHORT_HELP`, `-h` lists the options that it names, and
`--help` all. With `WRITES_STDOUT` its `--out -` is the standard output; of other verbs it is an error. Only the module
of the called verb is imported, so `hat --help` and `hat doctor` work in a broken installation.
"""

import argparse
import ast
import errno
import importlib
import importlib.util
import logging
import os
import shutil
import signal
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

PACKAGE = "hat_fairseq"
GROUPS = {  # of the verbs in `hat --help`, with their modules
    "data": {"preprocess": "data.preprocess"},
    "train": {
        "recipe": "recipes.command",
        "train": "fairseq_commands",
        "plan": "planning.command",
        "average": "weights.average",
    },
    "use": {
        "generate": "inference.generate",
        "predict": "inference.predict",
        "ask": "units.ask",
        "embed": "inference.embed",
        "join": "generation.join_chunks",
        "score": "scoring.command",
    },
    "understand": {
        "show": "scoring.show",
        "look": "inference.look",
        "info": "info",
    },
    "exchange": {"import": "weights.command", "export": "weights.export"},
    "installation": {
        "demo": "demo",
        "doctor": "doctor",
        "user-dir": "user_dir",
    },
}
VERBS = {verb: module for verbs in GROUPS.values() for verb, module in verbs.items()}
OUTPUTS = ("out", "html")  # options that name what is written
# What only the extra `train` installs, by the names that are imported.
OF_TRAIN = {name: name for name in ("fairseq", "hydra", "omegaconf", "bitarray", "cffi", "Cython")}
OF_TRAIN |= {"fairseq_cli": "fairseq", "sklearn": "scikit-learn", "scipy": "scikit-learn"}
EXIT_ERROR = 2
EXIT_INTERRUPTED = 130  # 128 + SIGINT
EXIT_BROKEN_PIPE = 141  # 128 + SIGPIPE


def verb_help(verb: str) -> str:
    """Returns the first line of the module's docstring, read without importing it."""
    path = Path(__file__).resolve().parent.joinpath(*VERBS[verb].split(".")).with_suffix(".py")
    if not path.is_file():
        return "(not part of this installation)"
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def version() -> str:
    """Returns the version of the package, read without importing it."""
    text = Path(__file__).with_name("__init__.py").read_text(encoding="utf-8")
    return text.partition('__version__ = "')[2].partition('"')[0]


def tagline() -> str:
    """Returns what this package is, in one sentence: the beginning of its docstring, read without importing it."""
    text = Path(__file__).with_name("__init__.py").read_text(encoding="utf-8")
    return " ".join((ast.get_docstring(ast.parse(text)) or "").partition("\n\n")[0].split())


def import_verb(verb: str) -> ModuleType:
    """Imports the module of `verb`; ValueError if that fails."""
    from hat_fairseq.threads import limit_threads, limit_waiting

    limit_threads()  # before the verb imports torch, here or in a process that it starts
    limit_waiting()
    try:
        return importlib.import_module(f"{PACKAGE}.{VERBS[verb]}")
    except ImportError as error:
        if missing_for_training(error):
            raise
        raise ValueError(f"`hat {verb}` cannot be loaded ({error}); `hat doctor` says what to install") from error


def terminal_width() -> int:
    return max(shutil.get_terminal_size().columns - 2, 40)


def list_verbs() -> str:
    """Returns the verbs and their help texts by group, as wide as the terminal."""
    width = terminal_width()
    lines = []
    for title, verbs in GROUPS.items():
        lines.append(f"\n{title}:")
        for verb in verbs:
            lines += textwrap.wrap(f"    {verb:<16}{verb_help(verb)}", width, subsequent_indent=" " * 20)
    return "\n".join(lines)


class Parser(argparse.ArgumentParser):
    """A parser whose errors say which choice or flag may have been meant; its sub-commands have such parsers too."""

    words: Sequence[str] = ()  # that it parses

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.words = list(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Prints the error in one line, for the innermost sub-command that was called; ends the process."""
        if (called := called_parser(self, self.words)) is not self:
            called.error(message)
        from hat_fairseq.suggestions import with_suggestion

        self.exit(EXIT_ERROR, f"{self.prog}: error: {with_suggestion(message, self, self.words)}\n")


def called_parser(parser: argparse.ArgumentParser, words: Sequence[str]) -> argparse.ArgumentParser:
    """Returns the parser of the innermost sub-command that some words call."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for number, word in enumerate(words):
                if word in action.choices:
                    return called_parser(action.choices[word], words[number + 1 :])
    return parser


def build_parser(verb: str | None, words: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Builds a parser with the names of all verbs and the arguments of `verb`, which has the `words` after it."""
    description = textwrap.fill(f"{tagline()} `hat VERB --help` explains a verb.", terminal_width())
    parser = Parser(
        prog="hat",
        usage="hat [-h] [--version] VERB ...",
        description=description if verb else f"{description}\n{list_verbs()}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"{PACKAGE} {version()}")
    subparsers = parser.add_subparsers(dest="verb", metavar="VERB", prog="hat", required=True, help=argparse.SUPPRESS)
    for name in VERBS:
        module = import_verb(name) if name == verb else None
        own_help = {word.partition("=")[0] for word in words}.isdisjoint(getattr(module, "HELP_IS_ON", ()))
        names = getattr(module, "SHORT_HELP", ())
        subparser = subparsers.add_parser(name, allow_abbrev=False, add_help=own_help and not names)
        if names:
            from hat_fairseq.short_help import add_help

            add_help(subparser, names)
        if module:
            subparser.description = verb_help(name).replace("%", "%%")
            module.add_arguments(subparser)
            subparser.set_defaults(run=module.main, passes_flags_on=getattr(module, "PASSES_FLAGS_ON", False))
            subparser.set_defaults(writes_stdout=getattr(module, "WRITES_STDOUT", False))
    return parser


def refuse_dash(args: argparse.Namespace, closed: Sequence[str] = ()) -> None:
    """Raises ValueError for an output `-`, the standard output, if it is closed, or the verb writes files only."""
    for name in OUTPUTS:
        if str(getattr(args, name, None)) == "-" and not (name == "out" and args.writes_stdout):
            flag = f"--{name.replace('_', '-')}"
            raise ValueError(f"{flag} -: `hat {args.verb}` does not write this to the standard output; name a file")
    if str(getattr(args, "out", None)) == "-" and "stdout" in closed:
        raise ValueError("--out -: the standard output is closed")


def missing_for_training(error: Exception) -> str | None:
    """Returns the package of the extra `train` that an import has not found; None for another error."""
    package = error.name.partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
    return OF_TRAIN[package] if package in OF_TRAIN and importlib.util.find_spec(package) is None else None


def describe(error: Exception) -> str:
    """Returns one line of printable characters for `error`, without the number that OSError prints."""
    if package := missing_for_training(error):
        way_out = "pip install 'hat_fairseq[train]', or the command that `hat doctor` prints"
        if package == "scikit-learn":
            way_out = "pip install scikit-learn"
        text = f"this needs {package}, which is not installed: {way_out}"
    elif isinstance(error, OSError) and error.strerror:
        is_full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        where = error.filename or ("the standard output or a temporary file" if is_full else "")
        text = f"{where}: {error.strerror}" if where else error.strerror
    elif isinstance(error, RuntimeError) and "home directory" in str(error):  # of Path.home and expanduser
        text = "the home directory is not known: set HOME"
    else:
        text = str(error) or ("out of memory" if isinstance(error, MemoryError) else type(error).__name__)
        if not isinstance(error, ValueError | OSError | MemoryError):
            text = f"{type(error).__name__}: {text} (HAT_TRACEBACK=1 shows where it was raised)"
    from .printed import printable  # not above: `hat --help` runs as a script, too

    return printable(" ".join(text.split()))


@contextmanager
def ending_signals() -> Iterator[None]:
    """Lets SIGTERM and SIGHUP raise SystemExit, so that partial outputs are removed.

    A SIGHUP ignored by nohup stays so.
    """
    handled = [each for each in (signal.SIGTERM, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        handled = []
    for signum in handled:
        signal.signal(signum, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        for signum in handled:
            signal.signal(signum, signal.SIG_DFL)


def flush_output() -> None:
    """Writes what has been printed; an OSError names the standard output."""
    try:
        sys.stdout.flush()
    except OSError as error:
        discard_output()
        error.filename = "standard output"
        raise


def discard_output() -> None:
    """Discards what has been printed, so that Python has nothing to report when it writes the rest at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def replace_closed_streams() -> list[str]:
    """Opens /dev/null for each standard stream that the caller has closed: else the next file gets its number.

    Returns their names.
    """
    closed = [name for name in ("stdin", "stdout", "stderr") if getattr(sys, name) is None]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if name in closed:
            stream = open(os.devnull, mode)  # noqa: SIM115 until the process ends
            os.set_inheritable(stream.fileno(), True)
            setattr(sys, name, stream)
    return closed


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `hat` with `argv` (default: the process's arguments) and returns the exit status.

    An error becomes one line on stderr and status 2; HAT_TRACEBACK=1 shows the traceback.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    closed = replace_closed_streams()
    logging.basicConfig(format="%(message)s")  # before packages that a verb may import choose another format
    try:
        verb = arguments[0] if arguments and arguments[0] in VERBS else None
        parser = build_parser(verb, arguments[1:])
        if not arguments:
            parser.print_help()
            return 0
        args, others = parser.parse_known_args(arguments)
        if others and not args.passes_flags_on:
            parser.error(f"unrecognized arguments: {' '.join(others)}")
        args.others = others
        refuse_dash(args, closed)
        with ending_signals():
            status = int(args.run(args))
        flush_output()
        return status if status >= 0 else 128 - status  # a child that a signal has ended, as shells say it
    except KeyboardInterrupt:
        print("hat: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        discard_output()  # the reader of a pipe (`hat ... | head`) has gone
        return EXIT_BROKEN_PIPE
    except Exception as error:
        if os.environ.get("HAT_TRACEBACK"):
            raise
        print(f"hat: error: {describe(error)}", file=sys.stderr)
        return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main())
