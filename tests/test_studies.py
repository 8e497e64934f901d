"""The tables of the studies are what their results say, and the parts of the studies compute what they say."""

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import bert_summaries
import continued_pretraining
import intervals
import page
import paper_organisms
import pretrained_data
import pretrained_hierarchy
import pretrained_tasks
import pytest
import render_studies
import study_table
import torch
from fairseq.data import Dictionary
from result_pages import assert_help, assert_summary, named, runnable, scripts_of

from hat_fairseq.networks.units import UNIT_VECTORS

STUDIES = Path(render_studies.__file__).parent
IN_JSON = page.records_of(STUDIES)
OWN_TABLE = {"ask"}  # `results/ask.csv.gz`, which the script prints as a table


@pytest.mark.slow
def test_the_tables_are_rendered_from_the_results() -> None:
    assert (STUDIES / "tables.md").read_text(encoding="utf-8") == render_studies.page()


@pytest.mark.parametrize("record", named(IN_JSON))
def test_summaries_follow_from_the_runs(record: page.Record) -> None:
    assert_summary(STUDIES, record)


def test_every_script_has_a_result_and_is_listed() -> None:
    listed = re.findall(r"^\| `(\w+)\.py` \|", (STUDIES / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    questions = {*render_studies.OWN_TABLES, *render_studies.TIMED}
    assert scripts_of(STUDIES) == {*listed} == questions | OWN_TABLE
    recorded = {record["question"] for record in IN_JSON} | {p.name.split(".")[0] for p in STUDIES.glob("results/*.gz")}
    assert recorded == {*listed}


@pytest.mark.parametrize("name", sorted(runnable(STUDIES)))
def test_every_script_answers_help(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_help(STUDIES / f"{name}.py", monkeypatch, capsys)


@pytest.mark.slow
def test_arms_are_the_models_of_their_flags() -> None:
    """Lower and upper layers together compute what the whole model does; a global question changes all units."""
    words = Dictionary()
    for number in range(50):
        words.add_symbol(f"w{number}")
    parts = [torch.cat([torch.tensor([0]), torch.randint(4, 54, (9,))]) for _ in range(70)]
    tokens, question = torch.cat(parts), torch.tensor([0, 7, 8, 2])
    states, reached = {}, {}
    for name, arm in pretrained_hierarchy.ARMS.items():
        if arm.model == pretrained_hierarchy.ALONE or arm.model in states:
            continue
        torch.manual_seed(1)
        encoder = pretrained_data.build(arm.model, words).core.eval()
        with torch.no_grad():
            lower = pretrained_data.states_of(encoder, tokens[None, :500])
            states[arm.model] = pretrained_data.states_of(encoder, tokens[None, :500], states=lower)
            if "representatives" not in name:  # which begin anew in the upper layers
                whole = encoder(tokens[None, :500]).tokens
                assert torch.allclose(states[arm.model], whole, atol=0.1), name
            lower = torch.randn(1, 700, 384)
            vectors = []
            for asked in (torch.randn(1, 4, 384), torch.randn(1, 4, 384)):
                document = pretrained_tasks.Document("a", tokens, [question], torch.zeros(1, 70))
                vectors.append(pretrained_data.vectors_of(encoder, document, (lower, asked)))
        assert vectors[0].shape == (70, 384) and torch.allclose(vectors[0].norm(dim=1), torch.ones(70), atol=1e-5)
        reached[name] = not torch.equal(*vectors)
    assert [name for name, is_reached in reached.items() if is_reached] == ["window, global question"]


def test_differences_are_of_arms_that_exist() -> None:
    names = {
        arm
        for pairs in render_studies.PAIRS.values()
        for _, one, other, arm in pairs
        for arm in (one, arm)
        if other != "rules"
    }
    names = {re.sub(r", \d+ tokens$", "", name) for name in names}
    of_labels = {name for which in UNIT_VECTORS for name in (which, f"{which}, tokens")}
    assert names <= {*pretrained_hierarchy.ARMS, *continued_pretraining.ARMS, *bert_summaries.ARMS, *of_labels}


def test_each_article_is_tested_once_and_counts_once() -> None:
    documents = [
        pretrained_tasks.Document(str(number), torch.zeros(1 + 600 * (number % 2)), [], torch.tensor([number % 3 // 2]))
        for number in range(60)
    ]
    task, runs = pretrained_tasks.Articles(), []
    for seed in range(1, 6):
        parts = task.split({"train": documents[:40], "test": documents[40:]}, seed)
        assert sorted(int(each.id) for part in parts.values() for each in part) == list(range(60))
        constant = torch.tensor([[1.0, 0.0]])
        runs.append({"seed": seed, "scores": {each.id: task.measure(constant, each, 0) for each in parts["test"]}})
    assert len({name for run in runs for name in run["scores"]}) == 60
    assert str(intervals.figure_of(runs, "accuracy")).startswith("66.7 [")
    assert str(intervals.figure_of(runs, "accuracy, long")).startswith("66.7 [")
    assert str(intervals.figure_of(runs, "accuracy", runs)) == "+0.0 [+0.0, +0.0]"
    with pytest.raises(ValueError, match="unpack"):
        intervals.figure_of(runs, "accuracy", runs[:4])


def test_an_interval_contains_the_variance_of_trainings() -> None:
    def run(seed: int, right: int) -> dict[str, Any]:
        return {"seed": seed, "scores": {str(number): {"accuracy": [right, 1]} for number in range(50)}}

    runs = [run(seed, right) for seed, right in enumerate([1, 1, 1, 0, 0])]
    assert str(intervals.figure_of(runs, "accuracy")) == "60.0 [25.0, 100.0]"  # of four that are drawn
    assert str(intervals.figure_of(runs[:1], "accuracy")) == "100.0 [100.0, 100.0]"
    assert str(intervals.figure_of(runs, "accuracy", runs[::-1])) == "+0.0 [+0.0, +0.0]"  # by their seeds
    rule = run(1, 0)  # which has one run for the documents, whatever the seed
    assert str(intervals.figure_of(runs[2:], "accuracy", [rule])).startswith("+33.3 [")


def test_meetings_of_a_series_are_drawn_together() -> None:
    def run(names: Sequence[str]) -> dict[str, Any]:
        return {"seed": 1, "scores": {name: {"F1": [float(name < "F"), 1]} for name in names}}

    series = intervals.figure_of([run([f"{team}{part}" for team in ("ES2004", "TS3003") for part in "abcd"])], "F1")
    assert (series.low, series.high) == (0, 100)  # in a quarter of the draws each series is missing
    alone = intervals.figure_of([run([f"{letter}_1" for letter in "ABCDGHIJ"])], "F1")
    assert alone.low == 12.5 and alone.high == 87.5
    meetings = ("Bmr006", "Bmr014", "covid_4", "covid_9")
    assert [study_table.series_of(name) for name in meetings] == ["Bmr", "Bmr", "covid_4", "covid_9"]


def test_a_difference_has_a_p_and_holm_adjusts_several() -> None:
    def run(right: Sequence[int]) -> dict[str, Any]:
        return {"seed": 1, "scores": {str(number): {"F1": [value, 1]} for number, value in enumerate(right)}}

    better = intervals.figure_of([run([1] * 30)], "F1", [run([0] * 15 + [1] * 15)])
    level = intervals.figure_of([run([0, 1] * 15)], "F1", [run([1, 0] * 15)])
    assert better.p == pytest.approx(2 / (intervals.DRAWS + 1)) and level.p is not None and level.p > 0.5
    assert intervals.figure_of([run([1, 0])], "F1").p is None
    assert intervals.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert intervals.holm([0.4, 0.9]) == pytest.approx([0.8, 0.9]) and intervals.holm([0.8, 0.7]) == [1, 1]


@pytest.mark.parametrize("layout", ["", "N|D"])
def test_a_head_of_documents_reads_each_unit(layout: str) -> None:
    task, units = pretrained_tasks.Papers(), torch.nn.functional.normalize(torch.randn(5, 384), dim=1)
    head = task.head(layout, 24).eval()
    logits = head(torch.zeros(0, 384), units)
    assert logits.shape == (1, 4) and torch.isfinite(task.loss(logits, torch.tensor([3])))
    assert not torch.allclose(logits, head(torch.zeros(0, 384), units[:4]))


def test_the_group_of_a_paper_is_named_twice_as_often_as_any_other() -> None:
    assert paper_organisms.group_of("Rats, a rat and Mice were fed with rice.") == "animal"
    assert paper_organisms.group_of("Patients with bacterial disease.") is None
    assert paper_organisms.group_of("An algorithm for alignment.") is None


def test_rows_have_all_sentences_whole() -> None:
    """And a sentence that is longer than a row loses its end."""
    sizes = [3, 255, 90, 90, 90, 400, 1]
    units = [torch.cat([torch.tensor([0]), torch.full((size - 1,), 4 + n)]) for n, size in enumerate(sizes)]
    document = pretrained_tasks.Document("a", torch.cat(units), [], torch.zeros(len(sizes)))
    rows = list(continued_pretraining.rows_of(document))
    whole = torch.cat([unit[:255] for unit in units])
    assert torch.equal(torch.cat([row[:-1] for row in rows]), whole)
    assert all(len(row) <= 256 and row[0] == 0 and row[-1] == 2 for row in rows)
    assert [int(row.eq(0).sum()) for row in rows] == [1, 1, 2, 1, 1, 1]


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
    assert path.read_bytes() == written and study_table.has_run(path, "t", "head", "N|D, x", 3)
    assert not study_table.has_run(path, "t", "head", "N|D", 3) and not study_table.read_runs(tmp_path / "no.csv.gz")
