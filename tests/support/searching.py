"""Our beam search, called as fairseq's generator is."""

from typing import Any

import torch
from torch import Tensor

from hat_fairseq.generation.options import search_options
from hat_fairseq.generation.search import beam_search

NAMES = {"beam_size": "beam", "len_penalty": "lenpen", "unk_penalty": "unkpen"}


@torch.no_grad()
def our_search(
    models: list[Any], source: Tensor, source_tokens: list[int] | None = None, **options: Any
) -> list[list[dict[str, Tensor]]]:
    """The hypotheses of each row of (B, T) tokens, best first, under options of fairseq's generator.

    `source_tokens`: from which the longest text of each row follows; None: those of the row.
    """
    dictionary = models[0].decoder.dictionary
    options["unnormalized"] = not options.pop("normalize_scores", True)
    options = {NAMES.get(name, name): value for name, value in options.items()}
    positions = min(model.decoder.embedding_sizes.positions for model in models)
    lengths = source.ne(dictionary.pad()).sum(1).tolist() if source_tokens is None else source_tokens
    chosen = search_options(options, lengths, positions, len(dictionary))
    decoders, memories = [model.decoder for model in models], [model.encoder(source) for model in models]
    texts = beam_search(decoders, memories, len(source), source.device, chosen)
    return [[hypothesis._asdict() for hypothesis in beams] for beams in texts]
