#!/usr/bin/env python3
"""Write `train_scripts/` and `generate_scripts/`: the papers' experiments as commands that one can read and run.

    python .ci/write_recipe_scripts.py

Each script is what `hat recipe` runs, spelled out with all flags and with the comments of `configs/`; after a change
there run this again. A test compares.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.recipes import files, update
from hat_fairseq.recipes.command import COMMANDS, PYTHON, build_commands, render

ROOT = Path(__file__).resolve().parents[1]
LINE = re.compile(r"  (?:([a-z0-9-]+): .*?)??(?:(?:  )?# (.*))?")  # of a YAML file: a flag, a comment, or both
WIDTH = 120


def scripts() -> dict[Path, str]:
    """Returns the text of each script by its path in the repository."""
    texts = {}
    for name in files.names():
        if not files.head(files.find(name))[1].startswith("paper: "):
            continue
        recipe = files.load(files.find(name))
        path = Path(f"train_scripts/{name}.sh")
        texts[path] = script(name, f"{path} [FLAGS of fairseq-train]", train(name))
        for verb in ("generate", "predict"):
            if recipe[verb]:
                path = Path(f"generate_scripts/{name}.sh")
                texts[path] = script(name, str(path), generate(name, verb))
    return texts


def script(name: str, call: str, last: Iterator[str]) -> str:
    """Returns a script: what the recipe says of itself, preprocessing, and the last commands."""
    head = files.head(files.find(name))
    needs_root = "--root" in head[2]
    head += ["", "ROOT=DIR " * needs_root + f"bash {call}", f"Written from configs/{name}.yaml."]
    lines = ["#!/usr/bin/env bash", *(f"# {line}".rstrip() for line in head), "set -euo pipefail"]
    return "\n".join([*lines, *preprocess(name, needs_root), "", *last]) + "\n"


def preprocess(name: str, needs_root: bool) -> Iterator[str]:
    """Yields the lines that preprocess, unless that was done."""
    (command,) = build_commands("preprocess", name)
    reader, *words = command[len(PYTHON) + 2 :]
    root = f'--root "${{ROOT:?the folder of the release, see preprocess/{reader}.py}}" ' * needs_root
    yield from array("preprocess", name, words)
    yield f"[ -d {words[words.index('--out') + 1]} ] ||"
    yield f'    hat preprocess {reader} {root}"${{preprocess[@]}}"'


def train(name: str) -> Iterator[str]:
    """Yields the lines of the training, a call of fairseq-train."""
    (command,) = build_commands("train", name)
    data, *words = command[len(PYTHON) + 2 :]
    yield from array("train", name, words, update.describe(command))
    yield f'fairseq-train {data} --user-dir "$(hat user-dir)" "${{train[@]}}" "$@"'


def generate(name: str, verb: str) -> Iterator[str]:
    """Yields the lines of the generation or prediction, and of its score."""
    command, *scores = build_commands(verb, name)
    model, data, *words = command[len(PYTHON) + 2 :]
    yield from array(verb, name, words)
    yield f'hat {verb} {model} \\\n    {data} "${{{verb}[@]}}"'
    yield from (f"# {comment}" for flag, comment in flags_of(name, verb) if flag == "score" and comment)
    yield from (render(["hat", *score[len(PYTHON) + 1 :]]) for score in scores)


def array(verb: str, name: str, words: list[str], size: str = "") -> Iterator[str]:
    """Yields the lines of an array of bash: the flags of a command, as the recipe orders and explains them."""
    flags = {flag.name: " ".join(map(quoted, flag.words)) for flag in update.split(words)}
    yield f"{verb}=("
    for section in (*COMMANDS[verb][1], *["update"] * (verb == "train")):
        for key, comment in flags_of(name, section):
            if section == "update":
                comment = "; ".join(filter(None, (size * (key in update.UNITS), comment)))
                key = "distributed-world-size" if key == "gpus" else "update-freq"
            if key != "score":
                yield from commented(flags.pop(key, ""), comment)
    yield ")"
    if flags:
        raise ValueError(f"{name}: {[*flags]} are in no line of its file")


def commented(text: str, comment: str) -> Iterator[str]:
    """Yields a flag with its comment behind it, or above it where the line would be long."""
    line = f"    {text}  # {comment}"
    if not (text and comment) or len(line) > WIDTH:
        yield from (f"    {part}" for part in (f"# {comment}" * bool(comment), text) if part)
    else:
        yield line


def quoted(word: str) -> str:
    """Returns a word for a shell; shellcheck takes a comma for a mistake."""
    return f"'{word}'" if re.fullmatch(r"[\w,]+,\w+", word) else shlex.quote(word)


def flags_of(name: str, section: str) -> Iterator[tuple[str, str]]:
    """Yields each line of a section of a recipe: its flag and its comment, of which one may be empty."""
    text = files.find(name).read_text(encoding="utf-8")
    (lines,) = re.findall(rf"^{section}:\n((?:  .*\n|\n)+)", text, re.MULTILINE)
    for match in map(LINE.fullmatch, lines.splitlines()):
        if match and match[0]:
            yield match[1] or "", match[2] or ""


def main() -> None:
    texts = scripts()
    for path in [*ROOT.glob("train_scripts/*.sh"), *ROOT.glob("generate_scripts/*.sh")]:
        if path.relative_to(ROOT) not in texts:
            path.unlink()
    for path, text in texts.items():
        (ROOT / path).write_text(text, encoding="utf-8")
        (ROOT / path).chmod(0o755)


if __name__ == "__main__":
    main()
