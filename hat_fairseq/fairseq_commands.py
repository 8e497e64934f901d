"""Train a model: run fairseq-train with this package.

The process of fairseq runs this file as a script, so that fairseq itself imports the package, as its --user-dir.
"""

import argparse
import contextlib
import importlib
import importlib.util
import logging
import os
import signal
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

PASSES_FLAGS_ON = True
HELP_IS_ON = ("--arch", "-a", "--task")  # with one of these flags, --help is on what it names
PACKAGE = Path(__file__).resolve().parent
# fairseq's import advises to install tensorboardX, which nothing here uses, and torch 2.14 warns of its decorators.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)
warnings.filterwarnings("ignore", r"`torch\.jit\.\w+` is deprecated")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Shows how to call the command; fairseq reads the flags."""
    parser.usage = "hat train DATA [flags of fairseq-train and of this package ...]"
    parser.epilog = (
        "Flags of a task: hat train --task document_to_text --help; those of a model: hat train --arch "
        "hat_transformer_tiny --help; all, with those of the task and the model that you name: fairseq-train "
        f"--user-dir {PACKAGE} --task document_to_text --arch hat_transformer_tiny --help"
    )


def main(args: argparse.Namespace) -> int:
    """Becomes the process of fairseq's command, which obeys signals and shows tracebacks as fairseq's does."""
    check(args.others)
    # -P: the current directory is no place to import from
    os.execv(sys.executable, [sys.executable, "-P", __file__, *args.others])


def check(flags: Sequence[str]) -> None:
    """Raises ValueError for flags of a training without data, or where fairseq is not installed."""
    if not flags:
        raise ValueError("`hat train` needs the bin folder of `hat preprocess`, such as data-bin/mine/bin")
    require_fairseq("hat train")
    data = flags[0]
    asks_help = not {"-h", "--help"}.isdisjoint(flags)
    if not (asks_help or data.startswith("-") or (folder := Path(data.split(os.pathsep)[0])).is_dir()):
        raise ValueError(f"{folder} is not a folder: run `hat preprocess`, and give its bin folder first")


def require_fairseq(command: str) -> None:
    """Raises ValueError if fairseq, which `command` needs, is not installed."""
    if importlib.util.find_spec("fairseq_cli") is None:
        raise ValueError(
            f"`{command}` needs fairseq, which is not installed: pip install 'hat_fairseq[train]', "
            "or the command that `hat doctor` prints, which installs nothing beside it"
        )


def run(*flags: str) -> None:
    """Runs fairseq-train in this process, with this package unless the flags name another --user-dir."""
    if {"-h", "--help"}.intersection(flags):
        print(help_on(flags))
        return
    parser = argparse.ArgumentParser("hat train", add_help=False, allow_abbrev=False)
    parser.add_argument("--user-dir", type=Path)
    own = parser.parse_known_args(flags)[0].user_dir
    if own is not None and not (own / "__init__.py").is_file():
        message = f"--user-dir {own} is no folder with an __init__.py, which fairseq imports"
        parser.exit(2, f"{parser.prog}: error: {message}\n")
    sys.argv = ["hat train", *flags, *(["--user-dir", str(PACKAGE)] if own is None else [])]
    importlib.import_module("fairseq_cli.train").cli_main()


def help_on(words: Sequence[str]) -> str:
    """Returns help on the flags of the task and the architecture that the words name, and what the latter sets."""
    from hat_fairseq.fairseq_fixes.settings import parts_of
    from hat_fairseq.register import register
    from hat_fairseq.suggestions import did_you_mean

    register()
    models, tasks = importlib.import_module("fairseq.models"), importlib.import_module("fairseq.tasks")
    chosen = parts_of(words, "hat train")
    parser = argparse.ArgumentParser("hat train", usage="hat train DATA [flags ...]", add_help=False)
    for name, known in (("task", tasks.TASK_REGISTRY), ("arch", models.ARCH_MODEL_REGISTRY)):
        if value := getattr(chosen, name):
            if value not in known:
                parser.exit(2, f"{parser.prog}: error: there is no --{name} {value}{did_you_mean(value, known)}\n")
            known[value].add_args(parser.add_argument_group(f"--{name} {value}"))
    if chosen.arch:
        sizes = argparse.Namespace()
        with contextlib.suppress(AttributeError):  # of fairseq's functions, one needs all flags
            models.ARCH_CONFIG_REGISTRY[chosen.arch](sizes)
        flags_of = {f"--{name.replace('_', '-')}": value for name, value in sorted(vars(sizes).items())}
        written = (flag if value is True else f"{flag} {value}" for flag, value in flags_of.items() if value)
        parser.epilog = f"{chosen.arch} sets {', '.join(written)}".replace("%", "%%")
    return parser.format_help()


if __name__ == "__main__":
    try:
        run(*sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe (`hat train --help | head`) has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
    except Exception as error:
        sys.excepthook(type(error), error, error.__traceback__)
        log = sys.modules.get("hat_fairseq.fairseq_fixes.log")
        sys.exit(2 if error in getattr(log, "REFUSED", ()) else 1)
