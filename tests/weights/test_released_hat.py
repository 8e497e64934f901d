"""`hat import hierarchical_transformer`: names and settings of the released models, and what is refused."""

import shlex
from pathlib import Path
from typing import Any

import pytest
import references
import torch
from building import PAD, Vocabulary
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY
from released_hat_sample import CONFIG, DATA, REAL, TOKENS, largest_difference, release, state
from small_peers import assert_refused

from hat_fairseq import cli
from hat_fairseq.data.dictionary import Dictionary, fingerprint, label_token
from hat_fairseq.weights.released_hat import HEAD, convert


def test_unknown_tensors_and_unequal_copies_are_refused() -> None:
    weights = state("MaskedLM")
    without = {key: tensor for key, tensor in weights.items() if "2.document_encoder.output.dense.bias" not in key}
    with pytest.raises(ValueError, match="1 tensor is missing .*: encoder.layer.2.document_encoder.output.dense.bias"):
        convert(without, CONFIG)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"bert.pooler.weight": torch.zeros(3)}, "1 tensor is unknown for this config.json: bert.pooler.weight"),
        ({"lm_head.decoder.weight": torch.zeros(97, 32)}, "lm_head.decoder.weight differs from .*word_embeddings"),
        ({"lm_head.bias": torch.zeros(96)}, "lm_head.decoder.bias differs from lm_head.bias"),
    ],
)
def test_tensors_that_do_not_fit_are_named(change: dict[str, Any], message: str) -> None:
    weights = state("MaskedLM")
    with pytest.raises(ValueError, match=message):
        convert(weights | change, CONFIG)


def import_release(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["import", "hierarchical_transformer", str(folder), "--out", str(out), *flags])


def pasted(printed: str, drop: str = "") -> Any:
    """The model that fairseq-train builds from the one printed line, with its weights; without the flag `drop`."""
    (line,) = [line for line in printed.splitlines() if "--finetune-from-model" in line]
    words = [word for word in shlex.split(line) if word != drop]
    args = options.parse_args_and_arch(options.get_training_parser(), ["data", *words])
    model = ARCH_MODEL_REGISTRY[args.arch].build_model(args, Vocabulary(97, mask=True)).eval()
    weights = torch.load(args.finetune_from_model, weights_only=True)["model"]
    if args.task != "translation":  # fairseq's default
        model.register_classification_head(
            HEAD,
            num_classes=len(weights[f"classification_heads.{HEAD}.out_proj.weight"]),
            of="segment" if args.task == "segment_classification" else "document",
        )
    model.load_state_dict(weights)
    return model


@torch.no_grad()
def test_the_printed_line_computes_what_the_weights_were_trained_to_compute(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Dense attention over whole segments, the padding in them included, and no positions of segments."""
    assert import_release(release(tmp_path / "hf"), tmp_path / "model.pt") == 0
    model = pasted(capsys.readouterr().out)
    logits = model(TOKENS)[0]
    for row, tokens in enumerate(TOKENS):
        segments = [segment for segment in tokens.split(8) if segment.ne(PAD).any()]
        dense = torch.cat(references.hierarchical_transformer(model.encoder, segments))
        real = REAL[row, : len(dense)]
        assert largest_difference(logits[row, : len(dense)][real], model.encoder.lm_head(dense)[real]) < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("name", ["MaskedLM", "SequenceClassification[pooling=max]"])
def test_the_printed_line_gives_the_numbers_of_the_reference(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The reference adds positions of segments, and its mask hides the padding that the released tokenizer does not."""
    assert import_release(release(tmp_path / "hf", name), tmp_path / "model.pt", "--segment-positions", "add") == 0
    printed = capsys.readouterr().out
    head = {} if name == "MaskedLM" else {"classification_head_name": HEAD}
    real = REAL if name == "MaskedLM" else slice(None)
    expected = DATA[f"{name}/logits"][real]
    for dropped, same in (("--attend-segment-padding", True), ("", False)):
        logits = pasted(printed, dropped)(TOKENS, **head)[0][real]
        assert (largest_difference(logits, expected) < 1e-5) == same
    assert import_release(tmp_path / "hf", tmp_path / "model.pt") == 2
    assert "exists" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("SequenceClassification[pooling=attentive]", "--task document_classification --pooling attentive"),
        ("MultipleChoice", "--task multiple_choice --pooling last"),
        ("SequentialSentenceClassification", "--task segment_classification"),
    ],
)
def test_the_head_comes_along_and_its_task_is_in_the_printed_line(
    name: str, flags: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert import_release(release(tmp_path / "hf", name), tmp_path / "model.pt") == 0
    printed = capsys.readouterr().out
    assert f" --attend-segment-padding --pool-padded-segments {flags} --finetune-from-model " in printed
    head, weights = {k: t for k, t in pasted(printed).state_dict().items() if HEAD in k}, state(name)
    heads = [key for key in weights if key.startswith(("classifier", "pooler", "sentencizer"))]
    assert len([key for key in head if not key.endswith("_fingerprint")]) == len(heads)
    assert torch.equal(head[f"classification_heads.{HEAD}.out_proj.weight"], weights["classifier.weight"])


def test_labels_are_in_the_order_of_data_that_have_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name, weight = "SequenceClassification[pooling=max]", f"classification_heads.{HEAD}.out_proj.weight"
    classes = state(name)["classifier.weight"]
    order = [*range(1, len(classes)), 0]
    labels = {str(number): f"{chr(98 + place)} %" for place, number in enumerate(order)}  # the last class comes first
    tokens = [label_token(label) for label in sorted(labels.values())]
    for number, (names, rows) in enumerate(
        (
            (labels, order),
            ({str(n): f"LABEL_{n}" for n in range(len(classes))}, range(len(classes))),
            ({}, range(len(classes))),
        )
    ):
        folder = release(tmp_path / f"hf{number}", name, **({"id2label": names} if names else {}))
        assert import_release(folder, tmp_path / f"{number}.pt") == 0
        model = torch.load(tmp_path / f"{number}.pt", weights_only=True)["model"]
        assert torch.equal(model[weight], classes[list(rows)])
        printed = capsys.readouterr().out
        if names is labels:
            expected = fingerprint(Dictionary.of(tokens).symbols)
            assert model[f"classification_heads.{HEAD}.labels_fingerprint"].tolist() == expected
            assert f"labels: {', '.join(map(repr, sorted(labels.values())))}; with other labels" in printed
        else:
            assert "config.json does not name the labels" in printed
            assert not any("fingerprint" in key for key in model)


@pytest.mark.parametrize("settings", [{"problem_type": "multi_label_classification"}, {"problem_type": "regression"}])
def test_a_head_for_a_task_that_does_not_exist_is_left_out(
    settings: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = release(tmp_path / "hf", "SequenceClassification[pooling=attentive]", **settings)
    assert import_release(folder, tmp_path / "model.pt") == 0
    printed = capsys.readouterr().out
    assert "skipped the classification head" in printed
    assert "--task" not in printed
    assert "--pooling" not in printed
    assert not any(HEAD in name for name in torch.load(tmp_path / "model.pt", weights_only=True)["model"])


def test_a_folder_that_is_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = release(tmp_path / "hf")
    for change, words in (
        ({"layer_norm_eps": None}, "no number for layer_norm_eps"),
        ({"encoder_layout": {"0": CONFIG["encoder_layout"]["0"]}}, "tensors are unknown for this config.json"),
    ):
        assert_refused("hierarchical_transformer", folder, change, words, capsys)
