"""Settings: those of a checkpoint that could run code are refused, and commands have better defaults.

In fairseq a checkpoint names the task, model and criterion to build, and some of their settings are evaluated as
Python: plain strings can run a shell command. Here it may name what the plugin, a `--user-dir` or another import has
registered, and those parts of fairseq that are listed below. `HAT_FAIRSEQ_TRUST=fconv,...` allows further fairseq
classes; treat such a checkpoint as executable code.

A setting without effect on a training is refused, and one that needs a GPU in fairseq works on a CPU.
"""

import argparse
import ast
import logging
import os
import sys
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from fairseq.criterions import CRITERION_REGISTRY
from fairseq.dataclass.configs import EMAConfig, FairseqConfig
from fairseq.models import (
    ARCH_MODEL_NAME_REGISTRY,
    ARCH_MODEL_REGISTRY,
    MODEL_REGISTRY,
    FairseqEncoderDecoderModel,
)
from fairseq.optim.amp_optimizer import AMPOptimizer
from fairseq.tasks import TASK_REGISTRY
from omegaconf import DictConfig, OmegaConf

from ..kernels import AUTO, choose_precision, cpu_precisions
from ..model_folder import ModelFolder, is_model_folder
from ..suggestions import with_suggestion
from . import best, log
from .checkpoints import CheckpointError, check_file

logger = logging.getLogger(__name__)
TRUST = "HAT_FAIRSEQ_TRUST"
CHECKED = {  # fairseq's own parts; their code was read for what it evaluates
    "model": "bart camembert roberta transformer xlmr",
    "task": "denoising masked_lm multilingual_denoising multilingual_masked_lm sentence_prediction sentence_ranking "
    "translation translation_from_pretrained_bart",
    "criterion": "cross_entropy label_smoothed_cross_entropy masked_lm sentence_prediction sentence_ranking",
}
KINDS = {"model": "arch", "task": "task", "criterion": "criterion"}  # and the flags that choose them
EVALUATED = ("adaptive_softmax_cutoff", "xformers_att_config")  # as Python, by the models above
# What the data of a task are called and how long they may be; fairseq-generate builds the task from its flags alone.
RECORDED = ("source_lang", "target_lang", "role_stream", "max_source_positions", "max_target_positions")

#: Flags of fairseq's commands that cannot be followed, and why.
IMPOSSIBLE = {
    "--tpu": "hat_fairseq runs on GPUs and CPUs",
    "--use-plasma-view": "it needs Plasma, which pyarrow no longer has",
}
#: Section and name of settings without effect on a training, and why.
WITHOUT_EFFECT = {("checkpoint", "write_checkpoints_asynchronously"): "it waits until a checkpoint is written"}
WITHOUT_AVERAGES = {
    ("ema", name): "there is no average without --store-ema"
    for name in EMAConfig.__dataclass_fields__
    if name.startswith("ema_")
}


def upgrade_state_dict(original: Callable[..., Any], state: Any) -> Any:
    """Checks what a checkpoint would build, before fairseq upgrades what it has read.

    CheckpointError if it has no weights, names a part that is not on the list, or has a setting that would be run.
    """
    if not isinstance(state, Mapping) or not isinstance(state.get("model"), Mapping):
        raise CheckpointError("no checkpoint of fairseq: it has no weights under the name 'model'")
    args, cfg = plain(state.get("args")), plain(state.get("cfg") or {})
    if not isinstance(cfg, dict):
        raise CheckpointError("its settings are no dictionary")
    if isinstance(args, dict):
        args.setdefault("task", "translation")  # as fairseq does
    trusted = {name for name in os.environ.get(TRUST, "").split(",") if name}
    for kind, key in KINDS.items():
        for section in (section for section in (args, cfg.get(kind)) if section is not None):
            names = [section[name] for name in (key, "_name") if section.get(name)] if isinstance(section, dict) else []
            if not names:
                raise CheckpointError(f"its settings do not name the {kind}")
            for name in names:
                if name not in trusted:
                    _check_name(kind, name)
            if kind == "model" and trusted.isdisjoint(map(str, names)):
                _check_values(section)
    return original(state)


def plain(settings: Any) -> Any:
    """Namespaces and omegaconf's containers as dictionaries and lists; CheckpointError for an interpolation."""
    if isinstance(settings, DictConfig):
        settings = OmegaConf.to_container(settings, resolve=False)
    if isinstance(settings, str) and "${" in settings:
        what = "as with a variable of the environment"
        raise CheckpointError(f"refused, because omegaconf would fill in the setting {settings!r:.60}, {what}")
    if isinstance(settings, Namespace):
        settings = vars(settings)
    if isinstance(settings, Mapping):
        return {str(name): plain(value) for name, value in settings.items()}
    return [plain(item) for item in settings] if isinstance(settings, list | tuple) else settings


def _check_name(kind: str, name: object) -> None:
    registries = {"task": TASK_REGISTRY, "criterion": CRITERION_REGISTRY}
    classes: Mapping[Any, type] = registries.get(kind) or {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}
    cls = classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise CheckpointError(f"it names the {kind} {name!r}, which nothing has registered; give its --user-dir")
    registered = ARCH_MODEL_NAME_REGISTRY.get(name, name) if kind == "model" else name
    if cls.__module__.split(".")[0] == "fairseq" and registered not in CHECKED[kind].split():
        raise CheckpointError(
            f"refused, because it names fairseq's {kind} {name!r}, which could run code that is in the settings. If "
            f"you trust its author: {TRUST}={name}"
        )


def _check_values(value: Any, name: str = "") -> None:
    if isinstance(value, dict):
        for name, entry in value.items():
            _check_values(entry, name)
    elif isinstance(value, list):
        for item in value:
            _check_values(item, name)
    elif isinstance(value, str) and value and name.endswith(EVALUATED):
        try:
            ast.literal_eval(value)
        except (ValueError, SyntaxError):
            why = f"its setting {name} is not a literal: fairseq would run it as code: {value!r:.60}"
            raise CheckpointError(f"refused, because {why}") from None


def parse_args_and_arch(original: Callable[..., Any], parser: Any, input_args: Any = None, **kwargs: Any) -> Any:
    """Returns fairseq's arguments; in validation and generation the checkpoint, in training the task has defaults.

    `--help` also shows the flags of the chosen task, model and criterion. The process ends with one line where a
    validation has neither `--task` nor a checkpoint of a task of this plugin.

    Batches have any size unless `--required-batch-size-multiple` is given; fairseq's default is 8. `--bf16` runs on a
    GPU or CPU; in fairseq it means a TPU. `--encoder-from` is a `--finetune-from-model` for the encoder alone.
    """
    is_command = input_args is None
    if is_command:
        log.show_own_errors_in_one_line()
    argv = list(sys.argv[1:] if input_args is None else input_args)
    asks_help = bool({"-h", "--help"} & {*argv})
    names = {action.dest for action in parser._actions}  # generation has nbest, training arch, validation path
    flags = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    for name in ("path", "task", "criterion"):
        flags.add_argument(f"--{name}")
    flags.add_argument("--arch", "-a")
    chosen, _ = flags.parse_known_args(argv)
    criterion = getattr(TASK_REGISTRY.get(chosen.task), "default_criterion", None)
    if "nbest" in names or ("path" in names and "arch" not in names):
        argv = [*recorded_flags(str(chosen.path).split(os.pathsep)[0], chosen.task), *argv]
        has_task = parser.get_default("task") or any(word.split("=")[0] == "--task" for word in argv)
        if not has_task and not asks_help:
            parser.exit(2, f"{parser.prog}: error: --path {chosen.path} names no task of hat_fairseq: add --task\n")
    elif "arch" in names and chosen.arch is None and not asks_help:
        parser.exit(2, f"{parser.prog}: error: --arch is missing: name a model, such as --arch hat_transformer_tiny\n")
    elif is_command and "arch" in names and needs_task(chosen) and not asks_help:
        parser.exit(2, f"{parser.prog}: error: {missing_task(chosen.arch)}\n")
    elif "arch" in names and criterion and chosen.criterion is None:  # fairseq's default is cross_entropy
        logger.info("--criterion %s, which is the default of --task %s", criterion, chosen.task)
        argv = [f"--criterion={criterion}", *argv]
    if "required_batch_size_multiple" in names:
        parser.set_defaults(required_batch_size_multiple=1)
    if asks_help and chosen.task in TASK_REGISTRY:
        argv = [word for word in argv if word not in ("-h", "--help")]
        parser.parse_args = lambda *_, **__: parser.exit(parser.print_help())  # after all flags are declared

    def error(message: str) -> None:
        """Ends the process without fairseq's usage of a hundred lines; all flags are declared by then."""
        parser.exit(2, f"{parser.prog}: error: {with_suggestion(message, parser, argv)}\n")

    parser.error = error
    parsed = original(parser, input_args=argv, **kwargs)
    args = parsed[0] if isinstance(parsed, tuple) else parsed
    if problem := impossible_flag(argv):
        parser.exit(2, f"{parser.prog}: error: {problem}\n")
    is_divided = getattr(args, "num_shards", 1) != 1 or getattr(args, "shard_id", 0)
    if is_divided and "context_window" not in names:  # only fairseq-eval-lm reads them
        reason = "the processes of a command divide the data among themselves; remove them"
        parser.exit(2, f"{parser.prog}: error: --num-shards and --shard-id have no effect: {reason}\n")
    if is_command and "arch" in names and lacks_markers(args):
        logger.warning(
            "--task %s: no sentence has a marker <s> unless the text has them, and a hierarchy has one sentence only; "
            "data of hat preprocess and a task of hat_fairseq have them (--task document_to_text, ...)",
            args.task,
        )
    args.tpu = False  # which --bf16 has set
    if getattr(args, "encoder_from", None):
        if args.finetune_from_model:
            parser.exit(2, f"{parser.prog}: error: give --encoder-from or --finetune-from-model, not both\n")
        args.finetune_from_model = args.encoder_from
    return parsed


def is_own(registered: type | None) -> bool:
    """Returns whether a task or model of fairseq's registries is one of this package."""
    return getattr(registered, "__module__", "").split(".")[0] == "hat_fairseq"


def needs_task(chosen: Namespace) -> bool:
    """Returns whether the flags choose a model of this package, and no task."""
    return chosen.task is None and is_own(ARCH_MODEL_REGISTRY.get(chosen.arch))


def missing_task(arch: str) -> str:
    """Returns the error of a training without `--task`, for which fairseq would take `translation`."""
    way_out = "the task of your data, such as --task document_classification"
    if issubclass(ARCH_MODEL_REGISTRY[arch], FairseqEncoderDecoderModel):
        way_out = "--task document_to_text"
    return f"--task is missing, and fairseq's default, translation, has no sentence markers: add {way_out}"


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
        if flag in reasons:
            return f"{flag}: {reasons[flag]}; remove it"
    return ""


def adapt(cfg: Any, on_cpu: bool) -> None:
    """Checks the settings of a training, and changes those for its device; ValueError for one without effect.

    `--fp16` on a CPU trains without fairseq's flat copy of the weights, which only GPUs can have; the result is the
    same. `--amp` is there autocast to bf16, see `train_step`.
    """
    for (section, name), reason in (WITHOUT_EFFECT | ({} if cfg.ema.store_ema else WITHOUT_AVERAGES)).items():
        if cfg[section][name] != getattr(getattr(FairseqConfig, section), name):
            raise ValueError(f"--{name.replace('_', '-')} has no effect on a training: {reason}; remove it")
    for flag, is_without, reason in (
        ("--patience", cfg.checkpoint.patience > 0 and cfg.dataset.disable_validation, "nothing is validated"),
        (
            "--keep-interval-updates",
            cfg.checkpoint.keep_interval_updates > 0 >= cfg.checkpoint.save_interval_updates,
            "it is about the checkpoints of --save-interval-updates",
        ),
    ):
        if is_without:
            logger.warning("%s has no effect: %s", flag, reason)
    best.check_direction(cfg.checkpoint)
    _check_numbers(cfg)
    if cfg.dataset.batch_size is None and cfg.dataset.max_tokens is None:
        raise ValueError("the size of a batch is missing: give --batch-size N (documents) or --max-tokens N")
    if on_cpu and cfg.common.amp and "bf16" not in cpu_precisions():
        raise ValueError("--amp: this CPU cannot multiply bf16; remove it")
    if on_cpu and cfg.common.amp and choose_precision(AUTO, "cpu") != "bf16":
        logger.warning("--amp: this CPU has no instructions for bf16, so training takes longer than in fp32; remove it")
    if on_cpu and cfg.common.fp16:
        cfg.common.fp16_no_flatten_grads = True


def _check_numbers(cfg: Any) -> None:
    """Raises ValueError for values that fairseq divides by, or reads as no limit at all."""
    for section, name, least in (
        ("dataset", "batch_size", 1),
        ("dataset", "max_tokens", 1),
        ("dataset", "num_workers", 0),
        ("common", "log_interval", 1),
    ):
        if (value := cfg[section][name]) is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} {value}: it must be at least {least}")
    if min(cfg.optimization.update_freq) < 1:
        raise ValueError(f"--update-freq {cfg.optimization.update_freq}: it must be at least 1")
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
    """

    def in_bf16(*inputs: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return criterion(*inputs)

    on_cpu = isinstance(optimizer, AMPOptimizer) and next(iter(optimizer.fp32_optimizer.params)).device.type == "cpu"
    return original(self, sample, model, in_bf16 if on_cpu else criterion, optimizer, *args, **kwargs)
