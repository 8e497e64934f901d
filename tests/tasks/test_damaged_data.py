"""Binary data that is truncated or not made for its dictionary is refused when it is loaded."""

from collections import Counter
from pathlib import Path

import pytest
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
