"""Each option of `hat preprocess` changes the data of every kind, or is refused, also beside other options."""

import argparse
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import REPOSITORY, hat, write_lines
from golden_hashes import hashes

from hat_fairseq.data import preprocess

TEXT = "One two three. Four\nfive? Six seven eight nine ten eleven. Twelve."
SEGMENTS = ["One two (three).", "Four five six seven ?", "Eight , nine ten .", "Eleven ."]
WORDS = " ".join(SEGMENTS).split()
ASKED = {"question": "Which? Say it.", "text": TEXT}
RECORDS: dict[str, dict[str, Any]] = {
    "text": {
        "sentences": SEGMENTS,
        "target": ["One .", "Four is less than five , and five than six .", "Nine .", "Ten ."],
    },
    "classification": {"text": TEXT, "label": "a"},
    "segments": {"segments": SEGMENTS, "labels": ["a", "b", "a", "a"]},
    "tokens": {"words": WORDS, "labels": ["a"] * len(WORDS)},
    "choice": {**ASKED, "choices": ["One. Two.", "Three."], "label": 1},
    "candidates": {**ASKED, "candidates": ["One. Two.", "Three."], "label": 1},
    "qa": {**ASKED, "answers": [{"text": "Four", "start": 15}]},
    "document_qa": {
        "question": "Which?",
        "paragraphs": SEGMENTS,
        "annotations": [{"paragraph": 1, "spans": [{"text": "Four", "start": 0}]}],
    },
    "mlm": {"text": TEXT},
}
BPE = f"--bpe gpt2 --bpe-dir {REPOSITORY}/tests/golden/preprocess/bpe/gpt2"
CONTEXTS = (  # options beside which each other one is tried
    "",
    f"{BPE} --splitter punctuation",
    f"{BPE} --max-source-tokens 60 --long-source truncate",
    f"{BPE} --splitter punctuation --max-source-tokens 60 --long-source chunk",
    f"{BPE} --segments none",
    f"{BPE} --segments packed --segment-length 6",
    f"{BPE} --aligned --max-source-tokens 16 --max-target-tokens 12 --long-source chunk",
)
# Where, how fast, and what changes no text: names of languages, for scores; --partial, which all readers accept. For
# --on-empty, --aligned and --on-misaligned test_empty.py and test_aligned.py have documents.
NOT_OF_RESULT = {"help", "out", "workers", "cluster", "overwrite", "kind", "vocabulary", "partial"}
NOT_OF_RESULT |= {"source_language", "target_language", "on_empty", "aligned", "on_misaligned"}
VALUES: dict[str, list[object]] = {"bpe_dir": ["x"], "root": ["x"], "columns": ["text=x"], "splits": ["train"]}
OF_TYPE: dict[Any, list[object]] = {int: [3, 20], float: [0.1]}


def values(action: argparse.Action) -> list[object]:
    if isinstance(action, argparse.BooleanOptionalAction):
        return [None]
    return list(action.choices or VALUES.get(action.dest) or OF_TYPE[action.type])


@pytest.mark.slow
@pytest.mark.parametrize("kind", RECORDS)
def test_each_option_changes_the_data_or_is_refused(kind: str, tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.chdir(tmp_path)
    for split, number in (("train", 4), ("valid", 2)):
        rows = [{"id": f"{split}{n}", **RECORDS[kind]} for n in range(number)]
        for row in rows[1::2]:  # questions without answer
            row |= {key: [] if key == "answers" else [{}] for key in ("answers", "annotations") if key in row}
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)

    def outcome(words: list[str]) -> dict[str, str]:
        """The hashes of the data without the settings; none if the command is refused."""
        status = hat("preprocess", "raw", "--kind", kind, "--out", "out", *words)
        written = {} if status else hashes(Path("out"))
        shutil.rmtree("out", ignore_errors=True)
        return {name: value for name, value in written.items() if not name.endswith("pipeline.json")}

    parser = argparse.ArgumentParser()
    preprocess.add_arguments(parser)
    options = [each for each in parser._actions if each.option_strings and each.dest not in NOT_OF_RESULT]
    ignored = []
    for context in CONTEXTS:
        if not (usual := outcome(context.split())):
            continue
        for action in options:
            flag = action.option_strings[0]
            if flag in context.split():
                continue
            others = [value for value in values(action) if f"(default: {value})" not in str(action.help)]
            results = [outcome([*context.split(), flag, *([] if v is None else [str(v)])]) for v in others]
            if all(result == usual for result in results):
                ignored.append(f"{context}: {flag}")
    assert not ignored
    capfd.readouterr()
