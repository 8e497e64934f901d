"""Settings: commands have better defaults; one without effect is refused, and one that needs a GPU works on a CPU."""

import argparse
import ast
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import torch
from fairseq.models import ARCH_MODEL_NAME_REGISTRY, ARCH_MODEL_REGISTRY, FairseqEncoderDecoderModel
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import TASK_REGISTRY

from ..kernels import AUTO, choose_precision, cpu_precisions
from ..model_folder import ModelFolder, is_model_folder
from ..options import Option
from ..suggestions import with_suggestion
from . import best, log
from .trust import check_file, plain

logger = logging.getLogger(__name__)
# What the data of a task are called and how long they may be; fairseq-generate builds the task from its flags alone.
RECORDED = ("source_lang", "target_lang", "role_stream", "max_source_positions", "max_target_positions")

#: Flags of fairseq's commands that cannot be followed, and why.
IMPOSSIBLE = {
    "--tpu": "hat_fairseq runs on GPUs and CPUs",
    "--store-ema": "fairseq's averages of weights fail on integers; hat average averages checkpoints",
    "--ignore-prefix-size": "fairseq divides the loss of the other tokens by the number of all",
    "--use-plasma-view": "it needs Plasma, which pyarrow no longer has",
}


def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """Returns fairseq's arguments; in validation and generation the checkpoint, in training the task has defaults.

    `--help` also shows the flags of the chosen task, model and criterion. The process ends with one line where a
    validation has neither `--task` nor a checkpoint of a task of this plugin.

    Batches have any size unless `--required-batch-size-multiple` is given; fairseq's default is 8. `--bf16` runs on a
    GPU or CPU; in fairseq it means a TPU. `--encoder-from` is a `--finetune-from-model` for the encoder alone.
    """
    is_command, argv = input_args is None, list(sys.argv[1:] if input_args is None else input_args)
    if is_command:
        log.show_own_errors_in_one_line()
    names = {action.dest for action in parser._actions}  # generation has nbest, training arch, validation path
    chosen, asks_help = parts_of(argv), not {"-h", "--help"}.isdisjoint(argv)
    has_checkpoint = "nbest" in names or ("path" in names and "arch" not in names)
    if has_checkpoint:
        argv = [*recorded_flags(str(chosen.path).split(os.pathsep)[0], chosen.task), *argv]
        has_task = parser.get_default("task") or parts_of(argv).task
        problem = "" if has_task else f"--path {chosen.path} names no task of hat_fairseq: add --task"
    else:
        problem = missing_part(chosen, is_command) if "arch" in names else ""
    if problem and not asks_help:
        refuse(parser, problem)
    if "arch" in names and not has_checkpoint:
        argv = [*default_criterion(chosen), *argv]
    if "required_batch_size_multiple" in names:
        parser.set_defaults(required_batch_size_multiple=1)
    if asks_help and chosen.task in TASK_REGISTRY:
        argv = [word for word in argv if word not in ("-h", "--help")]
        parser.parse_args = lambda *_, **__: parser.exit(parser.print_help())  # after all flags are declared
    parser.error = lambda message: refuse(parser, with_suggestion(message, parser, argv))
    parsed = original(parser, input_args=argv, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if problem := impossible_flag(argv) or contradiction(args, names):
        refuse(parser, problem)
    if is_command and "arch" in names and lacks_markers(args):
        logger.warning(
            "--task %s: no sentence has a marker <s> unless the text has them, and a hierarchy has one sentence only; "
            "data of hat preprocess and a task of hat_fairseq have them (--task document_to_text, ...)",
            args.task,
        )
    args.tpu = False  # which --bf16 has set
    if getattr(args, "encoder_from", None):
        args.finetune_from_model = args.encoder_from
    return parsed


def refuse(parser: argparse.ArgumentParser, problem: str) -> NoReturn:
    """Ends the process with one line, without fairseq's usage of a hundred."""
    parser.exit(2, f"{parser.prog}: error: {problem}\n")


def parts_of(argv: Sequence[str], command: str | None = None) -> Namespace:
    """Returns which checkpoint, task, criterion and architecture the flags name."""
    flags = argparse.ArgumentParser(command, add_help=False, allow_abbrev=False)
    for name in ("path", "task", "criterion"):
        flags.add_argument(f"--{name}")
    flags.add_argument("--arch", "-a")
    return flags.parse_known_args(argv)[0]


def missing_part(chosen: Namespace, is_command: bool) -> str:
    """Returns the error of a training without a model or, for one of this package, a task; fairseq's is translation."""
    if chosen.arch is None:
        return "--arch is missing: name a model, such as --arch hat_transformer_tiny"
    model = ARCH_MODEL_REGISTRY.get(chosen.arch)
    if not is_command or chosen.task is not None or model is None or not is_own(model):
        return ""
    way_out = "the task of your data, such as --task document_classification"
    if issubclass(model, FairseqEncoderDecoderModel):
        way_out = "--task document_to_text"
    return f"--task is missing, and fairseq's default, translation, has no sentence markers: add {way_out}"


def default_criterion(chosen: Namespace) -> list[str]:
    """Returns the flag of the criterion that a task of this package has by default; fairseq's is cross_entropy."""
    criterion = getattr(TASK_REGISTRY.get(chosen.task), "default_criterion", None)
    if criterion is None or chosen.criterion is not None:
        return []
    logger.info("--criterion %s, which is the default of --task %s", criterion, chosen.task)
    return [f"--criterion={criterion}"]


def contradiction(args: Namespace, names: set[str]) -> str:
    """Returns the first of the parsed flags without effect, or that contradict each other; else an empty string."""
    is_divided = getattr(args, "num_shards", 1) != 1 or getattr(args, "shard_id", 0)
    if is_divided and "context_window" not in names:  # only fairseq-eval-lm reads them
        reason = "the processes of a command divide the data among themselves; remove them"
        return f"--num-shards and --shard-id have no effect: {reason}"
    if getattr(args, "encoder_from", None) and args.finetune_from_model:
        return "give --encoder-from or --finetune-from-model, not both"
    return ""


def is_own(registered: type | None) -> bool:
    """Returns whether a task or model of fairseq's registries is one of this package."""
    return getattr(registered, "__module__", "").split(".")[0] == "hat_fairseq"


def lacks_markers(args: Namespace) -> bool:
    """Returns whether a model with a hierarchy over sentences is trained by a task that does not mark sentences."""
    reads_markers = ARCH_MODEL_NAME_REGISTRY.get(args.arch) in ("hat_transformer", "hat_bart", "hat_roberta")
    return reads_markers and not getattr(args, "no_hierarchy", False) and not is_own(TASK_REGISTRY.get(args.task))


def recorded_flags(path: str, task_flag: str | None) -> list[str]:
    """Returns flags for the task of a checkpoint or folder, if it is one of this plugin and `task_flag` no other.

    What cannot be read has none: loading it says why.
    """
    try:
        if is_model_folder(path):
            task = plain(ModelFolder.open(path).origin.record["cfg"]["task"])
        else:
            check_file(path)
            state = torch.load(path, map_location="cpu", weights_only=True, mmap=True)  # reads no tensors
            task = plain(state["cfg"]["task"] if state.get("cfg") else state["args"])
        name = str(task.get("_name") or task["task"])
    except Exception:
        return []
    if name != (task_flag or name) or not is_own(TASK_REGISTRY.get(name)):
        return []
    values = {"task": name, **{key: task[key] for key in RECORDED if task.get(key) is not None}}
    return [f"--{key.replace('_', '-')}={value}" for key, value in values.items()]


def impossible_flag(argv: Sequence[str]) -> str:
    """Returns the first flag in `argv` that cannot be followed, with the reason; else an empty string."""
    reasons = dict(IMPOSSIBLE)
    if not torch.cuda.is_available():
        reasons["--profile"] = "it records what a GPU does, and there is none"
    for flag in (word.split("=")[0].replace("_", "-") for word in argv):
        if reason := reasons.get("--store-ema" if flag.startswith("--ema-") else flag):
            return f"{flag}: {reason}; remove it"
    return ""


def adapt(cfg: Any, on_cpu: bool) -> None:
    """Checks the settings of a training, and changes those for its device; ValueError for one without effect.

    `--fp16` is for GPUs; a CPU trains in fp32. `--amp` is there autocast to bf16, see `train_step`.
    """
    if cfg.checkpoint.write_checkpoints_asynchronously:
        reason = "it waits until a checkpoint is written"
        raise ValueError(f"--write-checkpoints-asynchronously has no effect on a training: {reason}; remove it")
    if cfg.checkpoint.patience > 0 and cfg.dataset.disable_validation:
        logger.warning("--patience has no effect: nothing is validated")
    if cfg.checkpoint.keep_interval_updates > 0 >= cfg.checkpoint.save_interval_updates:
        reason = "it is about the checkpoints of --save-interval-updates"
        logger.warning("--keep-interval-updates has no effect: %s", reason)
    best.check_direction(cfg.checkpoint)
    _check_numbers(cfg)
    if cfg.dataset.batch_size is None and cfg.dataset.max_tokens is None:
        raise ValueError("the size of a batch is missing: give --batch-size N (documents) or --max-tokens N")
    if on_cpu and cfg.common.amp and "bf16" not in cpu_precisions():
        raise ValueError("--amp: this CPU cannot multiply bf16; remove it")
    if on_cpu and cfg.common.amp and choose_precision(AUTO, "cpu") != "bf16":
        logger.warning("--amp: this CPU has no instructions for bf16, so training is slower than in fp32; remove it")
    if on_cpu and cfg.common.fp16:
        logger.warning("--fp16 is for GPUs: this CPU trains in fp32")
        cfg.common.fp16 = False


def _check_numbers(cfg: Any) -> None:
    """Raises ValueError for values that fairseq divides by, or reads as no limit at all."""
    for section, name, least in (
        ("dataset", "batch_size", 1),
        ("dataset", "max_tokens", 1),
        ("dataset", "num_workers", 0),
        ("common", "log_interval", 1),
    ):
        Option(name, int, None, "", least=least).check(cfg[section][name])
    for number in cfg.optimization.update_freq:
        Option("update_freq", int, 1, "", least=1).check(number)
    betas, overrides = getattr(cfg.optimizer, "adam_betas", None), cfg.checkpoint.optimizer_overrides
    if betas is not None and not _is_literal(betas, tuple | list, 2):
        raise ValueError(f'--adam-betas {betas}: it must be two numbers, as "(0.9, 0.98)"')
    if not _is_literal(overrides, dict):
        raise ValueError(f"--optimizer-overrides {overrides}: it must be a dictionary, as \"{{'weight_decay': 0.01}}\"")


def _is_literal(text: Any, kind: Any, length: int | None = None) -> bool:
    try:
        value = ast.literal_eval(str(text))
    except (ValueError, SyntaxError):
        return False
    return isinstance(value, kind) and length in (None, len(value))


def build_amp(original: Callable[..., Any], self: Any, cfg: Any, params: Any, optimizer: Any, **kwargs: Any) -> None:
    """Builds the optimizer of `--amp`; on a CPU the loss is not scaled, because bf16 has the range of fp32.

    An update whose gradients are not finite is skipped, as on a GPU.

    Patch of fairseq: `AMPOptimizer` scales on a GPU only.
    """
    original(self, cfg, params, optimizer, **kwargs)
    if next(iter(optimizer.params)).device.type == "cpu":
        self._grad_scaler = torch.amp.GradScaler("cpu", init_scale=1.0, growth_interval=2**31 - 1)


def train_step(
    original: Callable[..., Any],
    self: Any,
    sample: Any,
    model: Any,
    criterion: Any,
    optimizer: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Computes loss and gradients of a batch; with `--amp` on a CPU under autocast to bf16.

    fairseq's autocast is for GPUs alone. Weights, gradients and the states of the optimizer stay in fp32.
    Patch of fairseq: `FairseqTask.train_step` calls `torch.autocast` with the device of the parameters.
    """

    def in_bf16(*inputs: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return criterion(*inputs)

    on_cpu = isinstance(optimizer, AMPOptimizer) and next(iter(optimizer.fp32_optimizer.params)).device.type == "cpu"
    return original(self, sample, model, in_bf16 if on_cpu else criterion, optimizer, *args, **kwargs)
