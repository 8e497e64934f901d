#!/usr/bin/env python3
"""Does the hierarchy help? A recipe's HAT beside its baseline without hierarchy (`--no-hierarchy`).

    python benchmarks/hierarchy.py ami_small --seeds 1 2 3
    python benchmarks/hierarchy.py ami_small --against "--decoder-kv-heads 1"    another variant of HAT in its place

Both have the same data, settings and number of updates. Figures are means ± standard deviations over seeds; the
difference is computed seed by seed. A difference smaller than several standard deviations is not evidence.

Preprocess the recipe first. Runs go to `bench-runs/RECIPE/KIND-SEED` in the current directory. Finished runs are kept,
so an interrupted benchmark resumes. Nothing is timed, so several may run at once.
"""

from collections.abc import Sequence
from typing import Any

from harness import RESULTS, flags, mean_and_deviation, write_result
from recipe_runs import RUNS, finished_run, preprocessed, score

from hat_fairseq.recipes import files


def main() -> None:
    parser = flags()
    parser.add_argument("recipe", choices=files.names())
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--against", metavar="FLAGS", help="flags of training that make the other kind")
    args = parser.parse_args()
    kinds, out = {"hat": [], "plain": ["--no-hierarchy"]}, f"hierarchy_{args.recipe}"
    if args.against:
        other = "-".join(args.against.replace("-", " ").split())
        kinds, out = {"hat": [], other: args.against.split()}, f"{out}_{other}"
    cells = [(kind, seed) for seed in args.seeds for kind in kinds]
    texts = [finished_run(args.recipe, kind, seed, kinds[kind]) / "test.jsonl" for kind, seed in cells]
    references = preprocessed(args.recipe) / "text/test.jsonl"
    scores = score(args.recipe, references, texts, RUNS / args.recipe / "scores.json")
    rows = [{"kind": kind, "seed": seed, "scores": each} for (kind, seed), each in zip(cells, scores, strict=True)]
    path = args.out or RESULTS / f"{out}.json"
    write_result(path, recipe=args.recipe, runs=rows, summary=summary(rows))


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """For each metric: mean and standard deviation over seeds of both kinds, and of their difference seed by seed."""
    result: dict[str, dict[str, float]] = {}
    for metric in rows[0]["scores"]:
        by_kind: dict[str, list[float]] = {}
        for row in rows:
            by_kind.setdefault(row["kind"], []).append(row["scores"][metric])
        by_kind["difference"] = [hat - other for hat, other in zip(*by_kind.values(), strict=True)]
        result[metric] = {}
        for kind, values in by_kind.items():
            result[metric] |= mean_and_deviation(kind, values)
    return result


if __name__ == "__main__":
    main()
