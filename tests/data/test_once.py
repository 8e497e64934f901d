"""Between disk and row a record is parsed once, and each of its texts is normalised once."""

import gzip
import json
import re
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from commands import REPOSITORY, hat, write_lines

from hat_fairseq.data.records_json import record_from_json
from hat_fairseq.data.text import normalise

WORD = re.compile(r"w\d+")


def words(numbers: Iterator[int]) -> str:
    """A text of two sentences, none of whose words any other text has."""
    return f"W w{next(numbers)} and w{next(numbers)}. The  w{next(numbers)} was."


def records(kind: str) -> list[dict[str, Any]]:
    numbers = count()
    made: list[dict[str, Any]] = []
    for n in range(6):
        texts = [words(numbers) for _ in range(5)]
        turns = [{"role": "PM", "text": text} for text in texts[1:]]
        made.append(
            {
                "aligned": {"sentences": texts[:2], "target": texts[2:4]},
                "roles": {"turns": turns, "target": texts[:1]},
                "text": {"question": texts[0], "text": "\n\n".join(texts[1:3]), "target": texts[3:]},
                "classification": {"text": texts[0], "second": texts[1], "label": str(n % 2)},
                "choice": {"text": texts[0], "choices": texts[1:], "label": n % 4},
                "candidates": {"question": texts[0], "text": texts[1], "candidates": texts[2:], "label": n % 3},
                "segments": {"segments": texts, "labels": list("abcde")},
                "tokens": {"words": [f"w{next(numbers)}", f"w{next(numbers)}"], "labels": ["a", "b"]},
                "qa": {"question": texts[0], "text": texts[1], "answers": [{"text": texts[1][2:6], "start": 2}]},
                "document_qa": {"question": texts[0], "paragraphs": texts[1:], "annotations": [{"paragraph": 1}]},
                "evidence": {
                    "questions": texts[:1],
                    "turns": [{"text": text} for text in texts[1:]],
                    "evidence": [[0]],
                },
                "mlm": {"text": texts[0]},
            }[kind]
            | {"id": str(n)}
        )
    return made


OPTIONS = {
    "aligned": "--aligned --source-tokenizer moses --target-tokenizer moses",
    "roles": "--roles both",
    "segments": "",
    "tokens": "",
    "document_qa": "",
}
KINDS = [*OPTIONS, "text", "classification", "choice", "candidates", "qa", "evidence", "mlm"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_record_is_parsed_once_and_a_text_normalised_once(kind: str, tmp_path: Path) -> None:
    made = records(kind)
    write_lines(tmp_path / "raw/train.jsonl", made)
    parsed, normalised = Counter[str](), Counter[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code is record_from_json.__code__:
            parsed[frame.f_locals["value"]["id"]] += 1
        elif event == "call" and frame.f_code is normalise.__code__:
            normalised.update(WORD.findall(frame.f_locals["text"]))

    options = OPTIONS.get(kind, "--splitter punctuation").split()
    data_kind = "text" if kind in ("aligned", "roles") else kind
    sys.setprofile(watch)
    try:
        out = tmp_path / "out"
        assert hat("preprocess", tmp_path / "raw", "--kind", data_kind, "--out", out, "--num-codes", 50, *options) == 0
    finally:
        sys.setprofile(None)
    assert parsed == Counter(2 * [record["id"] for record in made])  # the second time as it is stored, with all done
    assert normalised == Counter(set(WORD.findall(json.dumps(made))))


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "predict model.pt data --device cpu --out predicted.jsonl",
        "preprocess raw --kind classification --vocabulary data/bin --out other",
    ],
)
def test_a_bpe_is_loaded_once(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(REPOSITORY / "tests/golden/predictions/classification", tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.pt").write_bytes(gzip.decompress((tmp_path / "model.pt.gz").read_bytes()))
    monkeypatch.chdir(tmp_path)
    assert hat("preprocess", "raw", "--kind", "classification", "--num-codes", 60, "--out", "data") == 0
    counts = Counter[str]()

    def watch(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and Path(code.co_filename).parent.name == "data" and code.co_name in ("load", "normalise"):
            text = frame.f_locals.get("text", "")
            counts[f"{Path(code.co_filename).stem}.{code.co_name} {text}"] += 1

    sys.setprofile(watch)
    try:
        assert hat(*words.split()) == 0
    finally:
        sys.setprofile(None)
    assert counts["bpe.load "] == 1
    texts = Counter(name for name in counts.elements() if name.startswith("text.normalise"))
    assert len(texts) > 5
    assert set(texts.values()) == {1}
