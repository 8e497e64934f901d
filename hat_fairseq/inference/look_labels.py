"""Attention of a fine-tuned encoder in a document (`hat look`)."""

import torch

from ..analysis.look import Look, Occlusion
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
    net, kind, pipeline = only(model.models), model.kind, model.pipeline
    one_label = kind.head_level == "document" and kind.names_labels
    if options.occlusion and not one_label:
        raise ValueError(f"--occlusion needs one label for a document; the kind {kind.name} has others")
    (rows,), samples = model.encode([record])
    number, note = options.number(len(rows), record)
    tokens = [row for sample in samples for row in sample.rows][number]
    with Recorder(net.core, tokens[None], net.reads_first_token) as recorder:
        net(tokens[None].to(model.loaded.device), features_only=True)
    texts = unit_texts([*rows[number].tokens, EOS], recorder.numbers, pipeline)
    found = None
    if options.occlusion or (options.occlusion is None and one_label and recorder.num_units > 1):
        sources, size = [tokens, *without(tokens, recorder)], options.batch_size
        (head,) = kind.heads(len(model.loaded.labels))
        logits = [
            net(
                padded(sources[start : start + size]).to(model.loaded.device),
                classification_head_name=head,
            )[0]
            for start in range(0, len(sources), size)
        ]
        scores = torch.cat([each.float().cpu() for each in logits]).log_softmax(dim=-1)
        best = int(scores[0].argmax())
        change = scores[1:, best] - scores[0, best]
        found = Occlusion((f"label {model.loaded.labels[best]}",), scores[:1, best], change[None])
    return Look(record.id, options.name, recorder.unit, texts, (), (), tuple(recorder.maps()), found, note)
