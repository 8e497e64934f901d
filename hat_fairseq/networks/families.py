"""The parts of published encoders that those of the papers lack: a record for each family, and its text in settings.

`--encoder-family modernbert` names a record of `FAMILIES`. Checkpoints of one family differ in a few numbers, which
stand behind the name: `modernbert:rotary=80000`. Until 0.7 each part was an option of its own; `renamed` reads those.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from operator import not_
from typing import Any

from ..options import OptionError, check_effects, check_values, option, options_of


@dataclass(frozen=True)
class Family:
    """The parts of an encoder; the defaults are those of the papers' encoders."""

    rotary: float | None = option(None, "the base of rotary positions (Su et al. 2021), in place of a table", least=1)
    rotary_factor: float = option(1.0, "rotary positions are divided by it (linear scaling)", least=1, needs="rotary")
    rotary_local: float | None = option(
        None, "another base, of the local layers", least=1, needs="rotary and local_layers"
    )
    local_layers: str | None = option(
        None, "the layers with that base, and in segments with --segment-window: 1-2,4-5, from 0, or but-every-3"
    )
    kv_heads: int | None = option(None, "heads of keys and values (default: as many as of queries)", least=1)
    rms_norm: bool = option(False, "RMS norms in place of layer norms")
    norm_bias: bool = option(True, "norms have a bias", excludes="rms_norm")
    attention_bias: bool = option(True, "the self-attention has biases")
    ffn_bias: bool = option(True, "the feed-forward networks have biases")
    first_norm: bool = option(True, "pre-norm: the first layer has a norm of its own; the embeddings have one, too")
    token_type: bool = option(False, "a learned vector for all tokens, as of the first token type of BERT")
    linear_head: bool = option(False, "the masked-LM head is a projection without bias")

    def local(self, num_layers: int) -> set[int]:
        """Returns the numbers of the local layers."""
        if self.local_layers is None:
            return set()
        if every := re.fullmatch("but-every-([1-9][0-9]*)", self.local_layers):
            return {layer for layer in range(num_layers) if layer % int(every[1])}
        return parse_layers(self.local_layers, num_layers, "encoder_family", "local_layers=")


WITHOUT_BIASES = Family(attention_bias=False, ffn_bias=False)
FAMILIES = {
    "plain": Family(),
    "modernbert": replace(
        WITHOUT_BIASES,
        rotary=160000.0,
        rotary_local=10000.0,
        local_layers="but-every-3",
        norm_bias=False,
        first_norm=False,
    ),
    "eurobert": replace(WITHOUT_BIASES, rotary=250000.0, rms_norm=True, linear_head=True),
    "nomic_bert": replace(WITHOUT_BIASES, rotary=1000.0, token_type=True),
    "gte": Family(rotary=160000.0, token_type=True),
    "jina_v3": Family(rotary=20000.0, token_type=True),
}
# Of 0.7: the option of a part, and how its value becomes that of the part.
OLD: dict[str, tuple[str, Callable[[Any], Any]]] = {
    **{
        part: (part, copy)
        for part in ("rotary", "rotary_factor", "rotary_local", "local_layers", "rms_norm", "token_type")
    },
    **{f"no_{part}": (part, not_) for part in ("norm_bias", "attention_bias", "ffn_bias", "first_norm")},
    "encoder_kv_heads": ("kv_heads", copy),
    "masked_lm_head": ("linear_head", lambda value: value == "linear"),
}
WORDS = {"true": True, "false": False, "none": None}


@cache
def parse_family(text: str) -> Family:
    """Parses `NAME` or `NAME:PART=VALUE:...`; OptionError for what is not known, or has no effect."""
    name, *changes = text.split(":")
    parts, values = options_of(Family), dict(change.partition("=")[::2] for change in changes)
    if name not in FAMILIES or values.keys() - parts.keys():
        known = f"one of {', '.join(FAMILIES)}, or with other parts, as in gte:rotary=80000: {', '.join(parts)}"
        raise OptionError(f"{{encoder_family}} must be {known}; it is {{!r:.80}}", text, encoder_family=None)
    try:
        family = replace(FAMILIES[name], **{part: _value(parts[part].type, each) for part, each in values.items()})
        check_values(Family, family)
        check_effects(Family, vars(family))
    except OptionError as error:
        raise OptionError("{encoder_family}: {}", error.in_python, encoder_family=None) from None
    return family


def _value(kind: type, text: str) -> Any:
    """Converts the text of a value, if it can be; what it is then is checked."""
    try:
        return WORDS[text] if text in WORDS else kind(text) if kind in (int, float) else text
    except ValueError:
        return text


def text_of(family: Family, names: Iterable[str] = FAMILIES) -> str:
    """Returns the shortest text of a record, under one of the `names`."""
    words = {id(value): word for word, value in WORDS.items()}
    texts = []
    for name in names:
        changes = {part: value for part, value in vars(family).items() if value != getattr(FAMILIES[name], part)}
        texts.append(":".join([name, *(f"{part}={words.get(id(value), value)}" for part, value in changes.items())]))
    return min(texts, key=len)


def usual_text(text: str, num_layers: int) -> str:
    """Returns the text that all equal ones under its name have, for an encoder with so many layers."""
    family, name = parse_family(text), text.partition(":")[0]
    usual = FAMILIES[name].local_layers
    if None not in (family.local_layers, usual) and family.local(num_layers) == FAMILIES[name].local(num_layers):
        family = replace(family, local_layers=usual)
    return text_of(family, [name])


def renamed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of a model with those of 0.7 for parts, if any, as the text of their record."""
    old = {name: value for name, value in settings.items() if name in OLD and value is not None}
    others = {name: value for name, value in settings.items() if name not in OLD}
    if not old:
        return others
    parts = {part: change(old[name]) for name, (part, change) in OLD.items() if name in old}
    return others | {"encoder_family": text_of(Family(**parts))}


def parse_layers(text: str | None, num_layers: int, name: str = "encoder_attention_layers", part: str = "") -> set[int]:
    """Parses `0,6-8` to {0, 6, 7, 8}, None to all layers; ValueError for a layer that does not exist.

    `name`, `part`: what the text is of, in errors.
    """
    if text is None:
        return set(range(num_layers))
    layers: set[int] = set()
    shown = {name: f"{part}{text}"}
    for each in text.split(","):
        if not re.fullmatch(r"[0-9]+(-[0-9]+)?", each):
            raise OptionError(f"{{{name}}}: write layers as 0,6-8, counted from 0", **shown)
        first, last = (int(number) for number in (each if "-" in each else f"{each}-{each}").split("-"))
        if first > last:
            raise OptionError(f"{{{name}}}: {each} ends before it begins; write {last}-{first}", **shown)
        layers |= set(range(first, last + 1))
    if not layers or max(layers) >= num_layers:
        raise OptionError(f"{{{name}}}: the encoder has layers 0 to {num_layers - 1}", **shown)
    return layers
