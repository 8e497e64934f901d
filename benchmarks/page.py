"""What the pages of results have in common: that of the benchmarks (`render.py`), and that of the studies
(`studies/render_studies.py`).
"""

import ast
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Record = dict[str, Any]
Tables = Mapping[str, Callable[[Record], str]]  # by question: what makes the tables of a result
INTERLEAVED = """
In the questions below, the contenders run in turns, each in its own process. Seconds are the median [least, most] over
the rounds; *times* is the median [least, most] of the ratio, within a round, to the contender whose times are 1.00
(more than 1: slower); peak memory is that of the process, weights included.
"""
COLUMNS = ["setting", "contender", "parameters without tables", "parameters", "seconds", "times", "tokens/s"]
COLUMNS += ["documents/s", "MB/s", "CPU seconds", "peak memory, GB", "above the weights, GB"]


def records_of(folder: Path) -> list[Record]:
    """The results in JSON files."""
    return [json.loads(path.read_text("utf-8")) for path in sorted((folder / "results").glob("*.json"))]


def sections(folder: Path, records: Sequence[Record], tables: Tables) -> str:
    """The questions that have a result, each with all its results."""
    return "".join(section(folder, records, question, make) for question, make in tables.items())


def section(folder: Path, records: Sequence[Record], question: str, make: Callable[[Record], str]) -> str:
    """One question; empty if there is no result."""
    answers = [record for record in records if record["question"] == question]
    if not answers:
        return ""
    heading, introduction = caption(folder / f"{question}.py")
    return f"\n## {heading}\n\n{introduction}\n" + "".join(map(make, answers))


def caption(script: Path) -> tuple[str, str]:
    """Heading and introduction of a question: the docstring of its script, without the lines that show commands."""
    heading, mark, rest = (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("?")
    paragraphs = [part.strip() for part in rest.split("\n\n") if part and not part.startswith("    ")]
    return heading + mark, "\n\n".join(paragraphs)


def begin(record: Record, *facts: str) -> str:
    """The command of a result, and what is said of it."""
    return f"\n`{record['command']}`: {'; '.join(facts)}.\n\n"


def machine(record: Record) -> str:
    threads = f"{record['threads']} thread{'s' * (record['threads'] > 1)}"
    return f"{record['device']}, {threads}, torch {record['versions']['torch']}"


def stated(record: Record, form: str = "") -> str:
    """The entries of the settings, each with its name."""
    return ", ".join(f"{name} {value:{form}}" for name, value in record["settings"].items())


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)]) + "\n"


def escaped(text: str) -> str:
    return text.replace("|", "\\|")


def interleaved(record: Record, labels: Mapping[str, str]) -> str:
    """One machine's comparison in the format of `harness.py`."""
    names = ", ".join(f"{name} {version}" for name, version in record["versions"].items() if name != "torch")
    processes = {(process["setting"], process["contender"]): process for process in record["processes"]}
    rows = []
    for setting in record["settings"]:
        for name, row in record["summary"][setting["name"]].items():
            key = setting["name"], name
            cells = {"setting": setting["name"], "contender": label(name, setting, labels)}
            cells |= figures(row, processes[key])
            cells |= rates([run for run in record["runs"] if (run["setting"], run["contender"]) == key])
            rows.append(cells)
    columns = list(dict.fromkeys(column for column in COLUMNS if any(column in cells for cells in rows)))
    cells_of = ([cells.get(column, "").replace("|", "\\|") for column in columns] for cells in rows)
    text = begin(record, f"{record['dtype']}, {machine(record)}, {names}", common(record)) + table(columns, cells_of)
    return text + "".join(f"{line}\n" for line in [*verified(record), *largest_batches(record, labels)])


def label(contender: str, setting: Record, labels: Mapping[str, str]) -> str:
    """What a row calls a contender; `NAME, amp` is `NAME` with autocast."""
    plain = contender.removesuffix(", amp")
    text = labels.get(contender) or labels.get(plain, plain) + ", autocast to bf16" * (plain != contender)
    return text.format(**setting)


def largest_batches(record: Record, labels: Mapping[str, str], memory: float = 16e9) -> list[str]:
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
            fits.setdefault(length, []).append(f"{label(name, record['settings'][0], labels)}: {number}")
    return [f"\nDocuments of {n:,} tokens in {memory / 1e9:.0f} GB: {'; '.join(told)}." for n, told in fits.items()]


def common(record: Record) -> str:
    """The entries common to all settings."""
    first, *others = record["settings"]
    shared = [key for key, value in first.items() if all(other.get(key) == value for other in others)]
    return ", ".join(f"{key} {first[key]}" for key in shared if key not in ("name", "contenders"))


def figures(row: dict[str, float], process: Record) -> dict[str, str]:
    """Cells of a contender in a setting."""
    cells = {"seconds": f"{row['median']:.2f} [{row['least']:.2f}, {row['most']:.2f}]"}
    if "times_median" in row:
        cells["times"] = "{times_median:.2f} [{times_least:.2f}, {times_most:.2f}]".format(**row)
    cells["CPU seconds"] = f"{row['cpu_median']:.2f}"
    if process["peak_bytes"] is not None:
        cells["peak memory, GB"] = f"{process['peak_bytes'] / 1e9:.2f}"
    if "bytes_above_weights" in process:
        cells["above the weights, GB"] = f"{process['bytes_above_weights'] / 1e9:.2f}"
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


def pyplot_of(salt: str) -> Any:
    """matplotlib's pyplot, which draws the same bytes each time."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": salt, "svg.fonttype": "none"}
    from matplotlib import pyplot

    return pyplot
