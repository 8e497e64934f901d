"""Attention of an encoder-decoder while it writes the text of a document (`hat look`).

Legend: T source tokens, U target tokens, S units of the source, R target sentences, H heads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..analysis.look import AttentionMap, Look
from ..analysis.recording import Recorder, summed
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.rows import EOS
from ..data.text import SEPARATOR, split_sentences
from .look_units import LookOptions, only, unit_texts, without
from .rows import encode_documents, padded, row_of
from .texts import DocumentToText

TO_SENTENCES, TO_TOKENS = "attention to sentences", "attention to tokens, summed by {}"


@torch.no_grad()
def look_at_text(
    model: DocumentToText, record: Record, options: LookOptions | None = None, reference: bool = False
) -> Look:
    """Looks at an encoder-decoder while it writes a text, with `reference` the document's own target.

    ValueError for several models, a model of another kind, no such chunk, or no target.
    """
    options = options or LookOptions()
    net, loaded, pipeline = only(model.models), model.loaded, model.pipeline
    if not hasattr(net.encoder, "arrange"):
        raise ValueError(f"{type(net).__name__} shows no attention: give a model of this package")
    encoded = encode_documents([record], loaded)
    number, note = options.number(len(encoded.tokens), record)
    row = pipeline.encode(record)[number]
    rows = encoded.tokens[number : number + 1], encoded.roles[number : number + 1]
    target = _reference(record, number, model) if reference else model.hypotheses(*rows)[0]
    target = target.to(loaded.device)
    words = [loaded.target.symbols[token] for token in target[:-1].tolist()]
    pieces = token_texts(words, pipeline)
    spans = sentence_spans(words, pieces, "library" if pipeline.settings.splitter == "library" else "punctuation")
    with Recorder(net.encoder, rows[0][0][None]) as recorder, _recorded(net.decoder, recorder) as weights:
        _log_probabilities(net, *rows, target)
    looked = Look(
        record.id,
        options.name,
        recorder.unit,
        unit_texts([*row.tokens, EOS], recorder.numbers, pipeline),
        recorder.lengths,
        (*_maps(weights), *recorder.maps()),
        tuple(pieces),
        tuple(spans),
        roles=recorder.first_of_units(row.streams["role"]) if loaded.roles else (),
        note=note,
    )
    if not options.occlusion:
        return looked
    ends = [*(end for _, end in spans[:-1]), len(target)]
    return looked.with_occlusion(looked.sentences, *_occlude(net, rows, target, ends, recorder, options.batch_size))


def _reference(record: Record, number: int, model: DocumentToText) -> Tensor:
    """The document's own target, in the chunk with this number."""
    streams = model.pipeline.rows(model.pipeline.prepare(record))[number].streams
    if "target" not in streams:
        raise ValueError(f"{record.name} has no target: leave --reference out, to look at what the model generates")
    return row_of(streams["target"], model.loaded.target)


@contextmanager
def _recorded(decoder: Any, source: Recorder) -> Iterator[dict[str, list[Tensor]]]:
    """The (H, U, S) cross-attention of each layer of a decoder by name, that to tokens summed by unit."""
    to_tokens = TO_TOKENS.format(source.unit)
    weights: dict[str, list[Tensor]] = {TO_SENTENCES: [], to_tokens: []}

    def record(name: str, attention: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        each = attention.weights(*inputs)[0, :, :-1].float().cpu()  # without </s>
        weights[name].append(summed(each, source.numbers, source.num_units) if name == to_tokens else each)

    handles = [
        attention.register_forward_hook(partial(record, name))
        for layer in decoder.layers
        for name, attention in ((TO_SENTENCES, layer.sentence_attn), (to_tokens, layer.encoder_attn))
        if attention is not None
    ]
    try:
        yield weights
    finally:
        for handle in handles:
            handle.remove()


def _maps(weights: dict[str, list[Tensor]]) -> Iterator[AttentionMap]:
    for name, layers in weights.items():
        if layers:
            numbers = tuple(range(len(layers)))
            yield AttentionMap(name, "target tokens", numbers, torch.stack(layers), name != TO_SENTENCES)


def token_texts(words: list[str], pipeline: TextPipeline) -> list[str]:
    """The text of each token: what it adds to the text of the tokens before it."""
    pieces, before = [], ""
    for end in range(1, len(words) + 1):
        text = pipeline.decode(" ".join(words[:end])).replace("\t", " ")
        pieces.append(text[len(before) :] if text.startswith(before) else f" {words[end - 1]}")
        before = text
    return pieces


def sentence_spans(words: list[str], pieces: list[str], splitter: str) -> list[tuple[int, int]]:
    """First and one past the last token of each target sentence: the segments between `<sep>`, or split sentences."""
    if SEPARATOR in words:
        ends = [number + 1 for number, word in enumerate(words) if word == SEPARATOR]
    else:
        text, ends, begin = "".join(pieces), [], 0
        limits = []
        for sentence in split_sentences(text, splitter):
            begin = text.index(sentence, begin) + len(sentence)
            limits.append(begin)
        length = 0
        for number, piece in enumerate(pieces):
            length += len(piece)
            while limits and length >= limits[0]:
                ends.append(number + 1)
                limits.pop(0)
    ends = sorted({*ends, len(words)})
    return [(a, b) for a, b in zip([0, *ends], ends, strict=False) if b > a]


def _log_probabilities(net: Any, tokens: list[Tensor], roles: list[Tensor], target: Tensor) -> Tensor:
    """(B, U) log-probabilities of the (U,) target tokens, in nats, from each source; `roles`: as many rows, or none."""
    more = {"roles": padded(roles).to(target.device)} if roles else {}
    encoded = net.encoder(padded(tokens).to(target.device), **more)
    targets = target.expand(len(tokens), -1)
    logits, _ = net.decoder(targets.roll(1, dims=1), encoded)  # </s> comes first
    return logits.float().log_softmax(dim=-1).gather(2, targets[..., None])[..., 0].cpu()


def _occlude(
    net: Any,
    rows: tuple[list[Tensor], list[Tensor]],
    target: Tensor,
    ends: list[int],
    recorder: Recorder,
    batch_size: int,
) -> tuple[Tensor, Tensor]:
    """(R,) log-probabilities of the target sentences, and (R, S) their changes without each unit."""
    tokens, roles = ([row for whole in stream for row in (whole, *without(whole, recorder))] for stream in rows)
    parts = [slice(start, start + batch_size) for start in range(0, len(tokens), batch_size)]
    each = torch.cat([_log_probabilities(net, tokens[part], roles[part], target) for part in parts])
    lengths = [b - a for a, b in zip([0, *ends], ends, strict=False)]
    totals = torch.stack([x.sum(dim=1) for x in each.split(lengths, dim=1)])  # R x (1 + S)
    return totals[:, 0], totals[:, 1:] - totals[:, :1]
