"""Builds the task, model and criterion of fairseq-train and a batch of the longest documents, without data.

Legend: R rows of a batch, T source tokens.
"""

import contextlib
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

from ..data.kinds import KINDS, Kind, LabelledKind
from ..register import register

MASKED = 7  # of so many tokens one is masked, about 15 %
NAMES, SPECIAL = 4, 4  # roles or labels; symbols that fairseq adds to every dictionary


class Training(NamedTuple):
    """The configuration, task, model and criterion of a fairseq-train command, and the kind of the task's data."""

    cfg: Any
    task: Any
    model: Any
    criterion: Any
    kind: Kind


def build(words: list[str], dictionary_size: int | None, device: str = "meta") -> Training:
    """Builds what fairseq-train trains with these arguments; without a size it reads the data's dictionaries."""
    register()
    with contextlib.ExitStack() as stack:
        args = options.parse_args_and_arch(options.get_training_parser(), input_args=words)
        if dictionary_size is not None:
            args.data = stack.enter_context(tempfile.TemporaryDirectory())
            _write_dictionaries(Path(args.data), args, dictionary_size)
        cfg = convert_namespace_to_omegaconf(args)
        task: Any = tasks.setup_task(cfg.task)
    with torch.device(device):
        model = task.build_model(cfg.model)
    kind = getattr(task, "kind", None) or next(k for k in KINDS.values() if k.task == cfg.task._name)
    return Training(cfg, task, model, task.build_criterion(cfg.criterion), kind)


def batch(training: Training, documents: int, source: int, target: int, marker_every: int) -> dict[str, Any]:
    """A batch as the task collates it, without padding, of documents (or questions with all their choices).

    Each has `source` tokens, a marker of a sentence or segment before every `marker_every` of them, and `target` tokens
    if texts are the targets.
    """
    task, kind, dictionary = training.task, training.kind, training.task.source_dictionary
    rows_of_sample = kind.rows_of_sample if isinstance(kind, LabelledKind) else 1
    rows = documents * rows_of_sample
    tokens = torch.full((rows, source), dictionary.nspecial)
    tokens[:, ::marker_every], tokens[:, -1] = dictionary.bos(), dictionary.eos()
    inputs = {"src_tokens": tokens, "src_lengths": torch.full((rows,), source)}
    if isinstance(kind, LabelledKind):
        tokens[:, 1] = dictionary.eos()  # behind a question
        no_target = kind.no_target(source, int(tokens[0].eq(dictionary.bos()).sum()))
        gold = torch.tensor([no_target] * documents)
    elif kind.has_target:
        gold = inputs["prev_output_tokens"] = torch.full((rows, target), dictionary.nspecial)
        if task.role_dictionary is not None:
            inputs["roles"] = torch.full_like(tokens, task.role_dictionary.nspecial)
    else:
        gold = tokens.masked_fill(torch.arange(source) % MASKED != 1, dictionary.pad())
    numbers = {"nsentences": documents, "ntokens": gold.numel() if training.kind.has_target else tokens.numel()}
    return {"net_input": inputs, "target": gold, "num_rows": torch.full((documents,), rows_of_sample), **numbers}


def _write_dictionaries(folder: Path, task: Any, size: int) -> None:
    """Writes every dictionary that a task of ours loads."""
    streams = [getattr(task, name, None) for name in ("source_lang", "target_lang", "role_stream")]
    paths = ["dict.txt", "input0/dict.txt", "label/dict.txt", *(f"dict.{stream}.txt" for stream in streams)]
    for path in paths:
        symbols = NAMES if path in (paths[2], paths[-1]) else size - SPECIAL
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("".join(f"{number} 1\n" for number in range(symbols)), encoding="utf-8")
