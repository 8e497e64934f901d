"""Attention of a fine-tuned encoder in a document (`hat look`)."""

import torch
from fairseq.data import data_utils

from ..analysis.look import Look, Occlusion
from ..analysis.recording import Recorder
from ..data.record import Record
from ..tasks.raw_documents import indexed, row_of
from .assemble import chunks_of
from .labels import DocumentClassifier
from .look_units import LookOptions, only, unit_texts, without, words_of


@torch.no_grad()
def look_at_labels(model: DocumentClassifier, record: Record, options: LookOptions | None = None) -> Look:
    """Looks at an encoder that reads a document; ValueError for several models, no such chunk, nothing to occlude."""
    options = options or LookOptions()
    net, task, pipeline = only(model.models), model.task, model.pipeline
    one_label = task.head_level == "document" and task.num_scores is None
    if options.occlusion and not one_label:
        raise ValueError(f"--occlusion needs one label for a document; the task {task.cfg._name} has others")
    rows = pipeline.encode(record)
    number, note = options.number(len(rows), record)
    ids = [row_of(row.tokens, task.source_dictionary) for row in rows]
    dataset = task.build_dataset(indexed(ids), "the input", chunks=chunks_of(rows))
    tokens = dataset.row(number)["tokens"]
    if dataset.removed:
        note = f"{note} {len(ids[number]) - len(tokens)} of {len(ids[number])} tokens were truncated.".strip()
    with Recorder(net.core, tokens[None], net.reads_first_token) as recorder:
        net(tokens[None].to(model.device), features_only=True)
    texts = unit_texts(words_of(rows[number], tokens, task.source_dictionary), recorder.numbers, pipeline)
    found = None
    if options.occlusion or (options.occlusion is None and one_label and recorder.num_units > 1):
        sources, pad, size = [tokens, *without(tokens, recorder)], task.source_dictionary.pad(), options.batch_size
        batches = [data_utils.collate_tokens(sources[i : i + size], pad) for i in range(0, len(sources), size)]
        logits = [task.logits(net, {"net_input": {"src_tokens": batch.to(model.device)}}) for batch in batches]
        scores = torch.cat([each.float().cpu() for each in logits]).log_softmax(dim=-1)
        best = int(scores[0].argmax())
        change = scores[1:, best] - scores[0, best]
        found = Occlusion((f"label {task.labels[best]}",), scores[:1, best], change[None])
    return Look(record.id, options.name, recorder.unit, texts, (), (), tuple(recorder.maps()), found, note)
