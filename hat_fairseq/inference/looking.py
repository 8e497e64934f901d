"""Looks at a document with a trained model: attention by units of the text, and the effect of leaving out a unit.

Legend: U target tokens, S units of the source, R target sentences, K labels, B rows of a batch.
"""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from ..analysis.look import Look
from ..analysis.recording import Recorder
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.rows import EOS, Row
from ..data.text import SEPARATOR, split_sentences
from .labels import Predictor, unit_texts
from .loading import Loaded
from .rows import encode_documents, padded, row_of
from .texts import DocumentToText


@dataclass(frozen=True)
class LookOptions:
    """Options of `hat look`."""

    name: str = ""  # of the model
    occlusion: bool = False  # leave out each unit in turn
    chunk: int | None = None  # which chunk of the document, from 1; None: the first one, of choices the predicted one
    batch_size: int = 8  # rows in a batch of occlusion
    reference: bool = False  # show the document's own target, not a generated text


def model_to_look_at(loaded: Loaded, generation: dict[str, Any], reference: bool) -> DocumentToText | Predictor:
    """Returns the model that `look_at` takes; ValueError for options that have no effect with it."""
    if loaded.pipeline.kind.has_target:
        return DocumentToText(loaded, **generation)
    if generation or reference:
        raise ValueError("--generation and --reference are for models that write texts; remove them")
    return Predictor(loaded)


@torch.no_grad()
def look_at(model: DocumentToText | Predictor, record: Record, options: LookOptions | None = None) -> Look:
    """Looks at a model that reads a document.

    ValueError for several models, a model of another package, no such chunk, or what `options` ask of another kind.
    """
    if len(model.models) > 1:
        raise ValueError("attention is that of one model: give one checkpoint")
    options = options or LookOptions()
    if isinstance(model, DocumentToText):
        return _look_at_text(model, record, options)
    return _look_at_labels(model, record, options)


def _look_at_labels(model: Predictor, record: Record, options: LookOptions) -> Look:
    (net,), kind, device = model.models, model.kind, model.loaded.device
    if options.occlusion and not (kind.head_level == "document" and kind.names_labels):
        raise ValueError(f"--occlusion needs one label for a document; the kind {kind.name} has others")
    (rows,), samples = model.encode([record])
    default = 0
    if kind.joins_rows and options.chunk is None:
        default = kind.weighted_row(kind.predict(record, rows, model.scores(samples), model.loaded.labels))
    number = _chunk(options, record, len(rows), default)
    tokens = [row for sample in samples for row in sample.rows][number].to(device)
    with Recorder(net.core, tokens[None], net.reads_first_token) as recorder:
        net(tokens[None], features_only=True)
    look = _look(recorder, record, rows, number, model.pipeline, options)
    if not options.occlusion or recorder.num_units == 1:
        return look
    (head,), labels = kind.heads(len(model.loaded.labels)), model.loaded.labels

    def score(batch: list[Tensor]) -> Tensor:
        return net(padded(batch), classification_head_name=head)[0].float().log_softmax(dim=-1)

    scores = _without_units(recorder, [tokens], score, options.batch_size)  # K x (1 + S)
    best = int(scores[:, 0].argmax())
    return look.with_occlusion([f"label {labels[best]}"], scores[best, :1], scores[best, None, 1:] - scores[best, 0])


def _look_at_text(model: DocumentToText, record: Record, options: LookOptions) -> Look:
    (net,), loaded, pipeline = model.models, model.loaded, model.pipeline
    if not hasattr(net.encoder, "arrange"):
        raise ValueError(f"{type(net).__name__} shows no attention: give a model of this package")
    encoded = encode_documents([record], loaded)
    number = _chunk(options, record, len(encoded.rows))
    streams = [ids[number].to(loaded.device) for ids in (encoded.tokens, encoded.roles) if ids]
    if options.reference:
        reference = pipeline.rows(pipeline.prepare(record))[number].streams
        if "target" not in reference:
            raise ValueError(f"{record.name} has no target: leave --reference out, to look at what the model generates")
        target = row_of(reference["target"], loaded.target).to(loaded.device)
    else:
        target = model.hypotheses(*([stream] for stream in streams))[0]

    def log_probabilities(tokens: list[Tensor], *roles: list[Tensor]) -> Tensor:
        """(B, U) log-probabilities of the target tokens from each source."""
        encoder_out = net.encoder(padded(tokens), **({"roles": padded(roles[0])} if roles else {}))
        targets = target.expand(len(tokens), -1)
        logits, _ = net.decoder(targets.roll(1, dims=1), encoder_out)  # </s> comes first
        return logits.float().log_softmax(dim=-1).gather(2, targets[..., None])[..., 0]

    with Recorder(net.encoder, streams[0][None], decoder=net.decoder) as recorder:
        log_probabilities(*([stream] for stream in streams))
    words = [loaded.target.symbols[token] for token in target[:-1].tolist()]
    pieces = token_texts(words, pipeline)
    ends = sentence_ends(words, pieces, "library" if pipeline.settings.splitter == "library" else "punctuation")
    names = [*encoded.rows[number].streams["role"], ""] if loaded.roles else []
    roles = tuple(of_unit[0] for of_unit in recorder.by_unit(names)) if names else ()
    more = {"target": tuple(pieces), "target_sentences": tuple(pairwise([0, *ends])), "roles": roles}
    look = _look(recorder, record, encoded.rows, number, pipeline, options, **more)
    if not options.occlusion or recorder.num_units == 1:
        return look
    each = _without_units(recorder, streams, log_probabilities, options.batch_size)  # U x (1 + S)
    lengths = [b - a for a, b in pairwise([0, *ends[:-1], len(target)])]
    totals = torch.stack([tokens.sum(dim=0) for tokens in each.split(lengths)])  # R x (1 + S)
    return look.with_occlusion(look.sentences, totals[:, 0], totals[:, 1:] - totals[:, :1])


def _chunk(options: LookOptions, record: Record, count: int, default: int = 0) -> int:
    """The number of the chunk from 0."""
    chunk = default + 1 if options.chunk is None else options.chunk
    if not 1 <= chunk <= count:
        raise ValueError(f"--chunk {chunk}: {record.name} has {count} of them")
    return chunk - 1


def _look(
    recorder: Recorder,
    record: Record,
    rows: list[Row],
    number: int,
    pipeline: TextPipeline,
    options: LookOptions,
    **more: Any,
) -> Look:
    texts = unit_texts(recorder, [*rows[number].tokens, EOS], pipeline)
    notes = [f"Chunk {number + 1} of {len(rows)}."] if len(rows) > 1 else []
    if options.occlusion and recorder.num_units == 1:
        notes.append(f"The document has one {recorder.unit} only: nothing is left without it.")
    maps, note = tuple(recorder.maps()), " ".join(notes)
    return Look(record.id, options.name, recorder.unit, texts, recorder.lengths, maps, note=note, **more)


def _without_units(recorder: Recorder, streams: list[Tensor], score: Callable[..., Tensor], batch_size: int) -> Tensor:
    """What `score` says of the whole streams of token (and role) ids, and of them without each unit in turn.

    `score` maps rows of each stream to (B, N) numbers. Returns (N, 1 + S) on the CPU.
    """
    numbers = recorder.numbers.to(streams[0].device)
    keep = [numbers >= -1, *(numbers != unit for unit in range(recorder.num_units))]
    batches = [keep[start : start + batch_size] for start in range(0, len(keep), batch_size)]
    return torch.cat([score(*([stream[mask] for mask in batch] for stream in streams)) for batch in batches]).T.cpu()


def token_texts(words: list[str], pipeline: TextPipeline) -> list[str]:
    """The text of each token: what it adds to the text of the tokens before it."""
    pieces, before = [], ""
    for end in range(1, len(words) + 1):
        text = pipeline.decode(" ".join(words[:end])).replace("\t", " ")
        pieces.append(text[len(before) :] if text.startswith(before) else f" {words[end - 1]}")
        before = text
    return pieces


def sentence_ends(words: list[str], pieces: list[str], splitter: str) -> list[int]:
    """One past the last token of each target sentence: of the segments between `<sep>`, or of split sentences."""
    ends = [number + 1 for number, word in enumerate(words) if word == SEPARATOR]
    if not ends:
        text, lengths, begin = "".join(pieces), list(accumulate(map(len, pieces))), 0
        for sentence in split_sentences(text, splitter):
            begin = text.index(sentence, begin) + len(sentence)
            ends.append(bisect_left(lengths, begin) + 1)
    return sorted({*ends, len(words)} - {0})
