"""Beam search for long sources with `hat_transformer` and `hat_bart`: the hypotheses and scores of fairseq's generator.

Hypotheses with equal scores may be in another order. It is faster than fairseq's generator, because a step does not
copy or permute the encoder's outputs for each hypothesis, does not move the cache of the decoder's self-attention (see
`modules/beam_cache_mask.py`), does not sort the vocabulary, and compares n-grams on the device. Sampling and diverse
beams use fairseq's `search` classes.
"""

import logging
import math
from typing import Any

import torch
from fairseq.search import BeamSearch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from .hypotheses import Beams, Candidates, Finished, best_continuations, block_repeated_ngrams

logger = logging.getLogger(__name__)
# Steps between two tests whether documents are finished, by device. On a GPU a test waits for the GPU.
CHECK_INTERVALS = {"cpu": 1, "cuda": 8}


class Decoding:
    """The steps of one decoder for one batch.

    Args:
        decoder: a `HatDecoder`.
        memory: the encoder's output.
    """

    def __init__(self, decoder: Any, memory: Any) -> None:
        self.decoder, self.memory = decoder, memory
        self.state: dict[str, Any] = {}

    def logits(self, rows: Tensor) -> Tensor:
        """(R, T) tokens so far -> (R, V) logits of the next token."""
        features, _ = self.decoder.extract_features(rows, self.memory, self.state)
        return self.decoder.output_layer(features[:, -1])

    def reorder(self, left: Tensor | None, parents: Tensor) -> None:
        """As `BeamCacheMask.reorder`."""
        if left is not None:
            self.memory = self.memory.select(left)
        self.decoder.reorder_beams(self.state, left, parents)


class BeamSearchGenerator(SequenceGenerator):
    """fairseq's generator, with all of its arguments, for models whose decoder has `reorder_beams`.

    Lexical constraints, searches with rules for the length or vocabulary, and a language model beside the decoder run
    in fairseq's own loop. A warning says so.

    Raises:
        ValueError: `no_repeat_ngram_size` is 1, which fairseq ignores.
    """

    def __init__(self, models: list[Any], tgt_dict: Any, no_repeat_ngram_size: int = 0, **options: Any) -> None:
        if no_repeat_ngram_size == 1:
            raise ValueError("--no-repeat-ngram-size 1 would allow no word twice; use 2 or more, or 0 for no blocking")
        super().__init__(models, tgt_dict, no_repeat_ngram_size=no_repeat_ngram_size, **options)
        self.no_repeat_ngram_size = no_repeat_ngram_size
        own_rules = self.search.supports_constraints or self.search.stop_on_max_len or self.should_set_src_lengths
        self.left_to_fairseq = own_rules or self.lm_model is not None
        if self.left_to_fairseq:
            reason = type(self.search).__name__ if own_rules else "a language model beside the decoder"
            logger.warning("%s: generating with fairseq's own loop, which is slower", reason)

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
        if self.left_to_fairseq:
            return super()._generate(sample, prefix_tokens, constraints, bos_token)
        if constraints is not None:
            raise ValueError("lexical constraints need --constraints")
        net_input = sample["net_input"]
        source = net_input["src_tokens"]
        longest = min(int(self.max_len_a * source.size(1) + self.max_len_b), self.max_len - 1)  # without </s>
        if self.min_len > longest:
            raise ValueError(f"--min-len {self.min_len} is more than the longest text allowed, {longest} tokens")
        start = self.eos if bos_token is None else bos_token
        beams = Beams(len(source), self.beam_size, longest + 1, start, self.pad, source.device)
        penalty = self.len_penalty if self.normalize_scores else None
        finished = Finished(len(source), self.beam_size, longest + 1, self.eos, penalty, source.device)
        memories = self.model.forward_encoder(net_input)
        models = zip(self.model.models, memories, strict=True)
        decodings = [Decoding(model.decoder, memory) for model, memory in models]
        interval = CHECK_INTERVALS.get(source.device.type, 1)
        for step in range(longest + 1):
            log_probs = self._log_probs(beams.rows(step), decodings)
            self._constrain(log_probs, beams, step, longest, prefix_tokens)
            candidates = self._candidates(log_probs, beams, step)
            ends = beams.endings(candidates, self.eos)
            finished.collect(step, beams, candidates, ends)
            if step == longest:
                break
            left = None
            if step % interval == 0:
                complete = finished.complete(beams.documents)
                if all(complete):
                    break
                if any(complete):
                    unfinished = [place for place, done in enumerate(complete) if not done]
                    left = torch.tensor(unfinished, device=source.device)
                    candidates, ends = candidates.select(left), ends[left]
                    prefix_tokens = None if prefix_tokens is None else prefix_tokens[left]
                    beams.keep(left)
            parents = beams.advance(step, candidates, ends)
            for decoding in decodings:
                decoding.reorder(left, parents)
        hypotheses = finished.sorted()
        refuse_nan(hypotheses)
        return hypotheses

    def _log_probs(self, rows: Tensor, decodings: list[Decoding]) -> Tensor:
        """(R, T) tokens -> (R, V) log-probabilities of the next token, fp32; the mean probability of an ensemble."""
        log_probs = []
        for decoding in decodings:
            logits = decoding.logits(rows)
            if self.temperature != 1:
                logits = logits / self.temperature
            log_probs.append(torch.log_softmax(logits, dim=-1, dtype=torch.float32))
        return log_probs[0] if len(log_probs) == 1 else torch.stack(log_probs).logsumexp(0) - math.log(len(log_probs))

    def _constrain(self, log_probs: Tensor, beams: Beams, step: int, longest: int, prefix: Tensor | None) -> None:
        """Sets the log-probabilities of forbidden tokens to -inf, in place."""
        log_probs[:, self.pad] = -math.inf
        log_probs[:, self.unk] -= self.unk_penalty
        if step == longest:
            log_probs[:, : self.eos] = -math.inf
            log_probs[:, self.eos + 1 :] = -math.inf
        if prefix is not None and step < min(prefix.size(1), longest):
            tokens, scores = beams.tokens.flatten(0, 1), beams.scores.flatten(0, 1)
            forced, _, _ = self._prefix_tokens(step, log_probs, scores, tokens, prefix, self.beam_size)
            log_probs.copy_(forced)
        else:
            if step < self.min_len:
                log_probs[:, self.eos] = -math.inf
            if self.token_indices_to_suppress is not None:
                log_probs[:, self.token_indices_to_suppress] = -math.inf
        if self.no_repeat_ngram_size:
            block_repeated_ngrams(log_probs, beams.rows(step), self.no_repeat_ngram_size)

    def _candidates(self, log_probs: Tensor, beams: Beams, step: int) -> Candidates:
        log_probs = log_probs.view(len(beams.documents), -1, self.vocab_size)
        if type(self.search) is BeamSearch:
            return Candidates(*best_continuations(log_probs, beams.scores[:, :, step - 1] if step else None))
        # Diverse beams keep a table of the batch: its rows are places in the batch, not ids of the data set.
        arguments = log_probs, beams.scores[:, :, :step], beams.rows(step), beams.documents
        return Candidates(*self.search.step(step, *arguments))


def refuse_nan(documents: list[list[dict[str, Any]]]) -> None:
    """Raises ValueError if a document has no hypothesis, or one whose score is NaN.

    Comparing candidates with NaN gives an arbitrary text; fairseq's loop fails an assertion.
    """
    bad = [not hypotheses or any(math.isnan(h["score"]) for h in hypotheses) for hypotheses in documents]
    if any(bad):
        raise ValueError(
            f"no text for {sum(bad)} of {len(bad)} documents: the model's probabilities are not numbers (NaN). Its "
            "weights are NaN, or fp16 overflows: generate in fp32 or bf16"
        )
