"""`hat score`: options that all metrics have, several files of references, JSON, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hat_fairseq import cli
from hat_fairseq.scoring import command


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "r.jsonl").write_text(
        '{"id": "x", "text": "source", "target": ["The dogs ran.", "They slept."]}\n'
        '{"id": "y", "text": "source", "target": ["Blue buttons."]}\n'
    )
    (tmp_path / "a.txt").write_text("The dog ran. They slept.\n\n")
    (tmp_path / "b.txt").write_text("The dogs ran. They slept.\nGröße\n")
    return tmp_path


@pytest.mark.fault(
    "Scoring", "empty hypotheses; letters that ROUGE does not count", "scored as 0 and counted in a note"
)
def test_notes_and_json(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hypotheses = [str(files / name) for name in ("a.txt", "b.txt")]
    words = ["score", "rouge", "--references", str(files / "r.jsonl"), "--json", str(files / "out.json")]
    assert cli.main([*words, "--hypotheses", *hypotheses]) == 0
    notes, written = capsys.readouterr().err, json.loads((files / "out.json").read_text())
    assert "a.txt: 1 of 2 hypotheses are empty and score 0" in notes
    assert "b.txt: 1 of 2 documents have letters outside a-z" in notes
    assert [written[path]["scores"]["rouge1"]["mean"] for path in hypotheses] == pytest.approx([50, 50])


@pytest.mark.fault("Scoring", "numbers of hypotheses and references differ", "both numbers and files, exit 2")
def test_an_error_is_one_line(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (files / "b.txt").write_text("only one line\n")
    words = ["score", "rouge", "--hypotheses", str(files / "b.txt"), "--references", str(files / "r.jsonl")]
    assert cli.main(words) == 2
    error = capsys.readouterr().err
    assert error.startswith("hat: error: ") and "has 1 documents, but" in error and error.count("\n") == 1


@pytest.mark.fault("Scoring", "a file twice", "names the option, exit 2")
@pytest.mark.fault("Scoring", "a negative number of resamples", "exit 2")
@pytest.mark.parametrize("metric", command.METRICS)
def test_what_every_metric_refuses(metric: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", metric, "--hypotheses", "h", "--references", "r"]
    cases = [
        ([*words, "r"], "--references names a file twice"),
        ([*words, "--hypotheses", "h"], "--hypotheses names a file twice"),
        ([*words, "--bootstrap-samples", "-1"], "--bootstrap-samples must not be negative: -1"),
    ]
    if not command.METRICS[metric].several_references:
        for more in (["b"], ["--references", "b"]):
            cases.append(([*words, *more], f"{metric} takes one file of --references, not 2"))
    for given, message in cases:
        assert cli.main(given) == 2
        assert capsys.readouterr().err == f"hat: error: {message}\n"


@pytest.mark.parametrize("metric", ["rouge", "bleu"])
def test_several_references_in_files_and_in_lists_give_the_same_figures(metric: str, files: Path, capsys) -> None:
    (files / "s.jsonl").write_text('{"id": "y", "target": "z"}\n{"id": "x", "target": [["One dog."], ["One cat."]]}\n')
    lists = [[["The dogs ran.", "They slept."], ["One dog."], ["One cat."]], [["Blue buttons."], ["z"]]]
    rows = (json.dumps({"id": name, "target": each}) + "\n" for name, each in zip("xy", lists, strict=True))
    (files / "all.jsonl").write_text("".join(rows))
    first, second = str(files / "r.jsonl"), str(files / "s.jsonl")
    outputs = []
    for references in ([first, second], [first, "--references", second], [str(files / "all.jsonl")], [first]):
        words = ["score", metric, "--hypotheses", str(files / "b.txt"), "--references", *references]
        assert cli.main([*words, "--bootstrap-samples", "20"]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] == outputs[2] != outputs[3]
    assert cli.main(["score", metric, "--hypotheses", str(files / "all.jsonl"), "--references", first]) == 2
    (files / "h.jsonl").write_text(json.dumps({"id": "x", "text": lists[0]}) + "\n")
    assert cli.main(["score", metric, "--hypotheses", str(files / "h.jsonl"), "--references", first]) == 2
    assert "only references may be several" in capsys.readouterr().err


@pytest.mark.fault("Scoring", "`--json` is an input, or exists", "refused, exit 2, the file stays")
def test_json_replaces_no_input_and_nothing_without_overwrite(files: Path, capsys) -> None:
    words = ["score", "rouge", "--hypotheses", str(files / "a.txt"), "--references", str(files / "r.jsonl")]
    before = (files / "r.jsonl").read_text()
    assert cli.main([*words, "--json", str(files / "r.jsonl"), "--overwrite"]) == 2
    assert "is also an input of this command" in capsys.readouterr().err
    (files / "model.pt").write_text("weights")
    assert cli.main([*words, "--json", str(files / "model.pt")]) == 2
    assert "exists; name another file, or replace it with --overwrite" in capsys.readouterr().err
    assert (files / "r.jsonl").read_text() == before and (files / "model.pt").read_text() == "weights"


def test_rouges_options_override_its_preset(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["score", "rouge", "--hypotheses", str(files / "a.txt"), "--references", str(files / "r.jsonl")]
    for flags, signature in (
        (["--like", "files2rouge"], "stem: yes | hypothesis-sentences: files2rouge"),
        (["--like", "rouge-score", "--stem"], "stem: yes | hypothesis-sentences: given"),
        (["--no-stem"], "stem: no | hypothesis-sentences: punctuation"),
    ):
        assert cli.main([*words, *flags]) == 0 and signature in capsys.readouterr().out
