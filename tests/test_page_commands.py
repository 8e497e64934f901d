"""Commands of the pages, run as they are written with small models; `tests/test_docs.py` checks the flags of all."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import encoders_of_today
import numpy as np
import pytest
from commands import REPOSITORY, environment, run_command, write_lines
from minilm import needs_minilm
from pages import FENCE, commands
from warm import WarmPython

from hat_fairseq import cli
from hat_fairseq.recipes.command import COMMANDS

SMALL = "--cpu --num-workers 0 --data-buffer-size 0 --log-format json"


def page(name: str) -> str:
    return (REPOSITORY / "docs" / name).read_text(encoding="utf-8")


def run_page(text: str, warm: WarmPython, folder: Path, small: str = SMALL) -> list[str]:
    """Runs the commands of a page, and returns what each printed."""
    printed = []
    for program, *words in commands(text):
        if program == "hat":
            words += small.split() if words[0] == "train" else []
            printed.append(warm.run(["hat_fairseq.cli", *words], folder, folder / "log"))
    return printed


def write_examples(text: str, folder: Path, left_out: str) -> None:
    """The two example lines of a page as splits, with a number in each text; new texts without the key `left_out`."""
    examples = [json.loads(line) for line in text.splitlines() if line.startswith('{"id"')]
    assert len(examples) == 2
    folder.mkdir()
    splits = {folder / "train.jsonl": (0, 30), folder / "valid.jsonl": (30, 34), folder / "test.jsonl": (34, 38)}
    for path, numbers in {**splits, folder.parent / "new.jsonl": (50, 54)}.items():
        rows = [
            {**row, "id": f"{row['id']}{number}", "text": f"{row['text']} It is number {number} ."}
            for number in range(*numbers)
            for row in examples
        ]
        for row in rows if path.name == "new.jsonl" else ():
            del row[left_out]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def read_lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.slow
def test_early_stopping_by_rouge(warm: WarmPython, ami: Path, tmp_path: Path) -> None:
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin/mine").symlink_to(ami)
    part = page("training.md").split("## The best checkpoint and early stopping\n")[1].split("\n## ")[0]
    (text,) = run_page(part, warm, tmp_path, f"{SMALL} --max-source-positions 128 --lr 1e-12")  # which changes nothing
    assert "early stop since valid performance hasn't improved for last 3 runs" in text
    assert text.count("valid_best_rougeL") == 3, "the first of the four has none before it"
    assert (tmp_path / "checkpoints/mine/checkpoint_best.pt").is_file()


@pytest.mark.slow
def test_own_summaries_from_json_lines_to_rouge(
    warm: WarmPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the program of the page about the code, which follows two documents of this model to their loss."""
    part = page("tutorial_summaries.md")
    write_examples(part, tmp_path / "news", "target")
    printed = run_page(part, warm, tmp_path)
    assert len(printed) == 6
    assert "100.00" in printed[3], "ROUGE on the test split"
    assert [row["text"] for row in read_lines(tmp_path / "summaries.jsonl")] == [
        "The bridge is open.",
        "It rains until Friday.",
    ] * 4
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"^```python\n(.*?)^```$", page("modules.md"), re.MULTILINE | re.DOTALL)
    exec(program, {})
    shapes = "torch.Size([2, 19, 64]) torch.Size([2, 3, 64])\ntorch.Size([2, 5, 64]) torch.Size([2, 5, 56])\n"
    assert shapes in capsys.readouterr().out


@pytest.mark.slow
@needs_minilm
def test_labels_and_vectors_from_a_pretrained_encoder(warm: WarmPython, tmp_path: Path) -> None:
    text = page("pretrained.md").partition("\n## Documents of 8,192 tokens")[0]
    write_examples(text, tmp_path / "articles", "label")
    records = [{"id": row["id"], "text": row["text"]} for row in read_lines(tmp_path / "articles/test.jsonl")]
    write_lines(tmp_path / "articles.jsonl", records)  # as jq does, which not every machine has
    shorter = text.replace("--max-epoch 3", "--max-epoch 2").replace("--warmup-updates 20", "--warmup-updates 2")
    printed = run_page(shorter.replace("pip install", "# pip install"), warm, tmp_path)
    assert len(printed) == 9
    assert "skipped, the pooler" in printed[0]
    assert (tmp_path / "minilm/tokenizer.json").is_file()
    assert "started from RoBERTa: both kinds of layer i from its layer i" in printed[2]
    assert "100.00" in printed[4], "accuracy on the test split"
    ids = sorted(row["id"] for row in read_lines(tmp_path / "articles/test.jsonl"))
    for number, name in ((6, "vectors.npz"), (8, "in-context.npz")):
        assert "vectors of 8 documents" in printed[number]
        arrays = np.load(tmp_path / name)
        assert arrays["vectors"].shape == (24, 384)
        assert sorted({*arrays["ids"]}) == ids


@pytest.mark.slow
def test_labels_of_long_documents_from_modernbert(warm: WarmPython, tmp_path: Path) -> None:
    """With a ModernBERT of small width: its flags are those that the first command prints."""
    text = page("pretrained.md")
    part = text.partition("\n## Documents of 8,192 tokens")[2].partition("\n## ")[0]
    write_examples(text, tmp_path / "articles", "label")
    encoders_of_today.write("ModernBERT-base", tmp_path / "ModernBERT-base")
    before, train, after = part.partition("hat train")
    printed = run_page(before + "```", warm, tmp_path)
    assert len(printed) == 2
    assert "ModernBERT-base: modernbert\n" in printed[0]
    (flags,) = re.findall(r"(--arch hat_modernbert_base .*) --finetune", printed[0])
    train = train + after
    for long, short in (
        ("--arch hat_modernbert_base", flags),
        ("--warmup-updates 20", "--warmup-updates 2"),
        ("5e-5", "2e-3"),
    ):
        assert train.count(long) == 1
        train = train.replace(long, short)
    printed = run_page("```bash\n" + train, warm, tmp_path)
    assert len(printed) == 3
    assert "100.00" in printed[2], "accuracy on the test split"


TURNS = [{"role": "PM", "text": "What may it cost ?"}, {"role": "UI", "text": "Twelve euros ."}]
OWN = {  # page -> the folder that it names, and a document
    "dialogues.md": ("dialogues", {"turns": TURNS, "target": "The price is twelve euros."}),
    "translate.md": ("pages", {"sentences": ["It rains.", "We stay."], "target": ["Es regnet.", "Wir bleiben."]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_documents_of_a_users_own_go_through_the_page_of_their_task(
    name: str, warm: WarmPython, tmp_path: Path
) -> None:
    folder, document = OWN[name]
    (tmp_path / folder).mkdir()
    for split in ("train", "valid", "test"):
        lines = [json.dumps({"id": f"{split}{number}", **document}) + "\n" for number in range(12)]
        (tmp_path / folder / f"{split}.jsonl").write_text("".join(lines))
    text = page(name).partition("## Your own")[2].replace("--max-epoch 20", "--max-epoch 2")
    preprocessed, _, _, score = run_page(text, warm, tmp_path)
    assert "documents" in preprocessed
    assert re.search("ROUGE-1|BLEU", score)


PAGES = {path.name: path for path in [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]}
# Sections whose commands run below as they are printed, by what they need.
OF_OWN_DATA = (("data.md", "Your own data"),)
OF_TEXTS = (
    ("training.md", "Average and validate checkpoints"),
    ("using.md", "Generate texts"),
    ("scoring.md", "ROUGE"),
    ("share.md", "Make the folder"),
    ("share.md", "Use the folder"),
    ("using.md", "Trained models: generate and predict"),
    ("using.md", "What a file is"),
    ("extend.md", "Add a reader"),
    ("training.md", "More than 20 GB of text"),
)
OF_LABELS = (("using.md", "Predict labels and answers"), ("scoring.md", "Labels"))
OF_TRANSLATIONS = (
    ("data.md", "Document translation"),
    ("scoring.md", "BLEU of documents"),
    ("scoring.md", "Two systems"),
)
OF_VECTORS = (("vectors.md", "Vectors for search"), ("ask.md", "Ask a transcript"))
# Sections that the tests above run, and those of test_tutorials, test_readme and test_translation.
ELSEWHERE = {
    ("README.md", "With fairseq's own commands"),
    ("dialogues.md", "Your own dialogues"),
    ("training.md", "The best checkpoint and early stopping"),
    ("translate.md", "Your own documents"),
}
WHOLE = {
    "pretrained.md",
    *("tutorial_labels.md", "tutorial_summaries.md", "tutorial_transcripts.md", "tutorial_translation.md"),
}
NOT_RUN = {  # the beginning of a command, or a part of it -> why no test of pages runs it
    "make ": "sets up a clone; .ci/run does it",
    "pip ": "installs packages; tests/test_wheel.py and tests/test_doctor.py",
    "export PIP_": "installs packages",
    "apt-get ": "needs a network and root",
    "dpkg-deb ": "needs the packages of the line above",
    "ray ": "starts a cluster; tests/test_workers_on_ray.py",
    "--cluster auto": "needs a cluster; tests/test_workers_on_ray.py",
    "torchrun --nnodes": "needs several machines; tests/test_slurm.py",
    "torchrun --standalone": "two processes; tests/tasks",
    "hat doctor": "tests/test_doctor.py",
    "hat plan pubmed": "half a minute; tests/planning",
    "--like rouge-1.5.5": "needs perl and its modules; tests/scoring/test_perl.py",
    "-hf": "needs the weights of Hugging Face; tests/weights",
    "hierarchical-transformer-base-4096": "needs the released weights; tests/weights",
    "hat preprocess questions --kind qa": "needs a sentencepiece model; tests/data",
    "hat train data-bin/imdb": "needs IMDB; tests/criterions",
    "python benchmarks/longdoc.py": "needs an attention of yours; tests/test_longdoc.py",
    "python examples/make_lra.py": "draws 100,000 sequences; tests/preprocess",
    "qmsum": "needs QMSum; tests/test_meeting_questions.py",
    "checkpoints/tydi_qa": "needs TyDi QA; tests/inference",
    "hat score squad": "needs SQuAD; tests/scoring",
    "hat train data-bin/mt": "validates with BLEU; tests/tasks",
    "--baselines": "needs a trained model; tests/scoring, and test_tutorials",
    "ES2004a": "whole meetings; `make docs` runs hat look",
    "hat import minilm --out": "tests/test_tutorials.py",
    "--vocabulary data-bin/texts": "needs two kinds of data; tests/data",
    " ...": "a beginning of a command",
}


def sections(name: str) -> Iterator[tuple[str, str]]:
    """Each heading of a page, with the text below it as far as the next heading of any level."""
    text = PAGES[name].read_text(encoding="utf-8")
    hidden = FENCE.sub(lambda block: re.sub("^#", "\0", block[0], flags=re.MULTILINE), text)  # comments
    for part in re.split(r"^#+ ", hidden, flags=re.MULTILINE)[1:]:
        heading, _, below = part.partition("\n")
        yield heading, below.replace("\0", "#")


def lines_of(name: str, heading: str) -> list[str]:
    """The commands of a section, as they are printed, with what follows a backslash."""
    (text,) = [below for each, below in sections(name) if each == heading]
    blocks = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line.strip()]


def is_excused_by(part: str, name: str, line: str) -> bool:
    return part in f"{name}: {line}"


def is_excused(name: str, line: str) -> bool:
    return any(is_excused_by(part, name, line) for part in NOT_RUN)


def run_sections(chosen: tuple[tuple[str, str], ...], folder: Path, warm: WarmPython) -> str:
    """Runs the commands of sections in a shell, and returns what they print."""
    lines = [line for name, heading in chosen for line in lines_of(name, heading) if not is_excused(name, line)]
    assert len(lines) >= len(chosen)
    return run_command("bash", "-euc", "\n".join(lines), cwd=folder, env=environment(PATH=warm.programs)).stdout


def write_mine(folder: Path) -> None:
    """The data `mine`, of an example of a tutorial, and new documents."""
    write_examples(page("tutorial_summaries.md"), folder / "mine", "target")
    shutil.copy(folder / "new.jsonl", folder / "documents.jsonl")


def label_mine(folder: Path) -> None:
    """Puts a label in the place of each target."""
    for path in (folder / "mine").glob("*.jsonl"):
        rows = [{"id": row["id"], "text": row["text"], "label": row["id"][0]} for row in read_lines(path)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def train_mine(folder: Path, warm: WarmPython, task: str) -> None:
    flags = "--optimizer adam --lr 2e-3 --batch-size 8 --max-epoch 3 --save-dir checkpoints/mine --cpu --num-workers 0"
    warm.run(["hat_fairseq.cli", "train", "data-bin/mine/bin", *task.split(), *flags.split()], folder, folder / "log")


@pytest.fixture(scope="module")
def labels(tmp_path_factory: pytest.TempPathFactory, warm: WarmPython) -> Path:
    """A folder with a classifier, as the pages name it."""
    folder = tmp_path_factory.mktemp("labels")
    write_mine(folder)
    label_mine(folder)
    words = "preprocess mine --out data-bin/mine --kind classification --splitter punctuation --num-codes 100"
    warm.run(["hat_fairseq.cli", *words.split()], folder, folder / "log")
    train_mine(folder, warm, "--task document_classification --arch hierarchical_transformer_tiny --segment-by marker")
    return folder


@pytest.mark.slow
def test_the_commands_about_labels_run_as_printed(labels: Path, warm: WarmPython) -> None:
    assert "accuracy" in run_sections(OF_LABELS, labels, warm)


@pytest.mark.slow
def test_the_commands_about_texts_run_as_printed(labels: Path, tmp_path: Path, warm: WarmPython) -> None:
    write_mine(tmp_path)
    (tmp_path / "texts").mkdir()
    for split in ("train", "valid", "test"):
        shutil.copy(tmp_path / "new.jsonl", tmp_path / f"texts/{split}.jsonl")
    run_sections(OF_OWN_DATA, tmp_path, warm)
    train_mine(tmp_path, warm, "--task document_to_text --arch hat_transformer_tiny")
    for name in ("my-documents", "sample", "part1"):
        shutil.copytree(tmp_path / "mine", tmp_path / name)
    (program,) = re.findall(
        r"^```python\n(.*?)^```$", dict(sections("extend.md"))["Add a reader"], re.MULTILINE | re.DOTALL
    )
    (tmp_path / "chat.py").write_text(program, encoding="utf-8")
    words = ["export", labels / "checkpoints/mine/checkpoint_best.pt", "--data", labels / "data-bin/mine/bin"]
    assert cli.main([*map(str, words), "--out", str(tmp_path / "my-classifier")]) == 0
    printed = run_sections(OF_TEXTS, tmp_path, warm)
    assert "ROUGE-1" in printed
    assert '"architecture"' in printed
    assert len(read_lines(tmp_path / "texts.jsonl")) == len(read_lines(tmp_path / "labels.jsonl")) == 8


@pytest.mark.slow
def test_the_commands_about_translations_run_as_printed(tmp_path: Path, warm: WarmPython) -> None:
    """The references are the hypotheses."""
    (tmp_path / "pages").mkdir()
    document = OWN["translate.md"][1]
    for split in ("train", "valid", "test"):
        rows = [json.dumps({"id": f"{split}{number}", **document}) + "\n" for number in range(12)]
        (tmp_path / f"pages/{split}.jsonl").write_text("".join(rows))
    for system in ("mt", "plain", "hat"):
        (tmp_path / "results" / system).mkdir(parents=True)
        texts = [json.dumps({"id": f"test{number}", "text": " ".join(document["target"])}) for number in range(12)]
        (tmp_path / "results" / system / "test.jsonl").write_text("\n".join(texts) + "\n")
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin/mt").symlink_to("pages")
    assert run_sections(OF_TRANSLATIONS, tmp_path, warm).count("100.0") >= 3


TRANSCRIPT = "WEBVTT\n\n" + "\n".join(
    f"00:00:{2 * number:02}.000 --> 00:00:{2 * number + 2:02}.000\n<v {name}>{text}\n"
    for number, (name, text) in enumerate(
        (("Ann", "Good morning."), ("Bob", "The budget is nine thousand euros."), ("Ann", "We meet again on Friday."))
    )
)


@pytest.mark.slow
@needs_minilm
def test_the_commands_about_vectors_and_questions_run_as_printed(
    tmp_path: Path, warm: WarmPython, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the programs beside them."""
    for name in ("documents", "queries"):
        (tmp_path / f"{name}.jsonl").write_text('{"id": "a", "text": "It rains. We stay."}\n')
    (tmp_path / "transcript.vtt").write_text(TRANSCRIPT)
    assert "budget" in run_sections(OF_VECTORS, tmp_path, warm)
    assert (tmp_path / "meeting.html").is_file()
    monkeypatch.chdir(tmp_path)
    for name in ("vectors.md", "ask.md", "README.md"):
        page = "\n".join(text for _, text in sections(name))
        (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        exec(program, {})


COMMANDS_OF_PAGES = [
    (name, heading, line) for name in PAGES for heading, _ in sections(name) for line in lines_of(name, heading)
]
STEPS = (*COMMANDS, "run")  # of a recipe
RECIPES = sorted({line for *_, line in COMMANDS_OF_PAGES if re.search(rf"\bhat recipe ({'|'.join(STEPS)}) ", line)})


@pytest.mark.parametrize("line", RECIPES)
def test_a_recipe_that_a_page_names_becomes_a_command(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With DRY_RUN=1; `tests/recipes` runs the recipes with small models."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRY_RUN", "1")
    (words,) = commands(f"```\n{line}\n```")
    assert cli.main(words[words.index("recipe") :]) == 0
    assert capsys.readouterr().out


def test_every_command_of_a_page_is_run_by_a_test_or_has_a_reason() -> None:
    run = {*OF_OWN_DATA, *OF_TEXTS, *OF_LABELS, *OF_TRANSLATIONS, *OF_VECTORS, *ELSEWHERE}
    others = [
        (name, heading, line)
        for name, heading, line in COMMANDS_OF_PAGES
        if (name, heading) not in run and name not in WHOLE and line not in RECIPES and not is_excused(name, line)
    ]
    assert len(COMMANDS_OF_PAGES) > 100
    assert others == []
    excuses = [
        part for part in NOT_RUN if not any(is_excused_by(part, name, line) for name, _, line in COMMANDS_OF_PAGES)
    ]
    assert excuses == [], "commands that have left"
