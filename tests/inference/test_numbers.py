"""No line of output has a number that JSON does not have: neither from the input nor from a broken model."""

import math
import re
from pathlib import Path

import pytest
import torch
from commands import hat, read_lines, refusal, write_lines
from golden_models import NAMES, copied

from hat_fairseq.data.files import json_text
from hat_fairseq.data.records_json import json_line, record_from_json
from hat_fairseq.fairseq_fixes.trust import allow_checkpoint_types

WRITES_TEXTS = ("summaries", "translation")


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_not_written(number: float) -> None:
    with pytest.raises(ValueError, match="a number is NaN or infinite"):
        json_text([{"a": number}])


def test_a_meta_of_a_program_is_refused_by_name() -> None:
    record = record_from_json({"id": "a", "text": "One."}, "here")
    object.__setattr__(record, "meta", {"figure": math.nan})
    with pytest.raises(ValueError, match="document 'a' .here.: a number is NaN"):
        json_line(record)


@pytest.mark.fault("Generation and prediction", "a number above 1.8e308 in a file", "refused with file and line")
def test_large_numbers_in_files_are_refused(tmp_path: Path) -> None:
    made = copied("classification", tmp_path)
    lines = [{**line, "meta": {"page": number}} for number, line in enumerate(read_lines(made.raw))]
    new = write_lines(tmp_path / "new.jsonl", lines)
    new.write_text(new.read_text().replace('"page": 1}', '"page": 1.5E+310}'))
    out = tmp_path / "out.jsonl"
    words = ["predict", made.model, new, "--data", made.data / "bin", "--device", "cpu", "--out", out]
    assert f"{new}:2: the number 1.5E+310 is too large" in refusal(*words)
    assert not out.exists()
    (tmp_path / "in").mkdir()
    for split in ("train", "valid", "test"):
        (tmp_path / f"in/{split}.jsonl").write_text(new.read_text())
    words = ["preprocess", tmp_path / "in", "--kind", "classification", "--out", tmp_path / "other"]
    assert "in/train.jsonl:2: the number 1.5E+310 is too large" in refusal(*words)
    new.write_text(new.read_text().replace("1.5E+310", "1.5E+300"))
    assert hat("predict", *[made.model, new, "--data", made.data / "bin", "--device", "cpu", "--out", out]) == 0
    assert read_lines(out)[1]["meta"] == {"page": 1.5e300}


def test_large_numbers_in_options_are_refused(tmp_path: Path) -> None:
    made = copied("summaries", tmp_path)
    words = ["export", made.model, "--data", made.data / "bin", "--out", tmp_path / "P"]
    assert "--lenpen must be a finite number, not inf" in refusal(*words, "--lenpen", "1e777")
    assert hat(*words) == 0
    path = tmp_path / "P/generation_config.json"
    path.write_text('{"length_penalty": 2e888}')
    words = ["generate", tmp_path / "P", made.raw, "--out", tmp_path / "x.jsonl"]
    assert "generation_config.json" in refusal(*words)
    assert not (tmp_path / "x.jsonl").exists()
    words = ["preprocess", tmp_path / "raw", "--kind", "qa", "--out", tmp_path / "out", "--negative-windows", "inf"]
    assert "--negative-windows must be a finite number, not inf" in refusal(*words)


@pytest.mark.fault("Generation and prediction", "a model whose scores are NaN or infinite", "refused with the document")
@pytest.mark.parametrize(("name", "number"), [(name, math.nan) for name in NAMES] + [("qa", math.inf)])
def test_scores_of_a_broken_model_are_refused(name: str, number: float, tmp_path: Path) -> None:
    """Nothing is written: neither predictions nor files of official scorers."""
    made, broken = copied(name, tmp_path), tmp_path / "broken.pt"
    allow_checkpoint_types()
    state = torch.load(made.model, weights_only=True)
    names = [key for key, tensor in state["model"].items() if tensor.is_floating_point() and tensor.dim() == 2]
    state["model"][next(key for key in names if "decoder.layers" in key or "heads" in key)].fill_(number)
    torch.save(state, broken)
    first, out = read_lines(made.raw)[0]["id"], tmp_path / "out.jsonl"
    common = ["--data", made.data / "bin", "--device", "cpu", "--out", out]
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    if name in WRITES_TEXTS:
        error = refusal("generate", broken, made.raw, *common)
        assert re.search(r"no text for \d+ of \d+ documents \(the first is '\w+[.\w]*'\).*not numbers \(NaN\)", error)
    else:
        error = refusal("predict", broken, made.raw, *common)
        assert f"{first!r} ({made.raw}:1): the model's scores are not numbers" in error
    after = {path for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.suffix for path in after - before} <= {".zip"}
