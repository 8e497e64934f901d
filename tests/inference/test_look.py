"""`hat look`: what is shown is what the model does, in text models and in classifiers."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from minilm import needs_minilm

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.analysis.look import AttentionMap, Look
from hat_fairseq.analysis.recording import units
from hat_fairseq.data.kind import HEAD
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference import DocumentToText
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.look_at import look_at, sentence_ends
from hat_fairseq.inference.rows import encode_documents, row_of

OPTIONS = {"beam": 2, "max_len_b": 12, "min_len": 6}


@pytest.fixture
def trained(ami: Path, checkpoint: Path) -> tuple[Path, str]:
    """Data of whole, truncated documents with roles, and a model after one update."""
    return ami, str(checkpoint)


@torch.no_grad()
def test_a_text_model(trained: tuple[Path, str]) -> None:
    data, checkpoint = trained
    model = DocumentToText(load(checkpoint, data / "bin", "cpu"), **OPTIONS)
    record = next(iter(read_records(data / "text/test.jsonl")))
    look = look_at(model, record, occlusion=True)
    assert look.roles == tuple(record.roles[: len(look.source)])
    assert "".join(look.target).strip() == next(model.rows([record]))["text"].replace("\t", " ")
    assert look.target_sentences[0][0] == 0
    assert look.target_sentences[-1][1] == len(look.target)
    assert look.unit == "sentence"
    assert len(look.source) > 3
    lost = len(record.elements) - len(look.source)
    assert lost > 1
    assert look.note == (f"{lost} sentences at the end of the document are truncated: the model does not read them.")
    assert look.source[0] == f"{record.roles[0]} : {record.elements[0]}"
    assert [(one.name, one.queries) for one in look.maps] == [
        ("attention to sentences", "target tokens"),
        ("attention to tokens, summed by sentence", "target tokens"),
        ("attention among sentences", "source"),
    ]
    for one in [*look.maps, *look.by_sentence]:
        torch.testing.assert_close(one.weights.sum(-1), torch.ones(one.weights.shape[:-1]))

    # The weights, from the decoder itself.
    (net,) = model.models
    rows = model.pipeline.encode(record)
    dictionary = model.loaded.task.source_dictionary
    source = torch.tensor([*map(dictionary.index, rows[0].tokens), dictionary.eos()])[None]
    roles = model.loaded.task.role_dictionary
    streams = torch.tensor([*map(roles.index, rows[0].streams["role"]), roles.eos()])[None]
    target = model.hypotheses(encode_documents([record], model.loaded)[0])[0]
    encoded = net.encoder(source, roles=streams)
    calls: list[tuple[Any, Any]] = []
    parts = [part for layer in net.decoder.layers for part in (layer.encoder_attn, layer.sentence_attn)]
    handles = [part.register_forward_hook(lambda *call: calls.append(call[:2])) for part in parts]
    net.decoder(target.roll(1)[None], encoded)
    for handle in handles:
        handle.remove()
    starts = [*source[0].eq(dictionary.bos()).nonzero().flatten().tolist(), source.size(1)]
    weights = [part.explicit_weights(*inputs)[0, :, :-1] for part, inputs in calls]
    for layer, (to_tokens, to_sentences) in enumerate(zip(weights[::2], weights[1::2], strict=True)):
        torch.testing.assert_close(look.maps[0].weights[layer], to_sentences)
        by_sentence = torch.stack([to_tokens[..., a:b].sum(-1) for a, b in pairwise(starts)], -1)
        torch.testing.assert_close(look.maps[1].weights[layer], by_sentence)

    # Occlusion, one document at a time.
    def score(keep: torch.Tensor) -> torch.Tensor:
        encoded = net.encoder(source[:, keep], roles=streams[:, keep])
        logits, _ = net.decoder(target.roll(1)[None], encoded)
        each = logits[0].log_softmax(-1).gather(1, target[:, None])[:, 0]
        ends = [*(b for _, b in look.target_sentences[:-1]), len(target)]
        return torch.stack([each[a:b].sum() for a, b in pairwise([0, *ends])])

    before = score(torch.ones(source.size(1), dtype=torch.bool))
    torch.testing.assert_close(look.occlusion.before, before)
    for unit in (0, 2, len(look.source) - 1):
        keep = torch.ones(source.size(1), dtype=torch.bool)
        keep[starts[unit] : starts[unit + 1]] = False
        keep[-1] = True  # </s>
        torch.testing.assert_close(look.occlusion.change[:, unit], score(keep) - before, atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_a_classifier(fine_tuned) -> None:
    made = fine_tuned("classification")
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    record = next(iter(read_records(made.raw / "test.jsonl", "classification")))
    look = look_at(model, record, occlusion=True)
    (one,) = look.maps
    assert (one.name, one.queries, look.unit) == ("attention among segments", "source", "segment")
    assert len(look.source) == one.weights.size(-1)
    assert look.target == ()
    assert look.source[1] in " ".join(model.pipeline.prepare(record).record.parts[0])
    row = model.pipeline.encode(record)[0]
    tokens = row_of(row.tokens, model.loaded.source)
    (net,) = model.models

    def logits(ids: torch.Tensor) -> torch.Tensor:
        return net.head_logits(HEAD, net.encode(ids[None]), ids[None])[0].log_softmax(-1)

    best = int(logits(tokens).argmax())
    assert look.occlusion.rows == (f"label {model.loaded.labels[best]}",)
    of_unit = units(net.core, tokens[None])[1]
    for unit in (1, int(of_unit.max())):  # </s>, after the last one, stays
        without = tokens[(of_unit != unit) | (tokens == net.core.vocabulary.eos)]
        torch.testing.assert_close(look.occlusion.change[0, unit], logits(without)[best] - logits(tokens)[best])


@pytest.mark.slow
def test_changes_of_a_document_are_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    model = hat_fairseq.load("demo", device="cpu")
    document = {"turns": [{"role": "PM", "text": "We \ud800 met ."}, {"role": "ME", "text": "Fine ."}], "target": "a b"}
    caplog.clear()
    model.look(document)
    assert "lone surrogates replaced: 1" in caplog.text


@pytest.mark.parametrize("occlusion", [False, True])
def test_changes_of_a_classified_document_are_counted_once(
    occlusion: bool, fine_tuned, caplog: pytest.LogCaptureFixture
) -> None:
    made = fine_tuned("classification")
    model = hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu")
    caplog.clear()
    model.look({"segments": ["one \ud800", "two"]}, occlusion=occlusion)
    assert "lone surrogates replaced: 1" in caplog.text


@pytest.mark.slow
def test_the_first_token_is_a_query_where_it_is_classified(fine_tuned) -> None:
    made = fine_tuned("tokens")  # hat_roberta
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    record = next(iter(read_records(made.raw / "test.jsonl", "tokens")))
    look = look_at(model, record)
    assert {one.queries: one.weights.size(2) for one in look.maps}["document"] == 1
    with pytest.raises(ValueError, match="--occlusion is for .* not for the kind tokens"):
        look_at(model, record, occlusion=True)


@pytest.mark.slow
@needs_minilm
def test_a_model_without_hierarchy_or_label_is_not_told_to_leave_anything_out() -> None:
    with pytest.raises(ValueError, match="has no attention to show: take a model with a hierarchy$"):
        hat_fairseq.load("meeting").look({"sentences": ["One.", "Two."], "questions": ["what?"]})


def test_one_unit_has_all_of_the_attention() -> None:
    one = AttentionMap("attention to sentences", "target tokens", (0,), torch.ones(1, 2, 3, 1))
    look = Look("d", "m", "sentence", ("a",), (3,), (one,), ("a", "b", "c"), ((0, 3),))
    (with_map,) = look.by_sentence
    assert (
        look.statement(with_map) == "The document has one sentence only, which has all of the attention to sentences."
    )
    assert not [each for each in look.statements() if "hierarchy" in each]


def test_the_command_writes_all_forms(trained: tuple[Path, str], tmp_path: Path, capsys) -> None:
    data, checkpoint = trained
    common = ["look", checkpoint, str(data / "text/test.jsonl"), "--data", str(data / "bin")]
    files = {name: tmp_path / f"look.{name}" for name in ("html", "json")}
    flags = [f"--{'out' if name == 'json' else name}={path}" for name, path in files.items()]
    assert cli.main([*common, *flags, "--occlusion"]) == 0
    printed = capsys.readouterr().out
    assert all(f"wrote {path} ({path.stat().st_size:,} bytes)" in printed for path in files.values())
    record = json.loads(files["json"].read_text(encoding="utf-8"))
    assert len(record["maps"]) == 3
    assert record["maps"][0]["attention"] == "attention to sentences"
    layers, _, queries, sentences = torch.tensor(record["maps"][0]["weights"]).shape
    assert (layers, queries, sentences) == (2, len(record["target"]), len(record["source"]))
    changes = torch.tensor(record["occlusion"]["change"])
    assert changes.shape == (queries, sentences)
    assert bool(changes.ne(0).any())
    for wrong, message in (
        ([], "say what to write"),
        ([f"--html={files['html']}"], "exists"),
        ([f"--html={tmp_path}/x", f"--out={tmp_path}/x"], "two of --html, --out name the same file"),
        ([f"--out={tmp_path}/x.json", "--id", "nobody"], "has no document 'nobody'"),
        ([f"--html={tmp_path}/none/x.html"], "the directory of --html does not exist"),
        (["--out=-", "--overwrite"], "--overwrite has no effect with --out -"),
    ):
        assert cli.main([*common, *wrong]) == 2
        assert message in capsys.readouterr().err
    assert cli.main([*common, "--out", "-", "--occlusion"]) == 0
    assert json.loads(capsys.readouterr().out) == record
    twice = tmp_path / "twice.jsonl"
    documents = (data / "text/test.jsonl").read_text(encoding="utf-8")
    twice.write_text(documents * 2, encoding="utf-8")
    id_ = json.loads(documents.splitlines()[0])["id"]
    common[2] = str(twice)
    assert cli.main([*common, "--out", str(tmp_path / "twice.html"), "--id", id_]) == 2
    assert f"document id {id_!r} was used before, in record 1" in capsys.readouterr().err


def test_sentences_of_a_text_end_at_their_last_token() -> None:
    assert sentence_ends(["A", "b", ".", "C", "."], ["A", " b", ".", " C", "."], "punctuation", "en") == [3, 5]
    assert sentence_ends(["A", "<sep>", "b"], ["A", "\t", "b"], "punctuation", "en") == [2, 3]
    question = ["Τι", ";", "Ναι", "."], ["Τι", ";", " Ναι", "."]
    assert sentence_ends(*question, "punctuation", "el") == [2, 4]
    assert sentence_ends(*question, "punctuation", "en") == [4]
