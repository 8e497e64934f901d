"""A trained `hat_units`: vectors that are computed once for training, prediction and score; other problems with it."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import REPOSITORY, USER_DIR, hat, read_lines, refusal, write_lines
from fine_tuned import FineTuned
from warm import WarmPython

from hat_fairseq.data.files import read_json
from hat_fairseq.units.network import UnitsEncoder

WORDS = ["ein", "zwei", "drei", "vier", "fünf", "sechs"]


def record(split: str, number: int) -> dict[str, Any]:
    """Five sentences, of which each document of a split has one of its own, and the others have been there before."""
    own = f"{split} {' '.join(WORDS[number % 6 :])} {number}."
    return {
        "id": f"{split}{number}",
        "text": f"Ein zwei. Drei {WORDS[number % 3]}. {own} Vier.",
        "label": "ab"[number % 2],
    }


@pytest.fixture(scope="module")
def trained(warm: WarmPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kept")
    for split, count in (("train", 8), ("valid", 4), ("test", 4)):
        write_lines(folder / f"raw/{split}.jsonl", [record(split, number) for number in range(count)])
    flags = f"--out {folder}/data --num-codes 60 --kind classification --splitter punctuation"
    warm.run(f"hat_fairseq.cli preprocess {folder}/raw {flags}".split(), folder, folder / "log")
    flags = f"--user-dir {USER_DIR} --task document_classification --criterion document_labels --arch hat_units_tiny"
    flags += f" --freeze-encoder --vectors {folder}/vectors.npz --max-positions 40 --segment-length 30"
    flags += f" --save-dir {folder}/save --optimizer adam --lr 1e-2 --cpu --batch-size 2 --max-epoch 2 --num-workers 0"
    warm.run(f"fairseq_cli.train {folder}/data/bin {flags} --no-epoch-checkpoints".split(), folder, folder / "log")
    return folder


def kept(folder: Path) -> set[bytes]:
    with np.load(folder / "vectors.npz") as file:
        assert len(file["vectors"]) == len(file["keys"])  # a sentence has a key of its own
        return set(map(bytes, file["keys"]))


def test_each_vector_is_computed_once(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, model = trained, trained / "save/checkpoint_last.pt"
    sentences = {
        each
        for split in ("train", "valid")
        for row in read_lines(folder / f"raw/{split}.jsonl")
        for each in row["text"].replace(".", ".|").split("|")
        if each
    }
    before = kept(folder)
    assert len(before) == len({each.strip() for each in sentences})
    words = ["predict", model, folder / "data", "--device", "cpu"]
    assert hat(*words, "--out", folder / "plain.jsonl") == 0
    assert kept(folder) == before
    assert hat(*words, "--out", folder / "a.jsonl", "--vectors", folder / "vectors.npz") == 0
    assert before < kept(folder)
    assert len(kept(folder)) == len(before) + 4  # the sentences that no other split has

    def computed(*_: object) -> None:
        raise AssertionError("a vector is computed again")

    monkeypatch.setattr(UnitsEncoder, "states_of", computed)
    assert hat(*words, "--out", folder / "b.jsonl", "--vectors", folder / "vectors.npz") == 0
    plain, first, second = (read_lines(folder / f"{name}.jsonl") for name in ("plain", "a", "b"))
    assert first == second
    for one, other in zip(plain, first, strict=True):  # vectors are kept in fp16
        assert other["probabilities"] == pytest.approx(one["probabilities"], abs=1e-2)
    score = ["score", "classification", folder / "a.jsonl", "--references", folder / "data/text/test.jsonl"]
    assert hat(*score, "--baselines", "--encoder", model, "--vectors", folder / "vectors.npz") == 0


def test_refusals(trained: Path, fine_tuned: Callable[[str], FineTuned], tmp_path: Path) -> None:
    made, out = fine_tuned("classification"), ["--out", tmp_path / "out.jsonl", "--device", "cpu"]
    error = refusal("predict", made.checkpoint, made.data, *out, "--vectors", tmp_path / "v.npz")
    assert "--vectors is for one model of hat_units" in error
    assert not (tmp_path / "v.npz").exists()
    words = ["predict", trained / "save/checkpoint_last.pt", trained / "data", *out]
    assert "one worker" in refusal(*words, "--vectors", tmp_path / "v.npz", "--workers", 2)
    (tmp_path / "v.npz").write_text("mine")
    assert f"{tmp_path / 'v.npz'} has no vectors" in refusal(*words, "--vectors", tmp_path / "v.npz")
    assert (tmp_path / "v.npz").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]


NUMBER = {  # what the page says to change
    "num_labels=len(names),": "num_labels=1,",
    '"multi_label_classification"': '"regression"',
    '[float(name in each["labels"]) for name in names]': 'float(len(each["labels"]))',
}


@pytest.mark.parametrize("problem", ["several labels", "a number"])
def test_the_code_of_the_page_for_other_problems(
    problem: str, trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = (
        (REPOSITORY / "docs/transformers.md").read_text(encoding="utf-8").split("## Several labels, or a number")[1]
    )
    (code,) = re.findall(r"```python\n(.*?)```", section.split("\n## ")[0], re.DOTALL)
    assert all(code.count(old) == 1 for old in NUMBER)
    for old, new in NUMBER.items() if problem == "a number" else ():
        code = code.replace(old, new)
    monkeypatch.chdir(tmp_path)
    words = ["--data", trained / "data/bin", "--out", tmp_path / "models/labels"]
    assert hat("export", trained / "save/checkpoint_last.pt", *words) == 0
    architectures = read_json(tmp_path / "models/labels/config.json")["architectures"]
    assert architectures == ["HatForSequenceClassification"]  # and not RoBERTa, whose settings this encoder has
    rows = [
        {"text": record("train", n)["text"], "labels": [["approved"], ["approved", "urgent"]][n % 2]} for n in range(8)
    ]
    write_lines(tmp_path / "train.jsonl", rows)
    names: dict[str, Any] = {}
    exec(code, names)
    assert names["probabilities"].shape == (1, 1 if problem == "a number" else 2)
    sentences = {each.strip() for row in rows for each in row["text"].split(".") if each} | {"A document"}
    assert len(names["model"].core.cache.vectors) == len(sentences)  # each computed once
