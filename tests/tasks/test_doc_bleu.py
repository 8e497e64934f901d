"""Document BLEU during validation equals that of the whole documents, in whatever batches their chunks come."""

from __future__ import annotations

import json
import logging
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq import options, tasks
from fairseq.data import Dictionary, data_utils
from fairseq.logging import metrics

from hat_fairseq import cli
from hat_fairseq.data.rows import Chunk
from hat_fairseq.data.word_tokenizer import word_tokenizer
from hat_fairseq.scoring.bleu import DOCUMENT_BLEU, BleuSettings, Translation, bleu
from hat_fairseq.tasks.bin_folder import load_ids
from hat_fairseq.tasks.validation_meters import DocumentBleuMeter

PAGES = Path(__file__).parents[1] / "samples" / "libreoffice_help.jsonl"


class Subset:
    """German help pages, a segment a chunk; as hypotheses the same without every seventh word."""

    def __init__(self, folder: Path) -> None:
        pages = [json.loads(line) for line in PAGES.open(encoding="utf-8")][:4]
        self.documents = [[segment["de"] for segment in page["segments"]] for page in pages]
        self.words = Dictionary()
        rows = [(page["id"], c, segments) for page, segments in zip(pages, self.documents, strict=True)
                for c in range(len(segments))]  # fmt: skip
        ids = "".join(f"{id_}\t{chunk}\t{len(segments)}\t1\n" for id_, chunk, segments in rows)
        (folder / "valid.ids").write_text(ids, encoding="utf-8")
        self.table = load_ids(folder / "valid.ids", len(rows), "a test needs it")
        self.targets = [self._encode(segments[chunk].split()) for _, chunk, segments in rows]
        self.hypotheses = [
            self._encode([word for i, word in enumerate(segments[chunk].split()) if (i + chunk) % 7])
            for _, chunk, segments in rows
        ]
        self.segment_of = [(chunk, segments) for _, chunk, segments in rows]

    def _encode(self, words: list[str]) -> torch.Tensor:
        return torch.tensor([*(self.words.add_symbol(word) for word in words), self.words.eos()])

    def meter(self, **subsets: list[Chunk]) -> DocumentBleuMeter:
        return DocumentBleuMeter(None, self.words, str, subsets or {"valid": self.table}, BleuSettings())

    def batches(self, size: int, seed: int) -> list[list[int]]:
        order = random.Random(seed).sample(range(len(self.targets)), len(self.targets))
        return [order[begin : begin + size] for begin in range(0, len(order), size)]

    def score(self, meter: DocumentBleuMeter, batch: list[int], subset: str = "valid") -> dict[str, float]:
        target = data_utils.collate_tokens([self.targets[i] for i in batch], self.words.pad())
        hypotheses = [[{"tokens": self.hypotheses[i]}] for i in batch]
        return meter.score(hypotheses, {"id": torch.tensor(batch), "target": target, "subset": subset})

    def expected(self, kept: int | None = None) -> float:
        """BLEU of the first `kept` documents as `hat score bleu` computes it."""
        generated: dict[int, list[str]] = {}
        for (_, segments), tokens in zip(self.segment_of, self.hypotheses, strict=True):
            generated.setdefault(id(segments), []).append(self.words.string(tokens))
        translations = [Translation(" ".join(generated[id(d)]), None) for d in self.documents[:kept]]
        references = [[segments] for segments in self.documents[:kept]]
        reports, _ = bleu({"x": translations}, references, BleuSettings(bootstrap_samples=0))
        return reports["x"].scores[DOCUMENT_BLEU].score


@pytest.fixture(scope="module")
def subset(tmp_path_factory) -> Subset:
    return Subset(tmp_path_factory.mktemp("subset"))


def reduced(logs: list[dict[str, Any]]) -> float | None:
    """What a validation logs: batch after batch, as fairseq does it."""
    with metrics.aggregate(new_root=True) as aggregator:
        for log in logs:
            DocumentBleuMeter.reduce([log])
    return aggregator.get_smoothed_values().get("doc_bleu")


@pytest.mark.parametrize(("size", "seed"), [(1, 0), (3, 1), (16, 2), (1000, 3)])
def test_it_is_the_bleu_of_the_whole_documents(subset: Subset, size: int, seed: int) -> None:
    meter = subset.meter()
    logs = []
    for batch in subset.batches(size, seed):
        logs.append(subset.score(meter, batch))
        logs.append(subset.score(meter, batch))  # as the stand-in for a missing batch: counts nothing
        assert not any(value for name, value in logs[-1].items() if name.startswith("_doc_bleu"))
    meter.finish()
    assert 50 < reduced(logs) == pytest.approx(subset.expected(), abs=0.006)


def test_the_next_validation_and_another_subset_start_afresh(subset: Subset) -> None:
    meter = subset.meter(valid=subset.table, valid1=subset.table)
    batches = subset.batches(5, 0)
    first = [subset.score(meter, batch) for batch in batches]
    second = [subset.score(meter, batch, "valid1") for batch in batches]
    meter.start()
    third = [subset.score(meter, batch) for batch in batches]
    assert first == second == third and any(first[-1].values())


def test_documents_that_are_not_complete_are_left_out_and_named(subset: Subset, caplog) -> None:
    meter = subset.meter()
    complete = len(subset.documents[0]) + len(subset.documents[1])
    log = subset.score(meter, list(range(complete + 1)))
    with caplog.at_level(logging.WARNING):
        meter.finish()
    assert reduced([log]) == pytest.approx(subset.expected(2), abs=0.006)
    third = list(dict.fromkeys(chunk.document_id for chunk in subset.table))[2]
    assert [record.getMessage() for record in caplog.records] == [
        "doc_bleu of valid leaves out 2 of 4 documents, for which not everything was generated; the first is "
        + repr(third)
    ]
    subset.score(meter, [0])
    with pytest.raises(ValueError, match="no document of valid is complete; raise --max-valid-steps"):
        meter.finish()


def test_an_unknown_word_is_no_match(subset: Subset) -> None:
    meter = subset.meter(valid=[Chunk("a", 0, 1, 1)])
    tokens = torch.tensor([subset.words.unk()] * 5 + [subset.words.eos()])
    log = meter.score([[{"tokens": tokens}]], {"id": torch.tensor([0]), "target": tokens[None], "subset": "valid"})
    assert log["_doc_bleu_ref_len"] == 5 and log["_doc_bleu_counts_0"] == 0


def test_training_logs_nothing() -> None:
    assert reduced([{"loss": 1.0}]) is None


def test_a_table_of_other_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"valid\.ids is missing: --eval-doc-bleu needs it"):
        load_ids(tmp_path / "valid.ids", 2, "--eval-doc-bleu needs it")
    (tmp_path / "valid.ids").write_text("a\t1\t2\t1\na\t0\t2\t4\n")
    with pytest.raises(ValueError, match=r"valid\.ids has 2 lines for 3 samples"):
        load_ids(tmp_path / "valid.ids", 3, "--eval-doc-bleu needs it")


def test_chunks_are_joined_in_their_order(subset: Subset) -> None:
    """The rows of a file may come in any order."""
    meter = subset.meter(valid=[Chunk("a", 1, 2, 1), Chunk("a", 0, 2, 1)])
    first, second = (torch.tensor([subset.words.index(w), subset.words.eos()]) for w in subset.words.symbols[4:6])
    for index, tokens in ((0, second), (1, first)):
        sample = {"id": torch.tensor([index]), "target": torch.stack([tokens]), "subset": "valid"}
        log = meter.score([[{"tokens": tokens}]], sample)
    assert log["_doc_bleu_counts_1"] == log["_doc_bleu_totals_1"] == 1
    assert [pair[0] for _, pair in sorted(meter._parts["valid"]["a"].items())] == subset.words.symbols[4:6]


def test_an_unknown_tokenizer_is_known_before_training(subset: Subset) -> None:
    with pytest.raises(ValueError, match="unknown tokenizer 'nonsense'"):
        DocumentBleuMeter(None, subset.words, str, {}, BleuSettings("nonsense"))


def built(ami: Path, folder: Path, setting: str, other: str, flags: str = "") -> Any:
    """A task that has built its model, on data with another setting."""
    shutil.copytree(ami / "bin", folder / "bin")
    path = folder / "bin/pipeline.json"
    assert setting in path.read_text()
    path.write_text(path.read_text().replace(setting, other))
    given = f"{path.parent} --task document_to_text --arch hat_transformer_tiny --cpu --eval-doc-bleu {flags}"
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=given.split())
    task = tasks.setup_task(args)
    task.build_model(args)
    return task


@pytest.mark.fault("Training", "--eval-doc-bleu without the package of the word tokenizer", "refused at the start")
def test_a_missing_word_tokenizer_is_known_before_training(
    ami: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jieba", None)  # importing it fails as if it were not installed
    word_tokenizer.cache_clear()
    with pytest.raises(ValueError, match="the word tokenizer jieba needs the package jieba"):
        built(ami, tmp_path, '"target_tokenizer": "none"', '"target_tokenizer": "jieba"')


@pytest.mark.parametrize(("language", "flags", "tokenizer"), [("zh", "", "zh"), ("de", "", "13a"),
                         ("zh", "--eval-doc-bleu-tokenize char", "char")])  # fmt: skip
def test_the_tokenizer_follows_the_language_of_the_data(ami: Path, tmp_path: Path, language, flags, tokenizer) -> None:
    task = built(ami, tmp_path, '"target_language": "en"', f'"target_language": "{language}"', flags)
    assert task.doc_bleu._bleu.tokenizer_signature == tokenizer


def test_the_tokenizer_follows_the_script_of_the_references(tmp_path: Path) -> None:
    """The data do not state that their target is Chinese."""
    row = {"id": "x", "sentences": ["Fine weather."], "target": ["今天天气很好。", "明天会下雨。"]}
    for split in ("train", "valid"):
        (tmp_path / f"{split}.jsonl").write_text(json.dumps(row) + "\n")
    assert cli.main(["preprocess", str(tmp_path), "--num-codes", "20", "--out", str(tmp_path / "data")]) == 0
    given = f"{tmp_path}/data/bin --task document_to_text --arch hat_transformer_tiny --cpu --eval-doc-bleu"
    args = options.parse_args_and_arch(options.get_training_parser(), input_args=given.split())
    task = tasks.setup_task(args)
    task.build_model(args)
    task.load_dataset("valid")
    target = task.datasets["valid"].tgt[0]
    near = torch.cat([target[:-2], target[-1:]])
    sample = {"id": torch.tensor([0]), "target": target[None], "subset": "valid"}
    log = task.doc_bleu.score([[{"tokens": near}]], sample)
    assert log["_doc_bleu_ref_len"] == len("今天天气很好。明天会下雨。")
