#!/usr/bin/env python3
"""What does reduced precision bring? Beam search of HAT-BART with linear layers in fp32, bf16 and int8, on the CPU.

    python benchmarks/precision.py --threads 2
    python benchmarks/precision.py --settings 2 --set checkpoint=C data=BIN   a trained model of one's own
    python benchmarks/precision.py --settings 2 --set recipe=libreoffice_help_en_de

Speed: the search above, random weights, 2 + 2 layers of 768. Quality: texts for the whole test split of a recipe by a
trained model, scored with `hat score`: the mean of ROUGE-1, 2 and L, or document BLEU. Without `checkpoint` the recipe
is first preprocessed and trained, as in `studies/lra.py`. Every text differs from that of fp32 in some word,
and with so few documents differences of a point in either direction are within the intervals.
"""

import fcntl
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from generation import hat, job, our_search, setting
from harness import Facts, Job, Setting, forget_peak, run
from recipe_runs import RUNS, checkpoint_of, finished_run, flags_of, preprocessed, run_recipe, score

from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference import DocumentToText
from hat_fairseq.inference.loading import load
from hat_fairseq.kernels import cpu_precisions
from hat_fairseq.scoring.bleu import DOCUMENT_BLEU

CONTENDERS = tuple(cpu_precisions())
TRAINED = {"name": "{recipe}, test split", "recipe": "ami_small", "checkpoint": "", "data": "", "batch": 20}
SETTINGS = [setting(3072, 1, new=256, layers=2), setting(512, 4, new=256, layers=2), TRAINED]
OPTIONS = {"--beam": int, "--min-len": int, "--max-len-b": int, "--no-repeat-ngram-size": int, "--lenpen": float}


def build(name: str, chosen: Setting) -> Job:
    return quality_job(name, chosen) if "recipe" in chosen else job(hat(chosen), our_search, chosen, name)


def quality_job(precision: str, chosen: Setting) -> Job:
    """One repetition writes a text for every test document, as `hat generate` does."""
    flags = flags_of("generate", chosen["recipe"])
    checkpoint, data = trained(chosen)
    options = {flag[2:].replace("-", "_"): kind(flags[flag]) for flag, kind in OPTIONS.items() if flag in flags}
    model = DocumentToText(load(str(checkpoint), str(data), "cpu", precision), **options)
    references = data.resolve().parent / "text/test.jsonl"
    documents = list(read_records(references))
    texts: list[dict[str, Any]] = []

    def step() -> Facts:
        texts[:] = model.rows(documents, chosen["batch"])
        return {"documents": len(documents)}

    forget_peak()
    return Job(step, {"documents": len(documents)}, lambda: scores(texts, chosen["recipe"], references))


def trained(chosen: Setting) -> tuple[Path, Path]:
    """The checkpoint and the bin directory of a setting; what is missing is made, by one of the contenders."""
    recipe = chosen["recipe"]
    data = Path(chosen["data"] or preprocessed(recipe) / "bin")
    if chosen["checkpoint"]:
        return Path(chosen["checkpoint"]), data
    folder = RUNS / recipe
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (preprocessed(recipe) / "manifest.json").is_file():
            run_recipe("preprocess", recipe, [], folder / "preprocess.log")
        finished_run(recipe, "hat", 1, [])
    return checkpoint_of(recipe, "hat", 1), data


def scores(texts: list[dict[str, Any]], recipe: str, references: Path) -> Facts:
    """ "quality", all scores by `hat score`, and the texts for `check`."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "texts.jsonl")
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in texts), encoding="utf-8")
        (each,) = score(recipe, references, [path], Path(folder, "scores.json"))
    quality = each.get(DOCUMENT_BLEU, statistics.mean(each.values()))
    return {"quality": quality, "scores": each, "_texts": [row["text"] for row in texts]}


def check(chosen: Setting, ends: dict[str, Facts]) -> list[str]:
    if "recipe" not in chosen:
        return ["one model with the same weights, rounded"]
    told = []
    for name in CONTENDERS[1:]:
        same = sum(a == b for a, b in zip(ends["fp32"]["_texts"], ends[name]["_texts"], strict=True))
        change = ends[name]["quality"] - ends["fp32"]["quality"]
        told.append(f"{name}: {same} of {len(ends[name]['_texts'])} texts are those of fp32, quality {change:+.2f}")
    return told


if __name__ == "__main__":
    run(build, check, contenders=CONTENDERS, settings=SETTINGS, reference="fp32", rounds=3)
