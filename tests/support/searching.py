"""Our beam search, called as fairseq's generator is."""

from typing import Any

import torch
from torch import Tensor

from hat_fairseq.generation.options import search_options
from hat_fairseq.generation.search import beam_search

NAMES = {"beam_size": "beam", "len_penalty": "lenpen", "unk_penalty": "unkpen"}


@torch.no_grad()
def our_search(models: list[Any], source: Tensor, **options: Any) -> list[list[dict[str, Tensor]]]:
    """The hypotheses of each row of (B, T) tokens, best first, under options of fairseq's generator."""
    dictionary = models[0].decoder.dictionary
    options["unnormalized"] = not options.pop("normalize_scores", True)
    options = {NAMES.get(name, name): value for name, value in options.items()}
    positions = min(model.decoder.embedding_sizes.positions for model in models)
    chosen = search_options(options, source.size(1), positions, len(dictionary))
    decoders, memories = [model.decoder for model in models], [model.encoder(source) for model in models]
    texts = beam_search(decoders, memories, len(source), source.device, chosen)
    return [[hypothesis._asdict() for hypothesis in beams] for beams in texts]
