"""Show what this package does, in three minutes on a CPU: train, ask, label and read long documents."""

import argparse
import contextlib
import gzip
import importlib.util
import json
import re
import runpy
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from .data.files import json_text
from .fairseq_commands import PACKAGE
from .printed import aligned
from .recipes.build import build_commands
from .recipes.command import steps_of
from .recipes.files import EXAMPLES
from .recipes.steps import PYTHON, run_step
from .suggestions import did_you_mean_some
from .weights import minilm

FOLDER = Path("hat-demo")  # in the current folder; each act has a folder there, which is made anew
LOG = Path("demo.log")
#: Meetings with questions, in the installed package or in a clone.
MEETINGS = EXAMPLES.parent / "preprocess/ami_questions_data/test.jsonl.gz"
ASKED = "ES2011b"  # the meeting
QUESTIONS = (
    "Why did they give up teletext?",
    "What about speech recognition?",
    "How do people find a lost remote control?",
    "What does the lawyer say about the patent?",
)
SCORED = 4  # meetings whose questions have known answers
TRAINING = """--task document_to_text --role-stream role --arch hat_transformer_tiny --share-all-embeddings
    --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512
    --max-source-positions 1024 --criterion label_smoothed_cross_entropy --label-smoothing 0.1 --optimizer adam
    --lr 0.002 --clip-norm 1 --batch-size 2 --max-update 50 --disable-validation --no-epoch-checkpoints
    --log-format json --log-interval 1 --seed 1 --save-dir checkpoints"""
GENERATION = """--path checkpoints/checkpoint_last.pt --beam 4 --no-repeat-ngram-size 3 --max-len-b 60 --batch-size 20
    --bpe document --document-pipeline data/bin --results-path results"""
JOINING = "join --generated results/generate-test.txt --ids data/text/test.ids --out results/hat.jsonl"
PREDICTION = "predict meeting some.jsonl --out found.jsonl --precision auto"
SCORE = "score evidence found.jsonl --references some.jsonl --baselines "
SCORE += "--bootstrap-samples 0 --out scores.json"
EMBEDDING = "embed encoder meeting.jsonl --context 256 --out vectors.npz"
OWN = (
    '  hat ask FILE "A question?"         FILE: .vtt, .srt, .txt or .jsonl',
    "  hat recipe run labels --root DIR   DIR: train, valid and test, .jsonl or .csv",
    "  hat import DIR --package ENCODER   DIR: an encoder of the Hugging Face Hub",
)


class Row(NamedTuple):
    """A row of the table at the end."""

    task: str
    ours: str
    peer: str  # the strongest rule, or what one would take instead


class Act(NamedTuple):
    """A part of the demo, whose docstring says what it does."""

    play: Callable[[], list[Row]]
    seconds: int  # on two quiet cores
    needs: tuple[str, ...] = ()  # keys of `PACKAGES`


#: A package, and the extra that installs it.
PACKAGES = {"fairseq": ("fairseq-fixed", "train"), "MiniLM": (minilm.PACKAGE, "minilm")}


def step(title: str, *command: str) -> float:
    """Runs a command in the folder of the act, and returns its seconds; ValueError if it fails."""
    begin = time.monotonic()
    if status := run_step(title, command, LOG):
        raise ValueError(f"hat demo: the step '{title}' failed with status {status}")
    return time.monotonic() - begin


def hat(words: str, *more: str) -> float:
    """Runs `hat` with these words, of which the first one is the title."""
    return step(f"hat {words.split()[0]}", *PYTHON, "hat_fairseq.cli", *words.split(), *more)


def say(text: str, indent: str = "  ") -> None:
    """Prints a text as wide as the terminal."""
    width = max(40, shutil.get_terminal_size().columns - 1)
    print(*textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent + "  "), sep="\n", flush=True)


def papers() -> list[Row]:
    """Trains a small HAT of Rohde et al. on 40 meetings with fairseq's own commands, and summarizes 20 others."""
    (command,) = build_commands("preprocess", "ami_small", ["--out", "data", "--limit", "40"])
    step("hat preprocess", *command)
    for name, flags in (("train", TRAINING), ("generate", GENERATION)):
        words = "data/bin", "--user-dir", str(PACKAGE), *flags.split()
        step(f"fairseq-{name}", *PYTHON, f"fairseq_cli.{name}", *words)
    hat(JOINING)
    documents, train = "data/text/test.jsonl", "data/text/train.jsonl"
    step("baselines", sys.executable, str(EXAMPLES / "baselines.py"), documents, train, "results")
    files = [f"results/{name}.jsonl" for name in ("hat", "lead", "constant")]
    hat("score rouge --out scores.json", *files, "--references", documents)
    scores = read("scores.json")
    ours, lead, constant = (scores[file]["scores"]["rouge1"]["mean"] for file in files)
    losses = re.findall(r'"loss": "([\d.]+)"', LOG.read_text(encoding="utf-8"))
    text = json.loads(Path(files[0]).read_text(encoding="utf-8").partition("\n")[0])["text"]
    say(f"The loss fell from {losses[0]} to {losses[-1]}. One summary begins: {' '.join(text.split()[:12])}")
    others = {"the first words": lead, "one summary for all": constant}
    say(f"ROUGE-1: {ours:.1f}; {listed(others)}.")
    say(
        "A network from random weights writes nothing useful after a minute. A real training starts from BART's "
        "weights: hat recipe train pubmed."
    )
    return [Row("summaries, ROUGE-1", f"{ours:.1f}", best_of(others))]


def ask() -> list[Row]:
    """Answers questions about a meeting with what was said, by a model of this package."""
    meetings = {record["id"]: record for record in read_meetings()}
    write_meeting(meetings[ASKED])
    hat("ask meeting.jsonl --out answers.jsonl", *QUESTIONS)
    for line in Path("answers.jsonl").read_text(encoding="utf-8").splitlines():
        answer = json.loads(line)
        if answer["answered"]:
            best = answer["passages"][0]["lines"][0]
            text = re.sub(r" (?=[.,?!])", "", best["text"])  # of transcripts that are cut into words
            found = f"Turn {best['number'] + 1}, {best['role']}: {text}"
        else:
            found = f"Nothing in this meeting answers (probability of an answer: {answer['answer_probability']:.2f})."
        say(f"{answer['question']} -> {found}")
    some = [*meetings.values()][:SCORED]
    Path("some.jsonl").write_text("".join(json_text(each) + "\n" for each in some), encoding="utf-8")
    hat(PREDICTION)
    hat(SCORE)
    figures = {name: each["figures"]["average precision"]["mean"] for name, each in read("scores.json").items()}
    ours, count = figures.pop("found.jsonl"), sum(len(each["questions"]) for each in some)
    say(
        f"Average precision on {count} questions about {SCORED} other meetings: {ours:.1f}; {listed(figures)}, with "
        "the settings that suit these meetings best. Rules over vectors come closer: results.md of the documentation."
    )
    return [Row("answers, average precision", f"{ours:.1f}", best_of(figures))]


def labels() -> list[Row]:
    """Learns to label documents of 1,300 words, in which two sentences decide."""
    runpy.run_path(str(EXAMPLES / "tutorial.py"))["write"](Path("tutorial"))
    steps = steps_of("labels", ["--root", "tutorial/labels"])
    steps["train"][0] += ["--log-interval", "1"]
    for name in ("import", "preprocess", "train", "predict"):
        for command in steps[name]:
            step(f"hat {command[len(PYTHON) + 1]}", *command)
    from .recipes.labels import MODEL, scores_of

    results = Path("results/labels/test.jsonl")
    scores = {name: each["accuracy"] for name, each in scores_of(results.with_suffix(".score.json"), results).items()}
    ours = scores.pop(MODEL)
    say(f"Accuracy on 30 test documents: {ours:.1f}; {listed(scores)}.")
    first = json.loads(results.read_text(encoding="utf-8").partition("\n")[0])
    decisive = max(first["segments"], key=lambda each: each["weight"])
    say(f"Why {first['id']} is '{first['label']}': {decisive['text']} (weight {decisive['weight']:.2f})")
    return [Row("labels, accuracy", f"{ours:.1f}", best_of(scores))]


def encoder() -> list[Row]:
    """Imports an encoder that you have, here MiniLM, and reads a long document."""
    record = next(each for each in read_meetings() if each["id"] == ASKED)
    write_meeting(record)
    hat("import minilm --package encoder")
    seconds = hat(EMBEDDING)
    words = f"{sum(len(turn['text'].split()) for turn in record['turns']):,} words"
    say(
        f"A meeting of {words} was read in {seconds:.0f} s, in chunks that overlap: each turn has a vector that knows "
        "the 256 tokens around it. MiniLM by itself stops at 512 tokens, and at 256 in sentence-transformers."
    )
    rows = [Row("turns in context, MiniLM", words, "512 tokens, by itself")]
    if importlib.util.find_spec("transformers") is None:
        say("Not compared with transformers, which is not installed: pip install 'hat_fairseq[transformers]'")
        return rows
    step("compare", *PYTHON, "hat_fairseq.demo", "encoder", "meeting.jsonl")
    found = json.loads(LOG.read_text(encoding="utf-8").splitlines()[-1])
    most = f"{found['difference']:.0e}"
    say(f"The vectors of {found['texts']} turns differ from those of transformers by at most {most}.")
    return [*rows, Row("vectors as in transformers", f"to {most}", "transformers itself")]


def compare(folder: str, meeting: str) -> None:
    """Prints the largest difference between vectors of an imported MiniLM and those of transformers, as JSON."""
    import torch
    import transformers

    import hat_fairseq

    texts = [turn["text"] for turn in read(meeting)["turns"] if 5 < len(turn["text"].split()) < 100][:32]
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm.find())
    network = transformers.AutoModel.from_pretrained(minilm.find())
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        states, mask = network(**batch).last_hidden_state, batch["attention_mask"].unsqueeze(-1)
    theirs = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=1).numpy()
    ours = hat_fairseq.load(folder).encoder().encode(texts)
    print(json_text({"texts": len(texts), "difference": float(abs(ours - theirs).max())}))


ACTS = {
    "papers": Act(papers, 30, ("fairseq",)),
    "ask": Act(ask, 20, ("MiniLM",)),
    "labels": Act(labels, 35, ("fairseq", "MiniLM")),
    "encoder": Act(encoder, 15, ("fairseq", "MiniLM")),
}


def missing(needs: Sequence[str]) -> str:
    """Returns what an act needs and is not installed, and how to install it; empty if nothing is missing."""
    absent = [name for name in needs if not any(True for _ in metadata.distributions(name=PACKAGES[name][0]))]
    extras = ",".join(PACKAGES[name][1] for name in absent)
    way = "; or the command that hat doctor prints" if "fairseq" in absent else ""
    return f"needs {' and '.join(absent)}: pip install 'hat_fairseq[{extras}]'{way}" if absent else ""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("act", nargs="?", metavar="ACT", help=f"play this act alone: {', '.join(ACTS)} (default: all)")
    about = " ".join(f"{name}: {each.play.__doc__}" for name, each in ACTS.items())
    seconds = sum(each.seconds for each in ACTS.values())
    parser.epilog = f"{about} All take about {seconds} s on two CPU cores. Files are written into {FOLDER}/."


def main(args: argparse.Namespace) -> int:
    """Plays the acts, and prints the table. ValueError for an unknown act, or if none can be played."""
    if args.act not in (None, *ACTS):
        known = did_you_mean_some(args.act, ACTS, f"; its acts are {', '.join(ACTS)}")
        raise ValueError(f"hat demo has no act {args.act!r}{known}")
    chosen = [args.act] if args.act else list(ACTS)
    absent = {name: text for name in chosen if (text := missing(ACTS[name].needs))}
    playable = [name for name in chosen if name not in absent]
    if not playable:
        raise ValueError(f"hat demo {chosen[0]} {absent[chosen[0]]}")
    table = [("task", "ours", "the best beside it", "seconds")]
    start = time.monotonic()
    for number, name in enumerate(playable, start=1):
        begin, (play, seconds, _) = time.monotonic(), ACTS[name]
        say(f"{number}/{len(playable)} {name}: {play.__doc__} About {seconds} s.", "")
        rows = played(name)
        table += [(*row, f"{time.monotonic() - begin:.0f}" if row is rows[0] else "") for row in rows]
        print(flush=True)
    for name, text in absent.items():
        say(f"{name} was skipped: it {text}", "")
    print(*aligned(table), sep="\n")
    say(f"All in {time.monotonic() - start:.0f} s. Files and logs: {FOLDER}/. For your own files:", "")
    print(*OWN, sep="\n")
    return 0


def played(name: str) -> list[Row]:
    """Plays an act in a new folder of its own."""
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with contextlib.chdir(folder):
        return ACTS[name].play()


def read_meetings() -> list[dict[str, Any]]:
    with gzip.open(MEETINGS, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_meeting(record: dict[str, Any]) -> None:
    """Writes a meeting without questions."""
    Path("meeting.jsonl").write_text(json_text({"id": record["id"], "turns": record["turns"]}), encoding="utf-8")


def read(path: str) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def best_of(figures: dict[str, float]) -> str:
    name = max(figures, key=lambda each: figures[each])
    return f"{figures[name]:.1f} {name}"


def listed(figures: dict[str, float]) -> str:
    return "; ".join(f"{name}: {value:.1f}" for name, value in figures.items())


if __name__ == "__main__":
    compare(*sys.argv[1:])
