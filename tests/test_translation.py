"""Parallel documents to scored translations through the real commands, small, on real text.

English-German: help pages that a tiny model learns by heart, so that BLEU is far from 0.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import sacrebleu
from commands import TWO_PROCESSES, USER_DIR
from releases import write_release

from hat_fairseq import cli
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.records_json import record_from_json, record_to_json
from hat_fairseq.inference.checkpoints import loaded_of
from hat_fairseq.inference.rows import encode_documents
from hat_fairseq.tasks.document_to_text import DocumentToTextConfig, DocumentToTextTask
from libreoffice_help_en_de import page_paths, read_page

TASK = "--task document_to_text --max-source-positions 256 --max-target-positions 256 --cpu --num-workers 0"
TRAIN = (
    "--arch hat_transformer_tiny --criterion label_smoothed_cross_entropy --optimizer adam --clip-norm 1 --dropout 0 "
)
TRAIN += "--attention-dropout 0 --log-format json --no-epoch-checkpoints --seed 3 --eval-bleu "
TRAIN += "--best-checkpoint-metric bleu --maximize-best-checkpoint-metric"
BEAM = ["--beam", 2, "--max-len-b", 60]
BEAM_JSON = '{"beam": 2, "max_len_b": 60}'


def train(run, data: Path, *flags: object, launcher: Sequence[object] = ("fairseq-train",)) -> Any:
    common = ["--user-dir", USER_DIR, *TASK.split(), *TRAIN.split(), "--eval-bleu-args", BEAM_JSON]
    return run(*launcher, data / "bin", *common, *flags)


def generate(run, data: Path, checkpoint: Path, subset: str, out: Path) -> Path:
    bpe = ["--bpe", "document", "--document-pipeline", data / "bin", "--results-path", out]
    common = ["--user-dir", USER_DIR, *TASK.split(), *bpe, *BEAM, "--gen-subset", subset, "--batch-size", 8]
    run("fairseq-generate", data / "bin", *common, "--path", checkpoint)
    return out / f"generate-{subset}.txt"


def hat(*arguments: object) -> int:
    return cli.main([str(argument) for argument in arguments])


def bleu_of(result: Any, subset: str = "valid") -> list[float]:
    logs = re.findall(rf"\| {subset} \| (\{{.*?\}})", result.stdout + result.stderr)
    return [float(json.loads(log)[f"{subset}_bleu"]) for log in logs]


def translations(generated: Path) -> dict[int, str]:
    lines = re.findall(r"^D-(\d+)\t\S+\t(.*)$", generated.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {int(sample): text for sample, text in lines}


PAGES = "--source-tokenizer moses --target-tokenizer moses --target-language de --aligned --target-separator"
PAGES += " --long-source chunk --max-source-tokens 41 --max-target-tokens 41 --num-codes 1000"


@pytest.fixture(scope="module")
def help_pages(run, tmp_path_factory) -> Path:
    """The five shortest pages, the same in every part, in chunks of 40 tokens."""
    folder = tmp_path_factory.mktemp("help")
    root, uncounted = write_release("libreoffice_help_en_de", folder / "release"), Counter()
    pages = [read_page(root, page, uncounted) for page in page_paths(root, uncounted)]
    pages = sorted(pages, key=lambda page: sum(map(len, page.sentences)))[:5]
    lines = "".join(json.dumps(record_to_json(page)) + "\n" for page in pages)
    for split in ("train", "valid", "test"):
        (folder / f"{split}.jsonl").write_text(lines, encoding="utf-8")
    run("hat", "preprocess", folder, *PAGES.split(), "--out", folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def trained(run, help_pages: Path, tmp_path_factory) -> tuple[Path, list[float]]:
    """Half learned by heart; the directory of its checkpoints, and BLEU of each validation."""
    directory = tmp_path_factory.mktemp("trained")
    flags = ["--lr", "4e-3", "--adam-betas", "(0.9, 0.98)", "--batch-size", 9, "--max-update", 48]
    often = ["--validate-interval", 12, "--valid-subset", "valid,test", "--save-dir", directory]
    result = train(run, help_pages, *flags, *often)
    assert len(bleu_of(result, "test")) == len(bleu_of(result))
    return directory, bleu_of(result)


@pytest.fixture(scope="module")
def generated(run, help_pages: Path, trained, tmp_path_factory) -> Path:
    return generate(run, help_pages, trained[0] / "checkpoint_last.pt", "valid", tmp_path_factory.mktemp("generated"))


def score(hypotheses: Path, references: Path, out: Path) -> dict[str, Any]:
    words = ["--hypotheses", hypotheses, "--references", references, "--json", out, "--bootstrap-samples", 20]
    assert hat("score", "bleu", *words) == 0
    (report,) = json.loads(out.read_text(encoding="utf-8"))["systems"].values()
    return report


def test_bleu_of_training_is_that_of_the_generated_rows(
    help_pages: Path, trained, generated, tmp_path: Path, capsys
) -> None:
    directory, logged = trained
    assert len(logged) == 2 and logged[0] < logged[1] and logged[1] > 10
    assert (directory / "checkpoint_best.pt").exists()
    decode = TextPipeline.load(help_pages / "bin").decode
    targets = (help_pages / "text/valid.target").read_text(encoding="utf-8").splitlines()
    texts = [" ".join(text.split()) for _, text in sorted(translations(generated).items())]
    rows = sacrebleu.corpus_bleu(texts, [[" ".join(decode(target).split()) for target in targets]], force=True)
    assert rows.score == pytest.approx(logged[1], abs=0.006)
    joined = tmp_path / "hat.jsonl"
    assert hat("join", "--generated", generated, "--ids", help_pages / "bin/valid.ids", "--out", joined) == 0
    report = score(joined, help_pages / "text/valid.jsonl", tmp_path / "raw.json")
    assert report["documents"] == 5 and report["segments"] == 32
    printed = capsys.readouterr().out
    assert "s-BLEU" in printed and "unmatched segments" in printed and "tok:13a" in printed


@pytest.mark.slow
def test_bleu_does_not_depend_on_the_number_of_processes(run, help_pages: Path, trained, tmp_path: Path) -> None:
    """17 samples in five batches: one process has two, then a stand-in; chunks of a page are in both."""
    reset = "--reset-optimizer --reset-lr-scheduler --reset-dataloader --reset-meters --max-update 1 --lr 0 --no-save"
    flags = ["--restore-file", trained[0] / "checkpoint_last.pt", *reset.split(), "--save-dir", tmp_path]
    result = train(run, help_pages, *flags, "--batch-size", 4, launcher=TWO_PROCESSES)
    assert bleu_of(result) == [trained[1][-1]]


def test_segments_and_the_chunk_that_is_missing(help_pages: Path, generated: Path, tmp_path: Path, capsys) -> None:
    joined, broken = tmp_path / "hat.jsonl", tmp_path / "broken.txt"
    ids = [line.split("\t") for line in (help_pages / "bin/valid.ids").read_text(encoding="utf-8").splitlines()]
    assert hat("join", "--generated", generated, "--ids", help_pages / "bin/valid.ids", "--out", joined) == 0
    texts = translations(generated)
    for row in map(json.loads, joined.read_text(encoding="utf-8").splitlines()):
        samples = [sample for sample, fields in enumerate(ids) if fields[0] == row["id"]]
        assert len(samples) == int(ids[samples[0]][2]) > 1
        segments = [segment.strip() for sample in samples for segment in texts[sample].split("\t")]
        assert row["segments"] == segments and row["text"].split() == " ".join(segments).split()
    sample = next(sample for sample, fields in enumerate(ids) if fields[1] == "2")
    lines = generated.read_text(encoding="utf-8").splitlines(True)
    broken.write_text("".join(line for line in lines if not line.startswith(f"D-{sample}\t")), encoding="utf-8")
    capsys.readouterr()
    assert hat("join", "--generated", broken, "--ids", help_pages / "bin/valid.ids", "--out", tmp_path / "no") == 2
    assert f"document {ids[sample][0]!r}, chunk 2" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def test_raw_pages_become_the_binarised_samples(help_pages: Path) -> None:
    """Raw documents are cut into the same chunks as test documents, with or without a reference."""
    fixed = {"dataset_impl": "mmap", "train_subset": "train", "required_seq_len_multiple": 1}
    task = DocumentToTextTask.setup_task(DocumentToTextConfig(data=str(help_pages / "bin"), **fixed))
    task.load_dataset("test")
    lines = (help_pages / "text/test.jsonl").read_text(encoding="utf-8").splitlines()
    blind = [json.dumps({key: value for key, value in json.loads(line).items() if key != "target"}) for line in lines]
    for part in (lines, blind):
        encoded = encode_documents([record_from_json(json.loads(line), "here") for line in part], loaded_of([], task))
        rows = [row.tokens.tolist() for each in encoded for row in each]
        assert rows == [example["source"].tolist() for example in task.dataset("test")]
    assert len(encoded) == 5
