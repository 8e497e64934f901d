"""Parallel text: a file for each language, documents divided by blank lines."""

from collections import Counter
from pathlib import Path

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record


def both(folder: Path, source: str, target: str) -> list[Record]:
    (folder / "train.source").write_bytes(source.encode())
    (folder / "train.target").write_bytes(target.encode())
    return list(find_reader(str(folder)).read("train", None, Counter()))


def test_blank_lines_carriage_returns_and_byte_order_marks(tmp_path: Path) -> None:
    documents = both(tmp_path, "\ufeff\r\n a \r\n\ufeffb\r\n\t\r\n\r\nc", "\nA\nB\n\n \nC\n")
    assert [(one.elements, one.target) for one in documents] == [((" a ", "\ufeffb"), ("A", "B")), (("c",), ("C",))]
    assert documents[1].origin == "train.source:6-6, train.target:6-6"


def test_segments_may_differ_in_number(tmp_path: Path) -> None:
    first, second = both(tmp_path, "a\nb\n\nc\n", "A\n\nC\n")  # it is left to the pipeline
    assert (first.elements, first.target, second.target) == (("a", "b"), ("A",), ("C",))


def test_a_file_of_at_most_500_lines_is_one_document(tmp_path: Path) -> None:
    """Longer ones without a blank line are refused."""
    (document,) = both(tmp_path, "a segment .\n" * 500, "A segment .\n" * 500)
    assert len(document.elements or ()) == 500
