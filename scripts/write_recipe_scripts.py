#!/usr/bin/env python3
"""Write `train_scripts/` and `generate_scripts/`: the papers' experiments as commands that one can read and run.

    python scripts/write_recipe_scripts.py

Each script is what `hat recipe` runs, spelled out with all flags, and says what it needs. The flags are those of
`configs/`; after a change there run this again. A test compares.
"""

import re
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
HOURS = re.compile(r"^\| `(\w+)` \|.*\| (\d[^|]+) \|$", re.MULTILINE)  # of docs/recipes.md: on which GPUs, how long
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
    yield f"data:     {command[len(PYTHON) + 2]}, of hat recipe preprocess {name} --root DIR (docs/datasets.md)"
    start = recipe["train"].get("finetune-from-model")
    yield f"weights:  {start or 'random'}{' (docs/recipes.md says where from)' if start else ''}"
    hours = dict(HOURS.findall((ROOT / "docs/recipes.md").read_text(encoding="utf-8")))
    if name in hours:
        yield f"hours:    in the paper {hours[name]}; in brackets its baseline"
    gpus = command[command.index("--distributed-world-size") + 1]
    yield f"update:   {update.describe(command)}, on {gpus} GPU{'s' * (gpus != '1')}; on other numbers, and with flags"
    yield f"          that replace these: hat recipe train {name} --gpus N [FLAGS]"


def generate_script(name: str, verb: str) -> str:
    """Returns the generation or prediction of a recipe, and its score."""
    lines = [render(["hat", *command[len(PYTHON) + 1 :]]) for command in build_commands(verb, name)]
    text = "".join(f"# {line}\n" for line in wrapped(files.comment(files.find(name))))
    return (
        HEAD
        + text
        + f"# Another split or model: hat recipe {verb} {name} [FLAGS].\nset -euo pipefail\n"
        + ("\n".join(lines) + "\n")
    )


def wrapped(text: str) -> list[str]:
    """Returns the lines of a comment."""
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) >= WIDTH:
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
