"""Document BLEU during validation, exact even if the chunks of a document are in different batches or processes.

Every process generates for its own batch; then all processes exchange their texts, so that each one sees every
document completed at the same step. The process that generated the last missing chunk counts the document, and
fairseq adds the counts up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics

from ..scoring.bleu_settings import BleuSettings, make_bleu
from .document_table import DocumentCollector, DocumentTable, TextPair

logger = logging.getLogger(__name__)

ORDER = 4  # of BLEU's n-grams
SUMS = ("sys_len", "ref_len", *(f"{name}_{n}" for name in ("counts", "totals") for n in range(ORDER)))
UNKNOWN_REFERENCE = "\u2047"  # for <unk> in a reference: an unknown word that is generated as <unk> is no match


class DocumentBleuMeter:
    """Scores documents by sacrebleu.

    Args:
        generator: fairseq's sequence generator.
        dictionary: of the target.
        decode: BPE tokens to text, with a tab between segments.
        tables: the documents of each subset; filled when subsets are loaded.
        tokenize: sacrebleu's tokenizer.
    """

    def __init__(
        self,
        generator: Any,
        dictionary: Dictionary,
        decode: Callable[[str], str],
        tables: Mapping[str, DocumentTable],
        tokenize: str,
    ) -> None:
        self.generator, self._dictionary, self._decode, self._tables = generator, dictionary, decode, tables
        self._bleu = make_bleu(BleuSettings(tokenize), force=True)
        self._collectors: dict[str, DocumentCollector] = {}

    def start(self) -> None:
        """Forget all texts: a validation begins."""
        self._collectors.clear()

    def finish(self) -> None:
        """Warn of documents that were not scored; a validation of one or more subsets is over.

        Raises:
            ValueError: none was scored.
        """
        for subset, collector in self._collectors.items():
            incomplete, documents = collector.incomplete(), len(self._tables[subset].ids)
            if len(incomplete) == documents:
                raise ValueError(f"--eval-doc-bleu: no document of {subset} is complete; raise --max-valid-steps")
            if incomplete and _rank() == 0:
                logger.warning(
                    "doc_bleu of %s leaves out %d of %d documents, for which not everything was generated; the first "
                    "is %r", subset, len(incomplete), documents, incomplete[0],
                )  # fmt: skip
        self._collectors.clear()

    def score(self, hypotheses: list[list[dict[str, Any]]], sample: dict[str, Any]) -> dict[str, float]:
        """BLEU's sums over the documents that this process completed, for its logging output."""
        subset = sample["subset"]
        if subset not in self._collectors:
            self._collectors[subset] = DocumentCollector(self._tables[subset])
        rows = zip(sample["id"].tolist(), hypotheses, sample["target"], strict=True)
        texts = {index: self._texts(beams[0]["tokens"], target) for index, beams, target in rows}
        gathered, rank = _all_gather(texts)
        completed = []
        for owner, part in enumerate(gathered):
            for index, pair in part.items():
                document = self._collectors[subset].add(index, pair)
                if document is not None and owner == rank:
                    completed.append(document)
        values = [0] * len(SUMS)
        if completed:
            score = self._bleu.corpus_score(
                [document.hypothesis for document in completed], [[document.reference for document in completed]]
            )
            values = [score.sys_len, score.ref_len, *score.counts, *score.totals]
        return {f"_doc_bleu_{name}": value for name, value in zip(SUMS, values, strict=True)}

    @staticmethod
    def reduce(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the sums, and doc_bleu as what follows from them; nothing when nothing was generated."""
        if not any("_doc_bleu_sys_len" in log for log in logging_outputs):
            return
        sums = [float(sum(log.get(f"_doc_bleu_{name}", 0) for log in logging_outputs)) for name in SUMS]
        metrics.log_scalar("_doc_bleu_sums", np.array(sums))
        metrics.log_derived("doc_bleu", lambda meters: round(_bleu_of(meters["_doc_bleu_sums"].sum), 2))

    def _texts(self, hypothesis: torch.Tensor, target: torch.Tensor) -> TextPair:
        return TextPair(self._text(hypothesis), self._text(target, unk_string=UNKNOWN_REFERENCE))

    def _text(self, tokens: torch.Tensor, **options: str) -> str:
        tokens = utils.strip_pad(tokens, self._dictionary.pad()).int().cpu()
        return " ".join(self._decode(self._dictionary.string(tokens, **options)).split())


def _all_gather(texts: dict[int, TextPair]) -> tuple[list[dict[int, TextPair]], int]:
    """The texts of all processes by rank, and the own rank."""
    num_processes = distributed_utils.get_data_parallel_world_size()
    if num_processes == 1:
        return [texts], 0
    gathered: list[Any] = [None] * num_processes
    group = distributed_utils.get_data_parallel_group()
    torch.distributed.all_gather_object(gathered, texts, group=group)
    return gathered, _rank()


def _rank() -> int:
    several = distributed_utils.get_data_parallel_world_size() > 1
    return int(distributed_utils.get_data_parallel_rank()) if several else 0


def _bleu_of(sums: np.ndarray) -> float:
    """BLEU (0 to 100) of `SUMS`, with sacrebleu's default smoothing."""
    from sacrebleu.metrics import BLEU

    sys_len, ref_len, *ngrams = (round(value) for value in sums.tolist())
    return float(BLEU.compute_bleu(ngrams[:ORDER], ngrams[ORDER:], sys_len, ref_len, smooth_method="exp").score)
