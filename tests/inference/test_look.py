"""`hat look`: what is shown is what the model does, in text models and in classifiers."""

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import generation_flags
from matplotlib.image import imread
from minilm import needs_minilm

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.analysis.files import picture
from hat_fairseq.analysis.look import AttentionMap, Look
from hat_fairseq.analysis.recording import units
from hat_fairseq.data.kind import HEAD
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference import DocumentToText
from hat_fairseq.inference.labels import Predictor
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.look_at import LookOptions, look_at, sentence_ends
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
    look = look_at(model, record, LookOptions(occlusion=True, batch_size=3))
    assert look.roles == tuple(record.roles[: len(look.source)])
    assert "".join(look.target).strip() == next(model.rows([record]))["text"].replace("\t", " ")
    assert look.target_sentences[0][0] == 0 and look.target_sentences[-1][1] == len(look.target)
    assert look.unit == "sentence" and len(look.source) > 3
    lost = len(record.elements) - len(look.source)
    assert lost > 1 and look.note == (
        f"{lost} sentences at the end of the document are truncated: the model does not read them."
    )
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
    reference = look_at(model, record, LookOptions(reference=True))
    assert "".join(reference.target).strip() in " ".join(str(record.target).split()) or len(reference.target) == 60
    with pytest.raises(ValueError, match="--chunk 2: .* has 1 of them"):
        look_at(model, record, LookOptions(chunk=2))


@torch.no_grad()
def test_a_classifier(fine_tuned) -> None:
    made = fine_tuned("classification")
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    record = next(iter(read_records(made.raw / "test.jsonl", "classification")))
    look = look_at(model, record, LookOptions(occlusion=True, batch_size=4))
    (one,) = look.maps
    assert (one.name, one.queries, look.unit) == ("attention among segments", "source", "segment")
    assert len(look.source) == one.weights.size(-1) and look.target == ()
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
@pytest.mark.parametrize(("target", "reference", "count"), [("a b", False, 1), ("a b", True, 1), ("a \ud800", True, 2)])
def test_changes_of_a_document_with_a_target_are_counted_once(
    target: str, reference: bool, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    model = hat_fairseq.load("demo", device="cpu")
    document = {
        "turns": [{"role": "PM", "text": "We \ud800 met ."}, {"role": "ME", "text": "Fine ."}],
        "target": target,
    }
    caplog.clear()
    model.look(document, reference=reference)
    assert f"lone surrogates replaced: {count}" in caplog.text


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
        look_at(model, record, LookOptions(occlusion=True))


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
    assert not [each for each in look.statements() if "hierarchy" in each] and picture(look)


def test_the_command_writes_all_forms(trained: tuple[Path, str], tmp_path: Path, capsys) -> None:
    data, checkpoint = trained
    common = ["look", checkpoint, str(data / "text/test.jsonl"), "--data", str(data / "bin")]
    common += generation_flags(OPTIONS)
    files = {name: tmp_path / f"look.{name}" for name in ("html", "png", "json")}
    flags = [f"--{'out' if name == 'json' else name}={path}" for name, path in files.items()]
    assert cli.main([*common, *flags, "--occlusion"]) == 0
    printed = capsys.readouterr().out
    assert all(f"wrote {path} ({path.stat().st_size:,} bytes)" in printed for path in files.values())
    assert files["png"].read_bytes().startswith(b"\x89PNG")
    record = json.loads(files["json"].read_text(encoding="utf-8"))
    assert len(record["maps"]) == 3 and record["maps"][0]["attention"] == "attention to sentences"
    layers, _, queries, sentences = torch.tensor(record["maps"][0]["weights"]).shape
    assert (layers, queries, sentences) == (2, len(record["target"]), len(record["source"]))
    changes = torch.tensor(record["occlusion"]["change"])
    assert changes.shape == (queries, sentences) and bool(changes.ne(0).any())
    for wrong, message in (
        ([], "say what to write"),
        ([f"--png={files['png']}"], "exists"),
        ([f"--png={tmp_path}/x", f"--out={tmp_path}/x"], "two of --png, --out name the same file"),
        ([f"--png={tmp_path}/x.png", "--id", "nobody"], "has no document 'nobody'"),
        ([f"--png={tmp_path}/x.png", "--batch-size", "0"], "--batch-size must be at least 1"),
        ([f"--png={tmp_path}/none/x.png"], "the directory of --png does not exist"),
    ):
        assert cli.main([*common, *wrong]) == 2
        assert message in capsys.readouterr().err
    new = [f"--html={tmp_path}/new.html", f"--out={tmp_path}/new.json", "--json"]
    assert cli.main([*common, *new, "--occlusion"]) == 0
    assert json.loads(capsys.readouterr().out) == record == json.loads((tmp_path / "new.json").read_text())
    assert (tmp_path / "new.html").read_bytes() == files["html"].read_bytes()
    twice = tmp_path / "twice.jsonl"
    documents = (data / "text/test.jsonl").read_text(encoding="utf-8")
    twice.write_text(documents * 2, encoding="utf-8")
    id_ = json.loads(documents.splitlines()[0])["id"]
    common[2] = str(twice)
    assert cli.main([*common, "--out", str(tmp_path / "twice.html"), "--id", id_]) == 2
    assert f"document id {id_!r} was used before, in record 1" in capsys.readouterr().err


@pytest.mark.slow
def test_pages_of_all_documents(fine_tuned, tmp_path: Path, capsys) -> None:
    """Byte for byte those of `hat look`; ids that are no names of files, no text, one segment."""
    made = fine_tuned("classification")
    (first, *_) = map(json.loads, (made.raw / "test.jsonl").open())
    texts = {"../a b": first["segments"], "..a/B": first["segments"][:3], "none": [], "長" * 100: ["yes"]}
    rows = [json.dumps({"id": name, "segments": segments}) + "\n" for name, segments in texts.items()]
    (tmp_path / "in.jsonl").write_text("".join(rows))
    words = ["look", str(made.checkpoint), str(tmp_path / "in.jsonl"), "--data", str(made.data / "bin")]
    words += ["--device", "cpu", "--occlusion"]
    assert cli.main([*words, "--pages", str(tmp_path / "pages")]) == 0
    out, err = capsys.readouterr()
    assert f"{tmp_path}/pages: 3 pages, and index.html" in out and "1 documents have no page" in err and "'none'" in err
    names = ["1-.._a_b.html", "2-..a_B.html", "3-" + "長" * 26 + ".html", "index.html"]
    assert sorted(path.name for path in (tmp_path / "pages").iterdir()) == names
    for name, page in (("../a b", names[0]), ("..a/B", names[1])):
        assert cli.main([*words, "--id", name, "--out", str(tmp_path / page)]) == 0
        assert (tmp_path / page).read_bytes() == (tmp_path / "pages" / page).read_bytes()
    assert "nothing is left without it" in (tmp_path / "pages" / names[2]).read_text()
    model = Predictor(load(made.checkpoint, made.data / "bin", "cpu"))
    record = next(iter(read_records(tmp_path / "in.jsonl", "classification")))
    (predicted,) = model.predictions([record])
    line = f"Predicted label: {predicted.label}, with probability {predicted.probabilities[predicted.label]:.3f}."
    assert all(line in (tmp_path / "pages" / name).read_text() for name in (names[0], "index.html"))
    (tmp_path / "empty.jsonl").write_text("")
    empty = [*words[:2], str(tmp_path / "empty.jsonl"), *words[3:], "--pages", str(tmp_path / "none")]
    assert cli.main(empty) == 2 and not (tmp_path / "none").exists()
    assert "empty.jsonl is empty" in capsys.readouterr().err
    assert cli.main([*words, "--pages", str(tmp_path / "pages"), "--overwrite"]) == 2
    assert "--pages replaces no folder" in capsys.readouterr().err
    assert cli.main([*words, "--pages", str(tmp_path / "pages")]) == 2
    assert "pages already exists; choose another directory" in capsys.readouterr().err


@pytest.mark.slow
def test_pages_of_texts(trained: tuple[Path, str], tmp_path: Path) -> None:
    """Of a split of preprocessed data; the page of a document is that of `hat look --id`."""
    data, checkpoint = trained
    words = ["look", checkpoint, str(data), "--device", "cpu", *generation_flags(OPTIONS)]
    assert cli.main([*words, "--pages", str(tmp_path / "pages")]) == 0
    names = [json.loads(line)["id"] for line in (data / "text/test.jsonl").open()]
    pages = sorted(path.stem for path in (tmp_path / "pages").iterdir())
    assert pages == [*(f"{number}-{name}" for number, name in enumerate(names, start=1)), "index"]
    assert cli.main([*words, "--id", names[-1], "--out", str(tmp_path / "one.html")]) == 0
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / f"pages/{pages[-2]}.html").read_bytes()


def test_sentences_of_a_text_end_at_their_last_token() -> None:
    assert sentence_ends(["A", "b", ".", "C", "."], ["A", " b", ".", " C", "."], "punctuation", "en") == [3, 5]
    assert sentence_ends(["A", "<sep>", "b"], ["A", "\t", "b"], "punctuation", "en") == [2, 3]
    question = ["Τι", ";", "Ναι", "."], ["Τι", ";", " Ναι", "."]
    assert sentence_ends(*question, "punctuation", "el") == [2, 4] and sentence_ends(
        *question, "punctuation", "en"
    ) == [4]


@pytest.mark.parametrize("uniform", [True, False])
def test_the_picture_of_uniform_occlusion_has_no_map(uniform: bool) -> None:
    change = torch.tensor([[0.0015, -0.0031, 0.0002]]) * (1 if uniform else 100)
    look = Look("d", "m", "segment", ("a", "b", "c"), (3,) * 3, ()).with_occlusion(["label"], torch.zeros(1), change)
    pixels = imread(io.BytesIO(picture(look)))[..., :3]
    coloured = (pixels.max(axis=-1) - pixels.min(axis=-1) > 0.1).mean()
    assert coloured == 0 if uniform else coloured > 0.2


@pytest.mark.parametrize("uniform", [True, False])
def test_the_picture_of_uniform_attention_has_no_map(uniform: bool) -> None:
    weights = torch.full((1, 2, 6, 12), 1 / 12) if uniform else torch.eye(12)[:6].expand(1, 2, 6, 12)
    maps = (AttentionMap("attention to sentences", "target tokens", (0,), weights + 0),)
    texts = tuple(f"text {number}" for number in range(12))
    look = Look("d", "m", "sentence", texts, (3,) * 12, maps, tuple(" abcdef"[1:]), ((0, 3), (3, 6)))
    pixels = imread(io.BytesIO(picture(look)))[..., :3]
    coloured = (pixels.max(axis=-1) - pixels.min(axis=-1) > 0.1).mean()
    assert coloured == 0 if uniform else coloured > 0.2
