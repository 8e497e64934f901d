"""`HatConfig`: the numbers of a model of hat_fairseq as a config of transformers."""

import shutil
from pathlib import Path
from typing import Any

from transformers import PretrainedConfig

LOADER = Path(__file__).with_name("modeling_hat.py")  # in each saved folder
AUTO_MAP = {  # class of transformers -> ours
    "AutoConfig": f"{LOADER.stem}.HatConfig",
    "AutoModel": f"{LOADER.stem}.HatModel",
    "AutoModelForMaskedLM": f"{LOADER.stem}.HatForMaskedLM",
    "AutoModelForSeq2SeqLM": f"{LOADER.stem}.HatForConditionalGeneration",
    "AutoModelForSequenceClassification": f"{LOADER.stem}.HatForSequenceClassification",
}


def write_loader(directory: str | Path) -> None:
    """Puts the file into a folder with which `trust_remote_code=True` finds this package."""
    shutil.copyfile(LOADER, Path(directory, LOADER.name))


class HatConfig(PretrainedConfig):
    """The settings of a model under their names in hat_fairseq (`settings`), and what transformers has to know."""

    model_type = "hat"

    def __init__(self, settings: dict[str, Any] | None = None, **kwargs: Any):
        self.settings = settings or {}
        super().__init__(**kwargs | {"auto_map": AUTO_MAP})

    def save_pretrained(self, save_directory: Any, *args: Any, **kwargs: Any) -> None:
        super().save_pretrained(save_directory, *args, **kwargs)
        write_loader(save_directory)

    @classmethod
    def register_for_auto_class(cls, auto_class: Any = "AutoConfig") -> None:
        """Does nothing: transformers would copy this file, and the loader is enough."""
