"""The tables of the studies are what their results say, and the parts of the studies compute what they say."""

import gzip
import re
import runpy
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import continued_pretraining
import convergence
import copied_words
import far_answers
import intervals
import masked_words
import page
import paper_organisms
import pretrained_data
import pretrained_hierarchy
import pretrained_tasks
import pytest
import render_studies
import shift
import study_table
import summaries
import torch
from fairseq.data import Dictionary
from result_pages import assert_help, assert_summary, named, runnable, scripts_of

from hat_fairseq.modules.pooling_attention import PoolingAttention
from hat_fairseq.modules.sliding_window import SlidingWindowAttention
from hat_fairseq.units.network import UNIT_VECTORS

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


@pytest.mark.parametrize(
    ("name", "args", "reason"),
    [
        ("shift", ["NOWHERE/bin", "NOWHERE/model.pt"], "NOWHERE"),
        ("far_answers", ["NOWHERE/nq.jsonl.gz", "NOWHERE/model.pt"], "NOWHERE"),
        ("summaries", ["pubmed", "NOWHERE"], "NOWHERE"),
    ],
)
def test_a_study_refuses_files_that_are_missing_in_one_line(
    name: str, args: list[str], reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, *args])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(STUDIES / f"{name}.py"), run_name="__main__")
    (line,) = capsys.readouterr().err.splitlines()
    assert reason in line


def numbered_words(count: int) -> Dictionary:
    words = Dictionary()
    for number in range(count):
        words.add_symbol(f"w{number}")
    return words


@pytest.mark.slow
def test_arms_are_the_models_of_their_flags() -> None:
    """Lower and upper layers together compute what the whole model does; a global question changes all units."""
    words = numbered_words(50)
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
    of_others = {*continued_pretraining.ARMS, *summaries.ARMS, *copied_words.ARMS, *convergence.ARMS}
    of_others |= {*shift.ARMS, *far_answers.ARMS}
    assert names <= {*pretrained_hierarchy.ARMS, *of_others, *of_labels}


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


def test_a_masked_word_is_in_the_bin_of_the_nearest_occurrence_that_is_seen() -> None:
    places = {"below 128": (900, 127), "128 to 512": (128, -511), "512 to 2,048": (512, 2047), "more": (2048,)}
    for name, distances in places.items():
        assert masked_words.bin_of(3000, [3000 + distance for distance in distances]) == name
    assert masked_words.bin_of(7, []) == "none"


def paper_of_words(seed: int) -> tuple[torch.Tensor, masked_words.Words]:
    """A paper of 3,000 pieces, and its words: ids from 54 on continue a word, and sentences have ten pieces."""
    symbols = ["<s>", "<pad>", "</s>", "<unk>", *map("w{}".format, "abcdefghij" * 5), *["##ab", "##cd"], "<mask>"]
    symbols = [f"word{chr(97 + n // 26)}{chr(97 + n % 26)}" if 4 <= n < 54 else each for n, each in enumerate(symbols)]
    tokens = torch.randint(4, 56, (3000,), generator=torch.Generator().manual_seed(seed))
    tokens[::10] = 0
    return tokens, masked_words.Words(symbols, [torch.tensor([0])] * 100)


@pytest.mark.parametrize("number", range(4))
def test_all_pieces_of_a_word_are_masked_and_distances_are_those_to_words_that_are_seen(number: int) -> None:
    tokens, words = paper_of_words(number)
    placed = [(span, word) for span, word in words.placed(tokens) if words.is_rare(word)]
    paper = masked_words.masked("a", tokens, placed, mask=56, number=number)
    covered = paper.document.tokens
    assert torch.equal(covered.ne(tokens).nonzero().flatten(), paper.places) and covered[paper.places].eq(56).all()
    seen = [(span[0], word) for span, word in placed if torch.equal(covered[slice(*span)], tokens[slice(*span)])]
    bins = []
    for (first, end), word in placed:
        hidden = covered[first:end].eq(56)
        assert hidden.all() or not hidden.any()
        near = [abs(first - place) for place, other in seen if other == word]
        limits = [name for name, below in masked_words.BINS.items() if below and near and min(near) < below]
        bins += [(limits or ["none"])[0]] * int(hidden.sum())
    assert bins == paper.bins and {"below 128", "128 to 512", "none"} < {*bins}
    again = masked_words.masked("a", tokens, placed, mask=56, number=number)
    assert torch.equal(again.document.tokens, covered)
    assert not torch.equal(masked_words.masked("a", tokens, placed, mask=56, number=9).document.tokens, covered)


def test_a_word_whose_only_other_occurrence_is_masked_occurs_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = torch.tensor([0, 4, 54, 5, 0, 4, 54, 4])
    _, words = paper_of_words(0)
    placed = words.placed(tokens)
    assert [span for span, word in placed if word == (4, 54)] == [(1, 3), (5, 7)]
    monkeypatch.setattr(masked_words, "PROBABILITY", 1.0)
    paper = masked_words.masked("a", tokens, placed[1:], mask=56, number=0)
    assert {*paper.bins} == {"none"} and not paper.shown


@pytest.mark.slow
def test_attentions_reach_as_far_as_they_say() -> None:
    """Which other states two upper layers see from the first token of a paper of 1,100 tokens."""
    words, tokens = numbered_words(50), torch.randint(4, 54, (1, 1100))
    tokens[:, ::20] = 0
    reach = {}
    for name, arm in copied_words.ARMS.items():
        torch.manual_seed(1)
        encoder = pretrained_data.build(arm, words).core.eval()
        states = torch.randn(1, 1100, 384, generator=torch.Generator().manual_seed(1))
        rows = []
        for place in (None, 110, 310, 1010):
            changed = states.clone()
            if place is not None:
                changed[:, place : place + 5] *= -1
            with torch.no_grad():
                rows.append(pretrained_data.states_of(encoder, tokens, states=changed)[0, 5])
        reach[name] = [not torch.equal(row, rows[0]) for row in rows[1:]]
    assert reach == {
        "chunks": [True, True, False],
        "full": [True, True, True],
        "window": [True, False, False],
        "HAT": [True, True, True],
        "S": [True, False, False],
        "SD": [True, True, True],
        "two levels": [True, True, False],
        "blocks": [True, False, False],
        "representatives": [True, True, True],
    }


def test_arms_of_convergence_have_equal_parameters() -> None:
    size = {arm: sum(p.numel() for p in pretrained_data.build(convergence.SIZES["full"].flags(arm), numbered_words(9))
                     .core.layers.parameters()) for arm in convergence.ARMS}  # fmt: skip
    assert size["hierarchy"] == pytest.approx(size["eight layers"], rel=0.005)
    assert size["six layers"] == pytest.approx(0.75 * size["eight layers"])


def test_a_training_begins_at_the_frequencies_and_measures_each_paper() -> None:
    size, words = convergence.Size(64, 2, 1e-3, 8, 2, 3, 3, 4), numbered_words(50)
    words.add_symbol("<mask>")
    draw = torch.Generator().manual_seed(1)
    rows = [(name, torch.cat([torch.tensor([0]), torch.randint(4, 54, (60,), generator=draw), torch.tensor([2])]))
            for name in "aabc"]  # fmt: skip
    parts = {"train": rows, "valid": rows}
    rule = convergence.frequencies(size, parts, words)["scores"]
    start = convergence.log_frequencies(rows, len(words))
    training = convergence.Training(size, "hierarchy", 1, words, start)
    first = convergence.measured(rows, size, len(words), training.nats)
    run = convergence.run(size, parts, words, "hierarchy", 1)
    assert [row[0] for row in run["curve"]] == [4, 8] and run["scores"].keys() == rule.keys() == {*"abc"}
    for name, (total, count) in first.items():
        assert total / count == pytest.approx(rule[name]["after 4 updates"][0] / count, rel=0.05)
        assert run["scores"][name].keys() == {"after 4 updates", "after 8 updates"}
        assert run["scores"][name]["after 8 updates"][1] == rule[name]["after 8 updates"][1] == count
    tokens = torch.full((1, 4000), 7).index_fill(1, torch.arange(0, 4000, 20), 0)
    inputs, chosen = convergence.masked(tokens, len(words), draw)
    assert not chosen[tokens.eq(0)].any() and torch.equal(inputs[~chosen], tokens[~chosen])
    assert 0.1 < chosen.float().mean() < 0.2 and 0.7 < inputs[chosen].eq(len(words) - 1).float().mean() < 0.9


@pytest.mark.parametrize(
    "words",
    ["copied_words no/bin no/model.pt --size small", "convergence no --root no --size small", "copied_words a b"],
)
def test_bad_arguments_are_refused_in_one_line(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script, *arguments = words.split()
    monkeypatch.setattr("sys.argv", [script, *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(STUDIES / f"{script}.py"), run_name="__main__")
    assert ended.value.code == 2 and "error: " in capsys.readouterr().err.splitlines()[-1]


def test_missing_runs_are_made_while_there_is_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def runs(*seeds: int) -> dict[study_table.Key, Any]:
        return {("t", "all", "a", seed): partial(made.append, seed) for seed in seeds}

    def complete(**key: Any) -> dict[str, Any]:
        return {**key, "scores": {"d": {"bits": [1, 2]}}}

    made: list[int] = []
    path = tmp_path / "study.csv.gz"
    slow = {key: lambda make=make: {"made": make()} for key, make in runs(1, 2).items()}
    study_table.add_missing(path, slow, float("inf"), complete)
    study_table.add_missing(path, {key: lambda: {"made": 1} for key in runs(2, 3)}, 0.0, complete)
    assert made == [1, 2] and [run["seed"] for run in study_table.read_runs(path)] == [1, 2]
    assert capsys.readouterr().out.splitlines()[-1] == "t, all, a, 3: not run, because it would end too late"


def test_a_shift_puts_full_stops_behind_the_marker() -> None:
    tokens = torch.tensor([0, 5, 6])
    assert torch.equal(shift.shifted(tokens, 0, 9), tokens)
    assert shift.shifted(tokens, 2, 9).tolist() == [0, 9, 9, 5, 6]


@pytest.mark.slow
def test_a_prediction_is_of_the_own_tokens_and_moves_with_the_whole_encoder() -> None:
    """A shift of 0 changes nothing; another one moves chunks in the lower layers; full stops are not averaged."""
    words, task = numbered_words(50), pretrained_tasks.TASKS["articles"]()
    torch.manual_seed(1)
    encoder = pretrained_data.build(pretrained_data.CHUNKS, words).core.eval()
    reader = SimpleNamespace(source_dictionary=words)
    data: Any = SimpleNamespace(model=lambda flags, seed: encoder, reader=reader, task=task)
    lower = shift.Lower(data, 600)
    classifier = shift.Classifier(data, lower, pretrained_data.CHUNKS, 1).eval()
    document = pretrained_tasks.Document("a", torch.randint(4, 54, (700,)), [], torch.tensor([1]))
    with torch.no_grad():
        plain, moved = classifier.vector(document), classifier.vector(document, 8)
        assert torch.equal(classifier.vector(document, 0), plain) and not torch.equal(moved, plain)
        tokens, states = lower(document, 8, 0)
        assert tokens.shape == (1, 608) and torch.equal(tokens[0, 9:], document.tokens[1:600])
        assert torch.equal(states, pretrained_data.states_of(encoder, tokens).half())
        upper = pretrained_data.states_of(encoder, tokens, states=states)[0]
        mean = torch.cat([upper[:1], upper[9:]]).mean(dim=0, keepdim=True)
        assert torch.allclose(moved, torch.nn.functional.normalize(mean, dim=1), atol=1e-6)
    assert torch.equal(lower(document, 0, 8)[0][0], document.tokens[:600].roll(8))


def test_changed_labels_are_counted_by_shift() -> None:
    document = pretrained_tasks.Document("a", torch.zeros(600), [], torch.tensor([0]))
    logits = {0: [[2.0, 1.0]], 1: [[2.0, 1.0]], 8: [[1.0, 2.0]], 64: [[3.0, 2.0]]}
    figures = shift.measure(lambda _, before: torch.tensor(logits[before]), document)
    assert figures["accuracy"] == (1, 1) and figures["accuracy, shifted"] == (2, 3)
    assert figures["changed"] == figures["changed, long"] == (1, 3)
    assert [figures[f"changed by {before}"][0] for before in shift.SHIFTS] == [0, 1, 0]
    p = torch.tensor([2.0, 1.0]).softmax(dim=0)
    assert figures["divergence"] == (pytest.approx(float((p[0] - p[1]) * (p / p.flip(0)).log()[0])), 3)
    assert figures["confidence"] == (pytest.approx(float(p[0])), 1)


def item(name: str, size: int, answer: int) -> far_answers.Item:
    """A question of five tokens and a paragraph, in which the token of the answer is 50."""
    tokens = torch.full((size,), 4)
    tokens[answer] = 50
    return far_answers.Item(name, f"where is {name}", f"{name} is here", torch.full((5,), 6), tokens, answer)


def test_the_distance_of_an_answer_is_counted_from_the_question() -> None:
    right, others = item("right", 10, 3), [item("a", 10, 0), item("b", 20, 0)]
    assert far_answers.distances(others, right) == [3, 13, 33]
    for place, far in enumerate(far_answers.distances(others, right)):
        paragraphs = far_answers.document(right, others, place).paragraphs
        assert paragraphs[place] is right
        before = torch.cat([each.tokens for each in paragraphs[: place + 1]])[:far]
        assert len(before) == far and int(torch.cat([each.tokens for each in paragraphs])[far]) == 50


def test_a_test_question_has_its_answer_at_each_distance() -> None:
    items = [item(str(number), 90 + number % 30, 40 + number % 40) for number in range(60)]
    found = far_answers.tests(items[7], items)
    for (low, high), drawn in zip(pairwise(far_answers.BINS), found.values(), strict=True):
        before = [each for each in drawn.paragraphs if each is not items[7]]
        assert drawn.paragraphs[drawn.place] is items[7]
        assert low <= far_answers.distances(before, items[7])[drawn.place] < high
    assert len({frozenset(each.id for each in drawn.paragraphs) for drawn in found.values()}) == 1
    assert 3900 < sum(len(each.tokens) for each in drawn.paragraphs) <= 4096


@pytest.mark.slow
def test_windows_have_as_many_keys_as_two_levels() -> None:
    def attention(arm: str, kind: type[SlidingWindowAttention]) -> Any:
        encoder = pretrained_data.build(far_answers.ARMS[arm], numbered_words(50)).core
        return next(module for module in encoder.layers[4:].modules() if isinstance(module, kind))

    positions, query = torch.arange(4096), torch.tensor(2000)
    plain, pooled = attention("windows", SlidingWindowAttention), attention("two levels", PoolingAttention)
    keys = pooled.near(query, positions).sum() + pooled.sees(query, positions).sum()
    assert keys == plain.near(query, positions).sum() == 385


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arm", "reached"), [("windows", 4), ("two levels", 12), ("windows, global question", 20), ("full", 20)]
)
def test_a_question_changes_the_paragraphs_within_reach_alone(arm: str, reached: int) -> None:
    """Two layers reach 2 * 192 tokens with windows, and 2 * (64 + 512) with two levels; paragraphs have 100."""

    def model(flags: str, seed: int) -> Any:
        torch.manual_seed(seed)
        return pretrained_data.build(flags, numbered_words(50)).core.eval()

    models: Any = SimpleNamespace(model=model)
    finder = far_answers.Finder(models, far_answers.ARMS[arm], 1).eval()
    paragraphs, asked = ([replace(item(str(n), size, 3), states=(torch.randn(5, 384), torch.randn(size, 384)))
                          for n in range(count)] for size, count in ((100, 20), (10, 2)))  # fmt: skip
    for each in asked:
        each.asked[-1] = pretrained_data.EOS
    with torch.no_grad():
        one, other = (finder(far_answers.Drawn(each, tuple(paragraphs), 0))[0] for each in asked)
    assert one.shape == (20,) and one.ne(other).nonzero().flatten().tolist() == list(range(reached))


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
