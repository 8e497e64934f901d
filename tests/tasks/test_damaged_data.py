"""Binary data that is truncated or not made for its dictionary is refused when it is loaded."""

from collections import Counter
from pathlib import Path

import pytest
from commands import hat, refusal, write_lines
from fairseq.data import Dictionary, data_utils, indexed_dataset

from hat_fairseq.data.binarize import binarize_text
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary as TextDictionary
from hat_fairseq.register import register

register()


@pytest.mark.parametrize(
    ("suffix", "keep", "message"),
    [
        (".bin", -2, r"test\.bin has \d+ bytes instead of \d+: damaged; run hat preprocess again"),
        (".bin", 0, r"test\.bin"),
        (".idx", -9, r"test\.idx has \d+ bytes instead of \d+"),
        (".idx", 20, r"test\.idx has 20 bytes instead of 26"),
        (".idx", 4, r"test\.idx has 4 bytes instead of 26"),
    ],
)
def test_truncated_files_are_named(tmp_path: Path, suffix: str, keep: int, message: str) -> None:
    (tmp_path / "text").write_text("a b c\nb c\na\n")
    words = TextDictionary.build(Counter(["a", "b", "c", "b", "c", "a"]))
    words.save(tmp_path / "dict.txt")
    binarize_text(tmp_path / "text", words, tmp_path / "test", Blocks(tmp_path / "blocks"))
    dictionary, path = Dictionary.load(str(tmp_path / "dict.txt")), tmp_path / f"test{suffix}"
    assert [len(row) for row in data_utils.load_indexed_dataset(str(tmp_path / "test"), dictionary)] == [4, 3, 2]
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=message):
        data_utils.load_indexed_dataset(str(tmp_path / "test"), dictionary)


def test_half_of_a_further_part_is_named(tmp_path: Path) -> None:
    """fairseq reads `test`, `test1`, ... as one; it takes a part without its second file for the end."""
    (tmp_path / "text").write_text("a b c\n")
    words = TextDictionary.build(Counter("abc"))
    for name in ("test", "test1"):
        binarize_text(tmp_path / "text", words, tmp_path / name, Blocks(tmp_path / "blocks"))
    (tmp_path / "test1.bin").unlink()
    with pytest.raises(ValueError, match=r"test1\.bin is missing; run hat preprocess again"):
        indexed_dataset.dataset_exists(str(tmp_path / "test1"), "mmap")


@pytest.mark.fault(
    "Preprocessing",
    "more than half of the tokens are not in the dictionary",
    "refused with --bpe and --vocabulary as the way out",
)
def test_preprocessing_refuses_text_of_another_language(tmp_path: Path) -> None:
    row = {"id": "a", "text": "One cat runs after two dogs.", "target": "A cat runs."}
    write_lines(tmp_path / "mine/train.jsonl", [row])
    words = ["preprocess", tmp_path / "mine", "--splitter", "punctuation", "--num-codes", 5]
    assert hat(*words, "--out", tmp_path / "a") == 0
    write_lines(tmp_path / "other/test.jsonl", [{"id": "b", "text": "今天天气很好。", "target": "天气"}])
    words = ["preprocess", tmp_path / "other", "--out", tmp_path / "b", "--vocabulary", tmp_path / "a/bin"]
    message = "tokens are not in the dictionary: text of another language than the vocabulary is of"
    assert message in refusal(*words, "--splitter", "punctuation") and not (tmp_path / "b").exists()


@pytest.mark.fault("Input", "parallel text without blank lines", "refused above 500 lines")
def test_a_long_file_without_blank_lines_is_no_document(tmp_path: Path) -> None:
    for lines in (500, 501):
        folder = tmp_path / str(lines)
        folder.mkdir()
        for side in ("source", "target"):
            (folder / f"train.{side}").write_text(f"a segment of the {side} .\n" * lines)
        words = ["preprocess", folder, "--out", folder / "out", "--num-codes", 5]
        assert lines == 501 or hat(*words) == 0
    assert "has 501 lines and no blank line, so it is one document" in refusal(*words)
