"""How a model generates: flags of a command, or what its folder says, for hat_fairseq and for transformers."""

import argparse
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..data.dictionary import EOS, PAD, SPECIAL_IDS
from ..data.files import Fields
from ..model_folder import GENERATION, ModelFolder, is_model_folder
from ..options import OptionError, check_effects, options_of
from .options import DEFAULTS, EXCLUSIVE, OPTIONS, Drawn, check_json, check_options

logger = logging.getLogger(__name__)

# fairseq's options that transformers has, too.
EXPRESSED = ("beam", "nbest", "lenpen", "unnormalized", "min_len", "max_len_b", "no_repeat_ngram_size")
# Options of transformers that change its texts and have no effect here, with the value that changes nothing; those that
# sampling or an assisting model alone reads are not among them.
WITHOUT_EFFECT: dict[str, Any] = {
    "do_sample": False,
    "num_beam_groups": 1,
    "diversity_penalty": 0,
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "encoder_no_repeat_ngram_size": 0,
    "guidance_scale": 1,
    "suppress_tokens": [PAD],
    "forced_eos_token_id": EOS,
    "eos_token_id": EOS,
    "decoder_start_token_id": EOS,
    "early_stopping": True,
    "num_return_sequences": 1,
    "renormalize_logits": False,
    "remove_invalid_values": False,
    "token_healing": False,
    **dict.fromkeys(("bad_words_ids", "begin_suppress_tokens", "constraints", "force_words_ids", "stop_strings")),
    **dict.fromkeys(("exponential_decay_length_penalty", "forced_bos_token_id", "penalty_alpha", "sequence_bias")),
    **dict.fromkeys(("dola_layers", "max_time", "watermarking_config")),
}
NEEDED = ("forced_eos_token_id", "early_stopping")
SEED = Drawn.seed

# Options of generation that are flags. A model's folder, fairseq-generate and Python take all of `OPTIONS`.
OF_A_FOLDER = ("beam", "max_len_b", "min_len", "no_repeat_ngram_size", "max_len_a", "lenpen")
FLAGS = (*OF_A_FOLDER, "temperature", "sampling", "sampling_topp", "seed")


def add_generation(
    parser: argparse.ArgumentParser,
    default: str = "those of the model's folder, or fairseq's",
    names: Sequence[str] = FLAGS,
) -> None:
    """Declares the options of generation with these names, without values by default; see `stated_options`."""
    group = parser.add_argument_group(f"generation, as in fairseq-generate (default: {default})")
    for name, each in options_of(Drawn).items():
        if name in names:
            each.add_to(group, help=each.help_with_default)


def stated_options(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the options that were given as flags; ValueError for one that makes no sense."""
    options = {name: value for name in OPTIONS if (value := getattr(args, name, None)) is not None}
    check_options(options)
    return options


def check_generation(stated: Mapping[str, Any], packaged: Mapping[str, Any], seed: int | None = None) -> None:
    """Raises ValueError for an option without effect, or with one only beside another one, which is not set."""
    options = {**packaged, **stated}
    if stated.get("nbest", 1) != 1:
        raise OptionError("{nbest} has no effect: each document gets its best text alone; remove it", nbest=None)
    check_effects(Drawn, options, {**stated, "seed": seed})
    if len(kinds := [name for name in EXCLUSIVE if OPTIONS[name].is_set(options.get(name))]) > 1:
        text = f"{' and '.join(f'{{{name}}}' for name in kinds)} exclude each other: keep one of them"
        raise OptionError(text, **dict.fromkeys(kinds))


def packaged_options(models: str | Path) -> dict[str, Any]:
    """Returns fairseq's options of the folder of a model, the first one of an ensemble; none of a checkpoint.

    A line of the log names those that only transformers has. ValueError that names the file for anything else than
    options in it.
    """
    path = Path(str(models).split(os.pathsep)[0])
    if not is_model_folder(path):
        return {}
    folder = ModelFolder.open(path)
    file = path / GENERATION
    values = Fields.read(file, optional=True).record
    options, own = of_transformers(values), folder.part("generation")
    if named := without_effect(values):
        logger.warning("%s: no effect outside of transformers: %s", file, ", ".join(named))
    check_json(options, str(file))
    check_json(own.record, own.where)
    return {**options, **own.record}


def without_effect(values: Mapping[str, Any]) -> list[str]:
    """Names the options of generation_config.json that change texts of transformers alone.

    transformers does something else without those in `NEEDED`.
    """
    usual: dict[str, tuple[Any, ...]] = {name: (None, value, [value]) for name, value in WITHOUT_EFFECT.items()}
    if values:
        usual |= {name: usual[name][1:] for name in NEEDED}
    if values.get("num_beams") == 1:  # a single hypothesis ends the search
        usual["early_stopping"] += (None, False, "never")
    named = [name for name, same in usual.items() if values.get(name) not in same]
    return [name if values.get(name) is not None else f"a missing {name}" for name in named]


def for_transformers(options: Mapping[str, Any], positions: int) -> dict[str, Any]:
    """Returns generation_config.json with fairseq's options, or its defaults.

    Both divide a score by the length with `</s>` to the power of lenpen. transformers counts the first token, the
    `</s>` that starts every text, as part of the length; fairseq does not.

    Raises:
        ValueError: the least length is more than the greatest.
    """
    values = {**DEFAULTS, **options}
    longest, least = min(int(values["max_len_b"]), positions - 1), values["min_len"]
    if least > longest:
        raise ValueError(f"generation option min_len {least} is more than the longest text, {longest} tokens")
    return {
        **SPECIAL_IDS,
        "decoder_start_token_id": EOS,
        "forced_eos_token_id": EOS,
        "suppress_tokens": [PAD],  # padding is never generated
        "num_beams": values["beam"],
        "num_return_sequences": values["nbest"],
        "early_stopping": True,  # a document is finished with as many hypotheses as beams
        "length_penalty": 0.0 if values["unnormalized"] else float(values["lenpen"]),
        "min_length": least + 1,
        "max_length": longest + 2,
        "no_repeat_ngram_size": values["no_repeat_ngram_size"],
    }


def of_transformers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns fairseq's options with which it finds the same texts; those that are not stated are absent."""
    names = {"num_beams": "beam", "num_return_sequences": "nbest", "no_repeat_ngram_size": "no_repeat_ngram_size"}
    options = {own: values[name] for name, own in names.items() if values.get(name) is not None}
    lengths = [("min_length", "min_len", 1), ("max_length", "max_len_b", 2)]  # with the first token, and </s>
    lengths += [("min_new_tokens", "min_len", 0), ("max_new_tokens", "max_len_b", 1)]  # which transformers prefers
    for name, own, more in lengths:
        if isinstance(value := values.get(name), int):
            options[own] = max(value - more, 0)
    if (penalty := values.get("length_penalty")) is not None:
        options |= {"lenpen": penalty} if penalty else {"unnormalized": True}
    return options
