"""Which options of ``hat preprocess`` go with which kind of data."""

from collections.abc import Mapping
from typing import Any

FOR_TEXT = (
    *("aligned", "target_separator", "target_language", "target_tokenizer", "max_target_tokens", "long_target"),
    *("roles", "role_in_text", "on_misaligned"),
)
FOR_EXAMPLES = ("segments", "segment_length", "max_segments", "window_overlap")
POLICIES = {"qa": ("error", "truncate", "truncate-sentences", "chunk"), "mlm": ("error",)}


def check_task_options(options: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
    """Refuse options that have no effect with the kind of data.

    Args:
        options: all of them, with ``task``.
        defaults: values at which an option has no effect.

    Raises:
        ValueError: with the option.
    """
    task = options["task"]
    for name in FOR_EXAMPLES if task == "text" else FOR_TEXT:
        if options[name] != defaults[name]:
            raise ValueError(f"{_flag(name)} {options[name]} has no effect with --task {task}; remove it")
    if options["pack"] and task != "mlm":
        raise ValueError(f"--pack is for --task mlm, not for {task}")
    if options["max_segments"] is not None and (task != "mlm" or options["segments"] == "none"):
        raise ValueError("--max-segments is for --task mlm with --segments sentences or packed")
    if task == "text":
        return
    if task == "segments" and options["segments"] != "sentences":
        raise ValueError(f"--segments {options['segments']}: with --task segments each segment keeps its own marker")
    policies = POLICIES.get(task, ("error", "truncate", "truncate-sentences"))
    if options["long_source"] not in policies:
        rows = "; documents go on in the next row" if task == "mlm" else ""
        raise ValueError(
            f"--long-source {options['long_source']} is not for --task {task}; choose {', '.join(policies)}{rows}"
        )
    if options["pack"] and options["max_source_tokens"] is None:
        raise ValueError("--pack fills rows up to --max-source-tokens; give that limit, or choose --no-pack")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"
