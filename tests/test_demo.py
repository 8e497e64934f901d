"""`hat demo` refuses what it cannot do before anything starts, and plays its acts in folders of their own."""

import re
import sys
from pathlib import Path

import pytest
from commands import environment, refusal, run_command

from hat_fairseq import demo
from hat_fairseq.demo import ACTS, Act, Row


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "hat demo has no act 'nonsense'; its acts are papers, ask, labels, encoder"),
        (["asc"], "ask"),
        (["--max-update", "2"], "unrecognized arguments: --max-update"),
        (["ask", "papers"], "unrecognized arguments: papers"),
    ],
)
def test_other_acts_and_flags_are_refused(words: list[str], message: str, tmp_path: Path) -> None:
    run = run_command("hat", "demo", *words, cwd=tmp_path, check=False)
    assert run.returncode == 2
    assert message in run.stderr
    assert run.stderr.count("\n") == 1
    assert not run.stdout
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [["doctor", "--run"], ["train", "bin"]])
def test_an_installation_without_fairseq(words: list[str], tmp_path: Path) -> None:
    """-S leaves out all packages."""
    run = run_command(sys.executable, "-S", "-m", "hat_fairseq.cli", *words, cwd=tmp_path, check=False)
    assert run.returncode == 2
    assert not run.stdout
    assert not list(tmp_path.iterdir())
    assert "needs fairseq" in run.stderr
    assert "pip install 'hat_fairseq[train]'" in run.stderr
    assert run.stderr.count("\n") == 1
    assert "hat doctor" in run.stderr


def test_an_act_needs_what_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(demo.PACKAGES, "fairseq", ("gt-of-nobody", "train"))
    error = refusal("demo", "papers")
    assert "hat demo papers needs fairseq: pip install 'hat_fairseq[train]'; or the command" in error
    assert not list(tmp_path.iterdir())


def test_acts_are_played_in_new_folders_and_others_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "60")
    (old := demo.FOLDER / "good/old").parent.mkdir(parents=True)
    old.touch()

    def good() -> list[Row]:
        """Does something."""
        assert [path.name for path in Path.cwd().parent.iterdir()] == ["good"]
        assert not list(Path.cwd().iterdir())
        return [Row("a task", "9.0", "8.0 a rule"), Row("more", "1", "")]

    acts = {"good": Act(good, 5, ()), "absent": Act(good, 5, ("nobody's",))}
    monkeypatch.setattr(demo, "ACTS", acts)
    monkeypatch.setitem(demo.PACKAGES, "nobody's", ("gt-of-nobody", "nobody"))
    assert demo.main(demo.argparse.Namespace(act=None)) == 0
    shown = capsys.readouterr().out
    assert "1/1 good: Does something. About 5 s." in shown
    assert "absent was skipped: it needs nobody's: pip install" in shown
    assert re.search(r"\na task  9\.0   8\.0 a rule +0\nmore    1", shown)
    assert Path.cwd() == tmp_path
    with pytest.raises(ValueError, match="hat demo absent needs nobody's"):
        demo.main(demo.argparse.Namespace(act="absent"))


def test_a_text_is_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    demo.say("word " * 40)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 50
    assert " ".join(lines).split() == ["word"] * 40


@pytest.mark.slow
def test_all_acts(tmp_path: Path) -> None:
    """The figures are those of this run; a table of at most eight rows and three commands end it."""
    words = sys.executable, "-P", "-m", "hat_fairseq.cli", "demo"
    shown = run_command(*words, cwd=tmp_path, timeout=900, env=environment(COLUMNS="80")).stdout
    assert max(map(len, shown.splitlines())) < 80
    for number, name in enumerate(ACTS, start=1):
        assert f"{number}/{len(ACTS)} {name}: " in shown
        assert (tmp_path / demo.FOLDER / name / demo.LOG).is_file()
    said = " ".join(shown.split())
    assert "Turn 70, Project Manager:" in said
    assert said.count("Nothing in this meeting answers") == 1
    assert "writes nothing useful" in said
    assert "differ from those of transformers by at most" in said
    table = shown[shown.index("\ntask ") :].splitlines()[2:]
    rows = {row[:31].split(",")[0].strip(): row for row in table if not row.startswith(("All", "  "))}
    assert 4 <= len(rows) <= 8
    ours, words = re.findall(r" ([\d.]+)", rows["labels"])[:2]
    assert float(ours) > float(words) + 10
    assert [line.split()[1] for line in shown.splitlines()[-3:]] == ["ask", "recipe", "import"]
