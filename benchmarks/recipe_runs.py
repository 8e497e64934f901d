"""Training, generating and scoring by the commands of a recipe, for the benchmarks of quality."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from hat_fairseq.recipes import command as recipes

RUNS = Path("bench-runs")  # in the current directory


def flags_of(verb: str, recipe: str) -> dict[str, str]:
    """The recipe's flags with one value each."""
    words = recipes.build_commands(verb, recipe)[0]
    return {flag: value for flag, value in zip(words, words[1:], strict=False) if flag.startswith("--")}


def preprocessed(recipe: str) -> Path:
    return Path(flags_of("preprocess", recipe)["--out"])


def run_recipe(verb: str, recipe: str, flags: Sequence[str], log: Path) -> None:
    print(f"{verb} {recipe} {' '.join(flags)} > {log}", flush=True)
    command = [sys.executable, "-m", "hat_fairseq.cli", "recipe", verb, recipe, *flags]
    with log.open("w", encoding="utf-8") as file:
        subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=True)


def checkpoint_of(recipe: str, kind: str, seed: int) -> Path:
    """The checkpoint that the recipe generates with, in the folder of a run."""
    words = recipes.build_commands("generate", recipe)[0]
    return RUNS / recipe / f"{kind}-{seed}" / "checkpoints" / Path(words[words.index("generate") + 1]).name


def finished_run(
    recipe: str, kind: str, seed: int, train_flags: Sequence[str], generate_flags: Sequence[str] = ()
) -> Path:
    """Train and generate, unless that was done before; returns the folder."""
    checkpoint = checkpoint_of(recipe, kind, seed)
    folder = checkpoint.parents[1]
    if not (folder / "test.jsonl").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        seeded = ["--seed", str(seed), "--save-dir", str(checkpoint.parent), *train_flags]
        run_recipe("train", recipe, seeded, folder / "train.log")
        where = ["--model", str(checkpoint), "--out", str(folder / "test.jsonl"), *generate_flags]
        run_recipe("generate", recipe, where, folder / "generate.log")
    return folder


def score(recipe: str, references: Path, texts: Sequence[Path], out: Path) -> list[dict[str, float]]:
    """Mean scores of files of texts for the test part, by `hat score` with the recipe's metric.

    s-BLEU is left out: it is of other documents for each system, those whose number of segments is right.
    """
    words = recipes.build_commands("generate", recipe)[1]
    metric = words[words.index("score") + 1]
    command = [sys.executable, "-m", "hat_fairseq.cli", "score", metric, *texts, "--out", out, "--overwrite"]
    command += ["--references", references]
    subprocess.run(list(map(str, command)), check=True)
    record = json.loads(out.read_text(encoding="utf-8"))
    reports = [record.get("systems", record)[str(path)]["scores"] for path in texts]
    return [
        {name: figure.get("score", figure.get("mean")) for name, figure in report.items() if name != "s-BLEU"}
        for report in reports
    ]
