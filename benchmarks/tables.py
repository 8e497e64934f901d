"""Tables for the page of benchmarks, each made from one record."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from captions import LABELS

Record = dict[str, Any]


def settings(record: dict[str, Any]) -> str:
    """Device, threads and torch version of a result."""
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}"
    return f"{record['device']}, {threads}, torch {record['versions']['torch']}"


def hierarchy(record: Record) -> str:
    """One recipe's comparison."""
    seeds = sorted({run["seed"] for run in record["runs"]})
    kinds = list(dict.fromkeys(run["kind"] for run in record["runs"]))
    lines = [
        f"\n### {record['recipe']}\n",
        f"`{record['command']}`: seeds {', '.join(map(str, seeds))}; {settings(record)}.\n",
        f"| metric | HAT | {kinds[1]} | difference | seed by seed |",
        "|---|---|---|---|---|",
    ]
    for metric, figures in record["summary"].items():
        by_seed = [
            value[kinds[0]] - value[kinds[1]]
            for seed in seeds
            for value in [{run["kind"]: run["scores"][metric] for run in record["runs"] if run["seed"] == seed}]
        ]
        cells = [f"{figures[f'{kind}_mean']:.2f} ± {figures[f'{kind}_sd']:.2f}" for kind in kinds]
        cells.append(f"{figures['difference_mean']:+.2f} ± {figures['difference_sd']:.2f}")
        lines.append(f"| {metric} | {' | '.join(cells)} | {', '.join(f'{value:+.2f}' for value in by_seed)} |")
    return "\n".join(lines) + "\n"


def classification(record: Record) -> str:
    """One dataset's comparison."""
    seeds = sorted({run["seed"] for run in record["runs"] if run["seed"]})
    documents = " / ".join(str(number) for number in record["documents"].values())
    lines = [
        f"\n`{record['command']}`: seeds {', '.join(map(str, seeds))}; {documents} documents (train / valid / test); "
        f"{settings(record)}.\n",
        "| system | accuracy | interval | macro F1 | accuracy seed by seed |",
        "|---|---|---|---|---|",
    ]
    for system, row in record["summary"].items():
        runs = [run["scores"]["accuracy"] for run in record["runs"] if run["system"] == system]
        cells = [f"`{system}`" if "_" in system else system, f"{row['accuracy_mean']:.1f} ± {row['accuracy_sd']:.1f}"]
        cells.append(f"[{row['low_mean']:.1f}, {row['high_mean']:.1f}]")
        cells.append(f"{row['macro F1_mean']:.1f} ± {row['macro F1_sd']:.1f}")
        cells.append(", ".join(f"{value:.1f}" for value in runs))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def load(record: Record) -> str:
    """A row for each command."""
    told = ", ".join(f"{key} {value:,}" for key, value in record["settings"].items())
    lines = [
        f"\n`{record['command']}`: {told}; {settings(record)}.\n",
        "| command | documents or updates | seconds | peak memory, MB | growth over half of them, MB |",
        "|---|---|---|---|---|",
    ]
    for row in record["runs"]:
        lines.append(f"| {row['run']} | {row['amount']} | {row['seconds']} | {row['peak_mb']} | {row['growth_mb']} |")
    return "\n".join(lines) + "\n"


def whole_meetings(record: Record) -> str:
    """The recipes side by side."""
    seeds = sorted({run["seed"] for run in record["runs"]})
    lines = [
        f"\n`{record['command']}`: seeds {', '.join(map(str, seeds))}; {settings(record)}.\n",
        f"| figure | {' | '.join(f'`{recipe}`' for recipe in record['recipes'])} | seed by seed |",
        f"|---|{'---|' * (len(record['recipes']) + 1)}",
    ]
    for name, figures in record["summary"].items():
        cells = [f"{figures[f'{recipe}_mean']:.2f} ± {figures[f'{recipe}_sd']:.2f}" for recipe in record["recipes"]]
        by_recipe = [
            ", ".join(f"{run['scores'][name]:.2f}" for run in record["runs"] if run["kind"] == recipe)
            for recipe in record["recipes"]
        ]
        lines.append(f"| {name} | {' | '.join(cells)} | {'; '.join(by_recipe)} |")
    return "\n".join(lines) + "\n"


def plan(record: Record) -> str:
    """Estimates of memory beside measured peaks."""
    lines = [
        f"\n`{record['command']}`: {settings(record)}.\n",
        "| recipe | parameters | estimate, GB | measured, GB | difference |",
        "|" + "---|" * 5,
    ]
    for run in record["runs"]:
        sizes = [f"{run['parameters'] / 1e6:.1f}M", f"{run['estimated'] / 1e9:.2f}", f"{run['measured'] / 1e9:.2f}"]
        lines.append(
            f"| {run['case']} | {' | '.join(sizes)} | {100 * (run['estimated'] / run['measured'] - 1):+.1f} % |"
        )
    return "\n".join(lines) + "\n"


def needle(record: Record) -> str:
    """Accuracy of each model for each bin of distances, the mean and seed by seed."""
    seeds = sorted({run["seed"] for run in record["runs"]})
    minutes = sum(run["cpu_seconds"] for run in record["runs"]) / 60
    told = ", ".join(f"{key} {value:g}" for key, value in record["settings"].items())
    by_model = {name: [run for run in record["runs"] if run["model"] == name] for name in record["summary"]}
    lines = [
        f"\n`{record['command']}`: seeds {', '.join(map(str, seeds))}; {told}; "
        f"1 thread, torch {record['versions']['torch']}; {minutes:.0f} minutes of CPU time.\n",
        f"Accuracy in percent: mean (seed by seed). A guess: {record['chance']:g}.\n",
        f"| distance | questions | {' | '.join(LABELS['needle'][name] for name in by_model)} |",
        "|" + "---|" * (len(by_model) + 2),
    ]
    for index, (before, most) in enumerate(zip([0, *record["bins"]], record["bins"], strict=False)):
        cells = [f"{before + 1} to {most}", f"{record['runs'][0]['questions'][index]}"]
        for name, runs in by_model.items():
            by_seed = ", ".join(f"{run['accuracy'][index]:.0f}" for run in runs)
            cells.append(f"{record['summary'][name][index]['mean']:.1f} ({by_seed})")
        lines.append(f"| {' | '.join(cells)} |")
    parameters = [f"{runs[0]['parameters']:,}" for runs in by_model.values()]
    reach = [str(record["reach"].get(name, "any")) for name in by_model]
    lines.append(f"| longest possible | | {' | '.join(reach)} |")
    lines.append(f"| parameters | | {' | '.join(parameters)} |")
    devices = [", ".join(sorted({run["device"] for run in runs})) for runs in by_model.values()]
    lines.append(f"| device | | {' | '.join(devices)} |")
    return "\n".join(lines) + "\n"


def needle_look(record: Record) -> str:
    """What points to the evidence, seed by seed."""
    told = ", ".join(f"{key} {value}" for key, value in record["settings"].items())
    lines = [
        f"\n`{record['command']}`: {told}; {settings(record)}.\n",
        "| seed | questions | occlusion names the needle first | attention to the needle | in layer |",
        "|" + "---|" * 5,
    ]
    for run in record["runs"]:
        named, weight = f"{run['occlusion']} %", f"{run['attention']}"
        lines.append(f"| {run['seed']} | {run['questions']} | {named} | {weight} | {run['layer']} |")
    return "\n".join(lines) + "\n"


def lra(record: Record) -> str:
    """Accuracy of baselines, and of each model from scratch and after self-pretraining, the mean and seed by seed."""
    told = ", ".join(f"{key} {value}" for key, value in record["settings"].items())
    starts = list(dict.fromkeys(run["start"] for run in record["runs"]))
    lines = [
        f"\n### {record['recipe']}\n\n`{record['command']}`: {told}; {settings(record)}.\n",
        "Accuracy in percent on the test part of the reduced task: mean (seed by seed).\n",
        f"| model | {' | '.join(starts)} |",
        "|" + "---|" * (len(starts) + 1),
    ]
    for name, value in record.get("baselines", {}).items():
        lines.append(f"| baseline: {name} |" + f" {value:.2f} |" * len(starts))
    most = max(len(cell["seeds"]) for cell in record["summary"].values())
    for model in dict.fromkeys(run["model"] for run in record["runs"]):
        cells = []
        for start in starts:
            found = record["summary"].get(f"{model}, {start}")
            by_seed = ", ".join(f"{value:.1f}" for value in found["seeds"]) if found else ""
            if found and len(found["seeds"]) < most:
                by_seed += f"; {len(found['seeds'])} of {most} seeds"
            cells.append(f"{found['mean']:.1f} ({by_seed})" if found else "not run")
        lines.append(f"| {model} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def interleaved(record: Record, labels: dict[str, str]) -> str:
    """One machine's comparison in the format of `harness.py`."""
    names = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "torch")
    lines = [f"\n`{record['command']}`: {record['dtype']}, {settings(record)}, {names}; {common(record)}.\n"]
    processes = {(process["setting"], process["contender"]): process for process in record["processes"]}
    columns = columns_of(record)
    lines += [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    for setting in record["settings"]:
        for name, row in record["summary"][setting["name"]].items():
            label = labels.get(name, name).format(**setting)
            cells = {"setting": setting["name"], "contender": label, **figures(row, processes[setting["name"], name])}
            runs = [run for run in record["runs"] if (run["setting"], run["contender"]) == (setting["name"], name)]
            cells |= rates(runs)
            lines.append("| " + " | ".join(cells.get(column, "").replace("|", "\\|") for column in columns) + " |")
    return "\n".join([*lines, *verified(record), *largest_batches(record, labels)]) + "\n"


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
