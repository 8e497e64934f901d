"""What `hat doctor` learns only by importing things; a script, so that an import that crashes ends this process only.

Prints one JSON object as its last line: a value, or {"error": text}, for every probe below. Standard library only at
the top: it has to run where nothing is installed.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable


def torch_facts() -> dict[str, object]:
    import torch

    devices = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    bf16 = bool(devices) and torch.cuda.is_bf16_supported()
    return {"version": torch.__version__, "built_for": torch.version.cuda, "devices": devices, "bf16": bf16}


def fairseq_facts() -> dict[str, object]:
    import fairseq

    return {"version": fairseq.__version__, "file": fairseq.__file__}


def fairseq_extensions() -> list[str]:
    """Compiled parts of fairseq; libbase and libnat are linked against torch."""
    importlib.import_module("torch")
    names = ["data.data_utils_fast", "data.token_block_utils_fast", "libbleu", "libbase"]
    return [importlib.import_module(f"fairseq.{name}").__name__ for name in names]


def plugin_facts() -> dict[str, object]:
    from fairseq.models import ARCH_MODEL_REGISTRY
    from fairseq.tasks import TASK_REGISTRY

    import hat_fairseq
    from hat_fairseq.register import register

    register()

    ours = {name for name, model in ARCH_MODEL_REGISTRY.items() if model.__module__.startswith("hat_fairseq.")}
    architectures = sorted(ours)
    if not architectures or "document_to_text" not in TASK_REGISTRY:
        tasks = [name for name in TASK_REGISTRY if name == "document_to_text"]
        raise RuntimeError(f"registered with fairseq: architectures {architectures}, tasks {tasks}")
    return {"file": hat_fairseq.__file__, "architectures": architectures}


def gpt2_files() -> str:
    from hat_fairseq.data.gpt2_bpe import find_gpt2_files

    return str(find_gpt2_files())


def perl_rouge() -> list[str]:
    from hat_fairseq.scoring.perl import missing

    return missing()


PROBES: dict[str, Callable[[], object]] = {
    "torch": torch_facts,
    "fairseq": fairseq_facts,
    "extensions": fairseq_extensions,
    "plugin": plugin_facts,
    "gpt2_files": gpt2_files,
    "perl_rouge": perl_rouge,
}


def attempt(probe: Callable[[], object]) -> object:
    try:
        return probe()
    except Exception as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        return {"error": kind + " ".join(str(error).split())}


if __name__ == "__main__":
    print(json.dumps({name: attempt(probe) for name, probe in PROBES.items()}))
