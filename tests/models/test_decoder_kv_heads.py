"""`--decoder-kv-heads`: what it changes in a model, what it leaves, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from building import TINY, build, documents, targets
from helpers import assert_close

from hat_fairseq.kernels import set_precision, torch_private

LOW = [
    pytest.param("bf16", marks=pytest.mark.skipif(not torch_private.BF16, reason="this CPU cannot multiply bf16")),
    pytest.param("int8", marks=pytest.mark.skipif(not torch_private.INT8, reason="this torch has no oneDNN")),
]
GROUPED = {f"{part}_proj.{kind}" for part in "kv" for kind in ("weight", "bias")}


@pytest.mark.parametrize("arch", ["hat_transformer", "hat_bart_base"])
def test_only_keys_and_values_of_the_attention_to_tokens_become_smaller(arch: str) -> None:
    default = build(arch, TINY).state_dict()
    for kv_heads in (1, 2):
        shared = build(arch, f"{TINY} --decoder-kv-heads {kv_heads}").state_dict()
        assert shared.keys() == default.keys()
        for name, tensor in shared.items():
            grouped = any(name.endswith(f"encoder_attn.{each}") for each in GROUPED)
            assert len(tensor) == (6 * kv_heads if grouped else len(default[name]))


@pytest.mark.parametrize("kv_heads", [0, 3, 8, -1])
def test_a_number_that_does_not_divide_the_heads_is_refused(kv_heads: int) -> None:
    with pytest.raises(ValueError, match=f"--decoder-kv-heads {kv_heads} .*heads 4: give one of 1, 2, 4$"):
        build("hat_transformer", f"{TINY} --decoder-kv-heads {kv_heads}")


@pytest.mark.parametrize("kv_heads", [1, 2])
@pytest.mark.parametrize("precision", LOW)
def test_reduced_precision_is_near_fp32(precision: str, kv_heads: int) -> None:
    """At once, and step by step with keys and values in bf16, which two hypotheses a document share."""
    model = build("hat_transformer", f"{TINY} --decoder-kv-heads {kv_heads}").eval()
    source, target = documents([17, 9, 2]), targets(6, 5)
    with torch.no_grad():
        expected = model.decoder(target, model.encoder(source))[0]
        set_precision(model, precision)
        encoded, state = model.encoder(source), {}
        steps = [model.decoder(target[:, : i + 1], encoded, state)[0] for i in range(5)]
        for actual in (model.decoder(target, encoded)[0], torch.cat(steps, 1)):
            assert_close(actual, expected, torch.bfloat16, 0.03)
    keys = state["hat_decoder"].layers[0].encoder_attn.keys
    assert keys.shape == (3, kv_heads, 17, 6) and keys.dtype is torch.bfloat16


@pytest.mark.fault(
    "Checkpoints",
    "a checkpoint that was trained with another `--decoder-kv-heads`",
    "names the tensors with both sizes, exit 1",
)
def test_training_generating_and_another_number(run, train, ami: Path, tmp_path: Path) -> None:
    """The checkpoint knows its number; a training with another one, or without, does not go on from it."""
    short = ["--max-update", 2, "--disable-validation"]
    train(tmp_path, *short, "--decoder-kv-heads", 2)
    weights = torch.load(tmp_path / "checkpoint_last.pt", weights_only=True)["model"]
    assert weights["decoder.layers.0.encoder_attn.k_proj.weight"].shape == (32, 64)
    where = ["--path", tmp_path / "checkpoint_last.pt", "--results-path", tmp_path / "results", "--cpu"]
    run("hat", "generate", ami / "bin", *where, "--max-len-b", 8, "--batch-size", 4)
    assert len((tmp_path / "results/test.jsonl").read_text().splitlines()) == 6
    for flags, size in ((["--decoder-kv-heads", 1], 16), ([], 64)):
        refused = train(tmp_path, *short, *flags, check=False)
        message = f"decoder.layers.0.encoder_attn.k_proj.weight is [32, 64], the model has [{size}, 64]"
        assert refused.returncode == 1 and message in refused.stderr and "Traceback" not in refused.stderr
    train(tmp_path / "default", *short)
    start = ["--finetune-from-model", tmp_path / "default/checkpoint_last.pt", "--decoder-kv-heads", 2]
    refused = train(tmp_path / "new", *short, *start, check=False)
    assert refused.returncode == 1 and "weight is [64, 64], the model has [32, 64]" in refused.stderr
