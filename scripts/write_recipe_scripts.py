#!/usr/bin/env python3
"""Write `train_scripts/` and `generate_scripts/`: the papers' experiments as commands that one can read and run.

    python scripts/write_recipe_scripts.py

Each script is what `hat recipe` runs, spelled out with all flags, and says what it needs. The flags are those of
`configs/`; after a change there run this again. A test compares.
"""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.recipes import files, update
from hat_fairseq.recipes.command import PYTHON, build_commands, render

ROOT = Path(__file__).resolve().parents[1]
PAPERS = {
    "Rohde et al. 2021": "pubmed arxiv cnn_dm xsum samsum ami icsi wmt20_en_de wmt20_en_cs ted17_zh_en "
    "roberta_pretraining mnli race squad2",
    "Chalkidis et al. 2022": "hierarchical_transformer_pretraining",
    "Zhang et al. 2021": "natural_questions natural_questions_base tydi_qa poolingformer_arxiv_4k "
    "poolingformer_arxiv_16k",
    "Liu et al. 2022": "ernie_sparse_pretraining ernie_sparse_imdb ernie_sparse_hyperpartisan "
    "ernie_sparse_arxiv_categories ernie_sparse_wikihop ernie_sparse_triviaqa lra_listops lra_listops_pretraining "
    "lra_text lra_text_pretraining lra_retrieval lra_retrieval_pretraining lra_image lra_image_pretraining "
    "lra_pathfinder lra_pathfinder_pretraining",
}
NAMES = [name for names in PAPERS.values() for name in names.split()]
HOURS = re.compile(r"^\| `(\w+)` \| (\d+ [AV]100) \| ([\d.]+) \| ([\d.]+) \|$", re.MULTILINE)  # of docs/recipes.md
PACKAGED = ("ami", "icsi")  # corpora that the package contains, so that they need no --root
HEAD = "#!/usr/bin/env bash\n"
WIDTH = 118


def scripts() -> dict[Path, str]:
    """Returns the text of each script by its path in the repository."""
    texts = {}
    for name in NAMES:
        recipe = files.load(files.find(name))
        texts[Path(f"train_scripts/{name}.sh")] = train_script(name)
        for verb in ("generate", "predict"):
            if recipe[verb]:
                texts[Path(f"generate_scripts/{name}.sh")] = generate_script(name, verb)
    return texts


def train_script(name: str) -> str:
    """Returns the training of a recipe as a call of fairseq-train."""
    (command,) = build_commands("train", name)
    data, *flags = command[len(PYTHON) + 2 :]
    lines = render(["fairseq-train", data, "--user-dir", "USER_DIR", *flags, "LAST"])
    lines = lines.replace("--user-dir USER_DIR", '--user-dir "$(hat user-dir)"').replace(" LAST", ' \\\n    "$@"')
    return (
        HEAD
        + "".join(f"# {line}".rstrip() + "\n" for line in needs(name, command))
        + "set -euo pipefail\n"
        + lines
        + "\n"
    )


def needs(name: str, command: list[str]) -> Iterator[str]:
    """Yields what a training is, and what it needs."""
    recipe = files.load(files.find(name))
    yield from wrapped(files.comment(files.find(name)))
    yield ""
    yield from data(name, recipe["preprocess"]["reader"])
    yield f"weights:  {start(recipe['train'].get('finetune-from-model'))}"
    gpus = command[command.index("--distributed-world-size") + 1]
    yield from labelled("GPUs:", f"{gpus}. For the same update on N GPUs: hat recipe train {name} --gpus N [FLAGS]")
    yield f"update:   {update.describe(command)}"
    yield f"hours:    {hours(name)}"
    yield f"memory:   hat plan {name} --gpu-memory 24G says what fits"


def data(name: str, reader: str) -> Iterator[str]:
    """Yields what the data are, and the command that preprocesses them."""
    path = ROOT / f"preprocess/{reader}.py"
    if path.exists():
        about = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]
        where = "The package has it." if reader in PACKAGED else f"DIR has the release (files: preprocess/{reader}.py)."
    else:
        about, where = "documents of your own,", f"train.jsonl and valid.jsonl in {reader.format(recipe=name)}."
    yield from labelled("data:", f"{about} {where} Once:")
    needs_root = path.exists() and reader not in PACKAGED
    (command,) = build_commands("preprocess", name, ["--root", "DIR"] * needs_root)
    lines = wrapped(shlex.join(["hat", *command[len(PYTHON) + 1 :]]), WIDTH - 14)
    yield from (f"            {line}{' ' + chr(92) if line != lines[-1] else ''}" for line in lines)


def start(weights: str | None) -> str:
    """Returns which weights a training starts from, and where they come from."""
    if weights is None:
        return "random"
    made = re.fullmatch(r"checkpoints/(\w+)/checkpoint_best.pt", weights)
    return f"{weights}, of {f'train_scripts/{made[1]}.sh' if made else 'docs/recipes.md#all-recipes'}"


def hours(name: str) -> str:
    """Returns how long the paper's authors trained, as far as the paper says it."""
    stated = {row[0]: row[1:] for row in HOURS.findall((ROOT / "docs/recipes.md").read_text(encoding="utf-8"))}
    if name not in stated:
        return "not in the paper, and not measured here"
    gpus, hierarchy, plain = stated[name]
    return f"in the paper {hierarchy} on {gpus}, and {plain} without hierarchy (--no-hierarchy)"


def labelled(label: str, text: str) -> Iterator[str]:
    """Yields the lines of a text behind a label."""
    for number, line in enumerate(wrapped(text, WIDTH - 10)):
        yield f"{'' if number else label:10}{line}"


def generate_script(name: str, verb: str) -> str:
    """Returns the generation or prediction of a recipe, and its score."""
    lines = [render(["hat", *command[len(PYTHON) + 1 :]]) for command in build_commands(verb, name)]
    text = "".join(f"# {line}\n" for line in wrapped(files.comment(files.find(name))))
    return (
        HEAD
        + text
        + f"# It needs the data and the checkpoint of train_scripts/{name}.sh.\n"
        + f"# Another split or model: hat recipe {verb} {name} [FLAGS].\nset -euo pipefail\n"
        + ("\n".join(lines) + "\n")
    )


def wrapped(text: str, width: int = WIDTH) -> list[str]:
    """Returns the lines of a comment."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


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
