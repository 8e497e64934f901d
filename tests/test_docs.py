"""The pages name only what exists: verbs, flags, files, modules, messages. `make docs` checks their links."""

import argparse
import ast
import re
import shlex
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import make_lra
from pages import SPAN, code, commands

from hat_fairseq import cli
from hat_fairseq.recipes.command import COMMANDS, OF_RUN
from hat_fairseq.scoring.command import METRICS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {path: path.read_text(encoding="utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]}
UPGRADING = ROOT / "docs/upgrading.md"
PAGES[UPGRADING] = re.sub(  # without what has left: its first columns, and the beginnings of its lists
    r"^(\|[^|]*|- [^→\n]*(\n  [^→\n]*)*→)", "", PAGES[UPGRADING], flags=re.MULTILINE
)
MODULES = PAGES[ROOT / "docs/modules.md"]
FLAG = re.compile(r"(?<![\w-])--([a-z][a-z0-9]*(?:[-_][a-z0-9]+)*)(?![\w-])")
METRIC = re.compile(r"(?<![\w/.-])hat score ([a-z_]+)")
VERB = re.compile(r"(?<![\w/.-])hat ([a-z][a-z-]*)")
FOLDERS = "|".join(
    path.name for folder in (ROOT, ROOT / "hat_fairseq") for path in folder.glob("[a-z]*") if path.is_dir()
)
# `tests/x.py`, `modules/y.py` and `configs/z.yaml`; with capitals or stars it is a pattern, not a path
PATH = re.compile(rf"(?<![\w/.-])(?:{FOLDERS})/[a-z0-9_./-]*\.(?:py|md|yaml|sh)(?![\w*{{])")
OF_OTHERS = "--arm --no-python --nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --standalone"  # torchrun
OF_OTHERS += " --group --signals-to-handle --head --port --address --generate --no-deps --shm-size"  # Ray, pip, docker


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


def verb_flags(verb: str, *rest: str) -> set[str]:
    """The flags of a verb; of one of its sub-commands if `rest` begins with one."""
    subs = sub_commands(verb_parser(verb))
    chosen = [subs[rest[0]]] if rest and rest[0] in subs else [verb_parser(verb), *subs.values()]
    return set().union(*map(flags_of, chosen))


@cache
def fairseq_flags() -> frozenset[str]:
    """What fairseq's commands accept with our tasks, models, criterions and output decoder."""
    from fairseq import options
    from fairseq.dataclass.utils import gen_parser_from_dataclass
    from fairseq.models import MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    from hat_fairseq.register import register

    register()
    parsers = [options.get_training_parser(), options.get_generation_parser(), options.get_validation_parser()]
    parsers.append(options.get_preprocessing_parser())
    chosen = [("criterion", "label_smoothed_cross_entropy"), ("criterion", "self_attention_regularization")]
    chosen += [
        ("criterion", "marker_masked_lm"),
        ("optimizer", "adam"),
        ("bpe", "document"),
        ("lr_scheduler", "polynomial_decay"),
        ("lr_scheduler", "cosine"),
    ]
    for kind, name in chosen:
        parsers.append(argparse.ArgumentParser())
        gen_parser_from_dataclass(parsers[-1], REGISTRIES[kind]["dataclass_registry"][name]())
    tasks = [TASK_REGISTRY[name] for name in ("document_to_text", "masked_document_lm", "document_classification")]
    models = [model for model in MODEL_REGISTRY.values() if model.__module__.startswith("hat_fairseq.")]
    for owner in (*tasks, *models):
        parsers.append(argparse.ArgumentParser())
        owner.add_args(parsers[-1])
    return frozenset(flag for parser in parsers for flag in flags_of(parser))


def recipe_flags(command: str) -> set[str]:
    """What may follow the name of a recipe: the flags of its command, and those that the recipe itself takes."""
    if command == "train":
        return {*fairseq_flags(), "--gpus", "--update-batch-size", "--update-max-tokens"}
    others = {"generate": {"--score"}, "predict": {"--score"}}  # what follows `hat score`
    return verb_flags(command) | others.get(command, set()) | {f"--{name}" for name in COMMANDS[command][2]}


def allowed_flags(words: list[str]) -> set[str] | frozenset[str] | None:
    """The flags that a command may have; None where it is neither ours nor fairseq's."""
    program, rest = Path(words[0]).name, words[1:]
    if program == "hat" and rest[:2] == ["recipe", "run"]:
        return {f"--{name}" for name in OF_RUN}
    if program == "hat" and rest[:1] == ["recipe"] and len(rest) > 2 and rest[1] in COMMANDS:
        return recipe_flags(rest[1])
    if program == "hat" and rest and rest[0] in cli.VERBS:
        passed_on = getattr(cli.import_verb(rest[0]), "PASSES_FLAGS_ON", False)
        return verb_flags(*rest) | (fairseq_flags() if passed_on else frozenset())
    if program.startswith("fairseq-"):
        return fairseq_flags()
    return None


def foreign_flags(words: Sequence[str]) -> set[str]:
    """The flags of a command that it does not have, each after the words that call it."""
    used = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    allowed = allowed_flags(list(words))
    return {f"{' '.join(words[:3])} {flag}" for flag in used if allowed is not None and flag not in allowed}


def missing_names(text: str) -> set[str]:
    """The verbs, metrics, flags and files of a page that do not exist, and the commands with a flag of another one."""
    pieces, flags = code(text), {f"--{name}" for name in FLAG.findall(text)}
    missing = {verb for piece in pieces for verb in VERB.findall(piece)} - cli.VERBS.keys()
    missing |= {name for piece in pieces for name in METRIC.findall(piece)} - METRICS.keys()
    make_lra_flags = (flags_of(parser) for parser in sub_commands(make_lra.build_parser()).values())
    verbs = set().union(*map(verb_flags, cli.VERBS), *make_lra_flags, {*OF_OTHERS.split(), "--version"})
    missing |= flags - verbs - recipe_flags("train") - recipe_flags("predict")
    paths = {path for piece in pieces for path in PATH.findall(piece)}
    missing |= {path for path in paths if not any((root / path).exists() for root in (ROOT, ROOT / "hat_fairseq"))}
    for words in commands(text):
        missing |= foreign_flags(words)
    return missing


def test_the_pages_name_what_exists() -> None:
    assert {path.name: missing for path, text in PAGES.items() if (missing := missing_names(text))} == {}


def table(heading: str, page: str) -> list[list[str]]:
    """Cells of the tables whose first column is called `heading`, without their two header lines."""
    tables = re.findall(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, flags=re.MULTILINE)
    return [[cell.strip() for cell in line.strip("|").split("|")] for rows in tables for line in rows.splitlines()]


def test_the_tables_have_every_model_module_and_architecture() -> None:
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY

    def names(column: int, rows: list[list[str]]) -> set[str]:
        return {name for row in rows for name in re.findall(r"`([^`]+)`", row[column])}

    fairseq_flags()  # registers the models
    models = {name for name, model in MODEL_REGISTRY.items() if model.__module__.startswith("hat_fairseq.")}
    assert names(3, table("paper", MODULES)) == models
    files = [path for part in ("modules", "networks") for path in (ROOT / "hat_fairseq" / part).glob("[a-z]*.py")]
    assert [path for path in files if f"`{path.parent.name}/{path.name}`" not in MODULES] == []
    assert names(0, table("architecture", PAGES[ROOT / "docs/hat.md"])) <= ARCH_MODEL_REGISTRY.keys()


def texts_of_package() -> Iterator[tuple[str, str]]:
    """Name and text of each string of the programs, also docstrings and messages, and of other files with verbs."""
    for folder in ("hat_fairseq", "preprocess", "benchmarks", "studies", "examples"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield str(path.relative_to(ROOT)), node.value
    for pattern in ("configs/*.yaml", "examples/*.ipynb", "hat_fairseq/**/*.html", "hat_fairseq/**/*.js", "Makefile"):
        for path in sorted(ROOT.glob(pattern)):
            yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_every_verb_that_a_text_names_exists() -> None:
    """Also in messages, help texts, docstrings, recipes and the notebook."""
    others = {"has", "bf", "fp", "int"}  # `hat has written`; the rows "hat fp32", "hat int8" of tables
    german = "examples/tutorial.py"
    texts = [(place, text) for place, text in texts_of_package() if place != german]
    named = [(place, verb) for place, text in texts for verb in VERB.findall(text)]
    assert len(named) > 150
    assert [each for each in named if each[1] not in {*cli.VERBS, *others}] == []
    assert not others & {*cli.VERBS}


def script_commands(text: str) -> Iterator[list[str]]:
    """The simple commands of a shell script as words, without texts that it hands to a program (here-documents)."""
    text = re.sub(r"<<'?(\w+)'?\n.*?^\1$", "", text.replace("\\\n", " "), flags=re.MULTILINE | re.DOTALL)
    for line in text.splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command: list[str] = []
        for word in [*lexer, ";"]:
            if re.fullmatch(r"[;|&()<>]+", word):
                yield command
                command = []
            elif command or word not in ("if", "then", "else", "do", "!", "exec", "{"):
                command.append(word)


def test_the_commands_of_scripts_and_messages_have_the_flags_that_they_name() -> None:
    scripts = (ROOT / "examples").glob("*.sh")
    named = [(path.name, words) for path in scripts for words in script_commands(path.read_text(encoding="utf-8"))]
    for place, text in texts_of_package():
        for _, span in SPAN.findall(text):
            if span.startswith(("hat ", "fairseq-")):
                named.append((place, span.rstrip(".:").split()))
    named = [(place, words) for place, words in named if words and words[0] in ("hat", "fairseq-train")]
    assert len(named) > 60
    assert [each for each in named if len(each[1]) > 1 and foreign_flags(each[1])] == []
