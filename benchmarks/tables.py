"""Tables for the page of benchmarks, each made from one record."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Record = dict[str, Any]


def settings(record: Record) -> str:
    """Device, threads and torch version of a result."""
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}"
    return f"{record['device']}, {threads}, torch {record['versions']['torch']}"


def seeds(record: Record) -> str:
    return f"seeds {', '.join(map(str, sorted({run['seed'] for run in record['runs'] if run['seed']})))}"


def stated(record: Record, between: str = " ") -> str:
    """The entries of the settings, each with its name."""
    return ", ".join(f"{name}{between}{value}" for name, value in record["settings"].items())


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]) + "\n"


def hierarchy(record: Record) -> str:
    """One recipe's comparison."""
    hat, other = dict.fromkeys(run["kind"] for run in record["runs"])
    scores = {(run["kind"], run["seed"]): run["scores"] for run in record["runs"]}
    rows = []
    for metric, figures in record["summary"].items():
        differences = [scores[hat, s][metric] - scores[other, s][metric] for s in sorted({s for _, s in scores})]
        means = [f"{figures[f'{name}_mean']:.2f} ± {figures[f'{name}_sd']:.2f}" for name in (hat, other)]
        difference = f"{figures['difference_mean']:+.2f} ± {figures['difference_sd']:.2f}"
        rows.append([metric, *means, difference, ", ".join(f"{value:+.2f}" for value in differences)])
    begin = f"\n### {record['recipe']}\n\n`{record['command']}`: {seeds(record)}; {settings(record)}.\n\n"
    return begin + table(["metric", "HAT", other, "difference", "seed by seed"], rows)


def classification(record: Record) -> str:
    """One dataset's comparison."""
    rows = []
    for system, row in record["summary"].items():
        accuracies = [run["scores"]["accuracy"] for run in record["runs"] if run["system"] == system]
        means = [f"{row[f'{name}_mean']:.1f} ± {row[f'{name}_sd']:.1f}" for name in ("accuracy", "macro F1")]
        interval = f"[{row['low_mean']:.1f}, {row['high_mean']:.1f}]"
        name = f"`{system}`" if "_" in system else system
        rows.append([name, means[0], interval, means[1], ", ".join(f"{value:.1f}" for value in accuracies)])
    documents = " / ".join(map(str, record["documents"].values()))
    told = f"{seeds(record)}; {documents} documents (train / valid / test); {settings(record)}"
    columns = ["system", "accuracy", "interval", "macro F1", "accuracy seed by seed"]
    return f"\n`{record['command']}`: {told}.\n\n" + table(columns, rows)


def load(record: Record) -> str:
    """A row for each command."""
    names = ("run", "amount", "seconds", "peak_mb", "growth_mb")
    told = ", ".join(f"{key} {value:,}" for key, value in record["settings"].items())
    columns = ["command", "documents or updates", "seconds", "peak memory, MB", "growth over half of them, MB"]
    rows = ([run[name] for name in names] for run in record["runs"])
    return f"\n`{record['command']}`: {told}; {settings(record)}.\n\n" + table(columns, rows)


def whole_meetings(record: Record) -> str:
    """The recipes side by side."""
    recipes, rows = record["recipes"], []
    for name, figures in record["summary"].items():
        by_recipe = [
            ", ".join(f"{run['scores'][name]:.2f}" for run in record["runs"] if run["kind"] == recipe)
            for recipe in recipes
        ]
        means = (f"{figures[f'{recipe}_mean']:.2f} ± {figures[f'{recipe}_sd']:.2f}" for recipe in recipes)
        rows.append([name, *means, "; ".join(by_recipe)])
    columns = ["figure", *(f"`{recipe}`" for recipe in recipes), "seed by seed"]
    return f"\n`{record['command']}`: {seeds(record)}; {settings(record)}.\n\n" + table(columns, rows)


def plan(record: Record) -> str:
    """Estimates of memory beside measured peaks."""
    rows = [
        (
            run["case"],
            f"{run['parameters'] / 1e6:.1f}M",
            f"{run['estimated'] / 1e9:.2f}",
            f"{run['measured'] / 1e9:.2f}",
            f"{100 * (run['estimated'] / run['measured'] - 1):+.1f} %",
        )
        for run in record["runs"]
    ]
    columns = ["recipe", "parameters", "estimate, GB", "measured, GB", "difference"]
    return f"\n`{record['command']}`: {settings(record)}.\n\n" + table(columns, rows)


def needle(record: Record, labels: dict[str, str]) -> str:
    """Accuracy of each model for each bin of distances, the mean and seed by seed."""
    bins = [f"{before + 1} to {most}" for before, most in zip([0, *record["bins"]], record["bins"], strict=False)]
    reach = ["longest possible", "", *(record["reach"].get(name, "any") for name in record["summary"])]
    return accuracies(record, labels, "distance", bins, reach)


def pointers(record: Record, labels: dict[str, str]) -> str:
    """Accuracy of each model for each number of hops, the mean and seed by seed."""
    numbers = [str(index + 1) for index in range(len(record["runs"][0]["accuracy"]))]
    return accuracies(record, labels, "hops", numbers)


def accuracies(record: Record, labels: dict[str, str], first: str, names: Sequence[str], *more: Sequence[Any]) -> str:
    """A row for each entry of the runs' accuracies, a column for each model; `more`: further rows."""
    by_model = {name: [run for run in record["runs"] if run["model"] == name] for name in record["summary"]}
    rows: list[Sequence[Any]] = []
    for index, begin in enumerate(names):
        row = [begin, record["runs"][0]["questions"][index]]
        for name, runs in by_model.items():
            by_seed = ", ".join(f"{run['accuracy'][index]:.0f}" for run in runs)
            row.append(f"{record['summary'][name][index]['mean']:.1f} ({by_seed})")
        rows.append(row)
    rows += more
    rows.append(["parameters", "", *(f"{runs[0]['parameters']:,}" for runs in by_model.values())])
    rows.append(["device", "", *(", ".join(sorted({run["device"] for run in runs})) for runs in by_model.values())])
    told = ", ".join(f"{key} {value:g}" for key, value in record["settings"].items())
    minutes = sum(run["cpu_seconds"] for run in record["runs"]) / 60
    machine = f"1 thread, torch {record['versions']['torch']}; {minutes:.0f} minutes of CPU time"
    begin = f"\n`{record['command']}`: {seeds(record)}; {told}; {machine}.\n\n"
    begin += f"Accuracy in percent: mean (seed by seed). A guess: {record['chance']:g}.\n\n"
    return begin + table([first, "questions", *(labels[name] for name in by_model)], rows)


def needle_look(record: Record) -> str:
    """What points to the evidence, seed by seed."""
    columns = ["seed", "questions", "occlusion names the needle first", "attention to the needle", "in layer"]
    rows = (
        (run["seed"], run["questions"], f"{run['occlusion']} %", run["attention"], run["layer"])
        for run in record["runs"]
    )
    return f"\n`{record['command']}`: {stated(record)}; {settings(record)}.\n\n" + table(columns, rows)


def lra(record: Record) -> str:
    """Accuracy of baselines, and of each model from scratch and after self-pretraining, the mean and seed by seed."""
    starts = list(dict.fromkeys(run["start"] for run in record["runs"]))
    rows = [
        [f"baseline: {name}"] + [f"{value:.2f}"] * len(starts) for name, value in record.get("baselines", {}).items()
    ]
    most = max(len(cell["seeds"]) for cell in record["summary"].values())
    for model in dict.fromkeys(run["model"] for run in record["runs"]):
        cells = []
        for start in starts:
            if (figures := record["summary"].get(f"{model}, {start}")) is None:
                cells.append("not run")
                continue
            by_seed = ", ".join(f"{value:.1f}" for value in figures["seeds"])
            if len(figures["seeds"]) < most:
                by_seed += f"; {len(figures['seeds'])} of {most} seeds"
            cells.append(f"{figures['mean']:.1f} ({by_seed})")
        rows.append([model, *cells])
    begin = f"\n### {record['recipe']}\n\n`{record['command']}`: {stated(record)}; {settings(record)}.\n\n"
    begin += "Accuracy in percent on the test part of the reduced task: mean (seed by seed).\n\n"
    return begin + table(["model", *starts], rows)


def interleaved(record: Record, labels: dict[str, str]) -> str:
    """One machine's comparison in the format of `harness.py`."""
    names = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "torch")
    begin = f"\n`{record['command']}`: {record['dtype']}, {settings(record)}, {names}; {common(record)}.\n\n"
    processes = {(process["setting"], process["contender"]): process for process in record["processes"]}
    columns, rows = columns_of(record), []
    for setting in record["settings"]:
        for name, row in record["summary"][setting["name"]].items():
            label = labels.get(name, name).format(**setting)
            cells = {"setting": setting["name"], "contender": label, **figures(row, processes[setting["name"], name])}
            runs = [run for run in record["runs"] if (run["setting"], run["contender"]) == (setting["name"], name)]
            cells |= rates(runs)
            rows.append([cells.get(column, "").replace("|", "\\|") for column in columns])
    end = [*verified(record), *largest_batches(record, labels)]
    return begin + table(columns, rows) + "".join(f"{line}\n" for line in end)


def largest_batches(record: Record, labels: dict[str, str], memory: float = 16e9) -> list[str]:
    """How many documents fit into `memory`, from the peaks with one and with several of the same length."""
    peaks: dict[tuple[int, str], dict[int, int]] = {}
    for setting in record["settings"]:
        if set(setting.get("shares", [0])) == {1}:
            for process in (p for p in record["processes"] if p["setting"] == setting["name"]):
                by_number = peaks.setdefault((setting["length"], process["contender"]), {})
                by_number[len(setting["shares"])] = process["peak_bytes"]
    fits: dict[int, list[str]] = {}
    for (length, name), by_number in peaks.items():
        if len(by_number) > 1:
            (one, few), (least, most) = sorted(by_number), sorted(by_number.values())
            number = one + int((memory - least) / ((most - least) / (few - one)))
            fits.setdefault(length, []).append(f"{labels.get(name, name)}: {number}".format(**record["settings"][0]))
    return [f"\nDocuments of {n:,} tokens in {memory / 1e9:.0f} GB: {'; '.join(told)}." for n, told in fits.items()]


def common(record: Record) -> str:
    """The entries common to all settings."""
    first, *others = record["settings"]
    shared = [key for key, value in first.items() if all(other.get(key) == value for other in others)]
    return ", ".join(f"{key} {first[key]}" for key in shared if key not in ("name", "contenders"))


def columns_of(record: Record) -> list[str]:
    """The columns of a record's table."""
    process, run = record["processes"][0], record["runs"][0]
    columns = ["setting", "contender"]
    if "parameters" in process:
        columns.append("parameters without tables" if "tables" in process else "parameters")
    columns += ["seconds", "times", *rates([run]), "CPU seconds", "peak memory, GB"]
    return columns


def figures(row: dict[str, float], process: Record) -> dict[str, str]:
    """Cells of a contender in a setting."""
    cells = {"seconds": f"{row['median']:.2f} [{row['least']:.2f}, {row['most']:.2f}]"}
    if "times_median" in row:
        cells["times"] = "{times_median:.2f} [{times_least:.2f}, {times_most:.2f}]".format(**row)
    cells["CPU seconds"] = f"{row['cpu_median']:.2f}"
    if process["peak_bytes"] is not None:
        cells["peak memory, GB"] = f"{process['peak_bytes'] / 1e9:.2f}"
    if "tables" in process:
        cells["parameters without tables"] = f"{(process['parameters'] - process['tables']) / 1e6:.1f}M"
    elif "parameters" in process:
        cells["parameters"] = f"{process['parameters'] / 1e6:.1f}M"
    return cells


def rates(runs: Sequence[Record]) -> dict[str, str]:
    """Work per second, median over the rounds, if repetitions report their work."""
    cells = {}
    for key, unit, size in (("tokens", "tokens/s", 1), ("documents", "documents/s", 1), ("bytes", "MB/s", 1e6)):
        if key in runs[0]:
            value = statistics.median(run[key] / run["seconds"] for run in runs) / size
            cells[unit] = f"{value:,.{0 if value >= 100 else 2}f}"
    return cells


def verified(record: Record) -> list[str]:
    """The sentences of the checks; once, if all settings have the same."""
    sentences = {check["setting"]: "; ".join(check["verified"]) for check in record["checks"]}
    if len(set(sentences.values())) == 1:
        sentences = {"": next(iter(sentences.values()))}
    return [f"\nVerified{f' ({name})' if name else ''}: {text}." for name, text in sentences.items() if text]
