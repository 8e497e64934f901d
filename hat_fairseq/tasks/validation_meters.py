"""ROUGE and document BLEU of generated texts during validation, as sums over batches and processes.

Document BLEU is exact even if the chunks of a document are in different batches or processes. Every process generates
for its own batch; then all processes exchange their texts. The process that generated the last missing chunk of a
document counts its n-grams, and fairseq sums the counts.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from fairseq import utils
from fairseq.data import Dictionary
from fairseq.distributed import utils as distributed_utils
from fairseq.logging import metrics

from ..data.rows import Chunk
from ..data.word_tokenizer import join_sentences
from ..scoring.bleu import BleuSettings, make_bleu
from ..scoring.rouge import score_documents
from ..scoring.rouge_settings import split_summary
from ..scoring.script import settings_by_script

logger = logging.getLogger(__name__)

ROUGE = {"rouge1": "rouge1", "rouge2": "rouge2", "rougeLsum": "rougeL"}  # names of rouge-score, and ours in the logs
ORDER = 4  # of BLEU's n-grams
SUMS = ("sys_len", "ref_len", *(f"{name}_{n}" for name in ("counts", "totals") for n in range(ORDER)))
MANY = 0.5  # of all hypotheses: a share that is a warning
SOME_REFERENCES = 200  # enough to know their script
UNKNOWN_REFERENCE = "\u2047"  # for <unk> in a reference: an unknown word that is generated as <unk> is no match
TextPair = tuple[str, str]  # a hypothesis and its reference


class GenerationMeter:
    """The base of both meters: makes the texts of a batch.

    Args:
        generator: fairseq's sequence generator.
        dictionary: of the target.
        decode: BPE tokens to text.
    """

    def __init__(self, generator: Any, dictionary: Dictionary, decode: Callable[[str], str]) -> None:
        self.generator, self._dictionary, self._decode = generator, dictionary, decode

    def _texts(
        self, hypotheses: list[list[dict[str, Any]]], sample: dict[str, Any], **of_references: str
    ) -> list[TextPair]:
        pairs = zip(hypotheses, sample["target"], strict=True)
        return [(self._text(beams[0]["tokens"]), self._text(target, **of_references)) for beams, target in pairs]

    @staticmethod
    def count_short(pairs: list[TextPair]) -> dict[str, float]:
        """Counts of all hypotheses and of those of at most one word, for a batch's logging output."""
        return {"_hypotheses": len(pairs), "_short_hypotheses": sum(_is_short(*pair) for pair in pairs)}

    @staticmethod
    def reduce_short(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the share of short hypotheses for `warn_of_short`."""
        if number := sum(log.get("_hypotheses", 0) for log in logging_outputs):
            short = sum(log["_short_hypotheses"] for log in logging_outputs if "_hypotheses" in log)
            metrics.log_scalar("_short_hypotheses", short / number, number)

    @staticmethod
    def warn_of_short(meters: Mapping[str, Any]) -> None:
        """Warn if most hypotheses of a validation subset are empty or one word, which no score shows."""
        share = meters["_short_hypotheses"].avg if "_short_hypotheses" in meters else 0.0
        if share > MANY and _rank() == 0:
            logger.warning(
                "%.0f%% of the generated texts are empty or one word, so their scores say nothing; if this stays so, "
                "look at min_len, max_len_b and lenpen of the generation, and at the learning rate", 100 * share,
            )  # fmt: skip

    def _text(self, tokens: torch.Tensor, **options: str) -> str:
        tokens = utils.strip_pad(tokens, self._dictionary.pad()).int().cpu()
        return self._decode(self._dictionary.string(tokens, **options))


class RougeMeter(GenerationMeter):
    """Scores summaries: stemmed, both sides split at punctuation (the target has no other sentence ends left)."""

    def score(self, hypotheses: list[list[dict[str, Any]]], sample: dict[str, Any]) -> dict[str, float]:
        """Sums of F x 100 over a batch's documents, for its logging output."""
        pairs = self._texts(hypotheses, sample)
        generated, references = ([split_summary(pair[side], "punctuation") for pair in pairs] for side in (0, 1))
        scores = score_documents(generated, references, stem=True)
        sums = {f"_{ours}_sum": 100 * float(scores[theirs].sum()) for theirs, ours in ROUGE.items()}
        return {**sums, "_rouge_documents": len(pairs), **self.count_short(pairs)}

    @staticmethod
    def reduce(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean of each metric; nothing when nothing was generated."""
        documents = int(sum(log.get("_rouge_documents", 0) for log in logging_outputs))
        for name in ROUGE.values() if documents else ():
            mean = float(sum(log.get(f"_{name}_sum", 0) for log in logging_outputs)) / documents
            metrics.log_scalar(name, mean, documents, round=2)


class DocumentBleuMeter(GenerationMeter):
    """Scores documents by sacrebleu.

    Args:
        generator, dictionary, decode: of `GenerationMeter`; `decode` leaves a tab between segments.
        chunks: the ids table of each subset; filled when subsets are loaded.
        settings: tokenizer and language.
    """

    def __init__(
        self,
        generator: Any,
        dictionary: Dictionary,
        decode: Callable[[str], str],
        chunks: Mapping[str, list[Chunk]],
        settings: BleuSettings,
    ) -> None:
        super().__init__(generator, dictionary, decode)
        self._chunks, self._settings, self._bleu = chunks, settings, make_bleu(settings, force=True)
        self._scorers: dict[str, Any] = {}  # of subsets; `_bleu` for others
        self._parts: dict[str, dict[str, dict[int, TextPair]]] = {}  # of each document by subset, and their texts

    def choose_tokenizer(self, subset: str, targets: Sequence[torch.Tensor]) -> None:
        """Choose the tokenizer of a subset by the script of some of its references, if no language is stated."""
        step = max(len(targets) // SOME_REFERENCES, 1)
        texts = (self._text(targets[number]) for number in range(0, len(targets), step))
        settings, reason = settings_by_script(self._settings, texts)
        self._scorers[subset] = make_bleu(settings, force=True)
        if reason:
            logger.info("doc_bleu of %s: %s", subset, reason)

    def start(self) -> None:
        """Forget all texts: a validation begins."""
        self._parts.clear()

    def finish(self) -> None:
        """Warn of documents that were not scored; a validation of one or more subsets is over.

        Raises:
            ValueError: none was scored.
        """
        for subset, parts in self._parts.items():
            counts = {chunk.document_id: chunk.count for chunk in self._chunks[subset]}
            incomplete = [name for name, count in counts.items() if len(parts.get(name, ())) < count]
            if len(incomplete) == len(counts):
                raise ValueError(f"--eval-doc-bleu: no document of {subset} is complete; raise --max-valid-steps")
            if incomplete and _rank() == 0:
                logger.warning(
                    "doc_bleu of %s leaves out %d of %d documents, for which not everything was generated; the first "
                    "is %r", subset, len(incomplete), len(counts), incomplete[0],
                )  # fmt: skip
        self._parts.clear()

    def score(self, hypotheses: list[list[dict[str, Any]]], sample: dict[str, Any]) -> dict[str, float]:
        """BLEU's sums over the documents that this process completed, for its logging output."""
        pairs = self._texts(hypotheses, sample, unk_string=UNKNOWN_REFERENCE)
        texts = dict(zip(sample["id"].tolist(), [(_one_line(h), _one_line(r)) for h, r in pairs], strict=True))
        completed: list[TextPair] = []
        for owner, gathered in enumerate(_all_gather(texts)):
            for index, pair in gathered.items():
                document = self._add(sample["subset"], index, pair)
                if document is not None and owner == _rank():
                    completed.append(document)
        values = [0] * len(SUMS)
        if completed:
            generated, references = map(list, zip(*completed, strict=True))
            score = self._scorers.get(sample["subset"], self._bleu).corpus_score(generated, [references])
            values = [score.sys_len, score.ref_len, *score.counts, *score.totals]
        sums = {f"_doc_bleu_{name}": value for name, value in zip(SUMS, values, strict=True)}
        return sums | self.count_short(pairs)

    def _add(self, subset: str, index: int, pair: TextPair) -> TextPair | None:
        """The texts of the whole document if sample `index` was the last one missing; None else, or if repeated."""
        chunk = self._chunks[subset][index]
        parts = self._parts.setdefault(subset, {}).setdefault(chunk.document_id, {})
        if chunk.number in parts:
            return None
        parts[chunk.number] = pair
        if len(parts) < chunk.count:
            return None
        ordered = [parts[number] for number in sorted(parts)]
        hypotheses, references = zip(*ordered, strict=True)
        language = self._settings.language
        return join_sentences(hypotheses, language), join_sentences(references, language)

    @staticmethod
    def reduce(logging_outputs: list[dict[str, Any]]) -> None:
        """Log the sums, and doc_bleu as what follows from them; nothing when nothing was generated."""
        if not any("_doc_bleu_sys_len" in log for log in logging_outputs):
            return
        sums = [float(sum(log.get(f"_doc_bleu_{name}", 0) for log in logging_outputs)) for name in SUMS]
        metrics.log_scalar("_doc_bleu_sums", np.array(sums))
        metrics.log_derived("doc_bleu", lambda meters: round(_bleu_of(meters["_doc_bleu_sums"].sum), 2))


def _is_short(hypothesis: str, reference: str) -> bool:
    """Whether it is at most one word, or one character where words are not separated, and the reference is longer."""
    return len(hypothesis.split()) <= 1 < len(reference.split()) or len(hypothesis) <= 1 < len(reference)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _all_gather(texts: dict[int, TextPair]) -> list[dict[int, TextPair]]:
    """The texts of all processes by rank."""
    gathered = [texts] * distributed_utils.get_data_parallel_world_size()
    if len(gathered) > 1:
        torch.distributed.all_gather_object(gathered, texts, group=distributed_utils.get_data_parallel_group())
    return gathered


def _rank() -> int:
    several = distributed_utils.get_data_parallel_world_size() > 1
    return int(distributed_utils.get_data_parallel_rank()) if several else 0


def _bleu_of(sums: np.ndarray) -> float:
    """BLEU (0 to 100) of `SUMS`, with sacrebleu's default smoothing."""
    from sacrebleu.metrics import BLEU

    sys_len, ref_len, *ngrams = (round(value) for value in sums.tolist())
    return float(BLEU.compute_bleu(ngrams[:ORDER], ngrams[ORDER:], sys_len, ref_len, smooth_method="exp").score)
