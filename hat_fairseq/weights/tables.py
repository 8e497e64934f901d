"""Weights of a release under our names, by a declared table of renames, splits and joins.

A rule maps modules of a release to modules here, weights and biases alike; `{}` stands for the number of a layer. Two
names on the right are the halves of a tensor (three: its thirds), in their order; two on the left are joined to one.
Every tensor of a release has a rule, or is declared to be skipped; every tensor of the model is made by a rule, or is
declared to be zeros. All else is an error that names the tensor as the release does.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from ..data.dictionary import SPECIAL, fingerprint
from ..data.tokenizer_bpe import MASK, TokenizerBpe
from .rename import listed

Modules = str | tuple[str, ...]
Named = dict[str, tuple[str, Tensor]]  # our name -> what a release calls the tensor, and the tensor
LAYER_NUMBER = re.compile(r"\.(\d+)\.")
ENCODER, LM_HEAD = "encoder.sentence_encoder.", "encoder.lm_head"
EMBEDDING, TYPE = f"{ENCODER}embed_tokens", f"{ENCODER}embed_token_type"
SOURCE = "encoder.dictionary_fingerprint"


@dataclass(frozen=True)
class Table:
    """How a release names its tensors.

    Attributes:
        rules: modules of the release -> modules here.
        prefixes: what stands before the names in a model with a head.
        published: rules from the names of published files to those of transformers' class, which `rules` have.
        renamed: regular expressions of parts of names in published files, and what they are replaced by.
        left_out: regular expressions of names that have no place here, and what these are.
        zeros: ends of our names, of tensors that a release need not have and that are zeros then.
        numbers: ends of names that are no weights.
        strict: a tensor of no rule is an error; otherwise it keeps its name.
    """

    rules: Mapping[Any, Modules]
    prefixes: tuple[str, ...] = ()
    published: Mapping[Any, Modules] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    zeros: tuple[str, ...] = ()
    numbers: tuple[str, ...] = (".position_ids", ".token_type_ids", "inv_freq")
    strict: bool = True


def by_table(weights: Mapping[str, Tensor], table: Table, report: list[str]) -> Named:
    """Returns for each of our names the tensor, and what the release calls it; adds lines on what is skipped."""
    by_name: Named = {}
    left_out: dict[str, list[str]] = {}
    for name, tensor in weights.items():
        if name.endswith(table.numbers):
            continue
        own = next((name.removeprefix(prefix) for prefix in table.prefixes if name.startswith(prefix)), name)
        for pattern, new in table.renamed.items():
            own = re.sub(pattern, new, own)
        if reason := next((what for pattern, what in table.left_out.items() if re.match(pattern, own)), None):
            left_out.setdefault(reason, []).append(name)
        elif own in by_name:
            raise ValueError(f"{name}: two tensors of this name")
        else:
            by_name[own] = name, tensor
    report += [f"skipped, {what}: {_some(names)}" for what, names in left_out.items()]
    return apply(apply(by_name, table.published, strict=False), table.rules, table.strict)


def apply(named: Named, rules: Mapping[Any, Modules], strict: bool) -> Named:
    """Applies rules; with `strict` ValueError for a tensor of no rule, otherwise it keeps its name.

    ValueError for two tensors that differ and have one name here.
    """
    rule_of = {source: (_tuple(sources), _tuple(rules[sources])) for sources in rules for source in _tuple(sources)}
    out: Named = {}
    used: set[str] = set()
    unknown = []
    for name, (origin, tensor) in named.items():
        template, number, kind = _divided(name)
        if name in used:
            continue
        if template not in rule_of:
            unknown.append(origin)
            _add(out, name, origin, tensor)
            continue
        sources, targets = rule_of[template]
        names = [f"{source.format(number)}.{kind}" for source in sources]
        if missing := [each for each in names if each not in named]:
            raise ValueError(listed(missing, "missing"))
        used |= {*names}
        origin = " and ".join(named[each][0] for each in names)
        joined = tensor if len(names) == 1 else torch.cat([named[each][1] for each in names])
        if len(joined) % len(targets):
            raise ValueError(f"{origin} has shape {tuple(joined.shape)}, and is divided by {len(targets)} here")
        for target, part in zip(targets, joined.chunk(len(targets)), strict=True):
            _add(out, f"{target.format(number)}.{kind}", origin, part)
    if strict and unknown:
        raise ValueError(f"{listed(unknown, 'unknown')}; a head for another task is not converted, save without it")
    return out


def _add(named: Named, name: str, origin: str, tensor: Tensor) -> None:
    first, other = named.setdefault(name, (origin, tensor))
    if not torch.equal(tensor, other):
        raise ValueError(f"{origin} differs from {first}, and the converted model has one tensor for both")


def rows_of_tokenizer(named: Named, vocab_size: int, tokenizer: TokenizerBpe, report: list[str]) -> None:
    """Puts the rows of tokens into the order of the dictionary; a special symbol without a row gets zeros."""
    rows = [vocab_size if row is None else row for row in tokenizer.rows]
    for own in (f"{EMBEDDING}.weight", f"{LM_HEAD}.weight", f"{LM_HEAD}.bias"):
        if own in named:
            origin, table = named[own]
            if len(table) != vocab_size:
                raise ValueError(f"{origin} has {len(table)} rows, config.json says {vocab_size}")
            named[own] = origin, torch.cat([table, torch.zeros_like(table[:1])])[rows]
    if unused := vocab_size - len({*rows} - {vocab_size}):
        report.append(f"skipped, {unused} rows of the embedding for which the vocabulary has no entry")
    if missing := [SPECIAL[place] for place, row in enumerate(tokenizer.rows) if row is None]:
        report.append(f"the vocabulary has no {' and no '.join(missing)}: their rows are zeros")


def fingerprint_of(tokenizer: TokenizerBpe) -> dict[str, Tensor]:
    """Returns the fingerprint of the dictionary that a tokenizer makes, as `models/adapting.py` compares it."""
    return {SOURCE: torch.tensor(fingerprint([*SPECIAL, *tokenizer.symbols, MASK]))}


def fit(named: Named, table: Table, model: nn.Module, optional: str | None = None) -> dict[str, Tensor]:
    """Returns the state of a `model` on the meta device; a tied parameter is there under each of its names.

    `optional`: the beginning of our names that may be missing altogether. ValueError for a tensor that the model does
    not have, that is missing, or of another shape, and for two that differ and are one here.
    """
    expected = dict(model.named_parameters(remove_duplicate=False))
    if surplus := [origin for own, (origin, _) in named.items() if own not in expected]:
        raise ValueError(listed(surplus, "unknown"))
    tensors: dict[int, tuple[str, Tensor]] = {}
    for own, (origin, tensor) in named.items():
        if tensor.shape != (shape := expected[own].shape):
            raise ValueError(f"{origin} has shape {tuple(tensor.shape)}, config.json says {tuple(shape)}")
        first, other = tensors.setdefault(id(expected[own]), (origin, tensor))
        if not torch.equal(tensor, other):
            raise ValueError(f"{origin} differs from {first}, and the converted model has one tensor for both")
    if optional is not None and not any(own.startswith(optional) for own in named):
        expected = {name: parameter for name, parameter in expected.items() if not name.startswith(optional)}
    dtype = next(iter(tensors.values()))[1].dtype
    for own, parameter in expected.items():
        if id(parameter) not in tensors and own.endswith(table.zeros):
            tensors[id(parameter)] = own, torch.zeros(parameter.shape, dtype=dtype)
    if missing := [own for own, parameter in expected.items() if id(parameter) not in tensors]:
        raise ValueError(listed([*{other_name(own, table.rules) for own in missing}], "missing"))
    return {name: tensors[id(parameter)][1] for name, parameter in expected.items()}


def _tuple(modules: Modules) -> tuple[str, ...]:
    return (modules,) if isinstance(modules, str) else modules


def _divided(name: str) -> tuple[str, str, str]:
    """A name as the template of its module, the number of its layer, and the kind of the tensor."""
    module, _, kind = name.rpartition(".")
    number = LAYER_NUMBER.search(f"{module}.")
    template = LAYER_NUMBER.sub(".{}.", f"{module}.", count=1)[:-1] if number else module
    return template, number[1] if number else "", kind


def other_name(own: str, rules: Mapping[Any, Modules]) -> str:
    """Returns what the release calls a tensor; our name where it has none of its own."""
    template, number, kind = _divided(own)
    for sources, targets in rules.items():
        if template in _tuple(targets) and ("{}" in template) == ("{}" in _tuple(sources)[0]):
            return " and ".join(f"{source.format(number)}.{kind}" for source in _tuple(sources))
    return own


def _some(names: Iterable[str]) -> str:
    names = sorted(names)
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
