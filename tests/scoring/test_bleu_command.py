"""`hat score bleu`: files in, table and JSON out."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import sys

import pytest
from commands import run_command

from hat_fairseq import cli
from hat_fairseq.scoring.bleu_command import language_of


def run(*given):
    return run_command(sys.executable, "-m", "hat_fairseq.cli", "score", "bleu", *given)


def jsonl(path, *rows):
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    jsonl(tmp_path / "r.jsonl",
          {"id": "x", "sentences": ["s"], "target": ["Der Hund läuft durch das Haus.", "Er schläft."]},
          {"id": "y", "sentences": ["s"], "target": ["Eine Katze sitzt auf der Matte."]})  # fmt: skip
    jsonl(tmp_path / "a.jsonl",
          {"id": "y", "text": "Eine Katze sitzt auf der Matte.", "segments": ["Eine Katze sitzt auf der Matte."]},
          {"id": "x", "text": "Der Hund läuft durch ein Haus. Er schläft.",
           "segments": ["Der Hund läuft", "durch ein Haus.", "Er schläft."]})  # fmt: skip
    jsonl(tmp_path / "b.jsonl", {"id": "x", "text": "Der Hund läuft durch das Haus."}, {"id": "y", "text": ""})
    return tmp_path


def test_table_notes_and_json(files):
    done = run("--hypotheses", files / "a.jsonl", files / "b.jsonl", "--references", files / "r.jsonl",
               "--bootstrap-samples", 20, "--seed", 3, "--json", files / "out.json")  # fmt: skip
    header, first, second, *signatures = done.stdout.splitlines()
    columns = ["document BLEU", "p", "chrF2", "p", "s-BLEU", "unmatched documents", "unmatched segments"]
    assert re.split(r" {2,}", header)[1:] == columns
    assert first.startswith(str(files / "a.jsonl")) and " ± " in first
    assert first.endswith("  100.00  1 of 2 (50.0 %)      2 of 3 (66.7 %)")
    assert second.endswith("  -       2 of 2 (100.0 %)     3 of 3 (100.0 %)")
    assert [line.partition(": ")[0] for line in signatures] == ["document BLEU", "chrF2", "s-BLEU"]
    assert "bs:20|seed:3|" in signatures[0] and "tok:13a" in signatures[0] and "bs:" not in signatures[2]
    assert "b.jsonl: 1 of 2 hypotheses are empty" in done.stderr
    assert "b.jsonl: 2 of 2 documents have no segments" in done.stderr and "a.jsonl" not in done.stderr
    written = json.loads((files / "out.json").read_text())
    assert written["signatures"]["chrF2"] in signatures[1]
    scores = [written["systems"][str(files / name)]["scores"] for name in ("a.jsonl", "b.jsonl")]
    assert scores[0]["document BLEU"]["p_value"] is None and 0 < scores[1]["document BLEU"]["p_value"] <= 1
    assert f"{scores[0]['chrF2']['score']:.2f}" in first


def test_one_system_and_plain_text_without_resampling(files):
    (files / "h.txt").write_text("Der Hund läuft durch das Haus. Er schläft.\nEine Katze sitzt auf der Matte.\n")
    done = run("--hypotheses", files / "h.txt", "--references", files / "r.jsonl", "--bootstrap-samples", 0)
    header, row, *signatures = done.stdout.splitlines()
    assert row.split("  ")[1] == "100.00" and " p " not in header and "full stop" not in done.stderr
    assert len(signatures) == 2 and "bs:" not in signatures[0]
    (files / "h.txt").write_text("Der Hund läuft . Er schläft .\nEine Katze sitzt auf der Matte .\n")
    done = run("--hypotheses", files / "h.txt", "--references", files / "r.jsonl", "--bootstrap-samples", 0)
    assert "h.txt: 2 of 2 documents end in a full stop after a space: if the texts are tokenised" in done.stderr


@pytest.mark.fault("Scoring", "ids missing, segments that are not the text, unknown tokenizer", "one line, exit 2")
@pytest.mark.parametrize(
    ("rows", "flags", "message"),
    [
        ([{"id": "x", "text": "a"}], [], r"h.jsonl lacks 1 of 2 ids, the first is 'y'"),
        (
            [{"id": "x", "text": "a b", "segments": ["a", "c"]}, {"id": "y", "text": "a"}],
            [],
            "the segments of document 'x', joined, are not its text",
        ),
        ([{"id": "x", "text": "a"}, {"id": "y", "text": "a"}], ["--tokenize", "14a"], "unknown tokenizer '14a'"),
        ([{"id": "x", "text": "a"}, {"id": "y", "text": "a"}], ["--seed", "0"], "the seed must be at least 1, not 0"),
    ],
)
def test_an_error_is_one_line(files, capsys, rows, flags, message):
    hypotheses = jsonl(files / "h.jsonl", *rows)
    given = ["score", "bleu", "--hypotheses", str(hypotheses), "--references", str(files / "r.jsonl"), *flags]
    assert cli.main(given) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("hat: error: ") and message in err and err.count("\n") == 1


@pytest.fixture
def chinese(tmp_path, capsys):
    """Chinese translations, preprocessed, and hypotheses."""
    rows = [{"id": "x", "sentences": ["Fine weather."], "target": ["今天天气很好。", "明天会下雨。"]}]
    for split in ("train", "valid", "test"):
        jsonl(tmp_path / f"{split}.jsonl", *rows)
    out = tmp_path / "data"
    given = ["--target-language", "zh", "--num-codes", "20", "--out", str(out)]
    assert cli.main(["preprocess", str(tmp_path), *given]) == 0
    segments = ["今天天气不好。", "明天会下雨。"]
    jsonl(tmp_path / "h.jsonl", {"id": "x", "text": "".join(segments), "segments": segments})
    capsys.readouterr()
    return out


@pytest.mark.parametrize(
    ("flags", "tokenizer"),
    [((), "zh"), (("--tokenize", "char"), "char"), (("--language", "de"), "13a")],
)
def test_the_tokenizer_follows_the_language_that_the_pipeline_recorded(chinese, capsys, flags, tokenizer):
    hypotheses, references = chinese.parent / "h.jsonl", chinese / "text/test.jsonl"
    given = ["--hypotheses", str(hypotheses), "--references", str(references), "--bootstrap-samples", "0"]
    assert cli.main(["score", "bleu", *given, *flags]) == 0
    out = capsys.readouterr().out
    assert out.count(f"tok:{tokenizer}|") == 2
    assert (float(re.findall(r"h\.jsonl +([\d.]+)", out)[0]) > 50) == (tokenizer != "13a")


LATIN = "Der Hund läuft durch das Haus, und die Katze schläft."


@pytest.mark.fault(
    "Scoring", "BLEU of Chinese references whose language is not stated", "tokenizer by script, and a line"
)
@pytest.mark.parametrize(
    ("text", "flags", "tokenizer", "reason"),
    [
        ("今天的天气非常好。我们用 Python 工作。", [], "zh", "tokenizer zh: 68% of the references' letters"),
        ("今天的天气非常好。", ["--language", "en"], "13a", ""),
        ("今日はとても天気がいいです。", [], "char", "sacrebleu[ja] is not installed"),
        ("오늘은 날씨가 아주 좋습니다.", [], "char", "sacrebleu[ko] is not installed"),
        (LATIN + " 你好", [], "13a", ""),
    ],
)
def test_the_tokenizer_follows_the_script_of_the_references(tmp_path, capsys, text, flags, tokenizer, reason):
    if "sacrebleu[" in reason and any(map(importlib.util.find_spec, ("MeCab", "mecab_ko"))):
        pytest.skip("a tokenizer of these languages is installed")
    references = jsonl(tmp_path / "r.jsonl", {"id": "x", "target": [text]})
    hypotheses = jsonl(tmp_path / "h.jsonl", {"id": "x", "text": text[:-2] + text[-1]})
    given = ["--hypotheses", str(hypotheses), "--references", str(references), "--bootstrap-samples", "0"]
    assert cli.main(["score", "bleu", *given, *flags]) == 0
    out = capsys.readouterr().out
    assert f"tok:{tokenizer}|" in out and reason in out and ("tokenizer " in out) == bool(reason)


@pytest.mark.fault("Scoring", "references of two languages", "names both and the option, exit 2")
def test_references_of_two_languages_and_none(chinese, files, capsys):
    other = chinese.parent / "other"
    shutil.copytree(chinese, other)
    pipeline = other / "bin/pipeline.json"
    pipeline.write_text(pipeline.read_text().replace('"zh"', '"de"'))
    paths = [str(folder / "text/test.jsonl") for folder in (chinese, other)]
    given = ["score", "bleu", "--hypotheses", str(chinese.parent / "h.jsonl"), "--references", *paths]
    assert cli.main(given) == 2
    assert "the references are of the languages de, zh: choose one with --language" in capsys.readouterr().err
    assert language_of([str(files / "r.jsonl")]) == "en"


@pytest.mark.fault("Scoring", "the package of a tokenizer is missing", "names it with its pip command, exit 2")
@pytest.mark.parametrize(("language", "package"), [("ja", "MeCab"), ("ko", "mecab_ko")])
def test_a_missing_tokenizer_is_named(files, capsys, language, package):
    given = ["score", "bleu", "--hypotheses", str(files / "a.jsonl"), "--references", str(files / "r.jsonl")]
    if importlib.util.find_spec(package):
        pytest.skip(f"{package} is installed")
    assert cli.main([*given, "--language", language]) == 2
    needed = f"needs the package sacrebleu[{language}]: pip install 'sacrebleu[{language}]', or choose another with"
    assert f"sacrebleu's tokenizer of the language '{language}' {needed} --tokenize" in capsys.readouterr().err
