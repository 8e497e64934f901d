"""Generation options: names and ranges. fairseq ignores unknown names and numbers that make no sense."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..data.files import parse_json
from ..package_files import GENERATION, is_package

MINIMUM = {"beam": 1, "nbest": 1, "min_len": 0, "max_len_a": 0, "max_len_b": 0, "no_repeat_ngram_size": 0}
#: fairseq's options with their defaults: those of our beam search, and those of fairseq's own loop.
SEARCHED: dict[str, Any] = {
    "beam": 5,
    "nbest": 1,
    "max_len_a": 0,
    "max_len_b": 200,
    "min_len": 1,
    "unnormalized": False,
    "lenpen": 1,
    "unkpen": 0,
    "no_repeat_ngram_size": 0,
    "temperature": 1.0,
}
DEFAULTS: dict[str, Any] = SEARCHED | {
    "beam_mt": 0,
    "max_len_a_mt": 0,
    "max_len_b_mt": 200,
    "match_source_len": False,
    "no_early_stop": False,
    "no_beamable_mm": False,
    "lenpen_mt": 1,
    "replace_unk": None,
    "sacrebleu": False,
    "score_reference": False,
    "prefix_size": 0,
    "sampling": False,
    "sampling_topk": -1,
    "sampling_topp": -1.0,
    "constraints": None,
    "diverse_beam_groups": -1,
    "diverse_beam_strength": 0.5,
    "diversity_rate": -1.0,
    "print_alignment": None,
    "print_step": False,
    "lm_path": None,
    "lm_weight": 0.0,
    "iter_decode_eos_penalty": 0.0,
    "iter_decode_max_iter": 10,
    "iter_decode_force_max_iter": False,
    "iter_decode_with_beam": 1,
    "iter_decode_with_external_reranker": False,
    "retain_iter_history": False,
    "retain_dropout": False,
    "retain_dropout_modules": None,
    "decoding_format": None,
    "no_seed_provided": False,
    "eos_token": None,
}


def check_ranges(options: Mapping[str, Any]) -> None:
    """Raises ValueError for a number below the least one that makes sense."""
    for name, least in MINIMUM.items():
        if (value := options.get(name)) is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def check_generation_options(options: Mapping[str, Any], source: str) -> None:
    """Raises ValueError for an option that fairseq's generation does not have; `source`: who gives it."""
    for name in options:
        if name not in DEFAULTS:
            raise ValueError(f"{source}: unknown generation option {name!r}; known are {', '.join(sorted(DEFAULTS))}")


def parse_generation_options(text: str, flag: str) -> dict[str, Any]:
    """Parses options such as beam or lenpen from the value of `flag`; ValueError if it is no JSON object of them."""
    try:
        options = parse_json(text)
    except ValueError as error:
        raise ValueError(f"{flag} {text}: not JSON ({error})") from None
    if not isinstance(options, dict):
        raise ValueError(f'{flag} {text}: expected a JSON object such as {{"beam": 4}}')
    check_generation_options(options, flag)
    return options


def packaged_options(checkpoints: str | Path) -> dict[str, Any]:
    """The generation options of a package, the first of several checkpoints; none of other checkpoints."""
    path = Path(str(checkpoints).split(":")[0], GENERATION)
    return parse_generation_options(path.read_text(encoding="utf-8"), str(path)) if is_package(path.parent) else {}
