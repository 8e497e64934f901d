"""Dictionaries and binary datasets have the bytes that fairseq-preprocess writes."""

import shutil
from collections import Counter
from pathlib import Path

import pytest
from warm import WarmPython

from hat_fairseq.data.binarize import binarize
from hat_fairseq.data.blocks import Blocks
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.files import files_below
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.workers import Workers

LINES = {
    "source": ["<s> a b@@ c <s> \ufeffd é \U0001f600", "<s> a a a", "", "<s> <unk> zzz madeupword0001 </s> <pad> b@@"],
    "target": ["a c", "\ufeffd", "x <sep> y x", "<s> never seen"],
}
SPLITS = ("train", "valid", "test", "test1")


def write_texts(folder: Path) -> None:
    (folder / "text").mkdir(parents=True)
    for side, lines in LINES.items():
        for split, part in (("train", lines), ("valid", lines[::-1]), ("test", lines[:1]), ("test1", lines[3:])):
            text = "".join(f"{line}\n" for line in part)
            (folder / f"text/{split}.{side}").write_text(text, encoding="utf-8", newline="\n")


def same_as_fairseq(
    folder: Path, kind: str, warm: WarmPython, fixed: str | None, *calls: str, workers: int = 1
) -> dict[str, int]:
    """Compares the files that calls of fairseq-preprocess write with ours; returns the unknown tokens of each text."""
    fairseq, hat = folder / "fairseq", folder / "hat"
    for copy in (fairseq, hat):
        shutil.copytree(folder / "data", copy)
    for call in calls:
        warm.run(["fairseq_cli.preprocess", *call.split(), "--workers", str(workers)], fairseq, folder / "log")
    splits = [split for split in SPLITS if (hat / f"text/{split}.source").exists()]
    blocks = Blocks(folder / "blocks", Workers(workers))
    sides = ("source", "target")[: 1 + KINDS[kind].has_target]
    texts = (hat / f"text/{splits[0]}.{side}" for side in sides)
    tokens = Counter(token for text in texts for token in text.read_text(encoding="utf-8").split())
    dictionary = Dictionary.load(hat / fixed) if fixed else Dictionary.build(tokens)
    unknown = binarize(hat, KINDS[kind], splits, dictionary, blocks)
    names = [name for name in files_below(fairseq) if not name.endswith("preprocess.log")]
    assert names == files_below(hat)
    assert len(names) > 8
    for name in names:
        assert (fairseq / name).read_bytes() == (hat / name).read_bytes(), name
    return unknown


PAIR = "--destdir bin --source-lang source --target-lang target"


@pytest.mark.slow
def test_a_joined_dictionary_and_both_sides(tmp_path: Path, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    call = f"{PAIR} --trainpref text/train --validpref text/valid --testpref text/test,text/test1 --joined-dictionary"
    unknown = same_as_fairseq(tmp_path, "text", warm, None, call, workers=2)
    assert len(unknown) == 8
    assert set(unknown.values()) == {0}


def test_a_fixed_dictionary_counts_what_it_lacks(tmp_path: Path, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    (tmp_path / "data/bin").mkdir()
    (tmp_path / "data/bin/dict.txt").write_text(
        "a 7\nb@@ 3\na 1 #fairseq:overwrite\né 0\nx 1\ny 1\nnever 1\nseen 1\n<sep> 1\n", encoding="utf-8"
    )
    (tmp_path / "data/text/role.labels").write_text("PM 1\nUI 1\n", encoding="utf-8")
    for path in (tmp_path / "data/text").glob("test*"):
        path.unlink()
    for split in ("train", "valid"):
        (tmp_path / f"data/text/{split}.role").write_text("PM PM\nUI\nUI ID\n\n", encoding="utf-8")
    texts = "--trainpref text/train --validpref text/valid --srcdict"
    roles = f"--destdir bin --source-lang role --target-lang None --only-source {texts} text/role.labels"
    calls = (f"{PAIR} {texts} bin/dict.txt --tgtdict bin/dict.txt", roles)
    unknown = same_as_fairseq(tmp_path, "text", warm, "bin/dict.txt", *calls)
    assert unknown["train.source"] == 5
    assert unknown["train.role"] == 1  # an <unk> of the text is none


@pytest.mark.parametrize(("kind", "folder"), [("classification", "bin/input0"), ("mlm", "bin")])
def test_examples_with_labels(kind: str, folder: str, tmp_path: Path, warm: WarmPython) -> None:
    write_texts(tmp_path / "data")
    for path in (tmp_path / "data/text").iterdir():
        if path.name.startswith("test") or path.suffix == ".target":
            path.unlink()
    for split in ("train", "valid"):
        (tmp_path / f"data/text/{split}.label").write_text("yes\nno\nyes\nno\n", encoding="utf-8")
    (tmp_path / "data/text/label.labels").write_text("no 1\nyes 1\n", encoding="utf-8")
    texts = [f"--only-source --trainpref text/train.{s} --validpref text/valid.{s}" for s in ("source", "label")]
    calls = f"{texts[0]} --destdir {folder}", f"{texts[1]} --destdir bin/label --srcdict text/label.labels"
    same_as_fairseq(tmp_path, kind, warm, None, *calls)


def test_a_large_dictionary_takes_four_bytes(tmp_path: Path, warm: WarmPython) -> None:
    (tmp_path / "data/text").mkdir(parents=True)
    (tmp_path / "data/bin").mkdir()
    for side in ("source", "target"):
        (tmp_path / f"data/text/train.{side}").write_text("w1 w65495 w70000 w0 w2 w3\n", encoding="utf-8")
    text = "".join(f"w{number} 1\n" for number in range(65500 - 4))  # and four special symbols
    (tmp_path / "data/bin/dict.txt").write_text(text, encoding="utf-8")
    call = f"{PAIR} --trainpref text/train --srcdict bin/dict.txt --tgtdict bin/dict.txt"
    same_as_fairseq(tmp_path, "text", warm, "bin/dict.txt", call)
