#!/usr/bin/env python3
"""Why is the attention of the demo's model to sentences uniform?

    hat recipe preprocess ami_small
    hat recipe train ami_small --save-dir checkpoints/default --save-interval-updates 60
    hat recipe train ami_small --save-dir checkpoints/prenorm --save-interval-updates 60 \\
        --encoder-normalize-before --decoder-normalize-before
    ...
    python benchmarks/sentence_attention.py checkpoints/default checkpoints/prenorm ...

Trainings of the demo, each measured in four of its checkpoints: as the recipe says (`default`), with pre-norm layers
(`prenorm`), with a learning rate of 4e-4, a third of the recipe's (`lowlr`), and without dropout (`nodrop`). The
figures are means over the first four validation meetings, with their reference summaries. *Similarity* is the mean
cosine of the states of two sentences of a meeting, before and after the hierarchical encoder. *Used* is the share of
the sentences, or of the tokens, that the decoder's attention uses: exp(-KL) from uniform weights, mean of layers and
heads; 1 is uniform. *Gradient* is the root mean square of the gradients of the decoder's query and key maps to
sentences, by that of those to tokens, over some 50 updates. *Loss* is the negative log-likelihood of a token in the
last validation before.

Prediction for the gradient, which was added later, written before its runs when one value was known, 0.05: it is less
than a tenth in every checkpoint of all four trainings, because alike keys leave the queries nothing to prefer.

In every training the hierarchical encoder makes the states of all sentences nearly equal, from the first checkpoint on:
their cosine is 0.97 to 1.00 behind it and 0.75 to 0.97 before it. Keys that are alike get equal weights from any query,
so the attention to sentences is uniform, while that to tokens becomes more selective with every update. In the packaged
demo model the attention of the hierarchical encoder adds a vector of norm 18.4 to states of norm 11.2, and this vector
differs from sentence to sentence by 0.2 only. So its queries and keys hardly learn: after 60 updates their gradient is
0.3 to 0.6 of that for tokens (not predicted), and from 240 updates on 0.00 to 0.07. None of the three changes alters
this, and after 480 updates all trainings but `lowlr` only overfit. So the layer is used as a bias: with 97 meetings
nothing teaches it to tell sentences apart.

Pre-training on gap sentences of the same meetings does not change it (`demo_variants.py`). The task does: where the
target depends on single sentences, models of an eighth of the size tell them apart, and the most selective head uses 4
to 7 % of them (`decisions.py`). Not tried: weights pre-trained on other texts, which the paper starts from, and more
meetings.

Nor do the texts differ. The last checkpoints have ROUGE-1, 2 and L of 47.8, 17.4 and 45.9 (`default`), 46.8, 17.7 and
45.5 (`prenorm`), 46.2, 16.9 and 44.5 (`lowlr`), 48.1, 17.9 and 46.9 (`nodrop`) on the 20 test meetings, each with a
95 % interval of about 3 points to either side, one seed. Against the references of other meetings ROUGE-1 is 45.7 to
46.9. (`hat recipe generate ami_small --model checkpoints/NAME/checkpoint_last.pt`, `hat score rouge --against-others`.)
"""

import json
import statistics
from pathlib import Path
from typing import Any

import torch
from experiments import save_figure
from fairseq import checkpoint_utils
from harness import RESULTS, flags, write_result
from torch.nn.functional import normalize

from hat_fairseq.analysis.curves import read_log
from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.inference.python import Model
from hat_fairseq.inference.rows import encode_documents

MEASURED = (60, 240, 480, 720)  # updates


def main() -> None:
    parser = flags(RESULTS / "sentence_attention.json")
    parser.add_argument("trainings", nargs="+", type=Path, help="folders of checkpoints")
    parser.add_argument("--data", type=Path, default=Path("data-bin/ami_small"))
    parser.add_argument("--documents", type=int, default=4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    with (args.data / "text" / "valid.jsonl").open(encoding="utf-8") as lines:
        records = [json.loads(line) for line, _ in zip(lines, range(args.documents), strict=False)]
    runs = []
    for folder in args.trainings:
        losses = read_log(folder)["nll_loss"]["valid"]
        for updates, path in checkpoints(folder):
            figures = measured(path, args.data, records) | {"gradient": relative_gradient(path)}
            runs.append({"training": folder.name, "updates": updates, **figures})
            runs[-1]["loss"] = [loss for number, loss in losses.items() if number <= updates][-1]
            print(json.dumps(runs[-1]), flush=True)
            write_result(args.out, settings={"documents": args.documents}, runs=runs)
    save_figure(args.out, draw)


def checkpoints(folder: Path) -> list[tuple[int, Path]]:
    """The checkpoints of a training that are measured, after their numbers of updates."""
    paths = ((int(path.stem.rsplit("_", 1)[1]), path) for path in folder.glob("checkpoint_*_*.pt"))
    return sorted((updates, path) for updates, path in paths if updates in MEASURED)


@torch.no_grad()
def measured(path: Path, data: Path, records: list[dict[str, Any]]) -> dict[str, float]:
    """The figures of one checkpoint."""
    model = Model(path, data / "bin")
    (net,), kind = model.models, model.kind
    figures: dict[str, list[float]] = {}
    for number, record in enumerate(records):
        ((row, *_),) = encode_documents([record_from_json(record, f"document {number + 1}", kind)], model.loaded)
        out = net.encoder(row.tokens[None], roles=row.roles[None])
        before = out.tokens[0, out.layout.representatives.positions[0]]
        figures.setdefault("before", []).append(similarity(before))
        figures.setdefault("after", []).append(similarity(out.spans[0]))
        look = model.look(record, reference=True)
        for one in look.maps:
            if one.queries == "target tokens":
                name = "tokens" if one.to_tokens else "sentences"
                figures.setdefault(name, []).append(float(look.used(one, one.weights).mean()))
    return {name: round(statistics.mean(values), 3) for name, values in figures.items()}


def relative_gradient(path: Path) -> float:
    """Root mean square of the gradients of the decoder's query and key maps, to sentences by to tokens.

    Over the last updates, some 50: Adam keeps a running mean of their squares.
    """
    checkpoint = checkpoint_utils.load_checkpoint_to_cpu(str(path))  # of this package, once it is registered
    names = {x.data_ptr(): name for name, x in checkpoint["model"].items() if not name.endswith("fingerprint")}
    states = checkpoint["last_optimizer_state"]["state"].values()
    squares: dict[str, list[float]] = {"encoder_attn": [], "sentence_attn": []}
    for name, state in zip(names.values(), states, strict=True):
        attention, _, rest = name.partition("_attn.")
        if rest in ("q_proj.weight", "k_proj.weight") and (key := attention.rsplit(".")[-1] + "_attn") in squares:
            squares[key].append(float(state["exp_avg_sq"].mean()))
    tokens, sentences = (statistics.mean(each) for each in squares.values())
    return round((sentences / tokens) ** 0.5, 3)


def similarity(states: torch.Tensor) -> float:
    """The mean cosine of two different rows of (S, C) states."""
    states = normalize(states, dim=-1)
    number = len(states)
    return float((states @ states.T).sum() - number) / (number * (number - 1))


def draw(record: dict[str, Any], axis: Any) -> None:
    """The share of the sentences and of the tokens that each training uses, over its updates."""
    for name in dict.fromkeys(run["training"] for run in record["runs"]):
        runs = [run for run in record["runs"] if run["training"] == name]
        color = None
        for units, style in (("sentences", "-"), ("tokens", "--")):
            shares = [run[units] for run in runs]
            updates = [run["updates"] for run in runs]
            line = axis.plot(updates, shares, linestyle=style, marker="o", color=color, label=f"{name}: {units}")
            color = line[0].get_color()
    axis.set(xlabel="updates", ylabel="share used by the decoder's attention; 1: uniform")


if __name__ == "__main__":
    main()
