"""Writes imported weights as a folder of `hat export`, for `hat embed` and as a start of a training."""

import tempfile
from pathlib import Path

import torch
from torch import Tensor

from ..data.bpe import Bpe
from ..data.dictionary import Dictionary
from ..data.kinds import PretrainingKind
from ..data.options import Settings
from ..data.outputs import atomic_directory
from ..data.pipeline import TextPipeline
from ..model_folder import MANIFEST
from .export import write_folder
from .rename import parse_flags
from .trained import Trained
from .vector_settings import VectorSettings

SEED = 1  # of what the weights do not have


def write_untrained(
    out: Path,
    state: dict[str, Tensor],
    bpe: Bpe,
    symbols: list[str],
    flags: list[str],
    overwrite: bool,
    vectors: VectorSettings,
) -> str:
    """Writes a folder without hierarchy and labels; returns a line about its weights.

    Args:
        symbols: the lines of the dictionary.
        state: of a `hat_roberta`; more positions, which the flags may ask for, are made of it.
        flags: of fairseq-train, that build the model.
        vectors: how its vectors are made.
    Raises:
        ValueError: the folder exists, and is not to be replaced.
    """
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf
    from fairseq.tasks import setup_task

    with atomic_directory(out, MANIFEST, overwrite) as folder, tempfile.TemporaryDirectory() as data:
        pipeline = TextPipeline(Settings(kind=PretrainingKind.name, splitter="punctuation"), bpe)
        pipeline.save(data)
        Dictionary.of(symbols).save(Path(data, "dict.txt"))
        args = parse_flags([*flags, "--no-hierarchy", "--task", PretrainingKind.task])
        args.data = data
        cfg = convert_namespace_to_omegaconf(args)
        task = setup_task(cfg.task)
        torch.manual_seed(SEED)
        model = task.build_model(cfg.model)
        model.load_state_dict(dict(state))
        vectors.save(folder)
        return write_folder(folder, out.resolve().name, Trained(model, cfg, task, 0, Path(data)))[0]
