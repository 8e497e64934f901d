"""Loading weights: from checkpoints of this package, and from pretrained models without hierarchy (BART, RoBERTa).

`adapt_state` changes the state of a checkpoint in steps, and logs each. The embedding of `<mask>` is dropped if the
dictionary has none (as in fairseq's BART). Position embeddings are extended. Tensors of the hierarchy are initialised.
With `--decoder-kv-heads`, the heads of BART's keys and values are averaged by group. Any other difference is an error
that names the tensors.

The fingerprint of a dictionary is a buffer of the model, so that checkpoints contain it. A wrong dictionary of the
right size would load without an error and give wrong text. Every command that loads the weights compares the
fingerprints.
"""

import logging
import re
from argparse import ArgumentError, ArgumentParser
from contextlib import suppress
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from ..data.dictionary import LABELS_FINGERPRINT
from ..data.dictionary import fingerprint as words_of_fingerprint
from ..modules.attention import CrossAttention
from ..modules.embedding import LearnedPositions, extend_positions
from ..networks import tie_tables
from ..options import options_of

logger = logging.getLogger(__name__)

ROBERTA = re.compile(r"^encoder\.(?:sentence_encoder\.)?")
SOURCE = "encoder.dictionary_fingerprint"
BUFFER = "_fingerprint"  # the names of all these buffers end with it


def fingerprint(dictionary: Dictionary) -> Tensor:
    """Returns the sha256 of the symbols in order, as 8 words of 32 bits.

    The words are int64: averaging checkpoints sums all tensors and divides, which is exact for equal words.
    """
    return torch.tensor(words_of_fingerprint(dictionary.symbols))


def declare(parser: ArgumentParser, config_class: type) -> None:
    """Declares the options of a network; a flag that the task has, too, such as --max-positions, stays the task's."""
    for each in options_of(config_class).values():
        with suppress(ArgumentError):
            each.add_to(parser)


def check_fingerprints(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    """Compares the fingerprints of a checkpoint's `state` with the model's; a checkpoint from elsewhere has none.

    Raises:
        ValueError: a dictionary differs.
    """
    for name in [name for name in own if name.endswith(BUFFER)]:
        saved = state.setdefault(name, own[name].clone())
        if not torch.equal(saved.cpu(), own[name].cpu()):
            raise ValueError(
                f"{name}: the checkpoint was trained with another dictionary "
                f"({_short(saved)}, here {_short(own[name])}): "
                "use the dict.*.txt files of the data directory that it was trained on"
            )


def _short(words: Tensor) -> str:
    return "sha256 " + "".join(f"{int(word):08x}" for word in words[:2]) + "..."


# Tensors of fairseq's models that carry no weights.
BOOKKEEPING = (".version", "._float_tensor", ".embed_positions.weights")
MASKED_LM, CLASSIFICATION = "encoder.lm_head.", "classification_heads."


def adapt_state(state: dict[str, Tensor], model: Any) -> None:
    """Changes a checkpoint's `state` in place so that it fits `model`.

    Args:
        model: has in its config `new_parts`, and `extend_positions` if its position tables can be extended.
    Raises:
        ValueError: tensors are missing, unknown or of another shape (all are named), or the dictionary is another one.
    """
    own = model.state_dict()
    if not any(name.endswith(BUFFER) for name in state):  # not written by this package
        _pool_heads(state, model)
    check_fingerprints(state, own)
    for name in [name for name in state if name.endswith(BOOKKEEPING)]:
        del state[name]
    tie_tables(state, model)
    if not model.has_mask:
        _drop_mask_row(state, own)
    _extend_position_tables(state, model)
    _add_new_parts(state, own, model)
    _check_fit(state, own)


def _drop_mask_row(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    for name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight", "decoder.output_projection.weight"):
        if name in state and name in own and len(state[name]) == len(own[name]) + 1:
            state[name] = state[name][:-1]
            logger.info("%s: dropped its last row, that of <mask>, which the dictionary does not have", name)


def _pool_heads(state: dict[str, Tensor], model: nn.Module) -> None:
    """Averages the heads of each group that shares keys and values (Ainslie et al. 2023, section 2.1)."""
    for prefix, module in model.named_modules():
        if not isinstance(module, CrossAttention) or module.kv_heads == module.num_heads:
            continue
        for name in (f"{prefix}.{part}_proj.{kind}" for part in "kv" for kind in ("weight", "bias")):
            if name in state and len(state[name]) == module.embed_dim:
                groups = state[name].unflatten(0, (module.kv_heads, -1, module.head_dim))
                state[name] = groups.mean(dim=1).flatten(0, 1)
                logger.info("%s: %d heads, the means of groups of %d", name, module.kv_heads, groups.size(1))


def _extend_position_tables(state: dict[str, Tensor], model: Any) -> None:
    for prefix, module in model.named_modules():
        name = f"{prefix}.weight"
        if not isinstance(module, LearnedPositions) or name not in state:
            continue
        pretrained, fresh = state[name], module.weight.detach()
        can_grow = len(pretrained) < len(fresh) and pretrained.shape[1:] == fresh.shape[1:]
        if can_grow and hasattr(model.config, "extend_positions"):
            assert module.padding_idx is not None
            strategy, random_from = str(model.config.extend_positions), model.config.extend_positions_from
            state[name] = extend_positions(pretrained, fresh, strategy, module.padding_idx, random_from)
            logger.info("%s: extended from %d to %d rows (%s)", name, len(pretrained), len(fresh), strategy)


def _add_new_parts(state: dict[str, Tensor], own: dict[str, Tensor], model: Any) -> None:
    for part in model.config.new_parts:
        names = [name for name in own if f".{part}" in f".{name}"]
        if names and not any(name in state for name in names):  # half a part is a damaged checkpoint, reported below
            source = model.config.copied_parts.get(part, part)
            sources = [name.replace(part, source) for name in names]
            copied = all(each in state for each in sources)
            tensors = [state[each] if copied else own[name] for name, each in zip(names, sources, strict=True)]
            state.update({name: tensor.clone() for name, tensor in zip(names, tensors, strict=True)})
            how = f"started from {source}*" if copied else "newly initialised"
            logger.info("%s %d tensors:\n  %s", how, len(names), "\n  ".join(names))


def _check_fit(state: dict[str, Tensor], own: dict[str, Tensor]) -> None:
    problems = [f"missing {name} {list(own[name].shape)}" for name in own if name not in state]
    problems += [f"unknown {name} {list(state[name].shape)}" for name in state if name not in own]
    problems += [
        f"{name} is {list(state[name].shape)}, the model has {list(own[name].shape)}"
        for name in own
        if name in state and own[name].shape != state[name].shape
    ]
    if problems:
        raise ValueError(
            "the checkpoint does not fit the model (other architecture, other dictionary, or fewer positions than the "
            "checkpoint has):\n  " + "\n  ".join(problems)
        )


def rename_old_layout(state: dict[str, Tensor]) -> None:
    """Gives the tensors of a released RoBERTa today's names, in place.

    `decoder.` was the encoder, `emb_layer_norm` the layer norm on embeddings, and query, key and value projections were
    one (3C, C) matrix.
    """
    for name in list(state):
        new = name.replace(".emb_layer_norm.", ".layernorm_embedding.")
        if new.startswith("decoder."):
            new = "encoder." + new.removeprefix("decoder.")
        tensor = state.pop(name)
        stem, joined, kind = new.partition("in_proj_")
        if not joined:
            state[new] = tensor
            continue
        for part, rows in zip("qkv", tensor.chunk(3), strict=True):
            state[f"{stem}{part}_proj.{kind}"] = rows


def is_roberta(state: dict[str, Tensor]) -> bool:
    """Returns whether a checkpoint's state is that of a RoBERTa, in the layout of any year."""
    return any(re.match(r"(?:encoder|decoder)\.sentence_encoder\.", name) for name in state)


def start_encoder_from_roberta(state: dict[str, Tensor], model: Any) -> None:
    """Converts the `state` of a RoBERTa in place to one of an encoder-decoder.

    The decoder is new, except for tables that it shares with the encoder: BERT2RND of Rothe et al. 2020. Heads are left
    out. `adapt_state` adds the hierarchy, and compares the shapes.
    """
    rename_old_layout(state)
    heads = [name for name in state if prefix_of_head(name)]
    roberta = {ROBERTA.sub("encoder.", name): x for name, x in state.items() if name not in heads}
    saved, with_mask = roberta.get(SOURCE), words_of_fingerprint([*model.encoder.dictionary.symbols, "<mask>"])
    if saved is not None and not model.has_mask and saved.tolist() == with_mask:
        del roberta[SOURCE]  # the dictionary of this model with <mask>, as RoBERTa has it
    shared = {parameter for name, parameter in model.named_parameters() if name.startswith("encoder.")}
    decoder = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if name.startswith("decoder.") and parameter not in shared
    }
    logger.info("the encoder is started from RoBERTa; newly initialised %d tensors of the decoder", len(decoder))
    if heads:
        logger.info("skipped %d tensors of heads:\n  %s", len(heads), "\n  ".join(heads))
    state.clear()
    state.update(roberta | decoder)


def adapt_heads(state: dict[str, Tensor], model: Any) -> None:
    """Changes the heads in a checkpoint's `state` in place to those of `model`.

    A head with the same shape and labels in both is loaded. The checkpoint's other heads are left out, and the model's
    other heads keep their initial weights; both are logged.

    Raises:
        ValueError: the model is loaded for inference, and one of its classification heads is missing in the checkpoint
            or has other labels there.
    """
    own = model.state_dict()
    for head in sorted({prefix_of_head(name) for name in (*own, *state)} - {""}):
        built, loaded = (
            {name: x for name, x in tensors.items() if prefix_of_head(name) == head} for tensors in (own, state)
        )
        problem = _difference(loaded, built)
        if problem and head == MASKED_LM and built and loaded:
            continue  # another dictionary, or damage: an error later, in `adapt_state`
        for name in loaded:
            del state[name]
        if not problem:
            state.update({name: loaded.get(name, tensor) for name, tensor in built.items()})
            continue
        if built and head != MASKED_LM and model.heads_must_load:
            raise ValueError(
                f"{head[:-1]}: {problem}; use the task and the data directory that the checkpoint was trained with"
            )
        state.update({name: tensor.clone() for name, tensor in built.items()})
        if loaded:
            level = logging.INFO if head == MASKED_LM else logging.WARNING
            logger.log(level, "%s: %s; skipped %d tensors of the checkpoint", head[:-1], problem, len(loaded))
        if built:
            logger.info("%s: newly initialised %d tensors:\n  %s", head[:-1], len(built), "\n  ".join(built))


def prefix_of_head(name: str) -> str:
    """Returns `classification_heads.NAME.` or `encoder.lm_head.`; an empty string for a tensor outside of heads."""
    if name.startswith(CLASSIFICATION):
        return CLASSIFICATION + name.removeprefix(CLASSIFICATION).split(".")[0] + "."
    return MASKED_LM if name.startswith(MASKED_LM) else ""


def _difference(loaded: dict[str, Tensor], built: dict[str, Tensor]) -> str:
    """Why a head cannot be loaded; an empty string if it can be. A head without recorded labels fits any."""
    if not loaded:
        return "not in the checkpoint"
    if not built:
        return "not in the model"
    shapes, expected = (
        {name: tuple(tensor.shape) for name, tensor in head.items() if not name.endswith(LABELS_FINGERPRINT)}
        for head in (loaded, built)
    )
    if shapes != expected:
        return f"{_classes(loaded)} in the checkpoint, {_classes(built)} in the model"
    for name in built:
        if (
            name.endswith(LABELS_FINGERPRINT)
            and name in loaded
            and not torch.equal(loaded[name].cpu(), built[name].cpu())
        ):
            return "other labels in the checkpoint, or in another order"
    return ""


def _classes(head: dict[str, Tensor]) -> str:
    output = next((tensor for name, tensor in head.items() if name.endswith(".out_proj.weight")), None)
    tensors = ", ".join(f"{name.rpartition('.')[0].rpartition('.')[2]} {list(t.shape)}" for name, t in head.items())
    return tensors if output is None else f"{len(output)} classes ({tensors})"
