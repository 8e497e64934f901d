"""`hat import roberta`: the logits of transformers' RoBERTa, and what the two encoders of ours make of it."""

import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from building import PAD, Vocabulary, build, documents
from small_peers import ENCODER_SIZES, assert_refused, small_peer
from torch import Tensor

from hat_fairseq import cli

transformers = pytest.importorskip("transformers", reason="make setup")

ROWS, POSITIONS = 61, 26  # 24 tokens
TOKENS = documents([24, 17, 1, 9], vocabulary=ROWS - 1)
REAL = TOKENS.ne(PAD)
OFF = " --dropout 0 --attention-dropout 0"


@pytest.fixture(scope="module")
def peer() -> Any:
    config = transformers.RobertaConfig(
        vocab_size=ROWS, max_position_embeddings=POSITIONS, type_vocab_size=1, layer_norm_eps=1e-3, **ENCODER_SIZES
    )
    return small_peer(transformers.RobertaForMaskedLM, config)


def repickle(peer: Any, copy: Path, change: Callable[[dict[str, Tensor]], object]) -> None:
    """Replaces safetensors by pytorch_model.bin, with all tied copies, after `change`."""
    (copy / "model.safetensors").unlink(missing_ok=True)
    state = {name: tensor.clone() for name, tensor in peer.state_dict().items()}
    changed = change(state)
    torch.save(changed if isinstance(changed, dict) else state, copy / "pytorch_model.bin")


def without_head(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """RobertaModel as it is published: no prefix, a pooler, buffers, no masked-LM head."""
    base = {name.removeprefix("roberta."): t for name, t in state.items() if not name.startswith("lm_head.")}
    buffers = {"embeddings.position_ids": torch.arange(POSITIONS)[None]}
    return base | buffers | {"pooler.dense.weight": torch.zeros(24, 24), "pooler.dense.bias": torch.zeros(24)}


def old_names(state: dict[str, Tensor]) -> None:
    """Only `decoder.bias`, as some versions store it."""
    del state["lm_head.bias"]


LAYOUTS: dict[str, Callable[[dict[str, Tensor]], object] | None] = {
    "safetensors": None,
    "bin": lambda state: None,
    "decoder.bias": old_names,
    "no head": without_head,
}


def convert(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["import", "roberta", str(folder), "--out", str(out), *flags])


def model_of(printed: str, name: str, out: Path, extra: str = "") -> Any:
    """A model built with the printed flags for `name` and loaded from `out`."""
    line = next(line for line in printed.splitlines() if f"--arch {name}" in line)
    assert line.endswith(f" --finetune-from-model {out}")
    words = shlex.split(line.removesuffix(f" --finetune-from-model {out}"))
    model = build(words[1], " ".join(words[2:]) + OFF + extra, Vocabulary(ROWS, mask=True), seed=5).eval()
    model.load_state_dict(dict(torch.load(out, weights_only=True)["model"]))
    return model


@torch.no_grad()
@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_plain_twin_has_the_numbers_of_transformers(
    layout: str, peer: Any, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, out = LAYOUTS[layout], tmp_path / "model.pt"
    if change is not None:
        repickle(peer, copy, change)
    assert convert(copy, out) == 0
    printed = capsys.readouterr().out
    for name in ("hat_roberta_base", "hierarchical_transformer"):  # the printed flags fit the weights
        assert model_of(printed, name, out)(TOKENS)[0].isfinite().all()
    assert "--layout 'S|S|SD' --segment-length 24 --max-segments 24 " in printed
    model = model_of(printed, "hat_roberta_base", out, " --no-hierarchy")
    mask = REAL.long()
    states = peer.roberta(input_ids=TOKENS, attention_mask=mask).last_hidden_state
    assert (model(TOKENS, features_only=True)[0] - states)[REAL].abs().max() < 1e-5
    if layout != "no head":
        logits = peer(input_ids=TOKENS, attention_mask=mask).logits
        assert (model(TOKENS)[0] - logits)[REAL].abs().max() < 1e-5
    head = "no lm_head in the folder: a masked-LM head will be newly initialised"
    pooler = "skipped, the pooler, which fairseq's RoBERTa does not have"
    assert (head in printed) == (pooler in printed) == (layout == "no head")


@torch.no_grad()
def test_a_token_type_that_is_not_zero_is_kept_in_the_positions(
    peer: Any, copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert peer.roberta.embeddings.token_type_embeddings.weight.abs().max() > 0.1  # so the tests above depend on it
    assert convert(copy, tmp_path / "a.pt") == 0
    assert "added to every position" in capsys.readouterr().out
    repickle(peer, copy, lambda state: state["roberta.embeddings.token_type_embeddings.weight"].zero_())
    assert convert(copy, tmp_path / "b.pt") == 0
    assert "added to every position" not in capsys.readouterr().out


def test_what_fairseq_cannot_hold_is_refused(peer: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for change, words in (
        ({"model_type": "xlm-roberta"}, "model_type is 'xlm-roberta', only 'roberta' can be converted"),
        ({"type_vocab_size": 2}, "type_vocab_size is 2"),
        ({"pad_token_id": 0}, "pad_token_id is 0, only 1"),
    ):
        assert_refused("roberta", copy, change, words, capsys)
    for name, value, words in (
        ("regressor.dense.weight", 1.0, "1 tensor is unknown for this config.json: regressor.dense.weight; a head"),
        ("lm_head.decoder.weight", 1.0, "lm_head.decoder.weight differs from roberta.embeddings.word_embeddings"),
        ("roberta.encoder.layer.1.output.dense.bias", None, "1 tensor is missing for this config.json: encoder"),
    ):
        repickle(peer, copy, partial(replaced, name=name, value=value))
        assert_refused("roberta", copy, {}, words, capsys)
    assert convert(copy, copy.parent / "model.pt", "--segment-positions", "add") == 2
    assert "--segment-positions is for hierarchical_transformer; roberta has no segments" in capsys.readouterr().err


def replaced(state: dict[str, Tensor], name: str, value: float | None) -> dict[str, Tensor]:
    """The state with this value in every place of a tensor, or without the tensor."""
    rest = {other: tensor for other, tensor in state.items() if other != name}
    return rest if value is None else rest | {name: torch.full_like(state.get(name, torch.zeros(2)), value)}


TOKENIZER = ["<s>", "<pad>", "</s>", "<unk>", "abc", "ab", "a", "b", "c", "!"]
TOKENIZER += [f"madeupword{number:04}" for number in range(50)]


def test_the_vocabulary(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def write(tokens: list[str]) -> None:
        (copy / "vocab.json").write_text(json.dumps({token: row for row, token in enumerate(tokens)}))

    out = tmp_path / "new/model.pt"
    write([*TOKENIZER, "<mask>"])
    assert convert(copy, out) == 2
    assert "merges.txt is missing" in capsys.readouterr().err
    (copy / "merges.txt").write_text("#version: 0.2\na b\nab c\n")
    for tokens, words in (
        ([*reversed(TOKENIZER), "<mask>"], "vocab.json starts with ['madeupword0049'"),
        ([*TOKENIZER, "d"], "the vocabulary has no <mask>"),
        (TOKENIZER, "vocab.json has 60 entries, the embedding has 61 rows"),
    ):
        write(tokens)
        assert convert(copy, out) == 2
        assert words in capsys.readouterr().err
        assert not out.parent.exists()
    write([*TOKENIZER, "<mask>"])
    assert cli.main(["import", "roberta", str(copy), "--out", str(out), "--unchecked"]) == 0  # it lacks most bytes
    lines = (out.parent / "dict.txt").read_text().splitlines()
    # bytes: "!" is 0, "a" is 64; merges follow from 256; <mask> is added by the tasks
    assert lines[:6] == ["257 1", "256 1", "64 1", "65 1", "66 1", "0 1"]
    assert len(lines) == ROWS - 5
