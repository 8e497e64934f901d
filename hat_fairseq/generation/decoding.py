"""`--decoding`: computes the steps of a search eagerly, as a graph, or compiled.

eager    every step is launched from Python; caches grow with the text
graph    shapes and addresses stay the same from step to step (`modules/fixed_cache.py`), so that a GPU records a step
         once as a CUDA graph and replays it; on a CPU the same step without a recording
compile  the same by torch.compile, which also compiles the encoder

A graph saves the time in which Python launches the kernels of a step: most of the time of a step on a fast GPU.

Legend: R rows (hypotheses), V vocabulary.
"""

from typing import Any

import torch
from torch import Tensor

from hat_fairseq.modules.fixed_cache import FixedDecoderCache

WAYS = ("eager", "graph", "compile")


class Decoding:
    """The steps of one decoder for one batch, launched from Python.

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

    def worth_dropping(self, finished: int, documents: int) -> bool:
        """Whether `finished` of the documents should leave the batch."""
        return True

    def reorder(self, left: Tensor | None, parents: Tensor) -> None:
        """As `BeamCacheMask.reorder`."""
        if left is not None:
            self.memory = self.memory.select(left)
        self.decoder.reorder_beams(self.state, left, parents)


class FixedDecoding(Decoding):
    """Steps of fixed shapes, on a GPU replayed from a CUDA graph.

    Args:
        compiled: compile the step with torch.compile.
    """

    def __init__(self, decoder: Any, memory: Any, compiled: bool = False) -> None:
        super().__init__(decoder, memory)
        self._step = torch.compile(decoder.step, dynamic=True, fullgraph=True) if compiled else decoder.step
        self._version: int | None = None  # of the buffers that the graph reads
        self._graph: Any = None

    def logits(self, rows: Tensor) -> Tensor:
        cache = self.decoder.cache(self.state, len(rows), self.memory, FixedDecoderCache)
        if rows.size(1) == 1:  # fills the caches of the cross-attentions
            return super().logits(rows)
        cache.append_slots(1, self.memory.tokens.dtype)
        if self._version != cache.fixed_mask.version:
            self._version, self._graph = cache.fixed_mask.version, None
            self._tokens, self._position = rows[:, -1:].clone(), rows.new_zeros(1, 1)
        self._tokens.copy_(rows[:, -1:])
        self._position.fill_(rows.size(1) - 1)
        if rows.device.type != "cuda":
            return self._step(self._tokens, self._position, self.memory, cache)
        if self._graph is None:
            self._record(cache)
        self._graph.replay()
        return self._logits

    def _record(self, cache: FixedDecoderCache) -> None:
        arguments = self._tokens, self._position, self.memory, cache
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):  # kernels are chosen and libraries set up outside of the recording
            self._step(*arguments)
        torch.cuda.current_stream().wait_stream(stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._logits = self._step(*arguments)

    def worth_dropping(self, finished: int, documents: int) -> bool:
        """Half of them, because a smaller batch is recorded again."""
        return 2 * finished >= documents


def decoding_of(way: str, decoder: Any, memory: Any) -> Decoding:
    """The steps of a decoder in one of the `WAYS`."""
    return Decoding(decoder, memory) if way == "eager" else FixedDecoding(decoder, memory, way == "compile")
