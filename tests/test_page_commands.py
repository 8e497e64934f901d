"""Commands of the pages, run as they are written with small models; `tests/test_docs.py` checks the flags of all."""

from __future__ import annotations

import json
from pathlib import Path

from commands import USER_DIR
from test_docs import ROOT, commands
from warm import WarmPython

SMALL = "--cpu --num-workers 0 --data-buffer-size 0 --log-format json"


def runnable(text: str) -> list[list[str]]:
    """The commands of a page, or a part of it, with the path of the plugin."""
    return [[str(USER_DIR) if word == USER_DIR.name else word for word in words] for words in commands(text)]


def test_early_stopping_by_rouge(warm: WarmPython, ami: Path, tmp_path: Path) -> None:
    (tmp_path / "data-bin").mkdir()
    (tmp_path / "data-bin/mine").symlink_to(ami)
    page = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
    part = page.split("## The best checkpoint and early stopping\n")[1].split("\n## ")[0]
    ((program, *words),) = runnable(part)
    assert program == "fairseq-train"
    words += f"{SMALL} --max-source-positions 128 --lr 1e-12".split()  # which changes nothing
    text = warm.run(["fairseq_cli.train", *words], tmp_path, tmp_path / "log")
    assert "early stop since valid performance hasn't improved for last 3 runs" in text
    assert text.count("valid_best_rougeL") == 3, "the first of the four has none before it"
    assert (tmp_path / "checkpoints/mine/checkpoint_best.pt").is_file()


def test_own_labels_from_json_lines_to_hat_predict(warm: WarmPython, tmp_path: Path) -> None:
    """The two lines of the page, with a number in each text, so that no two are the same."""
    page = (ROOT / "docs/labels.md").read_text(encoding="utf-8")
    examples = [json.loads(line) for line in page.splitlines() if line.startswith('{"id"')]
    assert len(examples) == 2

    def write(path: Path, first: int, last: int, *without: str) -> None:
        path.parent.mkdir(exist_ok=True)
        rows = [
            {**row, "id": f"{row['id']}{number}", "text": f"{row['text']} It is number {number} ."}
            for number in range(first, last)
            for row in examples
        ]
        kept = [{key: value for key, value in row.items() if key not in without} for row in rows]
        path.write_text("".join(json.dumps(row) + "\n" for row in kept), encoding="utf-8")

    for split, first, last in (("train", 0, 30), ("valid", 30, 34), ("test", 34, 38)):
        write(tmp_path / f"reviews/{split}.jsonl", first, last)
    write(tmp_path / "new.jsonl", 50, 54, "label")
    programs, printed = {"fairseq-train": "fairseq_cli.train", "hat": "hat_fairseq.cli"}, []
    for program, *words in runnable(page):
        if program in programs:
            small = SMALL.split() if program == "fairseq-train" else []
            printed.append(warm.run([programs[program], *words, *small], tmp_path, tmp_path / "log"))
    assert len(printed) == 5
    assert "--criterion document_labels, which is the default of --task document_classification" in printed[1]
    assert "100.00" in printed[3], "accuracy of the test part"
    labels = [json.loads(line) for line in (tmp_path / "labels.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["label"] for row in labels] == ["positive", "negative"] * 4
    assert labels[0]["segments"][0]["text"] == "A good film."
