"""The Python interface: chunks are joined again, texts come as they are made, nothing done is lost."""

import json
import re
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from commands import REPOSITORY, environment, generation_flags, run_command
from fairseq.sequence_generator import SequenceGenerator
from warm import WarmPython

from hat_fairseq import cli
from hat_fairseq.data.kinds import Document
from hat_fairseq.data.record import Record, Turn
from hat_fairseq.data.records_json import read_records, record_to_json
from hat_fairseq.generation.shared_memory import SharedMemoryGenerator
from hat_fairseq.inference import DocumentToText
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.rows import encode_documents
from hat_fairseq.kernels.precision import PackedLinear
from hat_fairseq.kernels.torch_private import BF16, INT8, multiplies_int8

OPTIONS = {"beam": 2, "max_len_b": 8, "min_len": 4}


@pytest.fixture(scope="module")
def chunked(warm: WarmPython, train, tmp_path_factory) -> tuple[Path, Path]:
    """Data whose policy is `chunk`, and a model trained on it for one update."""
    folder = tmp_path_factory.mktemp("chunked")
    words = f"hat_fairseq.cli preprocess ami --out {folder}/data --limit 3 --bpe learned --num-codes 200 --roles both "
    words += "--max-source-tokens 91 --long-source chunk --max-target-tokens 31 --long-target truncate"
    warm.run(words.split(), folder, folder / "log")
    train(folder / "model", "--max-update", 1, "--disable-validation", data=folder / "data/bin")
    return folder / "data", folder / "model/checkpoint_last.pt"


@pytest.fixture(scope="module")
def model(chunked: tuple[Path, Path]) -> DocumentToText:
    data, checkpoint = chunked
    return DocumentToText(load(str(checkpoint), str(data / "bin"), "cpu"), **OPTIONS)


@pytest.fixture(scope="module")
def documents(chunked: tuple[Path, Path]) -> list[Record]:
    """The first turns of real meetings: three chunks, one chunk, two chunks."""
    records = list(read_records(chunked[0] / "text/test.jsonl"))
    counts = (12, 1, 8)
    return [replace(d, sentences=None, turns=d.turns[:n], target=None) for d, n in zip(records, counts, strict=True)]


@pytest.fixture
def command(chunked: tuple[Path, Path], documents: list[Record], tmp_path: Path) -> list[str]:
    """The words of a command that writes the texts of the documents."""
    data, checkpoint = chunked
    source = tmp_path / "documents.jsonl"
    source.write_text("".join(json.dumps(record_to_json(document)) + "\n" for document in documents))
    words = ["generate", checkpoint, source, "--data", data / "bin", "--device", "cpu"]
    words += ["--out", tmp_path / "out.jsonl", *generation_flags(OPTIONS)]
    return [*map(str, words)]


def texts_of(model: DocumentToText, documents: list[Record], batch_size: int = 1) -> Iterator[str]:
    return (row["text"] for row in model.rows(documents, batch_size))


@pytest.mark.slow
def test_chunks_of_a_document_are_joined_in_order(model: DocumentToText, documents: list[Record]) -> None:
    chunks = [model.pipeline.encode(document) for document in documents]
    assert [len(parts) for parts in chunks] != [1, 1, 1]
    expected = []
    for document, parts in zip(documents, chunks, strict=True):
        (alone,) = texts_of(model, [document])
        assert len(alone.split()) >= len(parts)
        expected.append(alone)
    assert all(list(texts_of(model, documents, batch_size)) == expected for batch_size in (1, 2, 33))


@pytest.mark.slow
def test_a_text_does_not_depend_on_its_batch(model: DocumentToText, documents: list[Record]) -> None:
    other = DocumentToText(model.loaded, beam=3, min_len=2, max_len_a=0.2, max_len_b=3)
    rows = [each for document in documents for each in encode_documents([document], model.loaded)[0]]
    alone, together = [other.hypotheses([row])[0].tolist() for row in rows], other.hypotheses(rows)
    assert [tokens.tolist() for tokens in together] == alone
    assert len({*map(len, alone)}) > 1


@pytest.mark.slow
def test_texts_come_one_by_one_and_bad_documents_before_all(model: DocumentToText, documents: list[Record]) -> None:
    texts = texts_of(model, [*documents, Document("empty", turns=(Turn(" ", role="PM"),))])
    with pytest.raises(ValueError, match="document 'empty'"):
        next(texts)
    assert next(texts_of(model, documents)) == next(texts_of(model, documents[:1]))
    assert next(model.rows([replace(documents[0], meta={"n": 1})]))["meta"] == {"n": 1}
    with pytest.raises(ValueError, match="--batch-size must be at least 1, not 0"):
        next(model.rows(documents, 0))


def test_the_command_writes_every_document(
    command: list[str], documents: list[Record], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").touch()
    verb, model, _, *others = command
    for words, message in (
        ([verb, model, f"{tmp_path}/empty.jsonl", *others], "empty.jsonl is empty: nothing to generate"),
        ([*command, "--precision", "fp16"], "hat: error: precision fp16 is GPU-only; on this CPU use fp32"),
    ):
        assert cli.main(words) == 2
        assert message in capsys.readouterr().err
    assert cli.main(command) == 0
    assert [json.loads(line)["id"] for line in (tmp_path / "out.jsonl").open()] == [d.id for d in documents]


@pytest.mark.slow
def test_texts_are_those_of_fairseqs_generator(model: DocumentToText, documents: list[Record]) -> None:
    assert model.generator is None  # our search alone
    texts, task = list(texts_of(model, documents, 2)), model.loaded.task
    for generator in (SharedMemoryGenerator, SequenceGenerator):
        other = DocumentToText(model.loaded, **OPTIONS)
        other.generator = task.build_generator(model.models, Namespace(**OPTIONS), seq_gen_cls=generator)
        assert type(other.generator) is generator
        assert list(texts_of(other, documents, 2)) == texts


@pytest.mark.slow
def test_a_package_gives_the_same_texts(chunked: tuple[Path, Path], documents: list[Record], tmp_path: Path) -> None:
    """With roles and chunks, in each precision; the model built from the numbers in its folder."""
    data, checkpoint = chunked
    words = ["export", checkpoint, "--data", data / "bin", "--out", tmp_path / "P"]
    assert cli.main([*map(str, words)]) == 0
    for precision in ("fp32", *(["int8"] if multiplies_int8() else [])):
        where = (str(checkpoint), str(data / "bin")), (str(tmp_path / "P"), None)
        models = [DocumentToText(load(*each, "cpu", precision), **OPTIONS) for each in where]
        assert [model.loaded.task is None for model in models] == [False, True]
        rows = [list(model.rows(documents, 2)) for model in models]
        assert rows[0] == rows[1]
        assert len({row["text"] for row in rows[0]}) > 1


def test_a_document_that_is_too_long(chunked: tuple[Path, Path], documents: list[Record]) -> None:
    data, checkpoint = chunked
    model = DocumentToText(load(str(checkpoint), str(data / "bin"), "cpu"), **OPTIONS)
    model.loaded.longest = 41
    with pytest.raises(ValueError, match=r"document '.*: \d+ tokens with </s> are more than the model takes, 41"):
        next(model.rows(documents))


@pytest.mark.slow
@pytest.mark.skipif(not multiplies_int8(), reason="int8 needs oneDNN and a CPU with VNNI")
def test_lower_precision_is_asked_for_by_name(
    warm: WarmPython, chunked: tuple[Path, Path], model: DocumentToText, documents: list[Record], tmp_path: Path
) -> None:
    data, checkpoint = chunked
    where = str(checkpoint), str(data / "bin")
    rounded = DocumentToText(load(*where, "cpu", "int8"), **OPTIONS)
    maps = [[m for m in each.models[0].modules() if isinstance(m, PackedLinear)] for each in (model, rounded)]
    assert {m.precision for m in maps[1]} == {"int8"}
    assert len(maps[1]) > len(maps[0])  # small ones too
    assert len(list(rounded.rows(documents))) == 3
    of_gpu = "precision int8 is CPU-only" if torch.cuda.is_available() else "device cuda: torch sees 0 GPUs"
    for device, precision, message in (("cpu", "int4", "precision 'int4'"), ("cuda", "int8", of_gpu)):
        with pytest.raises(ValueError, match=message):
            DocumentToText(load(*where, device, precision), **OPTIONS)
    words = f"fairseq_cli.generate {data}/bin --user-dir {REPOSITORY}/hat_fairseq --cpu --task document_to_text "
    words += f"--role-stream role --path {checkpoint} --max-len-b 5"
    plain, int8 = (
        warm.run([*words.split(), *flags], tmp_path, tmp_path / "log") for flags in ([], ["--cpu-precision", "int8"])
    )
    scores = [[float(s) for s in re.findall(r"^H-\d+\t(\S+)", text, re.MULTILINE)] for text in (plain, int8)]
    assert len(scores[0]) == len(scores[1]) > 0
    assert scores[0] != scores[1]
    assert max(abs(a - b) for a, b in zip(*scores, strict=True)) < 0.1


@pytest.mark.skipif(not INT8, reason="this torch has no oneDNN")
@pytest.mark.slow
@pytest.mark.parametrize("program", ["hat", "fairseq-generate"])
def test_int8_is_refused_without_vnni_instructions(
    program: str, chunked: tuple[Path, Path], command: list[str], tmp_path: Path
) -> None:
    """In a process of its own, because oneDNN reads the variable once."""
    data, checkpoint = chunked
    words = [*command, "--precision", "int8"]
    if program == "fairseq-generate":
        words = [f"{data}/bin", "--user-dir", REPOSITORY / "hat_fairseq", "--cpu", "--task", "document_to_text"]
        words += ["--role-stream", "role", "--path", checkpoint, "--cpu-precision", "int8"]
    done = run_command(program, *words, check=False, env=environment(ONEDNN_MAX_CPU_ISA="AVX2"))
    message = "precision int8 needs a CPU with VNNI instructions; this one has none: use fp32"
    assert done.returncode == (2 if program == "hat" else 1)
    assert done.stderr.splitlines()[-1].endswith(f"error: {message}")
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.slow
@pytest.mark.skipif(not BF16, reason="this CPU cannot multiply bf16")
def test_generate_takes_bf16(
    chunked: tuple[Path, Path], command: list[str], documents: list[Record], tmp_path: Path
) -> None:
    data, checkpoint = chunked
    assert cli.main([*command, "--precision", "bf16"]) == 0
    model = DocumentToText(load(str(checkpoint), str(data / "bin"), "cpu", "bf16"), **OPTIONS)
    assert [json.loads(line)["text"] for line in (tmp_path / "out.jsonl").open()] == list(texts_of(model, documents))


@pytest.mark.slow
def test_mistakes_are_one_line(command: list[str], fine_tuned, tmp_path: Path, capsys) -> None:
    classifier = fine_tuned("classification")
    (tmp_path / "text.pt").write_text("Summaries of meetings, one a line.\n")
    verb, checkpoint, source, *others = command
    for model, words, message in (
        (
            classifier.checkpoint,
            ["--data", classifier.data / "bin"],
            "was trained on the task document_classification: it writes no texts; use",
        ),
        (tmp_path / "text.pt", [], "text.pt: not a checkpoint of torch"),
        (tmp_path / "no.pt", [], "no.pt does not exist"),
        (checkpoint, ["--batch-size", 0], "--batch-size must be at least 1, not 0"),
        (checkpoint, ["--beam", 0], "beam must be at least 1, not 0"),
        (checkpoint, ["--seed", 2], "--seed 2 has no effect without --sampling"),
        (checkpoint, ["--sampling-topp", 0.5], "--sampling-topp 0.5 has no effect without --sampling"),
    ):
        assert cli.main([verb, str(model), source, *others, *map(str, words)]) == 2, words
        error = capsys.readouterr().err.splitlines()
        assert error[-1].startswith("hat: error: ")
        assert message in error[-1]
    assert not (tmp_path / "out.jsonl").exists()
