"""The pages say nothing that does not exist: verbs, flags, paths, tests and links."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import make_lra
from hat_fairseq import cli
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.options import TEXT, Options, flag, options_of
from hat_fairseq.recipes.command import COMMANDS

ROOT = Path(__file__).resolve().parents[1]
PAGES = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if path.is_file())

FENCE = re.compile(r"^```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)")
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?![\w-])")
METRIC = re.compile(r"(?<![\w/.-])hat score ([a-z_]+)")
VERB = re.compile(r"(?<![\w/.-])hat ([a-z][a-z-]*)")
FOLDERS = "hat_fairseq|preprocess|configs|scripts|train_scripts|generate_scripts|examples|benchmarks"
FOLDERS += "|tests|docs|\\.ci"
# `tests/x.py::test_y` and `configs/base/z.yaml`; with capitals or stars it is a pattern, not a path
PATH = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[a-z0-9_./-]*)(?:::(\w+))?(?![\w*{{])")
LINK = re.compile(r"\]\(([^)\s]+)\)")


def code(text: str) -> list[str]:
    """All that is set as code: fenced blocks, and spans within lines."""
    return FENCE.findall(text) + [span for _, span in SPAN.findall(FENCE.sub("", text))]


def commands(text: str) -> Iterator[list[str]]:
    """The commands of fenced blocks as words, lines that end in a backslash joined, without assignments before them."""
    for block in FENCE.findall(text):
        for line in block.replace("\\\n", " ").splitlines():
            try:
                words = shlex.split(line, comments=True)
            except ValueError:  # part of a program or an example of data
                continue
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words = words[1:]
            if words:
                yield words


def flags_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def sub_commands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers of `hat score rouge` and its like, by their names."""
    groups = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(groups[0]) if groups else {}


@cache
def verb_parser(verb: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    cli.import_verb(verb).add_arguments(parser)
    return parser


@cache
def verb_flags(verb: str, *rest: str) -> frozenset[str]:
    """The flags of a verb; of one of its sub-commands if `rest` begins with one."""
    subs = sub_commands(verb_parser(verb))
    chosen = [subs[rest[0]]] if rest and rest[0] in subs else [verb_parser(verb), *subs.values()]
    return frozenset().union(*map(flags_of, chosen))


@cache
def fairseq_flags() -> frozenset[str]:
    """What fairseq's commands accept with our tasks, models, criterion and output decoder."""
    from fairseq import options
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.models import MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    from hat_fairseq.register import register

    register()

    parsers = [
        options.get_preprocessing_parser(),
        options.get_training_parser(),
        options.get_generation_parser(),
        options.get_interactive_generation_parser(),
        options.get_validation_parser(),
    ]
    chosen = [("criterion", "label_smoothed_cross_entropy"), ("optimizer", "adam"), ("bpe", "document")]
    chosen += [("lr_scheduler", "polynomial_decay")]
    chosen.append(("criterion", "self_attention_regularization"))
    for kind, name in chosen:
        extra = argparse.ArgumentParser()
        gen_parser_from_dataclass(extra, REGISTRIES[kind]["dataclass_registry"][name]())
        parsers.append(extra)
    tasks = [TASK_REGISTRY[name] for name in ("document_to_text", "masked_document_lm", "document_classification")]
    models = [model for model in MODEL_REGISTRY.values() if model.__module__.startswith("hat_fairseq.")]
    for owner in (*tasks, *models):
        extra = argparse.ArgumentParser()
        owner.add_args(extra)
        parsers.append(extra)
    return frozenset(flag for parser in parsers for flag in flags_of(parser))


@cache
def torchrun_flags() -> frozenset[str]:
    from torch.distributed.run import get_args_parser

    return frozenset(flags_of(get_args_parser()))


def recipe_flags(command: str) -> frozenset[str]:
    """What may follow the name of a recipe: the flags of its command, and those that the recipe itself takes."""
    if command == "train":
        return fairseq_flags() | {"--gpus", "--update-batch-size", "--update-max-tokens"}
    others = {"generate": fairseq_flags(), "predict": frozenset(["--score"])}  # what follows `hat score`
    positionals = {f"--{name}" for name in COMMANDS[command][2]}
    return verb_flags(command) | others.get(command, frozenset()) | positionals


def all_flags() -> frozenset[str]:
    return frozenset().union(
        fairseq_flags(),
        torchrun_flags(),
        recipe_flags("train"),
        recipe_flags("predict"),
        *(verb_flags(verb) for verb in cli.VERBS),
        *(flags_of(parser) for parser in sub_commands(make_lra.build_parser()).values()),
    )


def allowed_flags(words: list[str]) -> frozenset[str] | None:
    """The flags that a command may have; None where it is neither ours nor fairseq's."""
    words = words[1:] if words[0] == "exec" else words
    program, rest = Path(words[0]).name, words[1:]
    if program == "hat" and rest[:1] == ["recipe"] and len(rest) > 2 and rest[1] in COMMANDS:
        return recipe_flags(rest[1])
    if program == "hat" and rest and rest[0] in cli.VERBS:
        passed_on = getattr(cli.import_verb(rest[0]), "PASSES_FLAGS_ON", False)
        return verb_flags(*rest) | (fairseq_flags() if passed_on else frozenset())
    if program.startswith("fairseq-"):
        return fairseq_flags()
    if words[0].startswith(("train_scripts/", "generate_scripts/")):
        verb = (ROOT / words[0]).read_text(encoding="utf-8").rpartition(" recipe ")[2].split()[0]
        return recipe_flags(verb)
    if words[:2] == ["python", "preprocess/make_lra.py"]:
        return frozenset(flags_of(sub_commands(make_lra.build_parser())[words[2]]))
    if program == "torchrun":
        return fairseq_flags() | torchrun_flags() | recipe_flags("train")
    return None


def anchors(page: Path) -> set[str]:
    """The names that a link's `#name` can have, as GitHub makes them of headings."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def options_table() -> str:
    """The table of the options in docs/data.md."""
    lines = ["| option | default | kinds | meaning |", "|---|---|---|---|"]
    for item in options_of(Options):
        names = [flag(item), flag(item, False)] if item.type is bool else [flag(item)]
        default = "off" if item.default is False else "" if item.default is None else f"`{item.default}`"
        group, choices = item.metadata["group"], item.metadata["choices"]
        kinds = [f"`{name}`" for name, kind in KINDS.items() if group in kind.options] if group else []
        if group == TEXT:
            kinds = ["all but " + ", ".join(f"`{name}`" for name, kind in KINDS.items() if not kind.is_text)]
        values = f": {', '.join(f'`{choice}`' for choice in choices)}" if choices else ""
        names_text, kinds_text = ", ".join(f"`{name}`" for name in names), ", ".join(kinds) or "all"
        lines.append(f"| {names_text} | {default} | {kinds_text} | {item.metadata['help']}{values} |")
    return "\n".join(lines) + "\n"


def test_the_pages_are_there() -> None:
    names = {path.name for path in PAGES}
    assert {"hat.md", "data.md", "recipes.md", "scoring.md", "security.md", "troubleshooting.md"} <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_verb_exists(page: Path) -> None:
    pieces = code(page.read_text(encoding="utf-8"))
    assert {verb for piece in pieces for verb in VERB.findall(piece)} <= cli.VERBS.keys()
    assert {name for piece in pieces for name in METRIC.findall(piece)} <= sub_commands(verb_parser("score")).keys()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_flag_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    mentioned = {f"--{name}" for name in FLAG.findall(text)}
    assert mentioned - all_flags() == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_command_takes_its_flags(page: Path) -> None:
    wrong = []
    for words in commands(page.read_text(encoding="utf-8")):
        allowed = allowed_flags(words)
        given = [word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)]
        wrong += [f"{' '.join(words[:3])}: {flag}" for flag in given if allowed is not None and flag not in allowed]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_and_test_exists(page: Path) -> None:
    missing = []
    for piece in code(page.read_text(encoding="utf-8")):
        for name, function in PATH.findall(piece):
            path = ROOT / name.rstrip(".")
            if not path.exists():
                missing.append(name)
            elif function and f"def {function}(" not in path.read_text(encoding="utf-8"):
                missing.append(f"{name}::{function}")
    assert missing == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(FENCE.sub("", page.read_text(encoding="utf-8"))):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_table_of_the_preprocessing_options_is_that_of_the_code() -> None:
    assert options_table() in (ROOT / "docs/data.md").read_text(encoding="utf-8")


def test_what_the_checks_look_for_is_found() -> None:
    """The expressions find what they should; a page without findings would pass everything."""
    text = "`hat nosuch --verb-flag x` `hat_fairseq/no.py`\n\n```\nA=1 hat join \\\n    --nosuch\n```\n"
    assert [verb for piece in code(text) for verb in VERB.findall(piece)] == ["join", "nosuch"]
    assert FLAG.findall(text) == ["verb-flag", "nosuch"]
    assert list(commands(text)) == [["hat", "join", "--nosuch"]]
    assert allowed_flags(["hat", "join", "--nosuch"]) == verb_flags("join") and "--ids" in verb_flags("join")
    bleu, both = allowed_flags(["hat", "score", "bleu", "--tokenize", "zh"]), verb_flags("score")
    assert bleu is not None and "--tokenize" in bleu and "--like" not in bleu and {"--tokenize", "--like"} <= both
    assert METRIC.findall("`hat score bleu` hat score --json") == ["bleu"]
    assert [path for piece in code(text) for path, _ in PATH.findall(piece)] == ["hat_fairseq/no.py"]
    assert {"--max-source-positions", "--role-stream", "--no-hierarchy", "--beam", "--adam-betas"} <= fairseq_flags()
    assert "--nosuch" not in all_flags()
