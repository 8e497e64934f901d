"""Training small models from scratch on drawn documents, and a figure of their accuracy, for the experiments."""

import json
import logging
import statistics
import time
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from harness import RESULTS, device, flags, write_result
from render import labelled
from torch import Tensor, nn

from hat_fairseq.register import register

register()  # registers the architectures
WARM_UP = 50  # updates
DOCS = Path(__file__).resolve().parents[1] / "docs"


def experiment(
    question: str,
    models: Sequence[str],
    updates: int,
    settings: dict[str, float],
    trained: Callable[[str, int, int], nn.Module],
    evaluate: Callable[[nn.Module], dict[str, Any]],
    draw: Callable[[dict[str, Any], Any], None],
    **content: Any,
) -> None:
    """Train and evaluate each model with each seed, write the result after each run, and draw the figure.

    Runs of an earlier result with the same settings are kept.

    Args:
        updates: of a training, if the command line has no `--updates`.
        trained: takes a model's name, a number of updates and a seed.
        evaluate: returns `accuracy` in percent of each kind of question, and `questions`, their numbers.
        draw: draws a result on the axis of a figure.
        content: further entries of the result.
    """
    parser = flags(RESULTS / f"{question}.json")
    parser.add_argument("--models", nargs="+", choices=models, default=list(models))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--updates", type=int, default=updates)
    args = parser.parse_args()
    torch.set_num_threads(1)
    settings = {"updates": args.updates, **settings}
    rows = []
    if args.out.is_file() and (record := json.loads(args.out.read_text(encoding="utf-8")))["settings"] == settings:
        rows = [{"device": record["device"], **run} for run in record["runs"]]
    done = {(row["model"], row["seed"]) for row in rows}
    for seed, name in ((seed, name) for seed in args.seeds for name in args.models if (name, seed) not in done):
        start = time.process_time()
        model = trained(name, args.updates, seed)
        row = {"model": name, "seed": seed, **evaluate(model.eval())}
        row["cpu_seconds"] = round(time.process_time() - start, 1)
        row["parameters"] = sum(parameter.numel() for parameter in model.parameters())
        row["device"] = device()
        print(json.dumps(row), flush=True)
        rows.append(row)
        rows.sort(key=lambda row: (row["seed"], list(models).index(row["model"])))
        write_result(args.out, settings=settings, **content, runs=rows, summary=summary(rows))
    save_figure(args.out, draw)


def build(arch: str, seed: int, sizes: Mapping[str, int], dictionary: Any, **flags: Any) -> Any:
    """A model of `arch` without dropout; `sizes` are those of encoder and decoder."""
    torch.manual_seed(seed)
    both = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in sizes.items()}
    args = Namespace(arch=arch, dropout=0.0, attention_dropout=0.0, **both, **flags)
    ARCH_CONFIG_REGISTRY[arch](args)
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return ARCH_MODEL_REGISTRY[arch].build_model(args, task)


def optimise(
    model: nn.Module,
    optimizer: torch.optim.Adam,
    updates: int,
    loss_of: Callable[[int], Tensor],
    warm_up: int = WARM_UP,
) -> None:
    """Updates with a linear warm-up and decay of the optimizer's learning rate; `loss_of` takes their number from 0."""
    for update in range(updates):
        share = min(1, (update + 1) / warm_up) * max(0.05, 1 - update / updates)
        optimizer.param_groups[0]["lr"] = share * optimizer.defaults["lr"]
        optimizer.zero_grad()
        loss_of(update).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, float]]]:
    """For each model and kind of question: mean, least and most of the seeds' accuracies."""
    result = {}
    for name in dict.fromkeys(run["model"] for run in runs):
        columns = zip(*(run["accuracy"] for run in runs if run["model"] == name), strict=True)
        result[name] = [
            {"mean": round(statistics.mean(column), 1), "least": min(column), "most": max(column)} for column in columns
        ]
    return result


def draw_seeds(record: dict[str, Any], axis: Any, columns: Sequence[Any], xlabel: str) -> None:
    """Accuracy of each model over the columns: a point for each seed, a line through the means."""
    for name, row in record["summary"].items():
        label = labelled(record["question"], name).replace("`", "")
        color = axis.plot(columns, [value["mean"] for value in row], label=label)[0].get_color()
        for run in (run for run in record["runs"] if run["model"] == name):
            axis.plot(columns, run["accuracy"], marker="o", linestyle="", markersize=4, color=color)
    axis.set(xlabel=xlabel, xticks=columns)


def save_figure(result: Path, draw: Callable[[dict[str, Any], Any], None]) -> None:
    """What `draw` draws of a result, accuracies with the line of a guess; in docs for a recorded result."""
    import matplotlib

    record = json.loads(result.read_text(encoding="utf-8"))
    path = DOCS / f"{result.stem}.svg" if result.parent == RESULTS else result.with_suffix(".svg")

    logging.getLogger("matplotlib").setLevel(logging.WARNING)  # fairseq has made everything talk
    matplotlib.use("agg")
    matplotlib.rcParams |= {"svg.hashsalt": path.stem, "svg.fonttype": "none"}  # the same bytes each time, text as text
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(8, 5), layout="constrained")
    draw(record, axis)
    if "chance" in record:
        axis.axhline(record["chance"], color="grey", linestyle="--", label="guess")
        axis.set(ylabel="accuracy, %", ylim=(0, 103))
    axis.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    figure.savefig(path, metadata={"Date": None})
