"""Hugging Face BART -> fairseq: same logits in fairseq's own BART, and a clear refusal of everything else."""

from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.bart import BARTModel
from fairseq.models.bart.model import bart_base_architecture
from small_peers import assert_refused, small_peer

from hat_fairseq import cli
from hat_fairseq.weights.bart import architecture_flags

transformers = pytest.importorskip("transformers", reason="make setup")

ROWS, POSITIONS = 61, 24
SIZES = {
    "d_model": 24,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 56,
}


@pytest.fixture(scope="module")
def peer() -> torch.nn.Module:
    config = transformers.BartConfig(vocab_size=ROWS, max_position_embeddings=POSITIONS, **SIZES)
    return small_peer(transformers.BartForConditionalGeneration, config)


def pickled(peer: torch.nn.Module, copy: Path, prefix: str) -> None:
    """Replace safetensors by pytorch_model.bin, names shortened by `prefix`; it repeats the tied tensors."""
    (copy / "model.safetensors").unlink()
    state = {name.removeprefix(prefix): tensor for name, tensor in peer.state_dict().items()}
    torch.save(state, copy / "pytorch_model.bin")


def base_model(peer: torch.nn.Module, copy: Path) -> None:
    """BartModel, as facebook/bart-large is published: no `model.` before the names and no head."""
    pickled(peer, copy, "model.")
    state = torch.load(copy / "pytorch_model.bin")
    del state["lm_head.weight"], state["final_logits_bias"]
    torch.save(state, copy / "pytorch_model.bin")


LAYOUTS: dict[str, Callable[[torch.nn.Module, Path], None]] = {
    "safetensors": lambda peer, copy: None,
    "bin": lambda peer, copy: pickled(peer, copy, ""),
    "base model": base_model,
}


def stock_bart(state: dict[str, torch.Tensor], with_mask: bool) -> BARTModel:
    """fairseq's own BART of the same size with `state` loaded strictly."""
    dictionary = Dictionary()
    for number in range(ROWS - len(dictionary) - 1):
        dictionary.add_symbol(str(number))
    if with_mask:
        dictionary.add_symbol("<mask>")
    args = Namespace(max_source_positions=POSITIONS, max_target_positions=POSITIONS, task="translation")
    for side in ("encoder", "decoder"):
        setattr(args, f"{side}_embed_dim", SIZES["d_model"])
        setattr(args, f"{side}_ffn_embed_dim", SIZES[f"{side}_ffn_dim"])
        setattr(args, f"{side}_layers", SIZES[f"{side}_layers"])
        setattr(args, f"{side}_attention_heads", SIZES[f"{side}_attention_heads"])
    bart_base_architecture(args)
    task = Namespace(source_dictionary=dictionary, target_dictionary=dictionary)
    model = BARTModel.build_model(args, task).eval()
    model.load_state_dict(dict(state), strict=True)
    return model


def convert(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["import", "bart", str(folder), "--out", str(out), *flags])


@pytest.mark.parametrize("layout", LAYOUTS)
@torch.no_grad()
def test_logits_equal_those_of_transformers(layout: str, peer: torch.nn.Module, copy: Path, tmp_path: Path) -> None:
    LAYOUTS[layout](peer, copy)
    assert convert(copy, tmp_path / "model.pt") == 0
    state = torch.load(tmp_path / "model.pt")["model"]
    tables = [name for name in state if "embed_tokens" in name or "output_projection" in name]
    assert len(tables) == 3
    assert len({state[name].data_ptr() for name in tables}) == 1  # stored once
    source, target = torch.randint(4, ROWS - 1, (3, POSITIONS)), torch.randint(4, ROWS - 1, (3, 9))
    source[1, 7:] = source[2, -1:] = 1  # two rows are padded
    expected = peer(input_ids=source, attention_mask=source.ne(1), decoder_input_ids=target).logits
    lengths = source.ne(1).sum(1)
    for with_mask in (True, False):
        model = stock_bart(state, with_mask)
        actual = model(source, lengths, target)[0]
        assert actual.shape[-1] == ROWS - (not with_mask)
        torch.testing.assert_close(actual, expected[..., : actual.shape[-1]], atol=1e-4, rtol=0)


def test_flags_name_the_nearest_architecture() -> None:
    large, base = {"d_model": 1024, "max_position_embeddings": 1024}, {"d_model": 768, "max_position_embeddings": 1024}
    for side in ("encoder", "decoder"):
        large |= {f"{side}_ffn_dim": 4096, f"{side}_layers": 12, f"{side}_attention_heads": 16}
        base |= {f"{side}_ffn_dim": 3072, f"{side}_layers": 6, f"{side}_attention_heads": 12}
    for config, expected in (
        (large, "hat_bart_large"),
        (large | {"decoder_layers": 6}, "hat_bart_large --decoder-layers 6"),
        (base, "hat_bart_base"),
    ):
        positions = "--max-source-positions 1024 --max-target-positions 1024"
        assert " ".join(architecture_flags(config)) == f"--arch {expected} {positions}"


@pytest.mark.slow
def test_what_fairseq_cannot_hold_is_refused(
    peer: torch.nn.Module, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for change, words in (
        ({"scale_embedding": True}, "scale_embedding is True, only False"),
        ({"model_type": "mbart"}, "model_type is 'mbart'"),
        ({"d_model": None}, "no number for d_model"),
        ({"encoder_layers": 1}, "16 tensors are unknown for this config.json: encoder.layers.1."),
        ({"decoder_layers": 4}, "26 tensors are missing for this config.json: decoder.layers.3."),
        ({"encoder_layers": 10**9}, "config.json says 1000000000 layers, and the weights are"),
        ({"decoder_attention_heads": 5}, "no model can be built with --arch hat_bart_large"),
        ({"vocab_size": 60}, "shared.weight has shape (61, 24), config.json says (60, 24)"),
    ):
        assert_refused("bart", copy, change, words, capsys)
    pickled(peer, copy, "")
    state = torch.load(copy / "pytorch_model.bin")
    for name, words in (
        ("final_logits_bias", "final_logits_bias is not zero"),
        ("lm_head.weight", "lm_head.weight differs from shared.weight"),
        ("model.decoder.embed_tokens.weight", "decoder.embed_tokens.weight differs from shared.weight"),
    ):
        changed = state[name].clone()
        changed[0, 5] += 0.5
        torch.save(state | {name: changed}, copy / "pytorch_model.bin")
        assert_refused("bart", copy, {}, words, capsys)


def test_existing_files_stay_unless_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model.pt"
    out.write_text("precious")
    assert convert(folder, out) == 2
    assert "exists; name another file" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert convert(folder, out, "--overwrite") == 0
    assert len(torch.load(out)["model"]) > 50
