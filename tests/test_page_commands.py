"""Commands of the pages, run as they are written with small models; `tests/test_docs.py` checks the flags of all."""

import json
import re
from pathlib import Path

import encoders_of_today
import numpy as np
import pytest
from commands import REPOSITORY
from minilm import needs_minilm
from pages import commands
from warm import WarmPython

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
def test_own_labels_from_json_lines_to_predictions(warm: WarmPython, tmp_path: Path) -> None:
    part = page("tutorial_summaries.md").partition("\n## Labels\n")[2]
    write_examples(part, tmp_path / "reviews", "label")
    printed = run_page(part, warm, tmp_path)
    assert len(printed) == 5
    assert "--criterion document_labels, which is the default of --task document_classification" in printed[1]
    assert "100.00" in printed[3], "accuracy on the test split"
    labels = read_lines(tmp_path / "labels.jsonl")
    assert [row["label"] for row in labels] == ["positive", "negative"] * 4
    assert labels[0]["segments"][0]["text"] == "A good film."


def lengthen(folder: Path, sentences: int) -> None:
    """Adds sentences to every text in the files of a folder."""
    filler = " ".join(f"Then came scene {number}, which the others liked." for number in range(sentences))
    for path in folder.glob("*.jsonl"):
        rows = [{**row, "text": f"{row['text']} {filler}"} for row in read_lines(path)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


@pytest.mark.slow
def test_labels_of_texts_of_600_tokens(warm: WarmPython, tmp_path: Path) -> None:
    part = page("tutorial_summaries.md").partition("\n## Labels\n")[2]
    write_examples(part, tmp_path / "reviews", "label")
    lengthen(tmp_path / "reviews", 60)
    lengthen(tmp_path, 60)
    printed = run_page(part.replace("--max-epoch 10", "--max-epoch 1"), warm, tmp_path)
    assert "source tokens truncated" not in printed[0], "every text has less than 64 segments"
    assert len(read_lines(tmp_path / "labels.jsonl")) == 8


@pytest.mark.slow
def test_own_summaries_from_json_lines_to_rouge(
    warm: WarmPython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And the program of the page about the code, which follows two documents of this model to their loss."""
    part = page("tutorial_summaries.md").partition("\n## Labels\n")[0]
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
    shorter = text.replace("--max-epoch 3", "--max-epoch 2").replace("--warmup-updates 20", "--warmup-updates 2")
    printed = run_page(shorter.replace("pip install", "# pip install"), warm, tmp_path)
    assert len(printed) == 9
    assert "left out, the pooler" in printed[0] and (tmp_path / "minilm/tokenizer.json").is_file()
    assert "started from RoBERTa: both kinds of layer i from its layer i" in printed[2]
    assert "100.00" in printed[4], "accuracy on the test split"
    ids = sorted(row["id"] for row in read_lines(tmp_path / "articles/test.jsonl"))
    for number, name in ((6, "vectors.npz"), (8, "in-context.npz")):
        assert "vectors of 8 documents" in printed[number]
        arrays = np.load(tmp_path / name)
        assert arrays["vectors"].shape == (24, 384) and sorted({*arrays["ids"]}) == ids


@pytest.mark.slow
def test_labels_of_long_documents_from_modernbert(warm: WarmPython, tmp_path: Path) -> None:
    """With a ModernBERT of small width: its flags are those that the first command prints."""
    text = page("pretrained.md")
    part = text.partition("\n## Documents of 8,192 tokens")[2].partition("\n## ")[0]
    write_examples(text, tmp_path / "articles", "label")
    encoders_of_today.write("ModernBERT-base", tmp_path / "ModernBERT-base")
    before, train, after = part.partition("hat train")
    printed = run_page(before + "```", warm, tmp_path)
    assert len(printed) == 2 and "ModernBERT-base: modernbert\n" in printed[0]
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
    assert len(printed) == 3 and "100.00" in printed[2], "accuracy on the test split"


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
    assert "documents" in preprocessed and re.search("ROUGE-1|BLEU", score)
