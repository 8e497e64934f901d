"""Adapters of peft: the head of a model is trained and saved with them.

peft knows a head by the names classifier, score and qa_outputs. Here a head has the name of its kind; without this file
it would be neither trained nor saved, and be another random one after loading.
"""

from functools import cache, wraps
from importlib.util import find_spec
from typing import Any


@cache
def save_heads_with_adapters() -> None:
    """Has peft, if it is installed, ask for the head of each model before it adds adapters."""
    if find_spec("peft") is None:
        return
    from peft import PeftModel
    from peft.tuners.tuners_utils import BaseTuner

    inject, add = BaseTuner.inject_adapter, PeftModel.add_adapter

    @wraps(inject)
    def inject_adapter(tuner: Any, model: Any, adapter_name: str, *args: Any, **kwargs: Any) -> Any:
        _name_head(model, tuner.peft_config[adapter_name])
        return inject(tuner, model, adapter_name, *args, **kwargs)

    @wraps(add)
    def add_adapter(model: Any, adapter_name: str, peft_config: Any, *args: Any, **kwargs: Any) -> Any:
        if peft_config.is_prompt_learning:  # others come to `inject_adapter`
            _name_head(model.base_model, peft_config)
        return add(model, adapter_name, peft_config, *args, **kwargs)

    BaseTuner.inject_adapter, PeftModel.add_adapter = inject_adapter, add_adapter


def _name_head(model: Any, settings: Any) -> None:
    """Adds the head of a model to `modules_to_save`, which the folder of the adapters records.

    ValueError for a new head beside adapters that cannot be saved with other modules.
    """
    heads = getattr(model, "own_heads", [])
    if not heads or settings.inference_mode:  # adapters that are loaded: the head is as their folder says
        return
    if hasattr(settings, "modules_to_save"):
        named = [*(settings.modules_to_save or ())]
        settings.modules_to_save = named + [head for head in heads if not any(head.endswith(name) for name in named)]
    elif model.has_new_head:
        raise ValueError(
            f"{type(settings).__name__} would neither train nor save the new head {', '.join(heads)}: train the head "
            "first, or take adapters with modules_to_save, such as LoraConfig"
        )
