from __future__ import annotations

import argparse
import json
import subprocess
import sys

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring import command
from hat_fairseq.scoring.rouge_command import settings_from


def arguments(*given):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return parser.parse_args(["rouge", "--hypotheses", "h", "--references", "r", *given])


@pytest.fixture
def files(tmp_path):
    (tmp_path / "a.txt").write_text("One cat runs. Two dogs run.\n\n")
    (tmp_path / "b.txt").write_text("One cat.\nGrün\n")
    (tmp_path / "r.jsonl").write_text(
        '{"id": "x", "target": ["Two dogs run.", "One cat."]}\n{"id": "y", "target": "z"}\n'
    )
    return tmp_path


def run(*given):
    return subprocess.run([sys.executable, "-m", "hat_fairseq.cli", "score", *given], capture_output=True, text=True)


@pytest.mark.fault(
    "Scoring", "empty hypotheses; letters that ROUGE does not count", "scored as 0 and counted in a note"
)
def test_table_notes_and_json(files):
    done = run("rouge", "--hypotheses", files / "a.txt", files / "b.txt", "--references", files / "r.jsonl",
               "--json", files / "out.json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    header, first, second, signature, *repeated = done.stdout.splitlines()
    assert header.split("  ")[-1] == "ROUGE-L (summary)"
    assert (first.split()[0], second.split()[0]) == (str(files / "a.txt"), str(files / "b.txt"))
    assert "hypothesis-sentences: punctuation" in signature
    assert repeated == [f"repeated 3-grams: {files / name} 0.00 % (references: 0.00 %)" for name in ("a.txt", "b.txt")]
    assert "a.txt: 1 of 2 hypotheses are empty and score 0" in done.stderr
    assert "b.txt: 1 of 2 documents have letters outside a-z" in done.stderr
    written = json.loads((files / "out.json").read_text())
    assert written[str(files / "a.txt")]["scores"]["rouge1"]["mean"] == pytest.approx(100 * 10 / 11 / 2)
    assert written[str(files / "b.txt")]["signature"] == signature


@pytest.mark.fault("Scoring", "numbers of hypotheses and references differ", "both numbers and files, exit 2")
def test_an_error_is_one_line(files):
    (files / "b.txt").write_text("only one line\n")
    done = run("rouge", "--hypotheses", files / "b.txt", "--references", files / "r.jsonl")
    assert done.returncode == 2
    error = done.stderr.splitlines()[-1]
    assert error.startswith("hat: error: ")
    assert "has 1 documents, but" in error
    assert "Traceback" not in done.stderr


def test_options_override_the_preset():
    assert settings_from(arguments("--like", "files2rouge")).hypothesis_sentences == "files2rouge"
    settings = settings_from(arguments("--like", "rouge-score", "--stem", "--bootstrap-samples", "7"))
    assert (settings.stem, settings.hypothesis_sentences, settings.bootstrap_samples) == (True, "given", 7)
    assert settings_from(arguments("--no-stem")).stem is False
    assert settings_from(arguments()).stem is True


@pytest.mark.fault("Scoring", "a file or an option twice", "names the option, exit 2")
@pytest.mark.parametrize("metric", command.METRICS)
def test_files_are_named_once(metric, capsys):
    words = ["score", metric, "--hypotheses", "h", "--references", "r"]
    with pytest.raises(SystemExit):
        cli.main([*words, "--hypotheses", "x"])
    assert "--hypotheses is given twice; name all files after one --hypotheses" in capsys.readouterr().err
    for repeated, option in (([*words, "r"], "--references"), ([*words[:3], "h", *words[3:]], "--hypotheses")):
        assert cli.main(repeated) == 2
        assert capsys.readouterr().err == f"hat: error: {option} names a file twice\n"


@pytest.mark.parametrize("metric", ["rouge", "bleu"])
def test_a_repeated_option_of_references_is_one_with_several_files(metric, files, capsys):
    (files / "s.txt").write_text("One dog.\nz\n")
    outputs = []
    for more in ([files / "s.txt"], ["--references", files / "s.txt"], []):
        words = ["score", metric, "--hypotheses", files / "b.txt", "--references", files / "r.jsonl", *more]
        assert cli.main([str(word) for word in words]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] != outputs[2]


@pytest.mark.fault("Scoring", "`--json` is an input, or exists", "refused, exit 2, the file stays")
def test_json_replaces_no_input_and_nothing_without_overwrite(files, capsys):
    words = ["score", "rouge", "--hypotheses", str(files / "a.txt"), "--references", str(files / "r.jsonl")]
    before = (files / "r.jsonl").read_text()
    assert cli.main([*words, "--json", str(files / "r.jsonl"), "--overwrite"]) == 2
    assert "is also an input of this command" in capsys.readouterr().err
    (files / "odds.json").write_text("{}")
    squad = ["score", "squad", *words[2:], "--null-odds", str(files / "odds.json"), "--json", str(files / "odds.json")]
    assert cli.main([*squad, "--overwrite"]) == 2
    assert "is also an input of this command" in capsys.readouterr().err
    (files / "model.pt").write_text("weights")
    assert cli.main([*words, "--json", str(files / "model.pt")]) == 2
    assert "exists; name another file, or replace it with --overwrite" in capsys.readouterr().err
    assert (files / "r.jsonl").read_text() == before and (files / "model.pt").read_text() == "weights"
    for more in ([], ["--overwrite"]):
        assert cli.main([*words, "--json", str(files / "out.json"), *more]) == 0


@pytest.mark.fault("Scoring", "a negative number of resamples", "exit 2")
@pytest.mark.parametrize("metric", command.METRICS)
def test_a_negative_number_of_samples(metric, capsys):
    assert cli.main(["score", metric, "--hypotheses", "h", "--references", "r", "--bootstrap-samples", "-1"]) == 2
    assert capsys.readouterr().err == "hat: error: --bootstrap-samples must not be negative: -1\n"


@pytest.mark.parametrize("metric", command.METRICS)
def test_help_has_no_doubled_signs(metric, capsys):
    with pytest.raises(SystemExit) as end:
        cli.main(["score", metric, "--help"])
    assert end.value.code == 0 and "%%" not in capsys.readouterr().out
