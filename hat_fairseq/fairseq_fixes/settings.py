"""Settings of a training: one without effect is refused, and one that needs a GPU in fairseq works on a CPU."""

from collections.abc import Sequence
from typing import Any

import torch
from fairseq.dataclass.configs import EMAConfig, FairseqConfig

#: Flags of fairseq's commands that cannot be followed, and why.
IMPOSSIBLE = {
    "--tpu": "hat_fairseq runs on GPUs and CPUs",
    "--use-plasma-view": "it needs Plasma, which pyarrow no longer has",
}
_SHARDS = "a training divides its data among its processes"
#: Section and name of settings without effect on a training, and why.
WITHOUT_EFFECT = {
    ("dataset", "num_shards"): _SHARDS,
    ("dataset", "shard_id"): _SHARDS,
    ("checkpoint", "write_checkpoints_asynchronously"): "it waits until a checkpoint is written",
}
WITHOUT_AVERAGES = {
    ("ema", name): "there is no average without --store-ema"
    for name in EMAConfig.__dataclass_fields__
    if name.startswith("ema_")
}


def impossible_flag(words: Sequence[str]) -> str:
    """Returns the first flag among `words` that cannot be followed, with the reason; else an empty string."""
    reasons = dict(IMPOSSIBLE)
    if not torch.cuda.is_available():
        reasons["--profile"] = "it records what a GPU does, and there is none"
    for flag in (word.split("=")[0].replace("_", "-") for word in words):
        if flag in reasons:
            return f"{flag}: {reasons[flag]}; remove it"
    return ""


def adapt(cfg: Any, on_cpu: bool) -> None:
    """Checks the settings of a training, and changes those for its device; ValueError for one without effect.

    `--fp16` on a CPU trains without fairseq's flat copy of the weights, which only GPUs can have; the result is the
    same.
    """
    for (section, name), reason in (WITHOUT_EFFECT | ({} if cfg.ema.store_ema else WITHOUT_AVERAGES)).items():
        if cfg[section][name] != getattr(getattr(FairseqConfig, section), name):
            raise ValueError(f"--{name.replace('_', '-')} has no effect on a training: {reason}; remove it")
    if on_cpu and cfg.common.amp:
        raise ValueError("--amp has no effect on a CPU: give --bf16 or --fp16, or remove it")
    if on_cpu and cfg.common.fp16:
        cfg.common.fp16_no_flatten_grads = True
