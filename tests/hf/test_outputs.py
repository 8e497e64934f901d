"""What the models of transformers give beside logits, and how it is asked for: states, weights, embeddings, heads."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from building import BOS, EOS, PAD, documents, targets
from helpers import assert_close
from hf_models import ENCODERS, WRITERS, encoder, filled, roles_of, variants, writer
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

LENGTHS = [17, 9, 12]
HEAD = {"inner_dim": None}


def model_of(name: str, model_class: Any = None, heads: dict[str, str] | None = None) -> Any:
    model, config = encoder(name, heads or {})
    return filled(model, (model_class or hf.HatModel)(config)) if heads else (model_class or hf.HatModel)(config).eval()


@torch.no_grad()
@pytest.mark.parametrize("name", ENCODERS)
def test_states_of_all_layers(name: str) -> None:
    """The same for padding on either side; the last ones are the output."""
    tokens, model = documents(LENGTHS), model_of(name)
    expected: Any = None
    for inputs in variants(tokens):
        out = model(**inputs, output_hidden_states=True)
        real = inputs.get("attention_mask", inputs["input_ids"].ne(PAD)).bool()
        assert len(out.hidden_states) == len(model.core.layers) + 1
        assert torch.equal(out.hidden_states[-1], out.last_hidden_state)
        assert all(each.shape == out.last_hidden_state.shape for each in out.hidden_states)
        of_real = [each[real] for each in out.hidden_states]
        expected = expected or of_real
        for each, other in zip(of_real, expected, strict=True):
            assert_close(each, other)
    assert model(tokens).hidden_states is None


@torch.no_grad()
def test_weights_of_an_encoder() -> None:
    tokens, model = documents(LENGTHS), model_of("hat")
    model.core.layers[0].queries = "tokens"
    sentences = tokens.eq(BOS).sum(dim=1)
    expected: Any = None
    for inputs in variants(tokens):
        out = model(**inputs, output_attentions=True)
        real = inputs.get("attention_mask", inputs["input_ids"].ne(PAD)).bool()
        assert [x.shape for x in out.attentions] == [(3, 4, 17, 17)] * 2
        assert [x.shape for x in out.sentence_attentions] == [(3, 4, 17, 4), (3, 4, 4, 4)]
        for each in out.attentions:
            sums = (each * real[:, None, None]).sum(dim=-1).transpose(1, 2)[real]
            assert_close(sums, torch.ones_like(sums))  # nothing is on padding
        to_sentences = out.sentence_attentions[0].transpose(1, 2)[real]
        assert not to_sentences[: LENGTHS[0], :, sentences[0] :].any()
        of_real = [each[row][:, mask][:, :, mask] for each in out.attentions for row, mask in enumerate(real)]
        expected = expected or of_real
        for each, other in zip(of_real, expected, strict=True):
            assert_close(each, other)


@torch.no_grad()
@pytest.mark.parametrize("name", ["roles", "bart"])
def test_states_and_weights_of_an_encoder_decoder(name: str) -> None:
    model, peer = writer(name)
    source, target = documents(LENGTHS), targets(6, 8)
    roles = roles_of(model, source)
    asked = {"output_hidden_states": True, "output_attentions": True}
    out = peer(source, **roles, decoder_input_ids=target, **asked)
    assert_close(out.logits, peer(source, **roles, decoder_input_ids=target).logits)
    assert len(out.decoder_hidden_states) == 3
    assert out.decoder_hidden_states[-1].shape == (6, 8, 24)
    assert_close(peer.get_output_embeddings()(out.decoder_hidden_states[-1]), out.logits)
    assert [x.shape for x in out.encoder_hidden_states] == [(3, 17, 24)] * 3
    assert [x.shape for x in out.encoder_attentions] == [(3, 4, 17, 17)] * 2
    assert [x.shape for x in out.sentence_attentions] == [(3, 4, 4, 4)]
    assert [x.shape for x in out.cross_attentions] == [(6, 4, 8, 17)] * 2
    assert [x.shape for x in out.sentence_cross_attentions] == [(6, 4, 8, 4)] * 2
    for weights in (*out.decoder_attentions, *out.cross_attentions, *out.sentence_cross_attentions):
        assert_close(weights.sum(dim=-1), torch.ones(6, 4, 8))
    assert not any(weights.triu(1).any() for weights in out.decoder_attentions)
    options = {"max_length": 6, "min_length": 6, "num_beams": 1, "do_sample": False}
    written = peer.generate(source, **roles, **options, return_dict_in_generate=True, **asked)
    again = peer(source, **roles, decoder_input_ids=written.sequences[:, :-1], **asked)
    for step, (own, cross) in enumerate(zip(written.decoder_attentions, written.cross_attentions, strict=True)):
        for layer in range(2):
            assert_close(own[layer][:, :, 0], again.decoder_attentions[layer][:, :, step, : step + 1])
            assert_close(cross[layer][:, :, 0], again.cross_attentions[layer][:, :, step])
    assert len(peer.generate(source, **roles, num_beams=2, max_length=6, return_dict_in_generate=True, **asked)[0]) == 3


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_a_mask_of_targets(name: str) -> None:
    """Scripts for other models pass the mask that the tokenizer gives; what it leaves out does not count."""
    model, peer = writer(name)
    source, target = documents(LENGTHS), targets(3, 8)
    target[1, 5:] = PAD
    inputs = {"input_ids": source, **roles_of(model, source)}
    expected, mask = peer(**inputs, decoder_input_ids=target).logits, target.ne(PAD)
    other = target.where(mask, 7)
    for each in (mask, mask.long()):
        assert torch.equal(peer(**inputs, decoder_input_ids=other, decoder_attention_mask=each).logits, expected)
    out = peer(**inputs, decoder_input_ids=other[:, :-1], decoder_attention_mask=mask[:, :-1], use_cache=True)
    more = {"encoder_outputs": peer.encoder(**inputs), "past_key_values": out.past_key_values}
    last = peer(**more, decoder_input_ids=other[:, -1:], decoder_attention_mask=mask).logits
    assert_close(last[mask[:, -1]], expected[:, -1:][mask[:, -1]])
    gap = torch.ones_like(mask).index_fill(1, torch.tensor([3]), False)
    for wrong in (mask.flip(1), gap):
        with pytest.raises(ValueError, match="decoder_attention_mask: a token after padding"):
            peer(**inputs, decoder_input_ids=target, decoder_attention_mask=wrong)
    begun, of_begun = target[:, :6], mask[:, :6]
    for more in ({}, {"decoder_attention_mask": of_begun}):
        with pytest.raises(ValueError, match="beginnings of one length"):
            peer.generate(**inputs, decoder_input_ids=begun, max_length=9, min_length=9, **more)
    with pytest.raises(ValueError, match="encoder_outputs is a tuple: give what get_encoder"):
        peer(encoder_outputs=(torch.zeros(3, 17, 24),), decoder_input_ids=target)


@torch.no_grad()
def test_the_decoder_reads_the_states_and_the_mask_of_encoder_outputs() -> None:
    model, peer = writer("bart")
    source, target = documents(LENGTHS), targets(3, 8)
    out, mask = peer.get_encoder()(source), source.ne(PAD)
    expected = peer(source, decoder_input_ids=target).logits
    for more in ({}, {"attention_mask": mask}, {"attention_mask": torch.ones_like(source)}):
        assert torch.equal(peer(encoder_outputs=out, decoder_input_ids=target, **more).logits, expected)
    out.last_hidden_state = out.last_hidden_state.roll(1, dims=0)
    changed = peer(encoder_outputs=out, decoder_input_ids=target).logits
    assert (changed - expected).abs().max() > 0.01
    with peer.encoder.register_forward_hook(lambda *_: out):
        assert torch.equal(peer(source, decoder_input_ids=target).logits, changed)
    mask[0, 6:] = False
    options = {"num_beams": 2, "max_length": 6}
    for call in (partial(peer, decoder_input_ids=target), partial(peer.generate, **options)):
        with pytest.raises(ValueError, match="attention_mask hides tokens that encoder_outputs were computed from"):
            call(encoder_outputs=peer.get_encoder()(source), attention_mask=mask)


@torch.no_grad()
def test_a_tuple_instead_of_an_output() -> None:
    tokens, model = documents(LENGTHS), model_of("hat")
    (states,) = model(tokens, return_dict=False)
    assert torch.equal(states, model(tokens).last_hidden_state)
    assert model(tokens).logits is None
    _, peer = writer("bart")
    out = peer(tokens, decoder_input_ids=targets(3, 4), return_dict=False)
    assert isinstance(out, tuple)
    assert torch.equal(out[0], peer(tokens, decoder_input_ids=targets(3, 4)).logits)
    for config in (model.config, peer.config):
        config.return_dict = False
    assert isinstance(model(tokens), tuple)
    assert isinstance(peer(tokens, labels=targets(3, 4)), tuple)


@torch.no_grad()
@pytest.mark.parametrize("name", [*ENCODERS, *WRITERS])
def test_embeddings_in_place_of_the_table(name: str) -> None:
    tokens = documents(LENGTHS)
    if name in WRITERS:
        model, peer = writer(name)
        more = {**roles_of(model, tokens), "decoder_input_ids": targets(3, 4)}
        outputs = [lambda **inputs: peer(**inputs, **more).logits]
    else:
        peer = model_of(name)
        outputs = [lambda **inputs: peer(**inputs).last_hidden_state[tokens.ne(PAD)]]
    words = peer.get_input_embeddings()(tokens)
    for run in outputs:
        expected = run(input_ids=tokens)
        assert torch.equal(run(input_ids=tokens, inputs_embeds=words), expected)
        assert not torch.allclose(run(input_ids=tokens, inputs_embeds=words * 1.5), expected)
        mask = tokens.ne(PAD)
        if name in ("ernie", "bigbird", "pooling"):  # which read no markers
            assert_close(run(inputs_embeds=words, attention_mask=mask), expected)
        else:
            with pytest.raises(ValueError, match="inputs_embeds: give input_ids, too"):
                run(inputs_embeds=words, attention_mask=mask)
    with pytest.raises(ValueError, match="give input_ids, or inputs_embeds"):
        peer()


@pytest.mark.parametrize("name", ["roles", "bart", "tables"])
def test_the_tables_of_an_encoder_decoder_are_resized_together_or_not_at_all(name: str, tmp_path: Path) -> None:
    _, model = writer(name)
    size, before = model.config.vocab_size, {key: x.shape for key, x in model.state_dict().items()}
    source, target = documents(LENGTHS), targets(3, 4)
    more = {"decoder_input_ids": target, **roles_of(model, source)}
    if name == "tables":
        with pytest.raises(ValueError, match="source and target of this model of hat_fairseq have two tables"):
            model.resize_token_embeddings(size + 3)
        assert {key: x.shape for key, x in model.state_dict().items()} == before
        assert model.config.vocab_size == size
        return
    expected = model(source, **more).logits
    table = model.resize_token_embeddings(size + 3, pad_to_multiple_of=4)
    assert table is model.get_input_embeddings()
    assert table.num_embeddings == 64 == model.config.vocab_size
    assert model.get_output_embeddings().weight is table.weight is model.decoder.embed_tokens.weight
    assert_close(model(source, **more).logits[..., :size], expected)
    assert_close(table.weight[size:], table.weight[:size].mean(dim=0).expand(4, -1))
    model(source.masked_fill(source == 7, 62), **more).logits.sum().backward()
    model.save_pretrained(tmp_path)
    again = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert torch.equal(again(source, **more).logits, model.eval()(source, **more).logits)
    model.resize_token_embeddings(size)
    assert {key: x.shape for key, x in model.state_dict().items()} == before


@torch.no_grad()
@pytest.mark.parametrize("name", ["hat", "bigbird", "segments"])
def test_the_table_of_a_masked_lm_is_resized(name: str, tmp_path: Path) -> None:
    tokens = documents(LENGTHS)
    model, config = encoder(name, {})
    peer = filled(model, hf.HatForMaskedLM(config))
    expected = peer(tokens).logits
    if name == "bigbird":  # untied
        with pytest.raises(ValueError, match="the masked-LM head has a table of its own"):
            peer.resize_token_embeddings(70)
        assert_close(peer(tokens).logits, expected)
        return
    peer.resize_token_embeddings(70, mean_resizing=False)
    assert_close(peer(tokens).logits[..., :60], expected)
    assert peer(tokens).logits.size(2) == peer.config.vocab_size == 70
    peer.save_pretrained(tmp_path)
    again = transformers.AutoModelForMaskedLM.from_pretrained(tmp_path)
    assert torch.equal(again(tokens).logits, peer(tokens).logits)


@torch.no_grad()
@pytest.mark.parametrize("name", WRITERS)
def test_the_encoder_of_an_encoder_decoder_alone(name: str, tmp_path: Path) -> None:
    model, peer = writer(name)
    peer.save_pretrained(tmp_path)
    loaded, info = transformers.AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    tokens = documents(LENGTHS)
    roles = roles_of(model, tokens)
    expected = peer.get_encoder()(tokens, **roles).last_hidden_state
    assert torch.equal(loaded(tokens, **roles).last_hidden_state, expected)


def labels_of(name: str, logits: torch.Tensor) -> torch.Tensor:
    if name == "evidence":
        return torch.randint(2, logits.shape)
    return torch.randint(logits.size(-1), logits.shape[:-1])


@pytest.mark.parametrize(
    ("auto", "level"), [("TokenClassification", "token"), ("SequenceClassification", "document"), (None, "segment")]
)
def test_a_head_and_its_loss(auto: str | None, level: str, tmp_path: Path) -> None:
    tokens = documents(LENGTHS)
    model, config = encoder("means", {"it": level})
    config.heads = {"it": config.heads["it"]}
    config.num_labels = 3
    peer_class = hf.HatForSegmentClassification if auto is None else getattr(hf, f"HatFor{auto}")
    state = {n: t for n, t in model.state_dict().items() if not n.endswith("_fingerprint") and ".two." not in n}
    peer = peer_class(config).eval()
    peer.load_state_dict(state)
    peer.save_pretrained(tmp_path)
    loader = peer_class if auto is None else getattr(transformers, f"AutoModelFor{auto}")
    loaded = loader.from_pretrained(tmp_path)
    expected = model(tokens, classification_head_name="it")[0]
    labels = labels_of(level, expected)
    if level != "document":
        labels.flatten()[::3] = -100
    for each in (peer, loaded):
        out = each(tokens, labels=labels)
        assert_close(out.logits, expected)
        assert_close(out.loss, cross_entropy(expected.flatten(0, -2), labels.flatten()))
    out.loss.backward()
    halved = peer(tokens, labels=labels, num_items_in_batch=torch.tensor(2 * int((labels != -100).sum()))).loss
    assert level == "document" or torch.allclose(halved, out.loss / 2)


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification", "single_label_classification"])
def test_the_loss_of_batches_that_are_accumulated(problem: str) -> None:
    """Trainer gives the number of all labels of an update: the sum over its batches is the loss of one batch."""
    tokens = documents(LENGTHS)
    config = encoder("means", {"it": "document"})[1]
    config.num_labels, config.problem_type = 3, problem
    model = hf.HatForSequenceClassification(config).eval()
    labels = torch.rand(len(tokens), 3).round() if problem != "single_label_classification" else None
    labels = torch.arange(len(tokens)) % 3 if labels is None else labels
    whole = model(tokens, labels=labels).loss
    parts = [
        model(tokens[rows], labels=labels[rows], num_items_in_batch=torch.tensor(labels.numel())).loss
        for rows in (slice(1), slice(1, None))
    ]
    assert_close(sum(parts), whole)


def test_answers_and_choices() -> None:
    tokens = documents(LENGTHS)
    config = encoder("window", {})[1]
    torch.manual_seed(2)
    model = hf.HatForQuestionAnswering(config).eval()
    first, last = torch.tensor([3, 2, 4]), torch.tensor([6, 8, 4])
    out = model(tokens, start_positions=first, end_positions=last)
    assert out.start_logits.shape == out.end_logits.shape == (3, 17)
    assert (out.start_logits[1, 9:] == -1e4).all()  # of padding
    expected = (cross_entropy(out.start_logits, first) + cross_entropy(out.end_logits, last)) / 2
    assert_close(out.loss, expected)
    with pytest.raises(ValueError, match="give start_positions and end_positions"):
        model(tokens, start_positions=first)
    config = encoder("window", {})[1]
    model = hf.HatForMultipleChoice(config).eval()
    choices = torch.stack([tokens, tokens.flip(0)], dim=1)
    out = model(choices, attention_mask=choices.ne(PAD), labels=torch.tensor([0, 1, 1]))
    assert out.logits.shape == (3, 2)
    assert_close(out.logits[0, 0], model(tokens[:1, None]).logits[0, 0])
    assert_close(out.loss, cross_entropy(out.logits, torch.tensor([0, 1, 1])))
    with pytest.raises(ValueError, match="input_ids .B, M, T. of M choices"):
        model(tokens)


def test_evidence() -> None:
    rows = [[BOS, 5, 6, BOS, 7, EOS, EOS, BOS, 8, 9, BOS, 9, BOS, 4, EOS], [BOS, 5, EOS, EOS, BOS, 8, BOS, 9, EOS]]
    tokens = torch.nn.utils.rnn.pad_sequence(list(map(torch.tensor, rows)), batch_first=True, padding_value=PAD)
    sizes = {"encoder_embed_dim": 24, "encoder_ffn_embed_dim": 40, "encoder_layers": 2, "encoder_attention_heads": 4}
    heads = {"evidence": {"level": "evidence", "classes": 1, "inner_dim": None}}
    config = hf.HatConfig("hat_units", sizes | {"max_positions": 20, "segment_length": 9}, vocab_size=60, heads=heads)
    model = hf.HatForSegmentClassification(config).eval()
    labels = torch.tensor([[[1, 0, 0], [0, 0, 1]], [[1, 0, -100], [-100] * 3]])
    out = model(tokens, labels=labels)
    assert out.logits.shape == (2, 2, 4, 2)
    counted, passages = labels != -100, out.logits[:, :, 1:, 0]
    assert_close(out.loss, binary_cross_entropy_with_logits(passages[counted], labels[counted].float()))
    everything = torch.randint(2, out.logits.shape)
    loss = model(tokens, labels=everything).loss
    assert_close(loss, binary_cross_entropy_with_logits(out.logits, everything.float()))
    assert_close(model(tokens, labels=labels, num_items_in_batch=16).loss, out.loss * counted.sum() / 16)
    other = labels.masked_fill(~counted, 9)
    assert_close(model(tokens, labels=other, ignore_index=9).loss, out.loss)
    with pytest.raises(ValueError, match=r"labels of shape \(2, 2\): evidence has one for each question and unit"):
        model(tokens, labels=labels[..., 0])
    with pytest.raises(ValueError, match="output_hidden_states, output_attentions: hat_units"):
        model(tokens, output_hidden_states=True)
    with pytest.raises(ValueError, match="no row has <s>"):
        model(torch.full((2, 4), 7))


@pytest.mark.parametrize("level", ["token", "segment", "document"])
def test_a_folder_has_the_classes_of_its_head(level: str, tmp_path: Path) -> None:
    """Of a head with other classes than two; stated ones come first."""
    names = {"token": "Token", "segment": "Segment", "document": "Sequence"}
    one = getattr(hf, f"HatFor{names[level]}Classification")
    config = encoder("window", {})[1]
    config.heads = {"own": HEAD | {"level": level, "classes": 4, "labels": list("abcd")}}
    whole = hf.HatModel(config).eval()
    whole.save_pretrained(tmp_path)
    tokens = documents(LENGTHS)
    loaded = one.from_pretrained(tmp_path).eval()
    assert torch.equal(loaded(tokens).logits, whole(tokens).logits["own"])
    assert loaded.config.id2label == dict(enumerate("abcd"))
    three = one.from_pretrained(tmp_path, num_labels=3, ignore_mismatched_sizes=True)
    assert three(tokens).logits.size(-1) == 3
    three.save_pretrained(tmp_path / "three")
    assert one.from_pretrained(tmp_path / "three")(tokens).logits.size(-1) == 3
    config.heads |= {"other": HEAD | {"level": "paragraph", "classes": 5}}
    assert one(config)(tokens).logits.size(-1) == 4


OF_CLASS = {
    "SequenceClassification": {"kind_of_answer": HEAD | {"level": "document", "classes": 5, "labels": list("abcde")}},
    "SegmentClassification": {"place": HEAD | {"level": "segment", "classes": 3, "labels": ["B", "I", "O"]}},
    "TokenClassification": {"tag": HEAD | {"level": "token", "classes": 4}},
    "QuestionAnswering": {"span": HEAD | {"level": "token", "classes": 2}},
    "MultipleChoice": {"choice": HEAD | {"level": "document", "classes": 1}},
}


@pytest.mark.parametrize("name", OF_CLASS)
@pytest.mark.parametrize("others", [["MultipleChoice"], ["QuestionAnswering", "SegmentClassification"]], ids=str)
def test_of_several_heads_a_class_has_its_own_with_its_labels(name: str, others: list[str], tmp_path: Path) -> None:
    if {name, *others} == {"SequenceClassification", "MultipleChoice"}:
        others = ["TokenClassification", "SegmentClassification"]  # both of these are about documents
    config = encoder("window", {})[1]
    ((own, head),) = OF_CLASS[name].items()
    heads = {key: value for other in [*others, "TokenClassification"] for key, value in OF_CLASS[other].items()}
    config = hf.HatConfig(config.network, config.settings, config.vocab_size, heads=heads | OF_CLASS[name])
    whole = hf.HatModel(config).eval()
    whole.save_pretrained(tmp_path)
    assert hf.HatConfig.from_pretrained(tmp_path).num_labels == 0, "no label belongs to all"
    loaded, info = getattr(hf, f"HatFor{name}").from_pretrained(tmp_path, output_loading_info=True)
    names = head.get("labels", [f"LABEL_{number}" for number in range(head["classes"])])
    assert not info["missing_keys"]
    assert [*loaded.config.heads] == [own]
    assert loaded.config.id2label == dict(enumerate(names))
    assert loaded.config.num_labels == head["classes"]
    loaded.save_pretrained(tmp_path / "one")
    assert hf.HatConfig.from_pretrained(tmp_path / "one").id2label == dict(enumerate(names))
    assert torch.equal(
        loaded.state_dict()[f"classification_heads.{own}.out_proj.bias"],
        whole.state_dict()[f"classification_heads.{own}.out_proj.bias"],
    )


def test_a_stated_number_of_labels_is_compared_with_the_head(tmp_path: Path) -> None:
    """Of a folder with several heads, too, and where it is transformers' default."""
    auto = transformers.AutoModelForSequenceClassification
    config = encoder("window", {})[1]
    heads = OF_CLASS["SequenceClassification"] | OF_CLASS["QuestionAnswering"]
    hf.HatModel(hf.HatConfig(config.network, config.settings, config.vocab_size, heads=heads)).save_pretrained(tmp_path)
    loaded, tokens = auto.from_pretrained(tmp_path).eval(), documents(LENGTHS)
    output = loaded(tokens, labels=torch.full((len(tokens),), 4))
    assert output.logits.size(-1) == 5
    assert output.loss.isfinite()
    for number in (2, 3):
        with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
            auto.from_pretrained(tmp_path, num_labels=number)
        other = auto.from_pretrained(tmp_path, num_labels=number, ignore_mismatched_sizes=True)
        assert other(tokens).logits.size(-1) == number == other.config.num_labels


@pytest.mark.parametrize("name", ["bart", "pooling"])
def test_layers_that_are_recomputed(name: str) -> None:
    """Gradients are those without recomputing, also beside a cache, and where states or weights are asked for."""
    _, peer = writer(name)
    source, target = documents(LENGTHS), targets(3, 8)
    expected = torch.autograd.grad(peer(source, labels=target).loss, list(peer.parameters()), allow_unused=True)
    peer.train().gradient_checkpointing_enable()
    for module in peer.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    asked = [{"use_cache": True}, {"output_hidden_states": True}]
    asked += [{"output_attentions": True}] if name == "bart" else []
    for more in ({}, *asked):
        loss = peer(source, labels=target, **more).loss
        for each, other in zip(
            torch.autograd.grad(loss, list(peer.parameters()), allow_unused=True), expected, strict=True
        ):
            assert (each is None) == (other is None)
            if other is not None:
                assert_close(each, other)
        assert peer.encoder.checkpoint
        assert peer.decoder.checkpoint


@torch.no_grad()
@pytest.mark.parametrize("beams", [1, 3])
def test_a_forced_end(beams: int) -> None:
    """Another id than `</s>`; and a least length that is the greatest, with finite scores."""
    _, peer = writer("tables")
    source = documents(LENGTHS)
    options = {"num_beams": beams, "return_dict_in_generate": True, "output_scores": True}
    out = peer.generate(source, max_length=6, forced_eos_token_id=9, eos_token_id=9, **options)
    assert all(9 in row for row in out.sequences[:, 1:].tolist()), "each ends with it"
    out = peer.generate(source, min_new_tokens=4, max_new_tokens=4, forced_eos_token_id=EOS, **options)
    assert (out.sequences[:, -1] == EOS).all()
    assert not (out.sequences[:, 1:-1] == EOS).any()
    assert beams == 1 or (out.sequences_scores > -100).all()


def test_settings_by_their_flat_names(tmp_path: Path) -> None:
    _, peer = writer("bart")
    peer.save_pretrained(tmp_path)
    loaded = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dropout=0.25, attention_dropout=0.5)
    assert loaded.decoder.layers[0].dropout.p == 0.25
    assert loaded.encoder.layers[0].self_attn.dropout.p == 0.5
    config = transformers.AutoConfig.from_pretrained(tmp_path)
    sizes = config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.max_position_embeddings
    assert sizes == (24, 2, 4, 64)
    assert config.encoder_embed_dim == 24
    assert config.activation_fn == "gelu"
    segments = encoder("segments", {})[1]
    assert (segments.num_hidden_layers, segments.hidden_size, segments.max_position_embeddings) == (2, 24, 256)
    assert hf.HatConfig("hat_roberta", max_positions=4096).max_source_positions == 4096
    assert hf.HatConfig("hat_bart").max_source_positions == 1024
    small = hf.HatConfig("hat_roberta", hidden_size=24, vocab_size=9)
    assert small.settings == {"encoder_embed_dim": 24, "max_positions": 512}
    assert small.max_position_embeddings == 512
    assert hf.HatModel(small)(documents(LENGTHS) % 9).last_hidden_state.shape == (3, max(LENGTHS), 24)
    with pytest.raises(TypeError, match="dropuot"):
        transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path, dropuot=0.25)
    kept = {type(module).__name__ for module in loaded.modules()} & set(loaded._no_split_modules)
    assert kept == {"EncoderLayer", "HierarchicalDecoderLayer"}
