from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from releases import RELEASES, write_lines

from hat_fairseq.data.readers import find_reader
from hat_fairseq.data.record import Record


def read(split: str, root: Path | None, counts: Counter[str] | None = None) -> list[Record]:
    return list(find_reader("samsum").read(split, root, Counter() if counts is None else counts))


def one_chat(root: Path, dialogue: str, counts: Counter[str]) -> list[tuple[str, str]]:
    """Role and text of each turn."""
    write_lines(root / "train.jsonl", [{"id": "a", "summary": "Somebody chats.", "dialogue": dialogue}])
    (chat,) = read("train", root, counts)
    return list(zip(chat.roles or (), chat.sentences or (), strict=True))


def chats() -> list[dict[str, str]]:
    return json.loads((RELEASES / "samsum/val.json").read_text())


def as_csv(root: Path) -> None:
    with open(root / "val.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["id", "dialogue", "summary"])
        writer.writeheader()
        writer.writerows(chats())


FORMS: dict[str, Callable[[Path], object]] = {
    "JSON list": lambda root: shutil.copy(RELEASES / "samsum/val.json", root),
    "JSON lines": lambda root: write_lines(root / "validation.jsonl", chats()),
    "CSV": as_csv,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_chats(form: str, tmp_path: Path) -> None:
    FORMS[form](tmp_path)
    first, second = read("valid", tmp_path)
    assert first.sentences == (
        "Ann: Dov Levi paints clocks.",
        "Bob Smith: The painter lives in Haifa.",
        "Ann: A new exhibition opens in May.",
    )
    assert first.roles == second.roles == ("S1", "S2", "S1")
    assert first.id == "c3" and first.target == ("Dov Levi shows new pictures. The exhibition opens in May.",)


def test_all_splits_are_read_and_nothing_is_changed() -> None:
    counts: Counter[str] = Counter()
    assert [len(read(split, RELEASES / "samsum", counts)) for split in ("train", "valid", "test")] == [3, 2, 2]
    assert counts == Counter()


def test_lines_are_turns_and_names_are_numbered(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    dialogue = "Ann: Hi Bob :)\r\nBob Smith: <file_photo>\n\nAnn:😍\nlook: \nat that\nBob Smith : ok\r\n"
    assert one_chat(tmp_path, dialogue, counts) == [
        ("S1", "Ann: Hi Bob :)"),
        ("S2", "Bob Smith: <file_photo>"),
        ("S1", "Ann:😍"),
        ("S3", "look: at that"),  # who writes "look:" cannot be told from a name
        ("S2", "Bob Smith : ok"),
    ]
    assert counts == Counter(lines_without_speaker=1)


@pytest.mark.parametrize(
    "line",
    ["still me", ":D", "12:30 then", "https://example.org/", "<file:video>", "and so the five of us said: no", "7: 8"],
)
def test_a_line_without_a_name_goes_on_with_the_turn_before(line: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    assert one_chat(tmp_path, f"Ann: one\n{line}\nBob: two", counts) == [("S1", f"Ann: one {line}"), ("S2", "Bob: two")]
    assert counts == Counter(lines_without_speaker=1)


def test_a_first_line_without_a_name_is_a_turn(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    assert one_chat(tmp_path, "hello?\nAnn: hi", counts) == [("S1", "hello?"), ("S2", "Ann: hi")]
    assert counts == Counter(lines_without_speaker=1)


def test_the_ninth_speaker_shares_the_role_of_the_eighth(tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    names = [f"Speaker {letter}" for letter in "ABCDEFGHIJ"]
    chat = one_chat(tmp_path, "\n".join(f"{name}: hello" for name in names), counts)
    assert [role for role, _ in chat] == ["S1", "S2", "S3", "S4", "S5", "S6", "S7", "S8", "S8", "S8"]
    assert counts == Counter(speakers_beyond_the_last_role=2)


def test_an_empty_chat_is_left_to_the_pipeline(tmp_path: Path) -> None:
    assert one_chat(tmp_path, "", Counter()) == []
    assert find_reader("samsum").defaults["on_empty"] == "drop"


REFUSED: list[tuple[Callable[[Path], object], str]] = [
    (lambda root: None, r"expected one file train\.csv or train\.jsonl or train\.json \(also \.gz\), found none"),
    (lambda root: (root / "train.json").write_text('[\n{"id": "a",'), r"train\.json:2: no JSON .* cut off"),
    (lambda root: (root / "train.json").write_text('[{"id": "a"}]'), "record 1: expected an object with id, dialogue"),
    (
        lambda root: write_lines(root / "train.jsonl", [{"id": 1, "dialogue": "A: b", "summary": "c"}]),
        r"train\.jsonl:1: id must be a string, not 1",
    ),
    (
        lambda root: (root / "train.json").write_text(json.dumps([{"id": "", "dialogue": "A: b", "summary": "c"}])),
        r"train\.json, record 1: document '': its id is empty",
    ),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_what_is_no_release_is_refused(make: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    make(tmp_path)
    with pytest.raises(ValueError, match=message):
        read("train", tmp_path)


def test_a_root_is_needed() -> None:
    with pytest.raises(
        ValueError, match=r"--root DIR is required: .* containing train\.json, val\.json and test\.json"
    ):
        read("train", None)
