"""The tutorials: their data, and every command of their pages, run in a shell as it is printed."""

import re
from collections import Counter
from pathlib import Path

import pytest
from commands import REPOSITORY, environment, hat, read_lines, refusal, run_command
from minilm import needs_minilm
from warm import WarmPython

from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.records_json import record_from_json

KINDS = {
    "summaries": "text",
    "labels": "classification",
    "translations": "text",
    "transcripts": "evidence",
}


def page(name: str) -> str:
    return (REPOSITORY / f"docs/tutorial_{name}.md").read_text(encoding="utf-8")


def run_page(text: str, folder: Path, warm: WarmPython) -> str:
    """Runs the commands of a page in a shell, as in an active environment; returns what they print."""
    commands = "".join(re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    return run_command("bash", "-euc", commands, cwd=folder, env=environment(PATH=warm.programs), timeout=1500).stdout


def score(printed: str, row: str) -> float:
    """The first number of the first row with this name."""
    return float(re.findall(rf"^{row}\S*\s+(\d+\.\d+)", printed, re.MULTILINE)[0])


def constant(text: str) -> float:
    """The score of the baseline that a page states."""
    (stated,) = re.findall(r"^\| baseline: .* \| ([\d.]+) \|$", text, re.MULTILINE)
    return float(stated)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "tutorial"
    assert hat("recipe", "copy", "tutorial", folder) == 0
    return folder


def test_the_data(data: Path, tmp_path: Path) -> None:
    """300 records of each kind, the same in each run, that the readers take; a folder that exists stays."""
    assert hat("recipe", "copy", "tutorial", tmp_path / "again") == 0
    for name, kind in KINDS.items():
        texts = set()
        for split, number in {"train": 240, "valid": 30, "test": 30}.items():
            path = data / name / f"{split}.jsonl"
            assert path.read_bytes() == (tmp_path / "again" / name / f"{split}.jsonl").read_bytes()
            records = [record_from_json(row, str(path), kind_of(kind)) for row in read_lines(path)]
            assert len(records) == number
            texts |= {str(record.parts[-1]) for record in records}
        assert len(texts) == 300, "no document is there twice"
    assert min(len(row["text"].split()) for row in read_lines(data / "labels/train.jsonl")) > 400
    for row in read_lines(data / "transcripts/test.jsonl"):
        turns = [row["turns"][number]["text"] for (number,) in row["evidence"]]
        assert turns[0].startswith("The next meeting is")
        assert "leads the work" in turns[2]
    assert "already exists" in refusal("recipe", "copy", "tutorial", data)
    assert "takes the name of a folder only: remove 'b'" in refusal("recipe", "copy", "tutorial", "a", "b")


def test_the_baselines_that_the_pages_state(data: Path) -> None:
    labels = Counter(row["label"] for row in read_lines(data / "labels/test.jsonl"))
    assert constant(page("labels")) == round(100 * max(labels.values()) / 30, 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "row", "better_by"),
    [
        pytest.param("labels", r"results/labels/test\.jsonl", 40, marks=needs_minilm),
        ("translation", r"results/translations\.jsonl", 30),
        pytest.param("transcripts", r"results/transcripts\.jsonl", 20, marks=needs_minilm),
    ],
)
def test_a_page_runs_as_it_is_printed(name: str, row: str, better_by: float, tmp_path: Path, warm: WarmPython) -> None:
    text = page(name)
    assert len(text.splitlines()) <= 90
    assert score(run_page(text, tmp_path, warm), row) > constant(text) + better_by


@pytest.mark.slow
def test_the_summaries(data: Path, tmp_path: Path, warm: WarmPython) -> None:
    """The commands for `news` with the folder of the tutorial in its place, as the page says."""
    text = page("summaries").replace("hat preprocess news", f"hat preprocess {data}/summaries")
    (tmp_path / "new.jsonl").write_text('{"id": "a", "text": "The next meeting is on Monday in the school."}\n')
    printed = run_page(text, tmp_path, warm)
    assert score(printed, r"results/news/test\.jsonl") > constant(text) + 3
