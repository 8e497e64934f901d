import io
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.gpt2_bpe import read_gpt2

CODES = Path(__file__).parents[1] / "samples" / "fastbpe.codes"


def subword_nmt(bpe: LearnedBpe):  # type: ignore[no-untyped-def]
    """The reference implementation with the same codes, which it wants without counts."""
    apply_bpe = pytest.importorskip("subword_nmt.apply_bpe", reason="pip install subword-nmt (test extra)")
    codes = "".join(f"{left} {right}\n" for left, right in bpe.merges)
    return apply_bpe.BPE(io.StringIO("#version: 0.2\n" + codes))


def test_equals_subword_nmt_on_meetings(learned_bpe: LearnedBpe, lines: list[str]) -> None:
    reference = subword_nmt(learned_bpe)
    for line in lines:
        assert learned_bpe.encode(line) == reference.segment_tokens(line.split())


@pytest.mark.parametrize(
    "text", ["日本 naïve 🙂x x🙂 🙂", "foo@@ @@ @ @@@ a@@b @@c d@", "</w> the</w> the</w>y <unk> <s>", "e\u0301", ""]
)
def test_unseen_characters_and_marks_in_the_text_are_not_lost(text: str, learned_bpe: LearnedBpe) -> None:
    assert learned_bpe.decode(learned_bpe.encode(text)) == text


def test_a_learned_piece_that_looks_like_a_continuation_mark() -> None:
    bpe = LearnedBpe.learn(["@@ @@ x@@ x@@"], num_codes=5)
    assert ("@", "@</w>") in bpe.merges
    for text in ("@@ a", "x@@ @@ x@@@ @"):
        assert bpe.decode(bpe.encode(text)) == text


def test_fairseq_undoes_it_too(learned_bpe: LearnedBpe, lines: list[str]) -> None:
    from fairseq.data.data_utils import post_process

    for line in [*lines[:300], "foo@@ bar @@ @@@ a@@b"]:
        assert post_process(" ".join(learned_bpe.encode(line)), "subword_nmt") == " ".join(line.split())


LEARN = """
import sys, types

package = types.ModuleType("hat_fairseq")  # the package itself would import torch and fairseq, which takes long
package.__path__ = [sys.argv[1]]
sys.modules["hat_fairseq"] = package

from hat_fairseq.data.files import read_lines
from hat_fairseq.data.bpe import LearnedBpe

lines = [line for _, line in read_lines(sys.argv[2])]
for number in range(2):
    LearnedBpe.learn(reversed(lines) if number else lines, 3000).save(f"{sys.argv[3]}.{number}")
"""


@pytest.mark.slow
def test_learning_depends_on_nothing_but_the_words(lines: list[str], tmp_path: Path) -> None:
    """Hash tables are seeded anew in every process: learn in several, and from the lines in another order."""
    (tmp_path / "lines").write_text("\n".join(lines))
    package = Path(__file__).resolve().parents[2] / "hat_fairseq"
    for run in range(3):
        command = [sys.executable, "-c", LEARN, str(package), str(tmp_path / "lines"), str(tmp_path / f"codes.{run}")]
        subprocess.run(command, check=True)
    codes = [path.read_bytes() for path in tmp_path.glob("codes.*")]
    assert len(codes) == 6
    assert len(set(codes)) == 1
    assert codes[0].count(b"\n") == 3000


def test_codes_of_fastbpe_are_read_and_applied(lines: list[str], tmp_path: Path) -> None:
    """`fastbpe.codes` is what `fast learnbpe 1000` of fastBPE 0.1.0 wrote for the turns of 20 meetings."""
    codes = LearnedBpe.load(CODES)
    columns = [line.split(" ") for line in CODES.read_text(encoding="utf-8").splitlines()]
    assert codes.merges == [(left, right) for left, right, _ in columns]
    assert len(codes.merges) == 1000
    reference = subword_nmt(codes)
    assert [codes.encode(line) for line in lines] == [reference.segment_tokens(line.split()) for line in lines]
    codes.save(tmp_path / "codes")
    written = [line.split(" ") for line in (tmp_path / "codes").read_text(encoding="utf-8").splitlines()]
    assert written == [[left, right, "0"] for left, right, _ in columns]


def test_a_word_of_fifty_thousand_characters(learned_bpe: LearnedBpe) -> None:
    word = "theremotecontrol" * 3125
    begin = time.process_time()
    assert learned_bpe.decode(learned_bpe.encode(word)) == word
    assert time.process_time() - begin < 5  # about 0.1 on an idle machine


def test_nothing_to_learn_from_is_refused() -> None:
    with pytest.raises(ValueError, match="no words to learn"):
        LearnedBpe.learn(["", " "], 10)


def test_a_cache_stays_behind(gpt2_files: tuple[Path, Path], lines: list[str]) -> None:
    for bpe in (read_gpt2(*gpt2_files), LearnedBpe.learn(lines[:300], 100)):
        tokens = bpe.encode(lines[0])
        size = len(pickle.dumps(bpe))
        for line in lines[:500]:
            bpe.encode(line)
        copy = pickle.loads(pickle.dumps(bpe))
        assert len(pickle.dumps(bpe)) <= size + 100
        assert copy.encode(lines[0]) == tokens
