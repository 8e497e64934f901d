"""Attention of a fine-tuned encoder in a document (`hat look`)."""

import torch

from ..analysis.look import Look
from ..analysis.recording import Recorder
from ..data.record import Record
from ..data.rows import EOS
from .labels import Predictor
from .look_units import LookOptions, only, unit_texts, without
from .rows import padded


@torch.no_grad()
def look_at_labels(model: Predictor, record: Record, options: LookOptions | None = None) -> Look:
    """Looks at an encoder that reads a document; ValueError for several models, no such chunk, nothing to occlude."""
    options = options or LookOptions()
    net, kind, device = only(model.models), model.kind, model.loaded.device
    one_label = kind.head_level == "document" and kind.names_labels
    if options.occlusion and not one_label:
        raise ValueError(f"--occlusion needs one label for a document; the kind {kind.name} has others")
    (rows,), samples = model.encode([record])
    choose = options.chunk is None and kind.joins_rows
    chosen = kind.weighted_row(next(model.predictions([record]))) if choose else 0
    number, note = options.number(len(rows), record, chosen)
    tokens = [row for sample in samples for row in sample.rows][number]
    with Recorder(net.core, tokens[None], net.reads_first_token) as recorder:
        net(tokens[None].to(device), features_only=True)
    texts = unit_texts([*rows[number].tokens, EOS], recorder.numbers, model.pipeline)
    maps = tuple(recorder.maps())
    look = Look(record.id, options.name, recorder.unit, texts, recorder.lengths, maps, note=note)
    if not (options.occlusion or (options.occlusion is None and one_label and recorder.num_units > 1)):
        return look
    sources, size = [tokens, *without(tokens, recorder)], options.batch_size
    batches = [padded(sources[start : start + size]).to(device) for start in range(0, len(sources), size)]
    (head,) = kind.heads(len(model.loaded.labels))
    scores = torch.cat([net(batch, classification_head_name=head)[0].float().cpu() for batch in batches])
    scores = scores.log_softmax(dim=-1)
    best = int(scores[0].argmax())
    change = scores[1:, best] - scores[0, best]
    return look.with_occlusion([f"label {model.loaded.labels[best]}"], scores[:1, best], change[None])
