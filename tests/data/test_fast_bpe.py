"""Codes learned by fastBPE's own program, and the same codes applied by its package.

``tests/samples/fastbpe.codes`` is what ``fast learnbpe 1000`` of fastBPE 0.1.0 wrote for the turns of the 20 AMI
meetings of the validation split, one on each line.
"""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections import Counter
from pathlib import Path

import fastBPE
import pytest

from hat_fairseq.data import bpe
from hat_fairseq.data.files import read_lines

CODES = Path(__file__).parents[1] / "samples" / "fastbpe.codes"
AWKWARD = [
    "日本 naïve 🙂x x🙂 🙂",
    "foo@@ @@ @ @@@ a@@b @@c d@",
    "</w> the</w>y <unk>",
    "e\u0301",
    "",
    " a  b ",
]


def test_codes_of_fast_bpe_are_applied_as_it_applies_them(lines: list[str]) -> None:
    """On every turn of the meetings of the tests, by both of our kinds."""
    package = fastBPE.fastBPE(str(CODES), "")
    expected = [pieces.split() for pieces in package.apply(lines)]
    assert sum(len(pieces) for pieces in expected) > sum(len(line.split()) for line in lines)
    for kind in ("learned", "fastbpe"):
        ours = bpe.from_codes(kind, CODES)
        assert [ours.encode(line) for line in lines] == expected, kind


@pytest.mark.parametrize("text", AWKWARD)
def test_nothing_is_lost_and_both_kinds_agree(text: str) -> None:
    learned, fast = bpe.from_codes("learned", CODES), bpe.from_codes("fastbpe", CODES)
    assert fast.encode(text) == learned.encode(text)
    assert fast.decode(fast.encode(text)) == " ".join(text.split())


def test_the_mark_in_the_text_is_no_continuation_mark() -> None:
    fast = bpe.learn("fastbpe", Counter(["@@", "@@", "x@@", "x@@"]), 5)
    assert fast.decode(fast.encode("x@@ @@ x")) == "x@@ @@ x"


def test_both_kinds_write_the_file_they_read(tmp_path: Path, lines: list[str]) -> None:
    for kind in ("learned", "fastbpe"):
        assert bpe.save_bpe(bpe.from_codes(kind, CODES), tmp_path) == ("bpe.codes",)
        assert (tmp_path / "bpe.codes").read_bytes() == CODES.read_bytes()
        assert bpe.load_bpe(kind, tmp_path).encode(lines[0]) == bpe.from_codes("learned", CODES).encode(lines[0])


def test_fast_bpe_reads_the_codes_that_we_learn(lines: list[str], tmp_path: Path) -> None:
    learned = bpe.learn("learned", Counter(" ".join(lines).split()), 500)
    bpe.save_bpe(learned, tmp_path)
    package = fastBPE.fastBPE(str(tmp_path / "bpe.codes"), "")
    assert [pieces.split() for pieces in package.apply(lines)] == [learned.encode(line) for line in lines]


def test_it_goes_to_another_process(lines: list[str]) -> None:
    fast = bpe.from_codes("fastbpe", CODES)
    fast.encode(lines[0])
    assert pickle.loads(pickle.dumps(fast)).encode(lines[0]) == fast.encode(lines[0])


def test_a_missing_package_is_one_error_with_the_way_out() -> None:
    program = (
        "import sys; sys.modules['fastBPE'] = None\n"
        "from hat_fairseq.data import bpe\n"
        "try: bpe.learn('fastbpe', {'a': 1}, 1)\n"
        "except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install --no-build-isolation fastBPE" in done.stdout and "--bpe learned" in done.stdout


def test_codes_are_not_for_gpt2() -> None:
    with pytest.raises(ValueError, match="not 'gpt2'"):
        bpe.from_codes("gpt2", CODES)


def test_the_sample_is_a_code_file() -> None:
    assert sum(1 for _ in read_lines(CODES)) == 1000
