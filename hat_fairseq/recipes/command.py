"""Run a recipe: preprocess, train, generate or predict, or all of them.

    hat recipe {import,preprocess,train,generate,predict,export} NAME [flags of the command ...]
    hat recipe run NAME [--root DIR] [--gpus N] all steps in turn; what is done is not done again
    hat recipe run labels --root DIR            labels of your own documents; [--columns label=KEY] [--encoder DIR]
    DRY_RUN=1 hat recipe train NAME            only prints the command, ready to paste
    hat recipe list                            the recipes that there are, and what each needs
    hat recipe show NAME                       a recipe, with its comments
    hat recipe copy NAME                       the same as NAME.yaml in this folder, to be changed
    hat recipe copy tutorial [DIR]             the data of the tutorials in a new folder (default: tutorial)

NAME is a recipe of the list, or a YAML file such as ./mine.yaml.

The command is printed and then executed; `run` writes commands and their output to results/NAME/run.log, and shows how
far each step is. A flag after NAME replaces that of the recipe; `--FLAG=null` removes
a flag of the recipe. --gpus, --update-batch-size and --update-max-tokens state the size of an update. A recipe with
`score` has a second command, `hat score`, which runs when the first has succeeded. It compares the results with
text/SPLIT.jsonl of the input, and writes SPLIT.score.json beside them, unless `score` names `--references`.
"""

import argparse
import os
import runpy
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from ..cli import build_parser
from ..scoring.command import check_words
from . import files, update
from .build import COMMANDS, SCORED, build_commands
from .steps import PYTHON, run_step
from .update import Flag, split, values_of

OPTIONAL = ("import", "generate", "predict", "export")  # steps of `hat recipe run` that a recipe need not have
#: Flags of `hat recipe run`, with the step that takes each.
OF_RUN = {
    "root": "preprocess",
    "columns": "preprocess",
    "bpe-dir": "preprocess",
    "encoder": "train",
    "gpus": "train",
    "cpu": "train",
    "json": "predict",
}
READER = 5  # of the words of a command that preprocesses
TUTORIAL = "tutorial"  # what `copy` calls the data of the tutorials, and where it writes them


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "step",
        choices=[*COMMANDS, "run", "list", "show", "copy"],
        help="run this step of a recipe, or run all; or list all recipes, show one, or copy one to a file",
    )
    parser.set_defaults(print_help=parser.print_help)
    parser.epilog = (
        "DRY_RUN=1 hat recipe train NAME only prints the command. --FLAG=null removes a flag of the recipe. --gpus, "
        "--update-batch-size and --update-max-tokens state the size of an update of a training. hat recipe copy "
        "tutorial [DIR] writes the data of the tutorials."
    )
    parser.add_argument("name", nargs="?", metavar="NAME", help="a recipe of hat recipe list, or a YAML file")
    parser.add_argument(
        "flags", nargs=argparse.REMAINDER, metavar="...", help="flags for the command; they replace those of the recipe"
    )


def main(args: argparse.Namespace) -> int:
    """Prints the commands of a recipe and, unless DRY_RUN=1, runs them; the last one replaces this process."""
    if (args.name is None or args.step not in COMMANDS) and not {"-h", "--help"}.isdisjoint(args.flags):
        args.print_help()
        return 0
    if args.step == "list":
        if args.name is not None:
            raise ValueError(f"`hat recipe list` takes no name: remove {args.name!r}, or use `hat recipe show`")
        print(*listed(), sep="\n")
        return 0
    if args.name is None:
        raise ValueError(f"`hat recipe {args.step}` needs the name of a recipe; `hat recipe list` shows them")
    if args.step == "copy" and args.name == TUTORIAL:
        return copy_tutorial(*args.flags)
    if args.step in ("show", "copy"):
        if args.flags:
            raise ValueError(f"`hat recipe {args.step}` takes the name of a recipe only: remove {args.flags[0]!r}")
        return show(files.find(args.name), as_file=args.step == "copy")
    if args.step == "run":
        return run_all(args.name, args.flags)
    commands = build_commands(args.step, args.name, args.flags)
    if os.environ.get("RANK", "0") == "0":  # torchrun starts every process with the same words
        comment = update.describe(commands[0])
        print(*([f"# {comment}"] if comment else []), " &&\n".join(map(render, commands)), sep="\n", flush=True)
    if os.environ.get("DRY_RUN", "0") not in ("", "0"):
        return 0
    check_scores(commands)
    if args.step == "train":
        check_data(commands[0], args.name)
    for command in commands[:-1]:
        if status := subprocess.call(command):
            return status
    os.execv(commands[-1][0], commands[-1])


def listed() -> Iterator[str]:
    """Yields the lines of the list: each recipe below its paper, or what it is for, with what it needs."""
    groups: dict[str, dict[str, str]] = {}
    for name in files.names():
        what, where, needs, *_ = files.head(files.find(name))
        groups.setdefault(where.partition(",")[0], {})[name] = f"{what.rstrip('.')} ({needs.removeprefix('needs: ')})"
    for group in sorted(groups, key=lambda group: (not group.startswith("paper"), group)):
        yield group
        width = max(map(len, groups[group])) + 4
        for name, text in groups[group].items():
            lines = textwrap.wrap(text, 80 - width, break_on_hyphens=False)
            yield from (f"{f'  {name}' * (line is lines[0]):{width}}{line}" for line in lines)
        yield ""
    yield "In brackets: what it needs. DIR has the release or your documents."


def run_all(name: str, extra: Sequence[str]) -> int:
    """Runs the steps of a recipe in turn; returns the status of the first that fails.

    Data that are there are not made again, a training resumes, and results that are newer than the model stay.
    """
    flags, quiet = split(extra), "--json" in extra
    steps = steps_of(name, [word for flag in flags if flag.name != "json" for word in flag.words])
    say = sys.stderr if quiet else sys.stdout
    if os.environ.get("DRY_RUN", "0") not in ("", "0"):
        print(" &&\n".join(render(command) for commands in steps.values() for command in commands), file=say)
        return 0
    check_scores([command for commands in steps.values() for command in commands])
    if (root := values_of(flags).get("root")) is not None:  # before a step has written anything
        check_root(Path(root))
        check_source(steps["preprocess"][0], Path(root))
    elif needs_root(files.find(name), steps["preprocess"][0]):
        raise ValueError(f"`hat recipe run {name}` needs --root DIR, the folder of the release or of your documents")
    scored = next((steps[step][1] for step in SCORED if len(steps.get(step, ())) > 1), None)
    log = Path("results", files.find(name).stem, "run.log")
    print(f"the commands, and all that they print: {log}", file=say, flush=True)
    for step, commands in steps.items():
        last = commands[1:] if step in SCORED else []  # scores are computed in seconds
        if is_done(step, commands[0]):
            print(f"{step}: done already", file=say, flush=True)
            commands = last
        for command in commands:
            scores = command in last
            if status := run_step("score" if scores else step, command, log, say):
                return status
            if scores and not quiet:
                print("", first_table(log), "", sep="\n", flush=True)
        if step == "preprocess" and scored and "classification" in scored:
            check_labels(steps[step][0])
    if scored:
        show_labels(scored, quiet)
    return 0


def first_table(log: Path) -> str:
    """Returns the first table that the last command in a log has printed: a row for each thing that is compared."""
    output = log.read_text(encoding="utf-8", errors="replace").rpartition("\n$ ")[2].partition("\n")[2]
    return output.partition("\n\n")[0]


def needs_root(path: Path, command: Sequence[str]) -> bool:
    """Tells whether a recipe says that it needs --root, and neither its data nor the folder of its reader are there."""
    says = any(line.startswith("needs: --root") for line in files.head(path))
    return says and not (is_done("preprocess", command) or Path(command[READER]).exists())


def check_root(folder: Path) -> None:
    """Raises ValueError for a folder without any file."""
    if not (folder.is_dir() and any(folder.iterdir())):
        raise ValueError(f"--root {folder} is no folder with files: give the one that the data are in")


def check_source(command: Sequence[str], root: Path) -> None:
    """Raises ValueError for data that are there and come from another --root, or from files that have changed since."""
    if not is_done("preprocess", command):
        return
    from ..data.files import read_json  # not above: `hat recipe list` is quick
    from ..data.manifest import FILE_NAME, describe_inputs

    out = Path(command[command.index("--out") + 1])
    manifest = read_json(out / FILE_NAME)
    own = [each for each in manifest.get("inputs", []) if Path(each["path"]).resolve().is_relative_to(root.resolve())]
    files = [each for each in own if "files" not in each]  # others are folders of many
    columns = [value for flag, value in pairwise(command) if flag == "--columns"]
    try:
        same = bool(own) and describe_inputs([Path(each["path"]) for each in files]) == files
        same = same and (not columns or manifest["options"]["columns"] == columns)
    except OSError:  # one is missing
        same = False
    if not same:
        raise ValueError(
            f"{out} was made from other files, or columns, than those of --root {root}: remove it, with its "
            "checkpoints and the results of this recipe, or run in another folder"
        )


def check_labels(command: Sequence[str]) -> None:
    """Raises ValueError for data with which a training of labels, or its score, would be of no use."""
    from ..data.files import read_json  # not above: `hat recipe list` is quick
    from ..data.manifest import FILE_NAME

    out = Path(command[command.index("--out") + 1])
    labels = {split: figures["labels"] for split, figures in read_json(out / FILE_NAME)["splits"].items()}
    if without := [split for split, counts in labels.items() if not counts]:
        raise ValueError(f"{out}: {without[0]} has no labels, so the model cannot be scored: give it labels")
    if len(labels["train"]) == 1:
        raise ValueError(f"{out}: every document of train has the label {[*labels['train']][0]!r}: nothing to learn")


def show_labels(score: Sequence[str], as_json: bool) -> None:
    """Prints what a recipe of labels has found, from the files of its command `hat score`."""
    if "classification" not in score or "--baselines" not in score:
        if as_json:
            raise ValueError("--json is for the recipes labels and sentence_labels: remove it")
        return
    from . import labels  # not above: it reads data, and `hat recipe list` is quick

    results, scores = (Path(score[score.index(flag) + step]) for flag, step in (("--references", -1), ("--out", 1)))
    print(*([labels.as_json(scores, results)] if as_json else labels.decisive(results)), sep="\n")


def steps_of(name: str, extra: Sequence[str]) -> dict[str, list[list[str]]]:
    """Returns the commands of each step of a recipe; ValueError for a flag that belongs to no step alone."""
    flags = split(extra)
    if other := next((flag for flag in flags if flag.name not in OF_RUN), None):
        known = ", ".join(f"--{flag}" for flag in OF_RUN)
        raise ValueError(
            f"`hat recipe run` takes {known}: give --{other.name} to a step, such as `hat recipe train {name}`, or "
            "write it into a copy (`hat recipe copy`)"
        )
    recipe = files.load(files.find(name))
    steps = [step for step in COMMANDS if step not in OPTIONAL or recipe[step]]
    if "root" in values_of(flags) and "/" in str(recipe["preprocess"].get("reader", "")):  # a folder of the user's own
        flags = [
            Flag("reader", each.values, ["--reader", *each.values]) if each.name == "root" else each for each in flags
        ]
    encoder = values_of(flags).get("encoder")
    own = [flag for flag in flags if flag.name != "encoder"]
    words = {
        step: [word for flag in own if OF_RUN.get(flag.name, "preprocess") == step for word in flag.words]
        for step in steps
    }
    from . import labels

    has_ids = any(value.startswith("id=") for flag in flags if flag.name == "columns" for value in flag.values)
    if recipe["import"] and "reader" in values_of(flags) and not has_ids:
        words["preprocess"] += labels.words_of_ids(values_of(flags)["reader"])
    if encoder is not None:
        if not recipe["import"]:
            raise ValueError(f"--encoder is for the recipes labels and sentence_labels: {name} has another start")
        steps.remove("import")
        for step, added in labels.encoder_words(encoder).items():
            words[step] += added
    return {step: build_commands(step, name, words[step]) for step in steps}


def is_done(step: str, command: Sequence[str]) -> bool:
    """Returns whether the files of a step are there, and newer than the model; fairseq itself resumes a training."""
    if step == "train":
        return False
    out = Path(command[command.index("--out") + 1])
    if step == "import":
        return out.is_file()
    if step == "export":
        return False  # it replaces the folder
    if step == "preprocess":
        return (out / "manifest.json").is_file()
    model = Path(command[len((*PYTHON, *COMMANDS[step][0]))])
    return out.is_file() and model.is_file() and out.stat().st_mtime > model.stat().st_mtime


def check_scores(commands: Iterable[Sequence[str]]) -> None:
    """Refuses a mistake in `hat score`, as that does, before the command runs whose results it scores."""
    score = [*PYTHON, "hat_fairseq.cli", "score"]
    for words in (command[len(score) - 1 :] for command in commands if [*command[: len(score)]] == score):
        check_words(build_parser("score", words[1:]), words)


def check_data(command: Sequence[str], name: str) -> None:
    """Raises ValueError for data of a training that are not there."""
    for folder in map(Path, command[len((*PYTHON, *COMMANDS["train"][0]))].split(os.pathsep)):
        if not has_dictionary(folder):
            raise ValueError(f"{folder} has no data: run `hat recipe preprocess {name}` first")


def has_dictionary(folder: Path) -> bool:
    """Returns whether a folder has dictionaries, as the `bin` of hat preprocess."""
    return any(path for pattern in ("dict*.txt", "*/dict*.txt") for path in folder.glob(pattern))


def show(path: Path, as_file: bool) -> int:
    """Prints a recipe, or writes it as a file into this folder."""
    text = path.read_text(encoding="utf-8")
    if not as_file:
        print(text, end="")
        return 0
    copy = Path(path.name)
    try:
        with copy.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise ValueError(f"{copy} exists: remove or rename it first") from None
    print(f"wrote {copy}; run it with `hat recipe train {copy}`")
    return 0


def copy_tutorial(folder: str = TUTORIAL, *more: str) -> int:
    """Writes the data of the tutorials into a new folder."""
    if more or folder.startswith("-"):
        raise ValueError(
            f"`hat recipe copy {TUTORIAL}` takes the name of a folder only: remove {[folder, *more][-1]!r}"
        )
    tutorial = runpy.run_path(str(files.EXAMPLES / "tutorial.py"))
    tutorial["write"](Path(folder))
    names = [*tutorial["FOLDERS"], tutorial["LABELS"]]
    print(f"wrote {folder}: {', '.join(names)}, each with {sum(tutorial['SPLITS'].values())} documents")
    return 0


def render(command: Sequence[str]) -> str:
    """Returns the command for a shell, one flag a line."""
    lines: list[str] = []
    for word in command:
        if not lines or word.startswith("--"):
            lines.append(shlex.quote(word))
        else:
            lines[-1] += " " + shlex.quote(word)
    return " \\\n    ".join(lines)
