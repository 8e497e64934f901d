"""Binary data that is truncated or not made for its dictionary is refused when it is loaded."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary, data_utils

from hat_fairseq import cli
from hat_fairseq.data.binarize import binarize_text
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary as TextDictionary
from hat_fairseq.data.dictionary import check_known
from hat_fairseq.register import register

register()


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    (tmp_path / "text").write_text("a b c\nb c\na\n")
    dictionary = TextDictionary.build(Counter(["a", "b", "c", "b", "c", "a"]))
    dictionary.save(tmp_path / "dict.txt")
    binarize_text(tmp_path / "text", dictionary, tmp_path / "test", Blocks(tmp_path / "blocks"))
    return tmp_path


def load(folder: Path) -> object:
    return data_utils.load_indexed_dataset(str(folder / "test"), Dictionary.load(str(folder / "dict.txt")))


def test_whole_data_loads(dataset: Path) -> None:
    rows = load(dataset)
    assert [len(rows[i]) for i in range(3)] == [4, 3, 2]  # type: ignore[index, arg-type]


@pytest.mark.parametrize(
    ("suffix", "keep", "message"),
    [
        (".bin", -2, r"test\.bin has \d+ bytes instead of \d+: damaged; run hat preprocess again"),
        (".bin", 0, r"test\.bin"),
        (".idx", -9, r"test\.idx has \d+ bytes instead of \d+"),
        (".idx", 20, r"test\.idx has 20 bytes instead of 26"),
        (".idx", 4, r"test\.idx is damaged"),
    ],
)
def test_truncated_files_are_named(dataset: Path, suffix: str, keep: int, message: str) -> None:
    path = dataset / f"test{suffix}"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=message):
        load(dataset)


def test_text_for_another_dictionary_is_refused() -> None:
    dictionary = Dictionary()
    known, unknown = torch.tensor([dictionary.bos(), dictionary.eos()]), torch.full((9,), dictionary.unk())
    check_known([known, unknown[:2]], "the input")
    with pytest.raises(
        ValueError, match="the input: 9 of 11 tokens are not in the dictionary: text of another language"
    ):
        check_known([known, unknown], "the input")
    check_known([], "the input")


@pytest.mark.fault(
    "Preprocessing",
    "more than half of the tokens are not in the dictionary",
    "refused with --bpe and --vocabulary as the way out",
)
def test_preprocessing_refuses_text_of_another_language(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    line = '{"id": "a", "text": "One cat runs after two dogs.", "target": "A cat runs."}\n'
    (folder / "train.jsonl").write_text(line)
    common = ["--splitter", "punctuation", "--num-codes", "5"]
    assert cli.main(["preprocess", str(folder), "--out", str(tmp_path / "a"), *common]) == 0
    other = tmp_path / "other"
    other.mkdir()
    (other / "test.jsonl").write_text('{"id": "b", "text": "今天天气很好。", "target": "天气"}\n')
    words = ["preprocess", str(other), "--out", str(tmp_path / "b"), "--vocabulary", str(tmp_path / "a/bin")]
    assert cli.main([*words, "--splitter", "punctuation"]) == 2
    message = "tokens are not in the dictionary: text of another language than the vocabulary is of"
    assert message in capsys.readouterr().err and not (tmp_path / "b").exists()
    shutil.rmtree(tmp_path / "a")


@pytest.mark.fault("Input", "parallel text without blank lines", "refused above 500 lines")
def test_a_long_file_without_blank_lines_is_no_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for lines, status in ((500, 0), (501, 2)):
        folder = tmp_path / str(lines)
        folder.mkdir()
        for side in ("source", "target"):
            (folder / f"train.{side}").write_text(f"a segment of the {side} .\n" * lines)
        words = ["preprocess", str(folder), "--out", str(folder / "out"), "--num-codes", "5"]
        assert cli.main(words) == status
    assert "has 501 lines and no blank line, so it is one document" in capsys.readouterr().err


@pytest.mark.fault("Input", "a training or generation without data", "names the directory and `hat recipe preprocess`")
@pytest.mark.parametrize("recipe", ["ami_small", "roberta_pretraining"])
def test_a_recipe_without_its_data_names_the_command(recipe: str, run, tmp_path: Path) -> None:
    gpus = [] if recipe == "ami_small" else ["--gpus", 1, "--update-freq", 1]
    ended = run("hat", "recipe", "train", recipe, *gpus, cwd=tmp_path, check=False)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    message = f"hat_fairseq: error: data-bin/{recipe}/bin has no dictionary (dict*.txt): "
    assert message in ended.stderr and "`hat recipe preprocess NAME`" in ended.stderr
