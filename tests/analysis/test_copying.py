"""`examples/copying.py`: sentences of an output with a run of words of the source."""

from pathlib import Path

import pytest
from commands import write_lines
from copying import Copy, copies, main


def test_the_longest_run_of_words_counts() -> None:
    """Whatever the punctuation, and the first of several units."""
    source = ("So, the remote is yellow today.", "Yes: the remote IS yellow today, and it floats.", "Oh no.")
    assert copies(["Today the remote is yellow today and costs.", "It floats."], source) == [Copy(0, 1, 6)]
    assert copies(["黄色いリモコンです"], ["それは黄色いリモコンだ", "黄色いです"]) == [Copy(0, 0, 7)]
    assert copies([], source) == copies(["no match"], []) == []


def test_copies_of_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    documents = write_lines(tmp_path / "d.jsonl", [{"id": n, "sentences": ["A b c d e f."]} for n in "xyz"])
    texts = [{"id": "z", "text": "No. B c d e f g."}, {"id": "x", "text": "A b."}]
    main(str(documents), str(write_lines(tmp_path / "h.jsonl", texts)))
    assert capsys.readouterr().out == '{"id": "z", "sentence": 1, "unit": 0, "words": 5}\n'
