"""Questions on meetings, from QMSum's files by a reader of paragraphs to the score of a small model."""

import json
import shutil
from pathlib import Path

import pytest
from commands import USER_DIR, run_command

from hat_fairseq import cli
from hat_fairseq.data.files import read_json_lines

SAMPLE = Path(__file__).parent / "samples/qmsum_ami.jsonl.gz"


@pytest.mark.slow
def test_from_qmsum_to_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(Path(__file__).parent / "support/meeting_paragraphs.py", tmp_path / "qmsum.py")
    meetings = [meeting for _, meeting in read_json_lines(SAMPLE)]
    for split, numbers in (("train", (0, 1)), ("val", (0,)), ("test", (2,))):
        (tmp_path / split).mkdir()
        for meeting in (meetings[number] for number in numbers):
            (tmp_path / split / f"{meeting['meeting_id']}.json").write_text(json.dumps(meeting))
    data, model, out = tmp_path / "data", tmp_path / "model", tmp_path / "out/test.jsonl"
    words = ["preprocess", tmp_path / "qmsum.py", "--root", tmp_path, "--out", data, "--num-codes", 300]
    words += ["--max-source-tokens", 601, "--long-source", "chunk", "--window-overlap", 200, "--negative-windows", 0.5]
    assert cli.main(list(map(str, words))) == 0
    records = {split: [r for _, r in read_json_lines(data / f"text/{split}.jsonl")] for split in ("train", "test")}
    assert [len(each) for each in records.values()] == [12, 6]
    for record, query in zip(records["test"], meetings[2]["specific_query_list"], strict=True):
        chosen = [each["paragraph"] for each in record["annotations"]]
        relevant = {int(n) for first, last in query["relevant_text_span"] for n in range(int(first), int(last) + 1)}
        assert chosen == sorted({turn // 10 for turn in relevant})
        assert record["question"] == query["query"]
        said = meetings[2]["meeting_transcripts"][10 * chosen[0]]["content"]
        assert said in record["paragraphs"][chosen[0]]
    flags = "--task document_question_answering --criterion document_answers --arch hat_roberta_tiny --cpu --seed 1 "
    flags += "--max-positions 601 --optimizer adam --lr 1e-3 --batch-size 4 --max-update 2 --disable-validation "
    flags += "--no-epoch-checkpoints --num-workers 0"
    run_command("fairseq-train", data / "bin", "--user-dir", USER_DIR, *flags.split(), "--save-dir", model)
    words = ["predict", model / "checkpoint_last.pt", data, "--out", out, "--device", "cpu"]
    assert cli.main(list(map(str, words))) == 0
    predictions = [record for _, record in read_json_lines(out)]
    for prediction, record in zip(predictions, records["test"], strict=True):
        assert prediction["id"] == record["id"]
        assert prediction["meta"] == record["meta"]
        assert 0 <= prediction["paragraph"] < len(record["paragraphs"])
        if prediction["type"] == "span":
            text = record["paragraphs"][prediction["answer_paragraph"]]
            assert text[prediction["start"] :].startswith(prediction["answer"])
    own = tmp_path / "own.jsonl"  # references without a pipeline beside them
    own.write_bytes((data / "text/test.jsonl").read_bytes())
    for references in (own, data / "text/test.jsonl"):
        assert cli.main(["score", "qa", str(out), "--references", str(references)]) == 0
    first, second = [line for line in capsys.readouterr().out.splitlines() if line.startswith("paragraph ")]
    chosen = [{each["paragraph"] for each in record["annotations"]} for record in records["test"]]
    right = [each["paragraph"] in paragraphs for each, paragraphs in zip(predictions, chosen, strict=True)]
    assert first == second
    assert first.split()[1] == f"{100 * sum(right) / len(right):.2f}"
    assert [path.name for path in out.parent.iterdir()] == ["test.jsonl"], "no official file for data of one's own"
