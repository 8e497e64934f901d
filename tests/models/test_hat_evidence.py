"""`hat_units` with a head of evidence: vectors, layers over them, kept vectors, thresholds that a training chooses."""

import json
import math
import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from commands import REPOSITORY, hat, read_lines, training_words, write_lines
from helpers import assert_close
from hf_models import shaken
from minilm import MINILM, needs_minilm
from unit_tokens import EOS, contexts, drawn, evidence_model, keeping, padded, row, vector

import hat_fairseq
from hat_fairseq.units import vector_cache
from hat_fairseq.units.criterion import (
    ANSWERS,
    BINS,
    MARGINS,
    THRESHOLDS,
    EvidenceCriterion,
    f1_by_threshold,
    set_thresholds,
    sum_names,
)
from hat_fairseq.units.dataset import EvidenceDataset
from hat_fairseq.units.evidence import EvidenceKind
from hat_fairseq.units.evidence_head import OUTPUTS
from hat_fairseq.units.scores import average_precision
from hat_fairseq.units.vector_cache import VectorCache
from hat_fairseq.units.vector_file import VectorFile


def test_each_turn_has_the_mean_of_its_tokens_alone_and_in_context() -> None:
    model = evidence_model()
    first, second = (drawn(3, 5), drawn(2, 7, 8, 20, 1, seed=1)), (drawn(4, seed=2), drawn(6, seed=3))
    spans = model.encode(padded(row(*first), row(*second))).spans
    for vectors, (questions, units) in zip(spans, (first, second), strict=True):
        alone = torch.stack([vector(model, segment) for segment in (*questions, *units)])
        inside = torch.stack([*alone[: len(questions)], *contexts(model, units)])
        assert_close(vectors[: len(alone)], torch.cat([alone, inside], dim=1))


def test_questions_are_independent_of_each_other_and_documents_of_padding() -> None:
    model = shaken(evidence_model()).double()
    questions, units, other = drawn(3, 5, 2), drawn(2, 7, 8, 12, seed=1), (drawn(4, seed=2), drawn(6, 3, seed=3))
    both = model(padded(row(questions, units), row(*other)), classification_head_name="evidence")[0]
    assert both.shape == (2, 3, 5, 2)
    for number, question in enumerate(questions):
        alone = model(padded(row([question], units)), classification_head_name="evidence")[0]
        assert_close(both[0, number], alone[0, 0])
    assert_close(both[1, :1, :3], model(padded(row(*other)), classification_head_name="evidence")[0][0])
    flat = EvidenceKind().logits({"evidence": both}, padded(row(questions, units), row(*other)), None)
    assert_close(flat[0], both[0].flatten())
    assert_close(flat[1, :6], both[1, 0, :3].flatten())


GOLDEN = REPOSITORY / "tests/golden/hat_evidence.json"
STEPS = (0, 1, 5, 20, 39)


def test_golden_training_and_scores() -> None:
    """A few updates on two documents, of which one has passages and lines: the losses, and then scores.

    In fp64, because 40 updates make of the rounding of fp32, which differs between processors, a twentieth of a loss.
    """
    torch.manual_seed(1)
    model, kind = evidence_model().double(), EvidenceKind()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
    rows = [row(drawn(3, 5), drawn(2, 7, 8, 20, 1, seed=1)), row(drawn(4, seed=2), drawn(6, 3, 9, seed=3))]
    tokens, labels = padded(*rows), [["11", "10", "00", "00", "00", *["00"] * 5], ["0", "1", "1"]]
    targets = [kind.target(each, np.array(ids), {}) for each, ids in zip(labels, rows, strict=True)]
    target = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, targets)), batch_first=True, padding_value=-100)
    criterion, losses = EvidenceCriterion(SimpleNamespace(default_criterion="evidence")), []
    for _ in range(max(STEPS) + 1):
        outputs = model(tokens, classification_head_name="evidence")[0]
        loss, size, _ = criterion.compute(kind.logits({"evidence": outputs}, tokens, None), target)
        optimizer.zero_grad()
        (loss / size).backward()
        optimizer.step()
        losses.append(float(loss.detach() / size))
    scores = model(tokens, classification_head_name="evidence")[0].detach().flatten().tolist()
    chosen = [*(losses[step] for step in STEPS), *scores]
    if os.environ.get("HAT_GOLDEN"):
        GOLDEN.write_text(json.dumps([round(value, 4) for value in chosen]) + "\n", encoding="utf-8")
    assert losses[-1] < 0.3 * losses[0]
    assert chosen == pytest.approx(json.loads(GOLDEN.read_text(encoding="utf-8")), abs=1e-3)


@pytest.mark.parametrize(("flags", "count"), [("", None), (" --freeze-encoder", 0), (" --freeze-layers 1", None)])
def test_gradients_reach_all_parameters_and_frozen_ones_have_none(flags: str, count: int | None) -> None:
    rows = padded(row(drawn(3, 5), drawn(2, 7, 8, 20, seed=1)))
    model = evidence_model(flags).train()
    model(rows, classification_head_name="evidence")[0].square().sum().backward()
    own = [p for n, p in model.named_parameters() if n.startswith("encoder.") and p.grad is not None]
    assert all(p.grad is not None for p in model.classification_heads.parameters())
    assert (len(own) == count) if count is not None else len(own) > 10
    layers = {
        name.split("layers.")[1][0]
        for name, p in model.named_parameters()
        if p.grad is not None and "sentence_encoder.layers." in name
    }
    assert layers == (set() if count == 0 else set("0123"[bool("freeze" in flags) : 2]))
    assert (model.encoder.sentence_encoder.embed_tokens.weight.grad is None) == ("freeze" in flags)


@pytest.mark.parametrize(("flags", "equal"), [(" --freeze-encoder", True), ("", False)])
def test_a_frozen_encoder_has_no_dropout_and_a_trained_one_has(flags: str, equal: bool) -> None:
    rows = padded(row(drawn(3, 5), drawn(2, 7, 8, 20, seed=1)))
    model = evidence_model(f"{flags} --dropout 0.5")
    expected = model.core(rows).spans
    assert torch.allclose(model.train().core(rows).spans, expected, rtol=0, atol=1e-3) == equal  # kept in fp16


def test_kept_vectors_are_those_of_the_encoder_and_of_no_other(tmp_path: Path) -> None:
    path, rows = tmp_path / "deep/vectors.npz", padded(row(drawn(3, 5), drawn(2, 7, 8, 20, seed=1)))
    model = keeping(evidence_model(" --freeze-encoder"), path)
    expected = model.encode(rows).spans  # inference keeps nothing
    assert model.core.cache is None
    kept = model.train().encode(rows).spans
    torch.testing.assert_close(kept, expected, rtol=0, atol=1e-3)  # fp16
    assert not path.exists()
    model.core.cache.save()
    assert len(np.load(path)["vectors"]) == 6 + 4
    assert len(np.load(path)["keys"]) == 6 + 1
    again, others = (VectorCache(VectorFile(path)) for _ in range(2))  # of two processes that begin with the same file
    known = [model.core.cache.get([[(5, 6, 7)]], model.core, model.core.encode, "alone")]
    assert len(known) == 1
    for cache, unit in ((again, (9, 8)), (others, (6, 6, 6))):
        cache.get([[unit]], model.core, model.core.encode, "alone")
        cache.save()
    assert len(np.load(path)["keys"]) == 9
    assert len(again.vectors) == 8
    assert os.listdir(path.parent) == [path.name]
    other = keeping(evidence_model(" --freeze-encoder"), path)
    with torch.no_grad():
        other.encoder.sentence_encoder.embed_tokens.weight.mul_(1.5)
    expected = other.encode(rows).spans
    torch.testing.assert_close(other.train().encode(rows).spans, expected, rtol=0, atol=1e-3)
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other.encode(rows).spans, kept, rtol=0, atol=1e-3)


def test_a_unit_alone_and_a_document_of_one_unit_are_not_mistaken_for_each_other() -> None:
    rows = padded(row([[7, 8, 9]], [[7, 8, 9]]))
    model = evidence_model(" --freeze-encoder")
    expected = model.encode(rows).spans
    torch.testing.assert_close(model.train().encode(rows).spans, expected, rtol=0, atol=1e-3)


def test_many_new_vectors_are_stored_in_the_middle_of_an_epoch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at each update: when there are as many as are stored, and at least so many."""
    monkeypatch.setattr(vector_cache, "STORED_AFTER", 9)
    path, stored = tmp_path / "vectors.npz", []
    model = keeping(evidence_model(" --freeze-encoder"), path).train()
    for update in range(12):  # 2 vectors each, and one of the question
        model.encode(padded(row(drawn(3), drawn(7, seed=update + 1))))
        stored.append(len(np.load(path)["vectors"]) if path.exists() else 0)
    assert stored == [0] * 3 + [9] * 5 + [18] * 4


def test_vectors_in_a_file_need_a_task_that_keeps_them(tmp_path: Path) -> None:
    model = evidence_model(f" --freeze-encoder --vectors {tmp_path / 'v.npz'}")
    with pytest.raises(ValueError, match="v.npz is for tasks of hat_fairseq"):
        model.train()


@pytest.mark.parametrize("flags", ["--segment-length 8", "--encoder-attention-heads 2", "--layer-norm-eps 0.1"])
def test_kept_vectors_are_those_of_the_settings(flags: str, tmp_path: Path) -> None:
    """The models have the same weights."""
    frozen, rows = " --freeze-encoder", padded(row(drawn(9, 5), drawn(20, 7, 8, seed=1)))
    model, other = (keeping(shaken(evidence_model(each)), tmp_path / "v.npz") for each in (frozen, f"{frozen} {flags}"))
    first = model.train().encode(rows).spans
    model.core.cache.save()
    expected = other.encode(rows).spans
    assert (expected - first).abs().max() > 0.2
    torch.testing.assert_close(other.train().encode(rows).spans, expected, rtol=0, atol=0.1)  # kept ones may be bf16


@pytest.mark.parametrize("flags", ["--dropout 0.5", "--unit-dim 8", "--no-words", "--freeze-encoder"])
def test_other_dropout_and_heads_share_kept_vectors(flags: str) -> None:
    one, other = (shaken(evidence_model(each)).core for each in ("", f" {flags}"))
    assert vector_cache.digest_of(one) == vector_cache.digest_of(other)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 7, 300])
def test_figures_are_those_of_scikit_learn(size: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.rand(size, generator=generator), torch.rand(size, generator=generator) < 0.3
    labels[0] = True
    precision = metrics.average_precision_score(labels, scores)
    assert abs(average_precision(scores.numpy(), labels.numpy()) - precision) < 1e-6
    logits = scores.double().logit()
    limits = [*THRESHOLDS.double().logit(), *(logits.max() - MARGINS)]
    for limit, f1 in zip(limits, f1_by_threshold(logits, labels), strict=True):
        assert abs(f1 - metrics.f1_score(labels, logits >= limit, zero_division=0)) < 1e-6


@pytest.mark.slow
@needs_minilm
def test_vectors_are_those_of_sentence_transformers(run, tmp_path: Path) -> None:
    library = pytest.importorskip("sentence_transformers")
    texts = ["Good morning.", "Which colour does the remote have? " * 12, "Yes ."]
    record = {"id": "a", "questions": ["What is it about?"], "sentences": texts, "evidence": [[1]]}
    for split in ("train", "valid"):
        write_lines(tmp_path / f"raw/{split}.jsonl", [record])
    assert hat("import", "minilm", "--out", tmp_path / "minilm.pt") == 0
    words = ["--kind", "evidence", "--bpe", "tokenizer", "--bpe-dir", tmp_path]
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", *words) == 0
    flags = "--task document_evidence --arch hat_units_minilm --max-positions 512 --freeze-encoder --max-update 1"
    flags += " --optimizer adam --lr 0 --batch-size 1 --cpu --num-workers 0 --no-epoch-checkpoints"
    start = ["--finetune-from-model", tmp_path / "minilm.pt", "--save-dir", tmp_path / "ck"]
    run("fairseq-train", tmp_path / "data/bin", *training_words(tmp_path, tmp_path)[1:3], *flags.split(), *start)
    loaded = hat_fairseq.load(tmp_path / "ck/checkpoint_last.pt", data=tmp_path / "data/bin")
    encoded = loaded.pipeline.encode(loaded._record(1, record, "1"))[0]
    ids = torch.tensor([[*map(loaded.loaded.source.ids.__getitem__, encoded.tokens), EOS]])
    expected = library.SentenceTransformer(str(MINILM), device="cpu").encode(["What is it about?", *texts])
    spans = loaded.models[0].encode(ids).spans[0, :, :384]
    torch.testing.assert_close(spans, torch.tensor(expected), rtol=0, atol=1e-5)


@pytest.mark.slow
def test_a_training_keeps_its_threshold_in_the_package(run, tmp_path: Path) -> None:
    """Units of the question's word are evidence; a few updates find that, and the package predicts the same."""
    words = ["red", "green", "blue", "black", "white", "brown"]
    for split, count in (("train", 12), ("valid", 3), ("test", 2)):
        records = []
        for number in range(count):
            size = 9 + number
            turns = [{"speaker": "AB"[n % 2], "text": f"it is {words[(n * 5 + number) % 6]} ."} for n in range(size)]
            asked = words[number % 6], words[(number + 1) % 6]
            evidence = [[n for n, turn in enumerate(turns) if word in turn["text"]] for word in asked]
            questions = [f"what is {word} ?" for word in asked]
            records.append({"id": f"{split}{number}", "turns": turns, "questions": questions, "evidence": evidence})
        write_lines(tmp_path / f"raw/{split}.jsonl", records)
    assert hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--kind", "evidence", "--num-codes", 90) == 0
    flags = "--task document_evidence --arch hat_units_tiny --optimizer adam --lr 5e-3 --batch-size 4 --max-update 20"
    flags += " --cpu --num-workers 0 --no-epoch-checkpoints --log-format simple --validate-interval 5"
    user_dir = training_words(tmp_path, tmp_path)[1:3]
    done = run("fairseq-train", tmp_path / "data/bin", *user_dir, *flags.split(), "--save-dir", tmp_path / "ck")
    assert "average_precision" in done.stdout
    assert "evidence_f1" in done.stdout
    state = torch.load(tmp_path / "ck/checkpoint_last.pt", weights_only=True)["model"]
    head = {
        name.rpartition(".")[2]: x for name, x in state.items() if name.startswith("classification_heads.evidence.")
    }
    assert float(head["thresholds"][0]) in [pytest.approx(float(each)) for each in (*THRESHOLDS, *MARGINS)]
    assert float(head["thresholds"][1]) == -1  # no lines are known
    assert 0 < float(head["answers"]) < 1  # chosen with questions of other documents
    assert 0 < head["rarity"].min() < head["rarity"].max() == 1  # `what is` is in all questions
    checkpoint = tmp_path / "ck/checkpoint_last.pt"
    words = ["--task", "document_evidence", "--criterion", "evidence", "--cpu", "--batch-size", 4, "--path", checkpoint]
    done = run("fairseq-validate", tmp_path / "data/bin", *user_dir, *words)
    assert "average_precision" in done.stdout
    assert hat("export", checkpoint, "--data", tmp_path / "data/bin", "--out", tmp_path / "model") == 0
    lines = []
    for model in ([checkpoint, "--data", tmp_path / "data/bin"], [tmp_path / "model"]):
        out = tmp_path / f"{len(lines)}.jsonl"
        assert hat("predict", *model, tmp_path / "raw/test.jsonl", "--out", out, "--device", "cpu") == 0
        lines.append(read_lines(out))
    assert lines[0] == lines[1]
    record = json.loads((tmp_path / "raw/test.jsonl").read_text().splitlines()[0])
    text = "\n".join(turn["text"] for turn in record["turns"])
    for question in lines[0][0]["questions"]:
        assert len(question["probabilities"]) == len(record["turns"])
        for passage in question["passages"]:
            assert passage["text"] == text[passage["begin"] : passage["end"]]
            inside = question["probabilities"][passage["first"] : passage["last"] + 1]
            assert passage["probability"] == max(inside)
            assert min(inside) >= question["threshold"] - 1e-6
    settings = json.loads((tmp_path / "model/config.json").read_text())["settings"]
    assert not {"freeze_encoder", "vectors"} & settings.keys()


@pytest.mark.parametrize("number", [1, 9, 10, 20, 30])
def test_nine_of_ten_questions_with_an_answer_reach_the_threshold(number: int) -> None:
    """As in the false alarms of `hat score`, also where exactly a tenth is below."""
    answered = torch.zeros(BINS, dtype=torch.float64)
    below = number - math.ceil(0.9 * number)
    answered[50], answered[950] = below, number - below
    sums = {name: 0 for output in OUTPUTS for name in sum_names(output)[:2]}
    sums |= {sum_names(output)[2]: torch.zeros(len(THRESHOLDS) + len(MARGINS)) for output in OUTPUTS}
    head = SimpleNamespace(
        thresholds=torch.zeros(2), relative=torch.zeros(2, dtype=torch.bool), answers=torch.zeros(())
    )
    set_thresholds({**sums, ANSWERS: torch.stack([torch.eye(1, BINS, dtype=torch.float64)[0], answered])}, head)
    assert float(head.answers) == pytest.approx(0.95)


def test_other_questions_are_none_that_the_row_asks() -> None:
    """A question of every document is answered by each; and none is drawn twice."""
    everybody, units = [0, 7, 8], [2, 2, 0, 11, 12]
    rows = [torch.tensor([*everybody, 0, 20 + number, *units, 30 + number, 2]) for number in range(12)]
    dataset = object.__new__(EvidenceDataset)
    dataset.rows, dataset.epoch = rows, 1
    drawn = 0
    for index, own in enumerate(rows):
        others = [each.tolist() for each in dataset.others(index, own[5:])]
        assert everybody not in others
        assert len({*map(tuple, others)}) == len(others)
        drawn += len(others)
    assert drawn > 12
