"""Compute what a model attends to in one document, by units, and the effect of leaving out a unit.

Legend: U target tokens, S units of the source, R target sentences, K labels, B rows of a batch.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor

from ..analysis.look import Look
from ..analysis.page import LookWithPage
from ..analysis.recording import Recorder
from ..data.kind import LabelPrediction
from ..data.kinds import Prediction
from ..data.kinds.choices import NumberedKind
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.text import SEPARATOR, split_sentences
from ..options import OptionError
from .labels import Predictor, unit_texts, weighted_row
from .loaded import Loaded
from .rows import Encoded, encode_documents, padded
from .texts import DocumentToText

BATCH_SIZE = 8  # rows of a document without each of its units in turn


OCCLUSION = "also remove one sentence or segment at a time, and show how the log-probability of the output changes"


def model_to_look_at(loaded: Loaded, generation: dict[str, Any]) -> DocumentToText | Predictor:
    """Returns the model that `look_at` takes; ValueError for options that have no effect with it."""
    if loaded.pipeline.kind.has_target:
        return DocumentToText(loaded, **generation)
    if generation:
        name = next(iter(generation))
        raise OptionError(f"{{{name}}} is for models that write texts; remove it", **{name: None})
    return Predictor(loaded)


@torch.no_grad()
def look_at(model: DocumentToText | Predictor, record: Record, occlusion: bool = False, name: str = "") -> Look:
    """Looks at a model that reads a document; `occlusion`: also without each unit; `name`: of the model.

    ValueError for several models, a model of another package, occlusion of another kind, or where there is nothing to
    show.
    """
    if len(model.models) > 1:
        raise ValueError("attention is that of one model: give one checkpoint")
    show = _look_at_text if isinstance(model, DocumentToText) else _look_at_labels
    look: Look = show(model, record, occlusion, name)  # type: ignore[arg-type]
    if look.is_empty:
        text = "{} has no attention to show: {}"
        text += "give {occlusion}, or " * (_has_one_output(model) and not occlusion)
        reason = f"{record.name} has one segment: " if occlusion else ""
        raise OptionError(f"{text}take a model with a hierarchy", name, reason, occlusion=None)
    return look


def _has_one_output(model: DocumentToText | Predictor) -> bool:
    """Whether there is one text or one label, which may change where a unit is removed."""
    return isinstance(model, DocumentToText) or (model.kind.head_level == "document" and model.kind.names_labels)


def _look_at_labels(model: Predictor, record: Record, occlusion: bool, name: str) -> Look:
    (net,), kind, device = model.models, model.kind, model.loaded.device
    if occlusion and not _has_one_output(model):
        text = "{occlusion} is for models that write a text, and for the kinds classification, sequence and "
        raise OptionError(f"{text}byte_sequence; not for the kind {{}}", kind.name, occlusion=None)
    encoded, notes = _encoded(record, model.placed)
    number, label = 0, ""
    if isinstance(kind, NumberedKind) or kind.head_level in ("document", "pair"):
        (prediction,) = model.predictions_of([record], [encoded])
        number, label = weighted_row(kind, prediction), label_line(prediction)
    tokens = encoded[number].tokens.to(device)
    heads = net.classification_heads
    with Recorder(net.core, tokens[None], net.core.reads_first_token, heads=heads.values()) as recorder:
        states = net.encode(tokens[None])
        for each in heads:
            net.head_logits(each, states, tokens[None])
    look = _look(recorder, record, encoded, number, model.pipeline, (name, occlusion), notes, prediction=label)
    if not occlusion or recorder.num_units == 1:
        return look
    (head,), labels = kind.heads(len(model.loaded.labels)), model.loaded.labels

    def score(batch: list[Tensor]) -> Tensor:
        inputs = padded(batch)
        return net.head_logits(head, net.encode(inputs), inputs).float().log_softmax(dim=-1)

    scores = _without_units(recorder, [tokens], score)  # K x (1 + S)
    best = int(scores[:, 0].argmax())
    return look.with_occlusion([f"label {labels[best]}"], scores[best, :1], scores[best, None, 1:] - scores[best, 0])


def label_line(prediction: Prediction) -> str:
    """Says which label is predicted and its probability; nothing of predictions that are no label."""
    if not isinstance(prediction, LabelPrediction):
        return ""
    known = prediction.probabilities
    probability = known[prediction.label] if isinstance(known, dict) else max(known)
    return f"Predicted label: {prediction.label}, with probability {probability:.3f}."


def _look_at_text(model: DocumentToText, record: Record, occlusion: bool, name: str) -> Look:
    (net,), loaded, pipeline = model.models, model.loaded, model.pipeline
    if not hasattr(net.encoder, "arrange"):
        raise ValueError(f"{type(net).__name__} shows no attention: give a model of this package")
    encoded, notes = _encoded(record, loaded)
    row, *ids = encoded[0]
    streams = [each.to(loaded.device) for each in ids if each is not None]
    target = model.hypotheses([encoded[0]])[0]

    def log_probabilities(tokens: list[Tensor], *roles: list[Tensor]) -> Tensor:
        """Returns (B, U) log-probabilities of the target tokens from each source."""
        encoder_out = net.encoder(padded(tokens), **({"roles": padded(roles[0])} if roles else {}))
        targets = target.expand(len(tokens), -1)
        states = net.decoder.states(targets.roll(1, dims=1), encoder_out)  # </s> comes first
        return net.decoder.logits(states).float().log_softmax(dim=-1).gather(2, targets[..., None])[..., 0]

    with Recorder(net.encoder, streams[0][None], decoder=net.decoder) as recorder:
        log_probabilities(*([stream] for stream in streams))
    words = [loaded.target.symbols[token] for token in target[:-1].tolist()]
    pieces = token_texts(words, pipeline)
    splitter = "library" if pipeline.settings.splitter == "library" else "punctuation"
    ends = sentence_ends(words, pieces, splitter, pipeline.settings.target_language)
    names = [*row.streams["role"], ""] if loaded.roles else []
    roles = tuple(of_unit[0] for of_unit in recorder.by_unit(names)) if names else ()
    more = {"target": tuple(pieces), "target_sentences": tuple(pairwise([0, *ends])), "roles": roles}
    look = _look(recorder, record, encoded, 0, pipeline, (name, occlusion), notes, **more)
    if not occlusion or recorder.num_units == 1:
        return look
    each = _without_units(recorder, streams, log_probabilities)  # U x (1 + S)
    lengths = [b - a for a, b in pairwise([0, *ends[:-1], len(target)])]
    totals = torch.stack([tokens.sum(dim=0) for tokens in each.split(lengths)])  # R x (1 + S)
    return look.with_occlusion(look.sentences, totals[:, 0], totals[:, 1:] - totals[:, :1])


def _encoded(record: Record, loaded: Loaded) -> tuple[list[Encoded], list[str]]:
    """The rows of a document, and a note if its end is truncated."""
    before = Counter(loaded.pipeline.counts)
    (rows,) = encode_documents([record], loaded)
    changes = loaded.pipeline.counts - before
    lost = changes["source_sentences_truncated"]
    note = f"{lost:,} sentence{'s' * (lost > 1)} at the end of the document {'are' if lost > 1 else 'is'} truncated"
    return rows, [f"{note}: the model does not read {'them' if lost > 1 else 'it'}."] * bool(lost)


def _look(
    recorder: Recorder,
    record: Record,
    rows: list[Encoded],
    number: int,
    pipeline: TextPipeline,
    asked: tuple[str, bool],
    notes: list[str],
    **more: Any,
) -> Look:
    texts = unit_texts(recorder, record, rows[number].row, pipeline)
    name, occlusion = asked
    notes = [*([f"Chunk {number + 1} of {len(rows)}."] * (len(rows) > 1)), *notes]
    if occlusion and recorder.num_units == 1:
        notes.append(f"The document has one {recorder.unit} only: nothing is left without it.")
    maps, note = tuple(recorder.maps()), " ".join(notes)
    return LookWithPage(record.id, name, recorder.unit, texts, recorder.lengths, maps, note=note, **more)


def _without_units(recorder: Recorder, streams: list[Tensor], score: Callable[..., Tensor]) -> Tensor:
    """What `score` says of the whole streams of token (and role) ids, and of them without each unit in turn.

    The `</s>` after a unit stays, so what is left is a row as a document without the unit has it.
    `score` maps rows of each stream to (B, N) numbers. Returns (N, 1 + S) on the CPU.
    """
    unit_of_token, is_end = (each.to(streams[0].device) for each in (recorder.unit_of_token, recorder.is_end))
    keep = [unit_of_token >= -1, *((unit_of_token != unit) | is_end for unit in range(recorder.num_units))]
    batches = [keep[start : start + BATCH_SIZE] for start in range(0, len(keep), BATCH_SIZE)]
    return torch.cat([score(*([stream[mask] for mask in batch] for stream in streams)) for batch in batches]).T.cpu()


def token_texts(words: list[str], pipeline: TextPipeline) -> list[str]:
    """Returns the text of each token: what it adds to the text of the tokens before it."""
    pieces, before = [], ""
    for end in range(1, len(words) + 1):
        text = pipeline.decode(" ".join(words[:end])).replace("\t", " ")
        pieces.append(text[len(before) :] if text.startswith(before) else f" {words[end - 1]}")
        before = text
    return pieces


def sentence_ends(words: list[str], pieces: list[str], splitter: str, language: str) -> list[int]:
    """Returns one past the last token of each target sentence: of segments between `<sep>`, or of split sentences."""
    ends = [number + 1 for number, word in enumerate(words) if word == SEPARATOR]
    if not ends:
        text, lengths, begin = "".join(pieces), list(accumulate(map(len, pieces))), 0
        for sentence in split_sentences(text, splitter, language):
            begin = text.index(sentence, begin) + len(sentence)
            ends.append(bisect_left(lengths, begin) + 1)
    return sorted({*ends, len(words)} - {0})
