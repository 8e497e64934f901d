"""fairseq's generator with one memory for each document: for fairseq-generate, and for generation in a validation."""

from functools import partial
from typing import Any

from fairseq.search import DiverseBeamSearch
from fairseq.sequence_generator import EnsembleModel, SequenceGenerator
from torch import Tensor

from .options import check_options, longest_text
from .search import FORBIDDEN, NOT_NUMBERS, block_repeated_ngrams


class SharedMemoryGenerator(SequenceGenerator):
    """fairseq's generator, with all of its arguments, for models whose decoder has `reorder_beams`.

    Repeated n-grams are blocked on the device. fairseq's loop fails if the beam exceeds the symbols that can continue a
    text, which are all but `</s>` and padding; so the beam is at most that number. As in fairseq, the longest text that
    `max_len_a` allows follows from the longest source of the batch; in `beam_search`, from that of each document.

    Raises:
        ValueError: `no_repeat_ngram_size` is 1, which fairseq ignores.
    """

    def __init__(
        self, models: list[Any], tgt_dict: Any, beam_size: int = 1, no_repeat_ngram_size: int = 0, **options: Any
    ) -> None:
        check_options({"no_repeat_ngram_size": no_repeat_ngram_size})
        beam_size = min(beam_size, len(tgt_dict) - 2)
        super().__init__(SharedMemory(models, beam_size), tgt_dict, beam_size, **options)
        if no_repeat_ngram_size:
            self.repeat_ngram_blocker = partial(_block, size=no_repeat_ngram_size)

    def _generate(
        self,
        sample: dict[str, Any],
        prefix_tokens: Tensor | None = None,
        constraints: Tensor | None = None,
        bos_token: int | None = None,
    ) -> list[list[dict[str, Any]]]:
        """Generates the hypotheses of each document, best first: tokens, score, positional_scores; no attention.

        Raises:
            ValueError: --min-len is more than the longest text allowed; constraints without --constraints, or the
                opposite; a document whose probabilities are NaN, or without a hypothesis.
        """
        if constraints is not None and not self.search.supports_constraints:
            raise ValueError("lexical constraints need --constraints")
        if constraints is None and self.search.supports_constraints:
            raise ValueError("--constraints needs the constraints of each text, which only fairseq-interactive reads")
        if not self.match_source_len:
            source = sample["net_input"]["src_tokens"].size(1)
            longest_text(self.max_len_a, self.max_len_b, self.min_len, source, self.max_len)
        if isinstance(
            self.search, DiverseBeamSearch
        ):  # it would index its penalties, a row for each document of the batch, by `id`
            sample = {key: value for key, value in sample.items() if key != "id"}
        try:
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        except AssertionError as error:  # of fairseq's loop, where a document has no candidate
            raise ValueError(f"no text for a document: {FORBIDDEN}") from error


def _block(tokens: Tensor, log_probs: Tensor, documents: int, beam: int, step: int, size: int) -> Tensor:
    block_repeated_ngrams(log_probs, tokens[:, : step + 1], size)
    return log_probs


class SharedMemory(EnsembleModel):
    """fairseq's ensemble, with one memory for each document in its loop, not one for each hypothesis.

    Args:
        beam: hypotheses of a document.
    """

    _rows: int
    _documents: int
    _remaining: Tensor | None

    def __init__(self, models: list[Any], beam: int) -> None:
        super().__init__(models)
        self._beam = beam

    def forward_encoder(self, net_input: dict[str, Tensor]) -> Any:
        self._documents, self._remaining = len(net_input["src_tokens"]), None
        self._rows = self._documents * self._beam
        return super().forward_encoder(net_input)

    def forward_decoder(self, *args: Any, **kwargs: Any) -> Any:
        """Computes the log-probabilities of the next tokens; ValueError for NaN, which fairseq takes for impossible."""
        log_probs, attention = super().forward_decoder(*args, **kwargs)
        if log_probs.sum().isnan():  # none is more than 0, so nothing but NaN adds up to it
            rows = log_probs.isnan().any(dim=1).unflatten(0, (-1, self._beam))
            bad = int(rows.any(dim=1).sum())
            raise ValueError(f"no text for {bad} of {self._documents} documents: {NOT_NUMBERS}")
        return log_probs, attention

    def reorder_incremental_state(self, incremental_states: list[Any], new_order: Tensor) -> None:
        """Reorders hypotheses, before `reorder_encoder_out`; documents that stay are in their order."""
        some_leave = len(new_order) < self._rows
        self._rows, self._remaining = len(new_order), new_order[:: self._beam] // self._beam if some_leave else None
        for model, state in zip(self.models, incremental_states, strict=True):
            model.decoder.reorder_beams(state, new_order, self._remaining)

    def reorder_encoder_out(self, encoder_outs: Any, new_order: Tensor) -> Any:
        documents = self._remaining
        return encoder_outs if documents is None else [memory.select(documents) for memory in encoder_outs]
