"""Figures of pages and tables are what the rows of results give, and the parts of the studies compute what they say."""

import gzip
import runpy
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import figures
import intervals
import paper_organisms
import pytest
import render_studies
import study_table
import summaries

STUDIES = Path(render_studies.__file__).parent
MARKED = [path for path in figures.PAGES if figures.MARKED.search(path.read_text(encoding="utf-8"))]


@pytest.mark.slow
def test_the_tables_are_rendered_from_the_results() -> None:
    assert (STUDIES / "tables.md").read_text(encoding="utf-8") == render_studies.page()


@pytest.mark.parametrize("path", MARKED, ids=lambda path: path.name)
def test_a_page_has_the_figures_of_the_rows(path: Path) -> None:
    """`python studies/figures.py` writes them."""
    text = path.read_text(encoding="utf-8")
    assert figures.filled(text) == text


def test_a_figure_is_written_between_its_marks() -> None:
    text = "It gains <!-- figure imdb-words -->nothing<!-- /figure --> points."
    assert figures.filled(text) == "It gains <!-- figure imdb-words -->2.4 [1.3, 3.4]<!-- /figure --> points."
    with pytest.raises(KeyError, match="no-such-figure"):
        figures.filled(text.replace("imdb-words", "no-such-figure"))


def run_of(seed: int, scores: dict[str, float], metric: str = "accuracy") -> dict[str, Any]:
    return {"seed": seed, "scores": {name: {metric: [value, 1]} for name, value in scores.items()}}


def test_an_interval_contains_the_variance_of_trainings() -> None:
    runs = [run_of(seed, dict.fromkeys(map(str, range(50)), right)) for seed, right in enumerate([1, 1, 1, 0, 0])]
    assert str(intervals.figure_of(runs, "accuracy")) == "60.0 [25.0, 100.0]"  # of four that are drawn
    assert str(intervals.figure_of(runs[:1], "accuracy")) == "100.0 [100.0, 100.0]"
    assert str(intervals.figure_of(runs, "accuracy", runs[::-1])) == "+0.0 [+0.0, +0.0]"  # by their seeds
    rule = run_of(1, dict.fromkeys(map(str, range(50)), 0))  # which has one run for the documents, whatever the seed
    assert str(intervals.figure_of(runs[2:], "accuracy", [rule])).startswith("+33.3 [")


def test_meetings_of_a_series_are_drawn_together() -> None:
    def figure(names: Sequence[str]) -> intervals.Figure:
        return intervals.figure_of([run_of(1, {name: float(name < "F") for name in names})], "accuracy")

    series = figure([f"{team}{part}" for team in ("ES2004", "TS3003") for part in "abcd"])
    assert (series.low, series.high) == (0, 100)  # in a quarter of the draws each series is missing
    alone = figure([f"{letter}_1" for letter in "ABCDGHIJ"])
    assert (alone.low, alone.high) == (12.5, 87.5)
    meetings = ("Bmr006", "Bmr014", "covid_4", "covid_9")
    assert [study_table.series_of(name) for name in meetings] == ["Bmr", "Bmr", "covid_4", "covid_9"]


def test_a_difference_has_a_p_and_holm_adjusts_several() -> None:
    def run(right: Sequence[int]) -> dict[str, Any]:
        return run_of(1, {str(number): value for number, value in enumerate(right)})

    better = intervals.figure_of([run([1] * 30)], "accuracy", [run([0] * 15 + [1] * 15)])
    level = intervals.figure_of([run([0, 1] * 15)], "accuracy", [run([1, 0] * 15)])
    assert better.p == pytest.approx(2 / (intervals.DRAWS + 1))
    assert level.p is not None
    assert level.p > 0.5
    assert intervals.figure_of([run([1, 0])], "accuracy").p is None


@pytest.mark.parametrize(
    ("values", "adjusted"),
    [([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]), ([0.4, 0.9], [0.8, 0.9]), ([0.8, 0.7], [1, 1])],
)
def test_holm(values: list[float], adjusted: list[float]) -> None:
    assert intervals.holm(values) == pytest.approx(adjusted)


@pytest.mark.parametrize(
    ("abstract", "group"),
    [
        ("Rats, a rat and Mice were fed with rice.", "animal"),
        ("Patients with bacterial disease.", None),
        ("An algorithm for alignment.", None),
    ],
)
def test_the_group_of_a_paper_is_named_twice_as_often_as_any_other(abstract: str, group: str | None) -> None:
    assert paper_organisms.group_of(abstract) == group


def test_a_table_of_runs_keeps_them_and_takes_more_of_them_at_once(tmp_path: Path) -> None:
    def run(seed: int, right: float) -> dict[str, Any]:
        scores = {"a,1": {"accuracy": [right, 1], 'F1 "of" it': [0.1 + right, 2]}, "b": {"accuracy": [0, 1]}}
        return {"task": "t", "train": "head", "arm": "N|D, x", "seed": seed, "valid": [1.5, None], "scores": scores}

    path = tmp_path / "results/study.csv.gz"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(partial(study_table.add_run, path), [run(seed, 1 / 3) for seed in (10, 2, 1, 3)]))
    study_table.add_run(path, run(2, 0.5))
    assert study_table.read_runs(path) == [run(1, 1 / 3), run(2, 0.5), run(3, 1 / 3), run(10, 1 / 3)]
    written = path.read_bytes()
    study_table.write_runs(path, study_table.read_runs(path)[::-1])
    assert path.read_bytes() == written
    assert study_table.has_run(path, "t", "head", "N|D, x", 3)
    assert not study_table.has_run(path, "t", "head", "N|D", 3)
    assert not study_table.read_runs(tmp_path / "no.csv.gz")


def test_figures_of_the_longer_half_are_of_its_documents() -> None:
    scores = {name: {"ROUGE-1": (0.5, 1)} for name in "abcd"}
    halves = summaries.by_length(scores, {"a": 10, "b": 2, "c": 30, "d": 4})
    assert {name for name, row in halves.items() if row["ROUGE-1, longer half"] == (0.5, 1)} == {"a", "c"}
    assert all(row["ROUGE-1"] == (0.5, 1) for row in halves.values())


def test_a_paper_is_its_sentences_and_its_abstract_without_marks() -> None:
    row = {
        "article_id": "p",
        "sections": [["one .", " "], ["two ."]],
        "abstract_text": ["<S> short . </S>", "<S> </S>"],
    }
    assert summaries.paper("", row) == {"id": "p", "sentences": ["one .", "two ."], "target": ["short ."]}


def test_a_file_of_other_records_is_named_with_its_line(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "train.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write('{"document": "A long text.", "summary": "A text."}\n{"text": "no summary"}\n')
    with pytest.raises(ValueError, match=r"train\.jsonl\.gz:2 is no document"):
        list(summaries.records(summaries.TASKS["xsum"], tmp_path / "train.jsonl.gz", "train"))


def test_a_study_refuses_a_missing_folder_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["summaries", "pubmed", "NOWHERE"])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(STUDIES / "summaries.py"), run_name="__main__")
    (line,) = capsys.readouterr().err.splitlines()
    assert "NOWHERE" in line
