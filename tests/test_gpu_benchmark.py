"""`benchmarks/gpu.py` runs without a GPU, goes on where it stopped, and its checks can fail."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gpu
import gpu_equal
import gpu_kernels
import gpu_speed
import pytest
import render
import tables
import torch
from commands import run_command
from fairseq.models import ARCH_MODEL_REGISTRY
from torch.nn.attention import SDPBackend, sdpa_kernel

from hat_fairseq.modules.attention import HeadProjections

SCRIPT = Path(gpu_speed.__file__).with_name("gpu.py")
SMALL = ("--device", "cpu", "--small", "--threads", 1)


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_second_run_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    command = [sys.executable, SCRIPT, *SMALL, "--out", out, "--only", "equality/poolingformer"]
    run_command(*command)
    (first,) = read(out)["tested"]
    assert first["ok"] and first["float32"]["outputs"] == 0 < first["float16"]["outputs"] < first["bfloat16"]["outputs"]
    assert first["not on this device"] == ["the GPU's side: both are the CPU's"]

    told = run_command(*command, "kernels/hat_roberta", "waits/hat_bart", "batch").stdout
    record = read(out)
    assert record["tested"][0] == first and "ok     equality" not in told and "4 of 4 checks hold" in told
    names = ["kernels/hat_roberta", "waits/hat_bart", "batch/largest"]
    assert [one["check"] for one in record["tested"][1:]] == names
    assert all(one["ok"] and one["seconds"] > 0 and one["not on this device"] for one in record["tested"])
    assert "beam/hat_bart" in record["not_run"] and not {*names} & {*record["not_run"]}
    assert tables.gpu(record).count("| yes |") == 4


def test_results_of_another_machine_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = Namespace(out=tmp_path / "out.json", small=True, threads=1)
    gpu.write(gpu.begun(args) | {"device": "another"}, args.out)
    with pytest.raises(SystemExit, match="2"):
        gpu.begun(args)
    assert f"{args.out} has other device; give another --out, or delete it" in capsys.readouterr().err


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(tmp_path: Path) -> None:
    refused = run_command(sys.executable, SCRIPT, "--out", tmp_path / "out.json", check=False)
    assert refused.returncode == 2 and not (tmp_path / "out.json").exists()
    line = "gpu.py: error: torch finds no GPU; --device cpu --small tries the checks without one"
    assert refused.stderr.splitlines()[-1] == line


OWN_CHECKS = """
import os, sys
import gpu
def fails(): raise ValueError("the reason")
def dies(): os._exit(3)
gpu.all_checks = lambda small: {"a/holds": (1, dict), "a/fails": (1, fails), "a/dies": (1, dies), "a/long": (99, dict)}
gpu.main()
"""


def test_a_failure_is_recorded_and_does_not_stop_the_others(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"import sys\nsys.path.insert(0, {str(SCRIPT.parent)!r})\n{OWN_CHECKS}")
    out = tmp_path / "out.json"
    done = run_command(sys.executable, tmp_path / "own.py", *SMALL, "--out", out, "--minutes", 1.5, check=False)
    assert done.returncode == 1 and "1 of 4 checks hold" in done.stdout
    tested = {one["check"]: one for one in read(out)["tested"]}
    assert {name: one["ok"] for name, one in tested.items()} == {"a/fails": False, "a/dies": False, "a/holds": True}
    assert tested["a/fails"]["error"] == "ValueError: the reason" and "status 3" in tested["a/dies"]["error"]
    assert read(out)["not_run"] == ["a/long"] and "left out after 1.5 minutes" in done.stdout


@pytest.mark.slow
def test_every_check_runs_without_a_gpu(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    for only in ("equality", "beam", "kernels", "waits", "batch", *gpu_speed.SETTINGS):
        run_command(sys.executable, SCRIPT, *SMALL, "--out", out, "--only", only)
    record = read(out)
    assert record["not_run"] == [] and [one["check"] for one in record["tested"][-8:]] == list(gpu_speed.SETTINGS)
    assert len({setting["name"] for setting in record["settings"]}) == len(gpu_speed.SETTINGS)
    assert all(one["ok"] and one["not on this device"] for one in record["tested"])
    page = render.section("gpu", [record])
    assert page.startswith("\n## Is it right on a GPU, and how fast?") and "`transformers`, dynamic cache" in page


def test_all_models_and_attentions_are_checked() -> None:
    models = [gpu_equal.small_model(name) for name in gpu_equal.MODELS]
    registered = {each for each in ARCH_MODEL_REGISTRY.values() if each.__module__.startswith("hat_fairseq.")}
    assert {type(model) for model in models} == registered
    used = {type(module) for model in models for module in model.modules()}
    assert {kind for kind in subclasses(HeadProjections) if kind.__module__.startswith("hat_fairseq.")} <= used


def subclasses(kind: type) -> Iterator[type]:
    for each in kind.__subclasses__():
        yield from (each, *subclasses(each))


def test_a_difference_is_seen() -> None:
    one = torch.tensor(1.0), torch.ones(3), {"weight": torch.ones(2)}
    other = torch.tensor(1.0), torch.tensor([1.0, 1.0, 1.3]), {"weight": torch.tensor([1.0, float("nan")])}
    found = gpu_equal.compared(other, one)
    assert found["loss"] == 0 and found["outputs"] == 0.17 and not found["gradients"] < 1
    with pytest.raises(ValueError, match="weight"):
        gpu_equal.compared(other, (*one[:2], {}))
    texts = [[([5, 6], -1.0), ([5, 7], -1.5)]]
    assert gpu_equal.alike(texts, [[([5, 6], -1.0), ([5, 8], -1.5)]]) == 1  # a tie
    assert gpu_equal.alike(texts, [[([5, 6], -1.0), ([5, 8], -1.4)]]) == 0


def test_the_kernel_of_each_attention_is_told() -> None:
    model, data = gpu_kernels.trained("hat_bart-plain").eval(), gpu_equal.batch(shares=[1, 1, 1, 1])
    # with gradients, as attention then is SDPA on every processor
    fused = gpu_kernels.attentions(model, lambda: model(**data["net_input"]))
    with sdpa_kernel(SDPBackend.MATH):
        slow = gpu_kernels.attentions(model, lambda: model(**data["net_input"]))
    assert fused == {name: {"flash": 2} for name in ("encoder self_attn", "decoder self_attn", "decoder encoder_attn")}
    assert slow == {name: {"math": 2} for name in fused}
