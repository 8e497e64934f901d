"""Hugging Face BART -> fairseq: same logits in fairseq's own BART, and a clear refusal of everything else."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.models.bart import BARTModel
from fairseq.models.bart.model import bart_base_architecture
from fairseq_cli import preprocess
from small_peers import small_peer

from hat_fairseq import cli
from hat_fairseq.weights.bart import architecture_flags

transformers = pytest.importorskip("transformers", reason="pip install 'hat_fairseq[test]'")

ROOT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def folder(peer: torch.nn.Module, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small BART as save_pretrained writes it: config.json and model.safetensors."""
    path = tmp_path_factory.mktemp("bart")
    peer.save_pretrained(path)
    return path


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


def refusal(folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which converting `folder` fails; nothing may be written."""
    out = folder.parent / "out" / "model.pt"
    assert convert(folder, out) == 2
    message = capsys.readouterr().err
    assert message.startswith("hat: error: ") and message.count("\n") == 1
    assert not out.exists() and not list(folder.parent.glob("out/*"))
    return message


@pytest.mark.parametrize("layout", LAYOUTS)
@torch.no_grad()
def test_logits_equal_those_of_transformers(layout: str, peer: torch.nn.Module, copy: Path, tmp_path: Path) -> None:
    LAYOUTS[layout](peer, copy)
    assert convert(copy, tmp_path / "model.pt") == 0
    state = torch.load(tmp_path / "model.pt")["model"]
    source, target = torch.randint(4, ROWS - 1, (3, POSITIONS)), torch.randint(4, ROWS - 1, (3, 9))
    source[1, 7:] = source[2, -1:] = 1  # two rows are padded
    expected = peer(input_ids=source, attention_mask=source.ne(1), decoder_input_ids=target).logits
    lengths = source.ne(1).sum(1)
    for with_mask in (True, False):
        model = stock_bart(state, with_mask)
        actual = model(source, lengths, target)[0]
        assert actual.shape[-1] == ROWS - (not with_mask)
        torch.testing.assert_close(actual, expected[..., : actual.shape[-1]], atol=1e-4, rtol=0)


def test_checkpoint_is_plain_data(folder: Path, tmp_path: Path) -> None:
    """Loads in a process that knows neither fairseq nor this package, in which nothing is allow-listed."""
    out = tmp_path / "new" / "model.pt"
    assert convert(folder, out) == 0
    code = f"import torch; s = torch.load({str(out)!r}, weights_only=True); print(sorted(s)); print(len(s['model']))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "'extra_state', 'last_optimizer_state', 'model', 'optimizer_history'" in run.stdout
    # The embedding is stored once, though three names stand for it.
    tensors = torch.load(out)["model"]
    names = [name for name in tensors if "embed_tokens" in name or "output_projection" in name]
    assert len(names) == 3 and len({tensors[name].data_ptr() for name in names}) == 1


def test_fairseq_train_starts_from_it_with_the_printed_flags(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert(folder, tmp_path / "model.pt") == 0
    printed = capsys.readouterr().out
    flags = next(line for line in printed.splitlines() if "--finetune-from-model" in line).split()
    text = tmp_path / "text"
    text.mkdir()
    (text / "dict.txt").write_text("".join(f"{number} 1\n" for number in range(ROWS - 5)))
    for name in ("train.source", "train.target"):
        (text / name).write_text("1 2 3 4 5\n6 7 8\n" * 4)
    destination, dictionary = str(tmp_path / "bin"), str(text / "dict.txt")
    languages = ["--source-lang", "source", "--target-lang", "target", "--srcdict", dictionary, "--tgtdict", dictionary]
    parser = options.get_preprocessing_parser()
    preprocess.main(parser.parse_args(["--trainpref", str(text / "train"), "--destdir", destination, *languages]))
    command = [sys.executable, "-m", "fairseq_cli.train", destination, "--user-dir", str(ROOT / "hat_fairseq"), *flags]
    command += ["--task", "translation", "--optimizer", "sgd", "--lr", "0.1", "--max-tokens", "64"]
    command += ["--max-update", "1", "--cpu"]
    command += ["--no-save", "--disable-validation", "--num-workers", "0", "--data-buffer-size", "0"]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    output = result.stdout + result.stderr
    assert result.returncode == 0, output[-3000:]
    assert f"Loaded checkpoint {tmp_path / 'model.pt'} (epoch 1 @ 0 updates)" in output
    assert "done training" in output


def test_flags_name_the_nearest_architecture() -> None:
    large = {"d_model": 1024, "max_position_embeddings": 1024}
    for side in ("encoder", "decoder"):
        large |= {f"{side}_ffn_dim": 4096, f"{side}_layers": 12, f"{side}_attention_heads": 16}
    positions = "--max-source-positions 1024 --max-target-positions 1024"
    assert " ".join(architecture_flags(large)) == f"--arch hat_bart_large {positions}"
    fewer = large | {"decoder_layers": 6}
    assert " ".join(architecture_flags(fewer)) == f"--arch hat_bart_large --decoder-layers 6 {positions}"
    base = large | {"d_model": 768}
    for side in ("encoder", "decoder"):
        base |= {f"{side}_ffn_dim": 3072, f"{side}_layers": 6, f"{side}_attention_heads": 12}
    assert " ".join(architecture_flags(base)) == f"--arch hat_bart_base {positions}"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scale_embedding": True}, "scale_embedding is True, only False"),
        ({"activation_function": "relu"}, "activation_function is 'relu', only 'gelu'"),
        ({"model_type": "mbart"}, "model_type is 'mbart'"),
        ({"normalize_before": True}, "normalize_before is True"),
        ({"pad_token_id": 0}, "pad_token_id is 0, only 1"),
        ({"d_model": None}, "no number for d_model"),
        ({"encoder_layers": 1}, "16 tensors are unknown for this config.json: encoder.layers.1."),
        ({"decoder_layers": 4}, "26 tensors are missing for this config.json: decoder.layers.3."),
        ({"encoder_layers": 10**9}, "config.json says 1000000000 layers, and the weights are"),
        ({"decoder_attention_heads": 5}, "no model can be built with --arch hat_bart_large"),
        ({"vocab_size": 60}, "shared.weight has shape (61, 24), config.json says (60, 24)"),
        ({"max_position_embeddings": 30}, "embed_positions.weight has shape (26, 24), config.json says (32, 24)"),
    ],
)
def test_another_configuration_is_refused(
    change: dict[str, object], words: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = json.loads((copy / "config.json").read_text()) | change
    (copy / "config.json").write_text(json.dumps(config))
    assert words in refusal(copy, capsys)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("final_logits_bias", "final_logits_bias is not zero"),
        ("lm_head.weight", "lm_head.weight differs from shared.weight"),
        ("model.decoder.embed_tokens.weight", "decoder.embed_tokens.weight differs from shared.weight"),
    ],
)
def test_what_fairseq_cannot_hold_is_refused(
    name: str, words: str, peer: torch.nn.Module, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pickled(peer, copy, "")
    state = torch.load(copy / "pytorch_model.bin")
    state[name] = state[name].clone()
    state[name][0, 5] += 0.5
    torch.save(state, copy / "pytorch_model.bin")
    assert words in refusal(copy, capsys)


def write_tokenizer(copy: Path, ids: dict[str, int]) -> None:
    (copy / "vocab.json").write_text(json.dumps(ids))
    (copy / "merges.txt").write_text("#version: 0.2\na b\nab c\n")


def test_dictionary_is_written_beside_the_checkpoint(
    copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "abc", "ab", "a", "b", "c", "!"]
    tokens += [f"madeupword{number:04}" for number in range(50)]
    write_tokenizer(copy, {token: row for row, token in enumerate([*tokens, "<mask>"])})
    assert convert(copy, tmp_path / "new" / "model.pt") == 0
    lines = (tmp_path / "new" / "dict.txt").read_text().splitlines()
    # bytes: "!" is 0, "a" is 64; merges follow from 256
    assert lines[:6] == ["257 1", "256 1", "64 1", "65 1", "66 1", "0 1"] and len(lines) == ROWS - 5
    write_tokenizer(copy, {token: row for row, token in enumerate(tokens)})
    assert "vocab.json has 60 entries, the embedding has 61 rows" in refusal(copy, capsys)
    write_tokenizer(copy, {token: row for row, token in enumerate([*reversed(tokens), "<mask>"])})
    assert "vocab.json starts with" in refusal(copy, capsys)


def test_existing_files_are_kept_unless_told(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "model.pt"
    out.write_text("precious")
    assert convert(folder, out) == 2 and "exists; give another --out or --overwrite" in capsys.readouterr().err
    assert out.read_text() == "precious"
    assert convert(folder, out, "--overwrite") == 0 and len(torch.load(out)["model"]) > 50
