"""Record translation through the command, on real help pages."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from hat_fairseq import cli
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records, record_to_json
from hat_fairseq.data.text import split_segments

ALIGNED = ["--aligned", "--target-separator", "--source-tokenizer", "moses", "--target-tokenizer", "moses"]
ALIGNED += ["--target-language", "de", "--num-codes", "500", "--long-source", "chunk"]
ALIGNED += ["--max-source-tokens", "100", "--max-target-tokens", "90"]


def write(path: Path, documents: list[Record]) -> None:
    path.write_text("".join(json.dumps(record_to_json(document)) + "\n" for document in documents))


def preprocess(*arguments: object) -> str:
    """What a successful command prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert cli.main(["preprocess", *map(str, arguments)]) == 0
    return printed.getvalue()


def failure(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert cli.main(["preprocess", *map(str, arguments)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    return error


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, translations: list[Record]) -> Path:
    path = tmp_path_factory.mktemp("pages")
    write(path / "train.jsonl", translations[:7])
    write(path / "valid.jsonl", translations[7:8])
    write(path / "test.jsonl", translations[8:])
    return path


@pytest.fixture(scope="module")
def result(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("out") / "de"
    preprocess(folder, "--out", out, *ALIGNED)
    return out


def test_fairseq_reads_both_sides_back(result: Path) -> None:
    for side in ("source", "target"):
        dictionary = Dictionary.load(str(result / "bin" / f"dict.{side}.txt"))
        assert dictionary.index("<sep>") != dictionary.unk()
        prefix = str(result / "bin" / f"train.source-target.{side}")
        dataset = data_utils.load_indexed_dataset(prefix, dictionary, "mmap")
        lines = (result / "text" / f"train.{side}").read_text().splitlines()
        assert [[dictionary[index] for index in ids] for ids in dataset] == [[*line.split(), "</s>"] for line in lines]


def test_lines_joined_by_their_ids_are_the_documents(result: Path, translations: list[Record]) -> None:
    pipeline = TextPipeline.load(result / "bin")
    assert (result / "bin" / "test.ids").read_bytes() == (result / "text" / "test.ids").read_bytes()
    ids = [line.split("\t") for line in (result / "text" / "test.ids").read_text().splitlines()]
    lines = [(result / "text" / f"test.{side}").read_text().splitlines() for side in ("source", "target")]
    segments: dict[str, list[str]] = {}
    for (document, chunk, chunks, number), source, target in zip(ids, *lines, strict=True):
        assert int(chunk) < int(chunks)
        assert source.split().count("<s>") == target.split().count("<sep>") + 1 == int(number)
        segments.setdefault(document, []).extend(split_segments(pipeline.decode(target)))
    assert len(ids) > len(segments)
    prepared = list(read_records(result / "text" / "test.jsonl"))
    assert prepared == [pipeline.prepare(page) for page in translations[8:]]  # not tokenised: the references
    for page in prepared:
        assert [text.replace(" ", "") for text in segments[page.id]] == [t.replace(" ", "") for t in page.target or ()]


def test_the_manifest_counts_words_and_tokens(result: Path, translations: list[Record]) -> None:
    manifest = json.loads((result / "manifest.json").read_text())
    train = manifest["splits"]["train"]
    words = [sum(len(text.split()) for text in page.sentences or ()) for page in translations[:7]]
    assert train["per_document"]["source_words"] == round(sum(words) / 7, 1)
    tokens = (result / "text" / "train.target").read_text().split()
    total = len(tokens) - tokens.count("<sep>")
    assert train["per_document"]["target_tokens"] == round(total / 7, 1)
    assert train["treatments"]["chunks"] <= train["lines"]
    assert train["treatments"]["documents_cut_into_chunks"] > 0
    assert "targets_repeated_for_chunks" not in train["treatments"]
    assert manifest["versions"]["sacremoses"] != "not installed"
    assert (manifest["options"]["aligned"], manifest["options"]["target_language"]) == (True, "de")


def test_two_workers_give_the_same_files(folder: Path, result: Path, tmp_path: Path) -> None:
    preprocess(folder, "--out", tmp_path / "out", *ALIGNED, "--workers", 2)
    files = [path.relative_to(result) for path in (result / "text").iterdir()]
    for file in [*files, Path("bin", "pipeline.json"), Path("bin", "bpe.codes"), Path("bin", "train.ids")]:
        assert (tmp_path / "out" / file).read_bytes() == (result / file).read_bytes()


def test_chinese_by_jieba(tmp_path: Path, pages: list[dict[str, list[str]]]) -> None:
    write(
        tmp_path / "train.jsonl",
        [Document(str(i), sentences=tuple(page["zh"]), target=tuple(page["en"])) for i, page in enumerate(pages)],
    )
    languages = ["--source-language", "zh", "--source-tokenizer", "jieba", "--target-tokenizer", "moses"]
    preprocess(tmp_path, "--out", tmp_path / "out", "--aligned", *languages, "--num-codes", 300)
    pipeline = TextPipeline.load(tmp_path / "out" / "bin")
    lines = (tmp_path / "out" / "text" / "train.source").read_text().splitlines()
    for line, page in zip(lines, pages, strict=True):
        assert pipeline.decode(line, "source").replace(" ", "") == "".join("".join(page["zh"]).split())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    characters = sum(len("".join("".join(page["zh"]).split())) for page in pages)
    assert manifest["splits"]["train"]["per_document"]["source_words"] == round(characters / len(pages), 1)


@pytest.fixture
def misaligned(tmp_path: Path, translations: list[Record]) -> Path:
    """Three pages: the first has a segment too few, the second one without translation, the third is as it should."""
    first, second, third = translations[:3]
    write(
        tmp_path / "train.jsonl",
        [
            replace(first, target=(first.target or ())[:-1]),
            replace(second, target=("", *(second.target or ())[1:])),
            third,
        ],
    )
    return tmp_path


def test_misaligned_documents_are_an_error_by_default(misaligned: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [misaligned, "--out", misaligned / "out", *ALIGNED]
    error = failure(capsys, *arguments)
    assert f"document 'page/0' ({misaligned}/train.jsonl:1): " in error
    assert "target segments; correct it, or choose --on-misaligned drop or --on-misaligned merge" in error
    lines = (misaligned / "train.jsonl").read_text().splitlines(keepends=True)
    (misaligned / "train.jsonl").write_text("".join(lines[1:]))
    assert "train.jsonl:1)" in (error := failure(capsys, *arguments)) and "segment 1 has an empty target" in error
    assert not (misaligned / "out").exists()


def test_misaligned_documents_are_dropped_and_counted(misaligned: Path, translations: list[Record]) -> None:
    preprocess(misaligned, "--out", misaligned / "out", *ALIGNED, "--on-misaligned", "drop")
    train = json.loads((misaligned / "out" / "manifest.json").read_text())["splits"]["train"]
    first, second = ([text.split() for text in page.sentences or ()] for page in translations[:2])
    assert train["documents"] == 2
    assert train["treatments"]["documents_misaligned_dropped"] == 1
    assert train["treatments"]["segment_pairs_one_sided_dropped"] == 1
    assert train["treatments"]["source_words_dropped"] == sum(map(len, first)) + len(second[0])
    kept = list(read_records(misaligned / "out" / "text" / "train.jsonl"))
    assert [len(page.sentences or ()) for page in kept] == [len(second) - 1, len(translations[2].sentences or ())]


def test_misaligned_documents_are_merged_without_loss(misaligned: Path, translations: list[Record]) -> None:
    preprocess(misaligned, "--out", misaligned / "out", *ALIGNED, "--on-misaligned", "merge")
    train = json.loads((misaligned / "out" / "manifest.json").read_text())["splits"]["train"]
    assert train["treatments"]["documents_misaligned_merged"] == 1
    assert train["treatments"]["segment_pairs_one_sided_merged"] == 1
    kept = list(read_records(misaligned / "out" / "text" / "train.jsonl"))
    assert len(kept) == 3 and len(kept[0].sentences or ()) == 1
    for page, original in zip(kept, translations, strict=False):
        assert " ".join(page.sentences or ()).split() == " ".join(original.sentences or ()).split()


def test_plain_text_with_blank_lines_between_documents(
    tmp_path: Path, folder: Path, result: Path, translations: list[Record]
) -> None:
    for split, documents in (("train", translations[:7]), ("valid", translations[7:8]), ("test", translations[8:])):
        for side in ("source", "target"):
            texts = ["\n".join((page.sentences if side == "source" else page.target) or ()) for page in documents]
            (tmp_path / f"{split}.{side}").write_text("\n\n".join(texts) + "\n")
    without_defaults = [word for word in ALIGNED if word not in ("--aligned", "--target-separator")]
    preprocess(tmp_path, "--out", tmp_path / "out", *without_defaults)
    for file in ("train.source", "test.target"):
        assert (tmp_path / "out" / "text" / file).read_bytes() == (result / "text" / file).read_bytes()
    ids = (tmp_path / "out" / "text" / "valid.ids").read_text().splitlines()
    assert ids[0].startswith("valid-1\t0\t")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--aligned", "--splitter", "punctuation"], "--aligned is for given segments, not for --splitter punctuation"),
        (["--aligned", "--roles"], "--aligned does not go together with --roles"),
        (["--bpe", "gpt2", "--target-separator"], "the dictionary of --bpe gpt2 has no <sep>"),
    ],
)
def test_options_that_do_not_go_together(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert message in failure(capsys, folder, "--out", tmp_path / "out", *arguments)


READER = """
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.kinds import Document

RELEASE = {"train": (7, 8), "valid": (1,)}
PAPER = {"documents": {"train": "363K", "valid": "122"}, "source_words": "354", "target_tokens": "460"}


def read(split, root, counts):
    for number in range(5 if split == "train" else 1):
        yield Document(f"{split}{number}", sentences=("a b",), target=("c",))
"""


def test_an_incomplete_release_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "small.py").write_text(READER)
    arguments = [tmp_path / "small.py", "--num-codes", 5, "--out", tmp_path / "out"]
    assert (
        "small: the split train has 5 documents, a complete release 7 or 8; complete it, or use what is there "
        "with --partial, or only the first N documents with --limit N"
    ) in failure(capsys, *arguments)
    preprocess(*arguments, "--limit", 5)
    printed = preprocess(*arguments, "--partial", "--overwrite").splitlines()
    table = {line[:27].strip(): line[27:].split() for line in printed}
    assert table[""] == ["train", "valid", "test", "paper"]
    assert table["documents"] == ["5", "1", "1", "363K", "/", "122", "/", "-"]
    assert table["source words a document"] == ["2.0", "2.0", "2.0", "354"]
    assert table["source tokens a document"] == ["2.0", "2.0", "2.0"]
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["paper"]["target_tokens"] == "460"
