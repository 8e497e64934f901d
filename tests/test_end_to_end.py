"""Raw meetings to scored summaries through the ordinary fairseq commands, small, on real AMI documents."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import USER_DIR
from warm import WarmPython

from hat_fairseq import cli

GENERATION = "--beam 2 --max-len-b 30 --min-len 5 --bpe document --cpu --num-workers 0"


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory) -> tuple[Path, Any]:
    """Two epochs, chosen by ROUGE on the validation meetings."""
    directory = tmp_path_factory.mktemp("trained")
    options = json.dumps({"beam": 2, "min_len": 5, "max_len_b": 20, "no_repeat_ngram_size": 2})
    rouge = ["--eval-rouge", "--eval-rouge-args", options]
    best = ["--best-checkpoint-metric", "rougeL", "--maximize-best-checkpoint-metric"]
    return directory, train(directory, "--max-epoch", 2, *rouge, *best)


def plugin(ami: Path) -> list[str]:
    flags = f"{ami / 'bin'} --user-dir {USER_DIR} --task document_to_text --role-stream role --max-source-positions 128"
    return flags.split()


def hypotheses(output: str) -> dict[int, str]:
    return {int(i): text for i, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", output, flags=re.MULTILINE)}


@pytest.fixture(scope="module")
def generated(run, ami: Path, trained, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("generated")
    flags = [*GENERATION.split(), "--document-pipeline", ami / "bin", "--batch-size", 4, "--results-path", out]
    run("fairseq-generate", *plugin(ami), "--path", trained[0] / "checkpoint_best.pt", *flags)
    return out / "generate-test.txt"


def test_fairseq_preprocess_with_the_plugin_gives_the_same_data(run, ami: Path, tmp_path: Path) -> None:
    languages = ["--source-lang", "source", "--target-lang", "target", "--joined-dictionary"]
    parts = [flag for split in ("train", "valid", "test") for flag in (f"--{split}pref", ami / "text" / split)]
    run("fairseq-preprocess", "--user-dir", USER_DIR, *languages, *parts, "--destdir", tmp_path)
    for name in ("dict.source.txt", "train.source-target.source.bin", "test.source-target.target.idx"):
        assert (tmp_path / name).read_bytes() == (ami / "bin" / name).read_bytes(), name


@pytest.mark.fault("Training", "most generated texts of a validation are empty or one word", "a warning")
def test_texts_of_one_word_are_a_warning(train, trained, tmp_path: Path) -> None:
    options = json.dumps({"beam": 1, "min_len": 1, "max_len_b": 1})
    log = train(tmp_path, "--max-update", 1, "--no-save", "--eval-rouge", "--eval-rouge-args", options).stdout
    warning = "of the generated texts are empty or one word"
    assert f"100% {warning}" in log and "valid_rougeL" in log and warning not in trained[1].stdout


def test_training_reports_rouge_and_keeps_the_best_by_it(trained) -> None:
    directory, result = trained
    logs = [json.loads(m) for m in re.findall(r"\| valid \| (\{.*?\})", result.stdout + result.stderr)]
    assert len(logs) == 2
    best = max(float(log["valid_rougeL"]) for log in logs)
    assert 0 <= best <= 100 and float(logs[-1]["valid_best_rougeL"]) == best
    assert {"valid_rouge1", "valid_rouge2"} <= logs[0].keys()
    assert (directory / "checkpoint_best.pt").exists()


def test_generate_join_and_score(run, ami: Path, generated: Path, tmp_path: Path) -> None:
    joined = tmp_path / "hat.jsonl"
    run("hat", "join", "--generated", generated, "--ids", ami / "text/test.ids", "--out", joined)
    lines = [json.loads(line) for line in joined.read_text().splitlines()]
    documents = [json.loads(line)["id"] for line in (ami / "text/test.jsonl").open()]
    assert [line["id"] for line in lines] == documents and len(documents) == 6  # no batch is dropped
    result = run("hat", "score", "rouge", "--hypotheses", joined, "--references", ami / "text/test.jsonl")
    assert "documents: 6" in result.stdout
    shown = run("hat", "show", "--documents", ami / "text/test.jsonl", "--hypotheses", joined)
    assert lines[0]["text"].split()[0] in shown.stdout and "--- reference" in shown.stdout


def test_summarize_equals_generate(run, ami: Path, trained, generated: Path, tmp_path: Path) -> None:
    """Raw documents give the same summaries as binarised ones: one way from text to tokens."""
    expected = hypotheses(generated.read_text())
    checkpoint = trained[0] / "checkpoint_best.pt"
    options = json.dumps({"beam": 2, "max_len_b": 30, "min_len": 5})
    out = tmp_path / "texts.jsonl"
    words = ["--path", checkpoint, "--data", ami / "bin", "--input", ami / "text/test.jsonl", "--out", out]
    run("hat", "summarize", *words, "--generation", options, "--device", "cpu", "--batch-size", 4)
    assert [json.loads(line)["text"] for line in out.open()] == list(dict(sorted(expected.items())).values())


def test_validate_gives_the_training_runs_loss(warm: WarmPython, ami: Path, trained) -> None:
    words = (
        f"fairseq_cli.validate {ami / 'bin'} --user-dir {USER_DIR} --path {trained[0] / 'checkpoint_last.pt'} --cpu "
    )
    words += "--batch-size 2 --valid-subset valid --log-format json --num-workers 0 --task document_to_text"
    result = warm.completed(words.split(), Path.cwd())
    trained_logs = re.findall(r"\| valid \| (\{.*?\})", trained[1].stdout + trained[1].stderr)
    losses = re.findall(r'"valid_loss": "([\d.]+)"|\bloss ([\d.]+)', result.stdout + result.stderr)
    assert json.loads(trained_logs[-1])["valid_loss"] in {value for pair in losses for value in pair}


def test_documents_that_are_longer_than_the_model_are_refused(train, tmp_path: Path) -> None:
    flags = ["--max-source-positions", 64, "--max-target-positions", 32, "--max-update", 1, "--no-save"]
    refused = train(tmp_path, *flags, "--disable-validation", check=False)
    last = refused.stderr.strip().splitlines()[-1]
    assert re.search(r"train: \d+ of \d+ sources are longer than the model takes, 64; the longest has \d+ tokens", last)
    assert last.endswith("hat preprocess --max-source-tokens 64")


def test_a_wrong_dictionary_of_the_right_size_is_refused(run, ami: Path, trained, tmp_path: Path) -> None:
    data = tmp_path / "bin"
    shutil.copytree(ami / "bin", data)
    for side in ("source", "target"):
        path = data / f"dict.{side}.txt"
        lines = path.read_text().splitlines()
        path.write_text("\n".join([lines[1], lines[0], *lines[2:]]) + "\n")
    flags = plugin(ami)
    flags[0] = str(data)
    result = run("fairseq-generate", *flags, "--path", trained[0] / "checkpoint_last.pt", "--cpu", check=False)
    assert result.returncode and "trained with another dictionary" in result.stderr.strip().splitlines()[-1]


def test_a_missing_or_foreign_role_stream_is_refused(train, ami: Path, tmp_path: Path) -> None:
    data = tmp_path / "bin"
    shutil.copytree(ami / "bin", data)
    for extension in ("bin", "idx"):
        shutil.copy(ami / f"bin/train.source-target.target.{extension}", data / f"train.role-None.role.{extension}")
    foreign = train(tmp_path, "--max-update", 1, data=data, check=False)
    assert "damaged, or of another dictionary" in foreign.stderr.strip().splitlines()[-1]
    for path in data.glob("train.role-None.*"):
        path.unlink()
    missing = train(tmp_path, "--max-update", 1, data=data, check=False)
    assert "the stream of --role-stream role is missing" in missing.stderr.strip().splitlines()[-1]


NO_DOCUMENTS = {
    '{"id": "a", "text": "Not cut into turns ."}': "no given sentences",
    '{"id": "a", "sentences": ["Nobody says who speaks ."]}': "role",
    '{"id": "a", "turns": [{"role": "QA", "text": "Hello ."}]}': "QA",
}


def test_summarize_refuses_what_is_no_document(
    ami: Path, trained, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = ["--path", trained[0] / "checkpoint_last.pt", "--data", ami / "bin", "--input", tmp_path / "raw.jsonl"]
    for line, message in NO_DOCUMENTS.items():
        (tmp_path / "raw.jsonl").write_text(line + "\n")
        assert cli.main(["summarize", *map(str, [*paths, "--out", tmp_path / "out.jsonl", "--device", "cpu"])]) == 2
        assert message in capsys.readouterr().err
