"""The parts of published encoders that those of the papers lack: a record for each family, and its text in settings.

`--encoder-family modernbert` names a record of `FAMILIES`. Checkpoints of one family differ in a few numbers, which
stand behind the name: `modernbert:rotary=80000`. Until 0.7 each part was an option of its own; `renamed` reads those.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import not_
from typing import Any

from ..options import OptionError, option, options_of

BUT_EVERY = "but-every-"


@dataclass(frozen=True)
class Family:
    """The parts of an encoder; the defaults are those of the papers' encoders."""

    rotary: float | None = option(None, "the base of rotary positions (Su et al. 2021), in place of a table", least=1)
    rotary_factor: float = option(1.0, "rotary positions are divided by it (linear scaling)", least=1)
    rotary_local: float | None = option(None, "another base, of the local layers", least=1)
    local_layers: str | None = option(
        None, "the layers with that base, and in segments with --segment-window: 1-2,4-5, from 0, or but-every-3"
    )
    kv_heads: int | None = option(None, "heads of keys and values (default: as many as of queries)", least=1)
    rms_norm: bool = option(False, "RMS norms in place of layer norms")
    norm_bias: bool = option(True, "norms have a bias")
    attention_bias: bool = option(True, "the self-attention has biases")
    ffn_bias: bool = option(True, "the feed-forward networks have biases")
    first_norm: bool = option(True, "pre-norm: the first layer has a norm of its own; the embeddings have one, too")
    token_type: bool = option(False, "a learned vector for all tokens, as of the first token type of BERT")
    linear_head: bool = option(False, "the masked-LM head is a projection without bias")

    def local(self, num_layers: int) -> set[int]:
        """Returns the numbers of the local layers."""
        if self.local_layers is None:
            return set()
        if self.local_layers.startswith(BUT_EVERY):
            return {*range(num_layers)} - {*range(0, num_layers, int(self.local_layers.removeprefix(BUT_EVERY)))}
        return parse_layers(self.local_layers, num_layers, "encoder_family", "local_layers=")

    def fault(self) -> str:
        """Returns what contradicts itself; an empty string if nothing does."""
        if self.rotary is None and (self.rotary_local is not None or self.rotary_factor != 1):
            return "a rotary part has no effect without rotary"
        if self.rotary_local is not None and self.local_layers is None:
            return "rotary_local has no effect without local_layers"
        if self.local_layers is not None and not re.fullmatch(f"[0-9,-]+|{BUT_EVERY}[1-9][0-9]*", self.local_layers):
            return f"write local_layers as 0,6-8, counted from 0, or {BUT_EVERY}3"
        return "norm_bias=false has no effect with rms_norm" if self.rms_norm and not self.norm_bias else ""


WITHOUT_BIASES = Family(attention_bias=False, ffn_bias=False)
FAMILIES = {
    "plain": Family(),
    "modernbert": replace(
        WITHOUT_BIASES,
        rotary=160000.0,
        rotary_local=10000.0,
        local_layers=f"{BUT_EVERY}3",
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
    """Parses `NAME` or `NAME:PART=VALUE:...`; OptionError for what is not known, or contradicts itself."""
    name, *changes = text.split(":")
    if name not in FAMILIES:
        raise OptionError(
            f"{{encoder_family}} must begin with one of {', '.join(FAMILIES)}, not {{!r:.60}}",
            name,
            encoder_family=None,
        )
    parts, values = options_of(Family), dict[str, Any]()
    for part, _, value in (change.partition("=") for change in changes):
        if part not in parts:
            raise OptionError(
                f"{{encoder_family}} has no part {{!r:.60}}; it has {', '.join(parts)}", part, encoder_family=None
            )
        values[part] = WORDS.get(value, value)
        if value not in WORDS:
            with suppress(ValueError):
                values[part] = parts[part].type(value) if parts[part].type in (int, float) else value
        if fault := parts[part].fault(values[part]):
            raise OptionError(f"{{encoder_family}}: {part} must be {fault}, not {{!r:.60}}", value, encoder_family=None)
    family = replace(FAMILIES[name], **values)
    if fault := family.fault():
        raise OptionError(f"{{encoder_family}}: {fault}", encoder_family=text)
    return family


def text_of(family: Family, names: Iterable[str] = FAMILIES) -> str:
    """Returns the shortest text of a record, under one of the `names`."""
    texts = []
    for name in names:
        text = name
        for part in fields(Family):
            if (value := getattr(family, part.name)) != getattr(FAMILIES[name], part.name):
                word = next((word for word, each in WORDS.items() if each is value), value)
                text += f":{part.name}={word}"
        texts.append(text)
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
