"""Raw meetings to scored summaries through the ordinary fairseq commands, small, on real AMI documents."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from commands import USER_DIR, read_lines, refusal

from hat_fairseq.data.records_json import read_records


@pytest.fixture(scope="module")
def trained(train, tmp_path_factory) -> tuple[Path, Any]:
    """Two epochs, chosen by ROUGE on the validation meetings."""
    directory = tmp_path_factory.mktemp("trained")
    options = json.dumps({"beam": 2, "min_len": 5, "max_len_b": 20, "no_repeat_ngram_size": 2})
    rouge = ["--eval-rouge", "--eval-rouge-args", options]
    best = ["--best-checkpoint-metric", "rougeL", "--maximize-best-checkpoint-metric"]
    return directory, train(directory, "--max-epoch", 2, *rouge, *best)


@pytest.mark.slow
@pytest.mark.fault("Training", "most generated texts of a validation are empty or one word", "a warning")
def test_texts_of_one_word_are_a_warning(train, trained, tmp_path: Path) -> None:
    options = json.dumps({"beam": 1, "min_len": 1, "max_len_b": 1})
    log = train(tmp_path, "--max-update", 1, "--no-save", "--eval-rouge", "--eval-rouge-args", options).stdout
    warning = "of the generated texts are empty or one word"
    assert f"100% {warning}" in log
    assert "valid_rougeL" in log
    assert warning not in trained[1].stdout


def test_training_reports_rouge_and_keeps_the_best_by_it(trained) -> None:
    directory, result = trained
    logs = [json.loads(m) for m in re.findall(r"\| valid \| (\{.*?\})", result.stdout + result.stderr)]
    assert len(logs) == 2
    best = max(float(log["valid_rougeL"]) for log in logs)
    assert 0 <= best <= 100
    assert float(logs[-1]["valid_best_rougeL"]) == best
    assert {"valid_rouge1", "valid_rouge2"} <= logs[0].keys()
    assert (directory / "checkpoint_best.pt").exists()


@pytest.mark.slow
def test_raw_documents_give_the_texts_of_fairseq_generate(run, ami: Path, trained, tmp_path: Path) -> None:
    """Raw documents give the same summaries as binarised ones: one way from text to tokens."""
    checkpoint, out = trained[0] / "checkpoint_best.pt", tmp_path / "texts.jsonl"
    flags = f"--user-dir {USER_DIR} --task document_to_text --role-stream role --max-source-positions 128 --beam 2 "
    flags += f"--max-len-b 30 --min-len 5 --bpe document --document-pipeline {ami}/bin --cpu --num-workers 0"
    log = run("fairseq-generate", ami / "bin", "--path", checkpoint, *flags.split(), "--batch-size", 4).stdout
    expected = {int(i): text for i, text in re.findall(r"^D-(\d+)\t\S+\t(.*)$", log, flags=re.MULTILINE)}
    words = [checkpoint, ami / "text/test.jsonl", "--data", ami / "bin", "--out", out]
    options = ["--beam", 2, "--max-len-b", 30, "--min-len", 5, "--device", "cpu", "--batch-size", 4]
    run("hat", "generate", *words, *options)
    assert [row["text"] for row in read_lines(out)] == [text for _, text in sorted(expected.items())]
    assert len(expected) == 6  # no batch is dropped


NO_DOCUMENTS = {
    '{"id": "a", "text": "Not cut into turns ."}': "has no roles, which the data or the model need: give turns",
    '{"id": "a", "sentences": ["Nobody says who speaks ."]}': "role",
    '{"id": "a", "turns": [{"role": "QA", "text": "Hello ."}]}': "QA",
}


@pytest.mark.slow
@pytest.mark.parametrize(("line", "message"), NO_DOCUMENTS.items())
def test_generate_refuses_what_is_no_document(line: str, message: str, ami: Path, trained, tmp_path: Path) -> None:
    paths = [trained[0] / "checkpoint_last.pt", tmp_path / "raw.jsonl", "--data", ami / "bin"]
    (tmp_path / "raw.jsonl").write_text(line + "\n")
    assert message in refusal("generate", *paths, "--out", tmp_path / "out.jsonl", "--device", "cpu")


@pytest.mark.slow
def test_samples_of_a_validation_with_bleu(train, ami: Path, tmp_path: Path) -> None:
    """`--eval-bleu-print-samples` logs a text and its reference of each batch; without `--eval-bleu` it is refused."""
    words = ["--max-update", 1, "--no-save", "--eval-bleu-print-samples", "--valid-subset", "valid"]
    log = train(tmp_path, *words, "--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_b": 5}').stdout
    printed = re.findall(r"example reference: (.*)", log)
    references = [" ".join(record.target or ()) for record in read_records(ami / "text/valid.jsonl")]
    assert len(printed) == log.count("example hypothesis: ") == len(references) / 2  # two in a batch
    known = [max(text.split("⁇"), key=len).strip() for text in printed]  # which stands for an unknown token
    assert all(any(part in reference for reference in references) for part in known)
    failed = train(tmp_path, *words, check=False)
    assert failed.returncode == 1
    assert "--eval-bleu-print-samples has no effect without --eval-bleu" in failed.stdout + failed.stderr
