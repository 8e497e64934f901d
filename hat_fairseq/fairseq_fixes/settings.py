"""Settings of a training: one that would have no effect is refused, and one that needs a GPU in fairseq works on a CPU."""

from dataclasses import fields
from typing import Any

from fairseq.dataclass.configs import EMAConfig

#: Settings by section and what to say of them; each is refused if it is not fairseq's default.
WITHOUT_EFFECT = {
    ("dataset", "num_shards"): "fairseq divides the data of a training among its processes; remove it",
    ("dataset", "shard_id"): "fairseq divides the data of a training among its processes; remove it",
    ("common", "use_plasma_view"): "it needs Plasma, which pyarrow no longer has; remove it",
}


def adapt(cfg: Any, on_cpu: bool) -> None:
    """Checks the settings of a run, and changes those for its device.

    `--fp16` on a CPU trains without fairseq's flat copy of the weights, which only GPUs can have; the result is the
    same. ValueError for a setting that would have no effect.
    """
    for (section, name), why in WITHOUT_EFFECT.items():
        if cfg[section].get(name) != type(cfg[section]).__dataclass_fields__[name].default:
            raise ValueError(f"{_flag(name)} has no effect on a training: {why}")
    if not cfg.ema.store_ema:
        for item in fields(EMAConfig):
            if item.name.startswith("ema_") and cfg.ema[item.name] != item.default:
                raise ValueError(f"{_flag(item.name)} has no effect without --store-ema: add that, or remove it")
    if on_cpu and cfg.common.amp:
        raise ValueError("--amp has no effect on a CPU: give --bf16 or --fp16, or remove it")
    if on_cpu and cfg.common.fp16:
        cfg.common.fp16_no_flatten_grads = True


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
