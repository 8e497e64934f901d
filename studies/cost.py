"""What the runs of the studies cost, and what was not run: the first table of `tables.md`."""

from collections import Counter
from collections.abc import Sequence

from page import Record, table

INTRODUCTION = """
## Cost, and what was not run

Runs and hours are counted from `results/`. A run is a training with its test, of one fold where there are folds; the
use of a rule; or a repetition that is timed. *Runs of an arm* counts trainings alone. Hours are those that runs have
recorded, of `lra.py` by the clock. Not in them are vectors and pre-trainings that are computed once for several runs,
most rules, and runs that were given up. They had no GPU but for the runs that the table names.

"""
GPU, CPU = "waits for a GPU", "CPU time"
NOT_RUN = {  # by task, or by question
    "lra": f"the recipes of full size: {GPU}; Text, on which 500 updates had not left chance: {CPU}",
    "amp": f"`--amp` in fp16: {GPU}; recipes of full size: {GPU}",
    "pretrained_articles": f"encoders larger than MiniLM: {CPU}",
    "retrieval": f"encoders larger than MiniLM, and widths beyond 4,096 tokens for sections: {CPU}",
    "ask": f"further seeds without a domain: {CPU}",
    "articles": f"three trainings of a fold for all arms: {CPU}; all layers trained: {GPU}",
    "evidence": f"five seeds for shorter documents: {CPU}; all layers trained, encoders larger than MiniLM: {GPU}",
    "papers": f"the differences that are named below: {CPU}; all layers trained: {GPU}",
    "roles": f"five seeds for the arms that have fewer: {CPU}; all layers trained, encoders larger than MiniLM: {GPU}",
    "continued_pretraining": f"a pre-training that learns its task, and further seeds of it: {GPU}",
    "summaries": f"`--size full`, and decoders with pre-trained weights: {GPU}",
    "labels": f"encoders larger than MiniLM: {CPU}",
    "convergence": f"`--size full`: {GPU}",
    "copied_words": f"`--size full`: {GPU}; further seeds: {CPU}",
    "shift": f"`--size full`: {GPU}; further seeds: {CPU}",
    "far_answers": f"`--size full`: {GPU}; further seeds: {CPU}",
    "pretrained_length": f"times and memory there: {GPU}",
    "ablation": f"CUDA graphs and row-wise attention: {GPU}",
}
# What makes runs of the JSON files and of the tables those of one arm.
ARM = ("train", "arm", "model", "start", "recipe", "precision", "contender", "setting", "system")


def cost(records: Sequence[Record]) -> str:
    """A row for each question, or for each task of one."""
    runs_of: dict[tuple[str, str], list[Record]] = {}
    for record in records:
        key = record["question"], record.get("task", "")
        runs_of.setdefault(key, []).extend(runs_in(record))
    rows = [
        [f"`{script}.py`", task, len(runs), arms_of(runs), hours(runs), NOT_RUN[task if task in NOT_RUN else script]]
        for (script, task), runs in sorted(runs_of.items())
    ]
    rows.append(["together", "", sum(map(len, runs_of.values())), "", hours(sum(runs_of.values(), [])), ""])
    columns = ["script", "task", "runs", "runs of an arm", "CPU hours", "not run, and what it waits for"]
    return INTRODUCTION + table(columns, rows)


def runs_in(record: Record) -> list[Record]:
    """The runs; of a table with a row for each document the systems, with the seeds of those that are trained."""
    if "runs" in record:
        return list(record["runs"])
    keys = {(row["system"], row["seed"]) for row in record["rows"] if row["document"] and row["seed"] != "valid"}
    return [{"system": system, "train": "head" if seed.isdigit() else "rules"} for system, seed in keys]


def arms_of(runs: Sequence[Record]) -> str:
    """The runs of a trained arm; where arms have different numbers, how many arms have each."""
    arms = Counter(tuple(run.get(name) for name in ARM) for run in runs if run.get("train") != "rules")
    arms_with = Counter(arms.values())
    if len(arms_with) < 2:
        return "".join(map(str, arms_with))
    return ", ".join(f"{runs} ({count} arm{'s' * (count > 1)})" for runs, count in sorted(arms_with.items())[::-1])


def hours(runs: Sequence[Record]) -> str:
    """Hours of the CPU, or by the clock where the runs have minutes, and how many runs had a GPU."""
    on_cpu = [run for run in runs if run.get("device", "CPU").startswith("CPU")]
    seconds = [run.get("cpu_seconds", 60 * run.get("minutes", 0)) for run in on_cpu]
    text = f"{sum(seconds) / 3600:.2f}" if any(seconds) else "not recorded"
    return text + f", and {len(runs) - len(on_cpu)} runs on a GPU" * (len(on_cpu) < len(runs))
