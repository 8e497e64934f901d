"""`hat predict` on real meetings: every batch gives the same, answers are the best spans, mistakes are refused."""

import csv
import json
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import hat, read_lines, refusal, write_lines
from fine_tuned import FineTuned

import hat_fairseq
from hat_fairseq.data.kinds import KINDS
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.text import split_sentences
from hat_fairseq.inference.labels import Predictor, batches
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.predict import thresholds_of
from hat_fairseq.inference.rows import encode_documents
from hat_fairseq.kernels.torch_private import BF16

Make = Callable[[str], FineTuned]


def predict(made: FineTuned, out: Path, *flags: object) -> list[dict[str, Any]]:
    assert hat("predict", made.checkpoint, made.data, "--out", out, "--device", "cpu", *flags) == 0
    return read_lines(out)


def assert_same(actual: Any, wanted: Any) -> None:
    """Equal, numbers within rounding; of objects the keys that are wanted."""
    if isinstance(wanted, dict):
        for key in wanted:
            assert_same(actual[key], wanted[key])
    elif isinstance(wanted, list):
        assert len(actual) == len(wanted)
        for one, other in zip(actual, wanted, strict=True):
            assert_same(one, other)
    else:
        assert actual == (pytest.approx(wanted, rel=1e-4, abs=1e-4) if isinstance(wanted, float) else wanted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["choice", "segments"])  # of rows and of groups; test_encoder_tasks.py has all kinds
def test_predictions_do_not_depend_on_the_batch(kind: str, fine_tuned: Make, tmp_path: Path) -> None:
    """What they are: tests/golden/predictions."""
    made = fine_tuned(kind)
    alone = predict(made, tmp_path / "alone.jsonl", "--batch-size", 1)
    assert [record["id"] for record in alone] == [record["id"] for record in read_lines(made.raw / "test.jsonl")]
    assert len({str(part) for record in alone for part in record.get("labels") or [record["probabilities"]]}) > 1
    for flags in (["--batch-size", 3], ["--max-tokens", 500]):
        assert_same(predict(made, tmp_path / f"{flags[1]}.jsonl", *flags), alone)


def test_a_folder_and_a_table_are_read_as_json_lines_are(fine_tuned: Make, tmp_path: Path) -> None:
    made = fine_tuned("classification")
    records = read_lines(made.raw / "test.jsonl")[:3]
    for record in records:
        record["text"] = " ".join(record.pop("segments"))
    write_lines(tmp_path / "raw/test.jsonl", records)
    with (tmp_path / "test.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, ["id", "text", "label"])
        rows.writeheader()
        rows.writerows({name: record[name] for name in ("id", "text", "label")} for record in records)
    common = ["--data", made.data / "bin", "--splitter", "punctuation", "--device", "cpu", "--out"]
    for source in (tmp_path / "raw/test.jsonl", tmp_path / "raw", tmp_path / "test.csv"):
        assert hat("predict", made.checkpoint, source, *common, tmp_path / "out" / f"{source.name}.jsonl") == 0
    first, *others = (read_lines(path) for path in sorted((tmp_path / "out").iterdir()))
    assert first == others[0] == others[1]
    assert [row["id"] for row in first] == [record["id"] for record in records]
    assert hat("predict", made.checkpoint, tmp_path / "raw", "--split", "valid", *common, tmp_path / "v.jsonl") == 2


def test_running_text_is_split_as_asked(fine_tuned: Make, tmp_path: Path) -> None:
    """For a model whose data had given segments: the same as the sentences that the splitter finds."""
    made = fine_tuned("classification")
    texts = ["The remote is yellow. Who wants a button? Nobody does.", "Good morning. We begin."]
    split = [{"id": str(n), "segments": split_sentences(text, "punctuation")} for n, text in enumerate(texts)]
    rows = {"segments": split, "texts": [{"id": str(n), "text": text} for n, text in enumerate(texts)]}
    common = ["predict", made.checkpoint, "--data", made.data / "bin", "--device", "cpu", "--details"]
    for name, flags in (("segments", []), ("texts", ["--splitter", "punctuation"])):
        write_lines(tmp_path / f"{name}.in.jsonl", rows[name])
        assert hat(*common, *flags, tmp_path / f"{name}.in.jsonl", "--out", tmp_path / f"{name}.jsonl") == 0
    predictions = [read_lines(tmp_path / f"{name}.jsonl") for name in rows]
    assert predictions[0] == predictions[1]
    assert [len(row["segments"]) for row in predictions[0]] == [3, 2]
    model = hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu")
    assert model.look(texts[1], splitter="punctuation").unit == "segment"
    assert [each.label for each in model.predict(texts, splitter="punctuation")] == [r["label"] for r in predictions[0]]
    error = 'running text has no given sentences; give sentences or turns, or splitter="punctuation"'
    for splitter, message in ((None, error), ("words", "unknown sentence splitter 'words'")):
        with pytest.raises(ValueError, match=message):
            model.predict(texts, splitter=splitter)


def test_details_of_a_model_without_attention_to_segments_are_the_whole_text(fine_tuned: Make) -> None:
    made = fine_tuned("choice")
    predictor = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    for layer in predictor.models[0].core.layers:
        layer.sentence_attn = None
    (record, *_) = read_records(made.raw / "test.jsonl", "choice")
    (prediction,) = predictor.predictions([record], details=True)
    (segment,) = prediction.segments
    assert segment.keys() == {"text"}
    assert record.choices[int(prediction.label)].split()[-1] in segment["text"]


GIVEN = {  # the texts that a row is made of, and the segments that are shown of it
    "running text": (
        "classification",
        {"text": " The  remote\nis yellow. Ü 漢\u200b字 <s>!\tNobody does "},
        ["The  remote\nis yellow.", "Ü 漢\u200b字 <s>!", "Nobody does"],
    ),
    "segments": (
        "classification",
        {"segments": ["Good\nmorning ", "", " We  begin: 漢字."]},
        ["Good\nmorning", "We  begin: 漢字."],
    ),
    "choices": (
        "choice",
        {"text": "It is\nlate.  We go.", "question": "Who  left?", "choices": ["Åsa\tleft", "Nobody 漢"], "label": 0},
        ["It is\nlate.", "We go.", ("Who  left? Åsa\tleft", "Who  left? Nobody 漢")],
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_details_show_the_text_as_it_was_given(name: str, fine_tuned: Make, tmp_path: Path) -> None:
    kind, record, expected = GIVEN[name]
    made = fine_tuned(kind)
    write_lines(tmp_path / "in.jsonl", [{"id": "a"} | record])
    words = ["predict", made.checkpoint, tmp_path / "in.jsonl", "--data", made.data / "bin", "--device", "cpu"]
    words += [] if name == "segments" else ["--splitter", "punctuation"]
    for flags, out in (([], "plain"), (["--details"], "details")):
        assert hat(*words, *flags, "--out", tmp_path / f"{out}.jsonl") == 0
    ((plain,), (prediction,)) = (read_lines(tmp_path / f"{out}.jsonl") for out in ("plain", "details"))
    texts = [each["text"] for each in prediction.pop("segments")]
    assert prediction == plain
    *first, last = expected
    if kind == "choice":  # of the row of the choice, whose question and answer the splitter divides
        assert texts[:2] == first
        assert " ".join(texts[2:]) == last[int(prediction["label"])]
    else:
        assert texts == expected


def test_one_long_sample_does_not_lengthen_its_batch() -> None:
    assert list(batches([7, 1000, 5, 8, 6], 8, None)) == [[2, 4, 0, 3], [1]]
    assert [len(batch) for batch in batches([512] * 40, None, None)] == [16, 16, 8]
    assert [len(batch) for batch in batches([3072] * 9 + [100_000], None, None)] == [8, 1, 1]
    sizes = np.random.default_rng(1).integers(1, 3000, 500).tolist()
    parts = list(batches(sizes, 40, 30000))
    assert sorted(sum(parts, [])) == [*range(500)]
    assert 1 < len(parts) < 40
    for part in parts:
        longest = max(sizes[index] for index in part)
        assert 2 * sum(sizes[index] for index in part) >= len(part) * longest
        assert len(part) <= 40
        assert len(part) * longest <= 30000


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["segments", "tokens"])
def test_what_preprocessing_cut_off_has_no_label(kind: str, fine_tuned: Make, tmp_path: Path, capsys) -> None:
    """Labels stay at their segments and words; the score counts the others as wrong and says so."""
    made, limit = fine_tuned(kind), 80
    examples = list(read_records(made.raw / "test.jsonl", kind))
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    whole = [model.pipeline.rows(example)[0] for example in examples]
    model.pipeline.settings = replace(model.pipeline.settings, max_source_tokens=limit, long_source="truncate")
    predictions = list(model.predictions(examples, 2))
    for example, row, prediction in zip(examples, whole, predictions, strict=True):
        tokens = row.tokens[: limit - 1]
        count = sum(label != "<pad>" for label in row.label[: limit - 1]) if kind == "tokens" else tokens.count("<s>")
        if tokens[-1] == "<s>":  # a marker with nothing after it is left out
            count -= 1
        assert [label is not None for label in prediction.labels] == [n < count for n in range(len(example.labels))]
    lost = sum(prediction.labels.count(None) for prediction in predictions)
    write_lines(tmp_path / "cut.jsonl", [prediction.to_json() for prediction in predictions])
    words = [tmp_path / "cut.jsonl", "--references", made.data / "text/test.jsonl"]
    assert hat("score", "classification", *words, "--bootstrap-samples", 0) == 0
    assert lost
    assert f"cut.jsonl: {lost} of " in capsys.readouterr().err


@pytest.mark.slow
def test_mistakes_are_one_line(fine_tuned: Make, tmp_path: Path) -> None:
    made, others, reader = map(fine_tuned, ("segments", "classification", "qa"))
    data, path, out, empty = made.data, made.checkpoint, tmp_path / "p.jsonl", tmp_path / "empty.jsonl"
    empty.write_text("")
    (colon := tmp_path / "a:b").mkdir()
    bin_flag = ["--data", data / "bin"]
    for words, message in (
        ([tmp_path / "no.pt", data, "--out", out], "no.pt does not exist: has it been trained?"),
        ([colon, data, "--out", out], "a:b: ':' stands between the models of an ensemble; rename this one"),
        (["meetng", data, "--out", out], "meetng does not exist; did you mean meeting?"),
        ([path, tmp_path / "no.jsonl", "--out", out], "no folder of hat export: give the bin directory"),
        ([path, tmp_path / "no.jsonl", *bin_flag, "--out", out], "no.jsonl"),
        ([path, tmp_path / "no.jsonl", *bin_flag, "--split", "test", "--out", out], "no.jsonl: No such file"),
        ([path, data, "--split", "x", "--out", out], "is there a split x?"),
        ([path, data, "--out", tmp_path / "p.json"], "p.json must end in .jsonl: predictions are JSON lines"),
        ([path, data, "--out", out, "--max-tokens", 9], "--max-tokens 9 is too low: one sample"),
        ([path, data, "--out", out, "--threshold", 3], "--threshold 3 has no effect on the kind segments: remove it"),
        ([path, data, "--out", out, "--device", "cpu", "--precision", "fp16"], "precision fp16 is GPU-only"),
        ([path, data, "--out", out, "--batch-size", 0], "--batch-size must be at least 1, not 0"),
        ([path, others.data, "--out", out], "holds data of the kind 'classification'"),
        ([path, empty, *bin_flag, "--out", out], "empty.jsonl is empty: nothing to predict"),
    ):  # fmt: skip
        assert message in refusal("predict", *words).splitlines()[-1]
    assert not out.exists()


@pytest.mark.slow
def test_bf16_on_a_cpu_changes_probabilities_a_little(fine_tuned: Make, tmp_path: Path) -> None:
    made = fine_tuned("tokens")
    if not BF16:
        with pytest.raises(ValueError, match="precision bf16"):
            Predictor(load(made.checkpoint, made.data / "bin", "cpu", "bf16"))
        return
    outputs = []
    for precision in ("fp32", "bf16"):
        predictor = Predictor(load(made.checkpoint, made.data / "bin", "cpu", precision))
        records = encode_documents(read_records(made.raw / "test.jsonl", "tokens"), predictor.loaded)
        samples = [sample for rows in records for sample in predictor.samples(rows)]
        outputs.append(np.concatenate([predictor.scores([sample])[0].flatten() for sample in samples]))
    assert 0 < np.abs(outputs[0] - outputs[1]).max() < 0.1
    assert len(predict(made, tmp_path / "p.jsonl", "--precision", "bf16")) == len(read_lines(made.raw / "test.jsonl"))


@pytest.mark.slow
def test_an_unreadable_document_does_not_stop_the_others(
    fine_tuned: Make, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is named, and is predicted with the others; a file with no other is refused, whatever its length."""
    made, chinese = fine_tuned("classification"), {"segments": ["今天天气很好。", "我们明天再来。"]}
    readable = read_lines(made.raw / "test.jsonl")[:3]
    write_lines(source := tmp_path / "mixed.jsonl", [{"id": "other"} | chinese, *readable])
    assert hat("predict", made.checkpoint, source, "--data", made.data / "bin", "--out", tmp_path / "o.jsonl") == 0
    mixed = read_lines(tmp_path / "o.jsonl")
    assert [line["id"] for line in mixed] == ["other", *(record["id"] for record in readable)]
    assert any(
        "document 'other'" in each.message and "its result is worth little" in each.message for each in caplog.records
    )
    for number in (1, 40):
        write_lines(source, [{"id": f"{n}"} | chinese for n in range(number)])
        words = ["predict", made.checkpoint, source, "--data", made.data / "bin", "--out", tmp_path / f"{number}.jsonl"]
        assert "most tokens of each document are not in the dictionary" in refusal(*words)
        assert not (tmp_path / f"{number}.jsonl").exists()
    model = hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu")
    with pytest.raises(ValueError, match="most tokens of each document are not in the dictionary"):
        model.predict([chinese])
    assert [each.id for each in model.predict([chinese, readable[0]])] == ["1", readable[0]["id"]]


@pytest.mark.fault(
    "Generation and prediction",
    "two hat predict with other --out in one folder",
    "the later one writes nothing, and keeps its results for the next run",
)
def test_files_for_official_scorers_are_not_replaced_by_another_run(
    fine_tuned: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their names are fixed, so the other run may have written them since this one began."""
    made, other = fine_tuned("qa"), tmp_path / "predictions.json"
    predictions = Predictor.predictions

    def while_another_run_ends(*args: Any) -> Any:
        other.write_text("theirs")
        return predictions(*args)

    command = ["predict", made.checkpoint, made.data, "--device", "cpu", "--out", tmp_path / "a.jsonl"]
    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predictions", while_another_run_ends)
        assert f"{other}, a file for official scorers, exists: choose another folder" in refusal(*command)
    assert other.read_text() == "theirs"
    assert not (tmp_path / "a.jsonl").exists()
    kept = sorted((tmp_path / ".a.jsonl.blocks").iterdir())
    assert kept
    other.unlink()
    with monkeypatch.context() as patch:
        patch.setattr(Predictor, "predictions", None)  # nothing is computed again
        assert hat(*command) == 0
    assert json.loads(other.read_text()).keys() == {line["id"] for line in read_lines(tmp_path / "a.jsonl")}
    assert not kept[0].exists()


THRESHOLDS = [
    ("qa", ["no-answer=-1.5"], {"no_answer_threshold": -1.5}),
    ("qa", ["no-answer=inf"], {"no_answer_threshold": math.inf}),
    ("document_qa", ["paragraph=3", "answer=4.5"], {"paragraph_threshold": 3.0, "answer_threshold": 4.5}),
    ("evidence", ["0.25"], {"threshold": 0.25}),
    ("qa", ["3"], "--threshold 3 has no effect on the kind qa: give --threshold no-answer=X"),
    ("qa", ["answer=3"], "give --threshold no-answer=X"),
    ("document_qa", ["no-answer=3"], "give --threshold paragraph=X or --threshold answer=X"),
    ("evidence", ["lines=0.5"], "give --threshold X"),
    ("choice", ["answer=3"], "has no effect on the kind choice: remove it"),
    ("qa", ["no-answer=x"], "--threshold no-answer=x: 'x' is no number"),
]


@pytest.mark.parametrize(("kind", "stated", "expected"), THRESHOLDS)
def test_a_threshold_is_of_its_kind(kind: str, stated: list[str], expected: dict[str, float] | str) -> None:
    if isinstance(expected, dict):
        assert thresholds_of(stated, KINDS[kind]) == expected
        return
    with pytest.raises(ValueError, match=re.escape(expected)):
        thresholds_of(stated, KINDS[kind])
