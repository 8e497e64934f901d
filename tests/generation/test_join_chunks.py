import argparse
import json

import pytest

from hat_fairseq.generation import join_chunks

IDS = "meeting a\t0\t2\t3\nmeeting a\t1\t2\t1\nb\t0\t1\t2\n"
# In the order of generation, which is not that of the samples, with fairseq's other lines in between.
GENERATED = """\
S-2\t<s> so ur ce
T-2\treference
H-2\t-0.5\tsec@@ ond
D-2\t-0.5\tsecond text
P-2\t-0.1 -0.2
2024-01-01 | INFO | fairseq_cli.generate | D-9\tnot a hypothesis
D-1\t-1.25\tand the \u2028 end .
D-0\t-1.5\tThe start ,
Generate test with beam=4: BLEU4 = 0.00
"""


@pytest.fixture
def run(tmp_path):
    def run(ids=IDS, *generated):
        (tmp_path / "test.ids").write_text(ids)
        paths = [tmp_path / f"generated-{number}.txt" for number in range(len(generated))]
        for path, text in zip(paths, generated, strict=True):
            path.write_bytes(text.encode())
        parser = argparse.ArgumentParser()
        join_chunks.add_arguments(parser)
        out = tmp_path / "out.jsonl"
        options = ["--ids", tmp_path / "test.ids", "--out", out, "--overwrite", "--generated", *paths]
        assert join_chunks.main(parser.parse_args([str(option) for option in options])) == 0
        return [json.loads(line) for line in out.read_text().split("\n")[:-1]]

    return run


def test_documents_in_the_order_of_the_ids(run):
    assert run(IDS, GENERATED) == [
        {"id": "meeting a", "text": "The start , and the \u2028 end ."},
        {"id": "b", "text": "second text"},
    ]


def test_several_files_and_chunks_in_another_order(run):
    first, second = "D-0\t-1\tone\n", "D-2\t-1\tthree\nD-1\t-1\ttwo\n"
    assert [row["text"] for row in run(IDS, first, second)] == ["one two", "three"]
    rows = run("a\t1\t2\t1\na\t0\t2\t1\n", "D-0\t-1\tsecond\nD-1\t-1\tfirst\n")
    assert rows == [{"id": "a", "text": "first second"}]


def test_segments_are_kept_apart_and_counted(run, capsys):
    """A tab stands for <sep>; a chunk ends a segment as well; an empty segment keeps its place."""
    rows = run(IDS, "D-0\t-1\tOne.\t\tThree.\nD-1\t-1\tFour.\nD-2\t-1\tonly one\n")
    assert rows == [
        {"id": "meeting a", "text": "One. Three. Four.", "segments": ["One.", "", "Three.", "Four."]},
        {"id": "b", "text": "only one", "segments": ["only one"]},
    ]
    assert "1 of 2 documents have another number of segments than their source" in capsys.readouterr().err


def test_a_chunk_of_one_segment_is_a_segment_where_the_data_say_so(run, tmp_path, capsys):
    (tmp_path / "pipeline.json").write_text(json.dumps({"settings": {"target_separator": True}}))
    ids, texts = "a\t0\t2\t1\na\t1\t2\t1\nb\t0\t1\t2\nc\t0\t1\t2\n", ["One.", "Two.", "Three.", "Four."]
    (row, *_) = run(ids, "".join(f"D-{number}\t-1\t{text}\n" for number, text in enumerate(texts)))
    assert row == {"id": "a", "text": "One. Two.", "segments": ["One.", "Two."]}
    assert "2 of 3 documents have another number of segments than their source" in capsys.readouterr().err


def test_empty_texts_are_counted(run, capsys):
    rows = run(IDS, "D-0\t-1\t\nD-1\t-1\tpart\nD-2\t-1\t\n")
    assert [row["text"] for row in rows] == ["part", ""]
    assert "1 of 2 documents have an empty text" in capsys.readouterr().err


REFUSED = [
    (IDS, "D-0\t-1\ta\nD-1\t-1\tb\n", r"1 of 3 samples .* not generated.*sample 2 \(document 'b', chunk 0\)"),
    (IDS, "D-0\t-1\ta\nD-0\t-1\tb\n", r":2: a second hypothesis for sample 0: .*--nbest 1"),
    (IDS, "D-0\t-1\ta\nD-1\t-1\tb\nD-2\t-1\tc\nD-3\t-1\td\n", "sample 3 was generated, but .* has 3 samples"),
    (IDS, "H-0\t-1\ta b\n", r"only 1 H- lines \(tokens, not text\)"),
    *(
        (IDS, f"H-0\t-1\ta\nD-0\t-1\ta\nH-1\t-1\tb\nD-1\t-1\tb\nH-2\t-1\t{text}\nD-2\t-1\t{text}\n", "--bpe document")
        for text in ("c@@ c", "c <sep> c", "c@@", "\u2581c", "262 318")
    ),
    (IDS, "nothing\n", "no H- or D- lines"),
    ("a\t0\t2\t1\n", "D-0\t-1\ta\n", r":1: document 'a' has 2 chunks, but the line of chunk 1 is missing"),
    ("a\t0\t1\t1\na\t0\t1\t1\n", "D-0\t-1\ta\n", r":2: chunk 0 of document 'a' is on line 1 already"),
    ("a\t0\t1\n", "D-0\t-1\ta\n", ":1: expected document id, .* run hat preprocess again"),
]


@pytest.mark.parametrize(("ids", "generated", "message"), REFUSED)
def test_what_does_not_belong_together_is_refused(ids: str, generated: str, message: str, run) -> None:
    with pytest.raises(ValueError, match=message):
        run(ids, generated)


def test_texts_of_another_split_are_refused(run, tmp_path) -> None:
    assert run(IDS, GENERATED)
    (tmp_path / "valid.ids").write_text(IDS)
    with pytest.raises(ValueError, match=r"txt:9: the texts are of valid: give --ids .*valid\.ids"):
        run(IDS, GENERATED.replace("Generate test", "Generate valid"))


@pytest.mark.parametrize(("language", "text"), [("zh", "你好。再见 A B。"), ("en", "你好。 再见 A B。")])
def test_chinese_chunks_are_joined_without_spaces(run, tmp_path, language, text) -> None:
    (tmp_path / "pipeline.json").write_text(json.dumps({"settings": {"target_language": language}}))
    generated = "D-0\t-1\t你好。\nD-1\t-1\t再见 A\nD-2\t-1\tB。\n"
    (row,) = run("a\t0\t3\t1\na\t1\t3\t1\na\t2\t3\t1\n", generated)
    assert row == {"id": "a", "text": text}
    (row,) = run("a\t0\t2\t2\na\t1\t2\t1\n", "D-0\t-1\t你好。\t再见。\nD-1\t-1\t完。\n")
    assert row["segments"] == ["你好。", "再见。", "完。"]
    assert (" " in row["text"]) == (language == "en")
