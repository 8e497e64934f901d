"""Attention of an encoder-decoder while it writes the text of a document (`hat look`).

Legend: T source tokens, U target tokens, S units of the source, R target sentences, H heads.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor

from ..analysis.look import AttentionMap, Look, Occlusion
from ..analysis.recording import Recorder, summed
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.text import SEPARATOR, split_sentences
from .look_units import LookOptions, only, unit_texts, without, words_of
from .rows import encode_documents, padded, row_of
from .texts import DocumentToText

TO_SENTENCES, TO_TOKENS = "attention to sentences", "attention to tokens, summed"


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
    source = encoded.tokens[number][None]
    roles = encoded.roles[number][None] if encoded.roles else None
    if reference:
        rows = pipeline.rows(pipeline.prepare(record))
        if "target" not in rows[number].streams:
            raise ValueError(f"{record.name} has no target: leave --reference out, to look at what the model generates")
        target = row_of(rows[number].streams["target"], loaded.target)
    else:
        target = model.hypotheses([source[0]], [] if roles is None else [roles[0]])[0].cpu()
    tokens = [loaded.target.symbols[token] for token in target[:-1].tolist()]
    pieces = token_texts(tokens, pipeline)
    spans = sentence_spans(tokens, pieces, "library" if pipeline.settings.splitter == "library" else "punctuation")
    one = [source[0]], None if roles is None else [roles[0]], target, loaded.device
    with Recorder(net.encoder, source) as recorder, _DecoderRecorder(net.decoder, recorder) as decoder:
        _log_probabilities(net, *one)
    words = words_of(pipeline.encode(record)[number], source[0], loaded.source)
    texts = unit_texts(words, recorder.numbers, pipeline)
    ends = [*(end for _, end in spans[:-1]), len(target)]
    found: Occlusion | None = None
    if options.occlusion:
        sentences = tuple("".join(pieces[a:b]).strip() for a, b in spans)
        found = Occlusion(sentences, *_occlude_text(net, *one, ends, recorder, options.batch_size))
    maps = (*decoder.maps(), *recorder.maps())
    return Look(record.id, options.name, recorder.unit, texts, tuple(pieces), tuple(spans), maps, found, note)


class _DecoderRecorder:
    """Records the cross-attentions of a decoder, those to tokens summed by unit."""

    def __init__(self, decoder: Any, source: Recorder) -> None:
        self.decoder, self.source = decoder, source
        self.found: dict[str, list[Tensor]] = {TO_SENTENCES: [], TO_TOKENS: []}

    def __enter__(self) -> Self:
        self._handles = [
            attention.register_forward_hook(partial(self._record, name))
            for layer in self.decoder.layers
            for name, attention in ((TO_SENTENCES, layer.sentence_attn), (TO_TOKENS, layer.encoder_attn))
            if attention is not None
        ]
        return self

    def __exit__(self, *unused: object) -> None:
        for handle in self._handles:
            handle.remove()

    def maps(self) -> Iterator[AttentionMap]:
        for name, layers in self.found.items():
            if layers:
                yield AttentionMap(
                    f"{name} by {self.source.unit}" if name == TO_TOKENS else name,
                    "target tokens",
                    tuple(range(len(layers))),
                    torch.stack(layers),
                )

    def _record(self, name: str, attention: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        weights = attention.weights(*inputs)[0, :, :-1].float().cpu()  # without </s>
        if name == TO_TOKENS:
            weights = summed(weights, self.source.numbers, self.source.num_units)
        self.found[name].append(weights)


def token_texts(words: list[str], pipeline: TextPipeline) -> list[str]:
    """The text of each token: what it adds to the text of the tokens before it."""
    pieces, before = [], ""
    for end in range(1, len(words) + 1):
        text = pipeline.decode(" ".join(words[:end])).replace("\t", " ")
        common = text.startswith(before)
        pieces.append(text[len(before) :] if common else f" {words[end - 1]}")
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


def _log_probabilities(
    net: Any,
    rows: list[Tensor],
    roles: list[Tensor] | None,
    target: Tensor,
    device: torch.device,
) -> Tensor:
    """(B, U) log-probabilities of the (U,) target tokens, in nats, from each source."""
    role_ids = None if roles is None else padded(roles).to(device)
    encoded = net.encoder(padded(rows).to(device), roles=role_ids)
    shifted = target.roll(1).expand(len(rows), -1).to(device)  # </s> comes first
    logits, _ = net.decoder(shifted, encoded)
    wanted = target.to(device).expand(len(rows), -1)[..., None]
    return logits.float().log_softmax(dim=-1).gather(2, wanted)[..., 0].cpu()


def _occlude_text(
    net: Any,
    source: list[Tensor],
    roles: list[Tensor] | None,
    target: Tensor,
    device: torch.device,
    ends: list[int],
    recorder: Recorder,
    batch_size: int,
) -> tuple[Tensor, Tensor]:
    """(R,) log-probabilities of the target sentences, and (R, S) their changes without each unit."""
    rows = [*source, *without(source[0], recorder)]
    streams = None if roles is None else [*roles, *without(roles[0], recorder)]
    found = []
    for start in range(0, len(rows), batch_size):
        part = slice(start, start + batch_size)
        some = None if streams is None else streams[part]
        found.append(_log_probabilities(net, rows[part], some, target, device))
    lengths = [b - a for a, b in zip([0, *ends], ends, strict=False)]
    totals = torch.stack([x.sum(dim=1) for x in torch.cat(found).split(lengths, dim=1)])  # R x (1 + S)
    return totals[:, 0], totals[:, 1:] - totals[:, :1]
