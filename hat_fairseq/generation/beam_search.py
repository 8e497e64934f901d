"""fairseq's generator on our beam search (`search.py`), and its own loop with one memory for each document."""

from dataclasses import replace
from typing import Any

import torch
from fairseq.search import BeamSearch, DiverseBeamSearch
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from .options import check_ranges, search_options
from .search import beam_search


class BeamSearchGenerator(SequenceGenerator):
    """fairseq's generator, with all of its arguments, for models whose decoder has `reorder_beams`.

    Beam search is that of `search.py`. Sampling, diverse beams, prefixes, constraints and a language model beside the
    decoder run in fairseq's own loop.

    Raises:
        ValueError: `no_repeat_ngram_size` is 1, which fairseq ignores.
    """

    def __init__(self, models: list[Any], tgt_dict: Any, no_repeat_ngram_size: int = 0, **options: Any) -> None:
        check_ranges({"no_repeat_ngram_size": no_repeat_ngram_size})
        ensemble = SharedMemory(models)
        super().__init__(ensemble, tgt_dict, no_repeat_ngram_size=no_repeat_ngram_size, **options)
        self.no_repeat_ngram_size, ensemble.beam = no_repeat_ngram_size, self.beam_size

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Generates the hypotheses of each document, best first: tokens, score, positional_scores; no attention.

        Raises:
            ValueError: --min-len is more than the longest text allowed; constraints without --constraints; a document
                whose probabilities are NaN.
        """
        if constraints is not None and not self.search.supports_constraints:
            raise ValueError("lexical constraints need --constraints")
        source = sample["net_input"]["src_tokens"]
        numbers = {
            "beam": self.beam_size,
            "max_len_a": self.max_len_a,
            "max_len_b": self.max_len_b,
            "min_len": 0 if self.match_source_len else self.min_len,
            "unnormalized": not self.normalize_scores,
            "lenpen": self.len_penalty,
            "unkpen": self.unk_penalty,
            "no_repeat_ngram_size": self.no_repeat_ngram_size,
            "temperature": self.temperature,
        }
        options = search_options(numbers, source.size(1), self.max_len, self.vocab_size)
        if type(self.search) is not BeamSearch or self.lm_model is not None or prefix_tokens is not None:
            if isinstance(self.search, DiverseBeamSearch):  # its table has a row for each document of the batch
                sample = {key: value for key, value in sample.items() if key != "id"}
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        suppressed = () if self.token_indices_to_suppress is None else self.token_indices_to_suppress.tolist()
        start = self.eos if bos_token is None else bos_token
        options = replace(options, start=start, end=self.eos, suppressed=tuple(suppressed))
        decoders = [model.decoder for model in self.model.models]
        memories = self.model.forward_encoder(sample["net_input"])
        documents = beam_search(decoders, memories, len(source), source.device, options)
        nothing = {name: torch.empty(0) for name in ("attention", "alignment")}
        return [[{**hypothesis._asdict(), **nothing} for hypothesis in beams] for beams in documents]


class SharedMemory(EnsembleModel):
    """fairseq's ensemble, with one memory for each document in its loop, not one for each hypothesis.

    Attributes:
        beam: hypotheses of a document.
    """

    beam = 1
    _documents: Tensor | None

    def forward_encoder(self, net_input: dict[str, Tensor]) -> Any:
        self._rows, self._documents = len(net_input["src_tokens"]) * self.beam, None
        return super().forward_encoder(net_input)

    def reorder_incremental_state(self, incremental_states: list[Any], new_order: Tensor) -> None:
        """Reorders hypotheses, before `reorder_encoder_out`; documents that stay are in their order."""
        some_leave = len(new_order) < self._rows
        self._rows, self._documents = len(new_order), new_order[:: self.beam] // self.beam if some_leave else None
        for model, state in zip(self.models, incremental_states, strict=True):
            model.decoder.reorder_beams(state, new_order, self._documents)

    def reorder_encoder_out(self, encoder_outs: Any, new_order: Tensor) -> Any:
        documents = self._documents
        return encoder_outs if documents is None else [memory.select(documents) for memory in encoder_outs]
