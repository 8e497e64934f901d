"""The stages of preprocessing: read a split or a shard, prepare records, learn BPE, measure what decoding loses."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from hat_fairseq.data.alignment import MisalignedError, words_of
from hat_fairseq.data.clean import EmptyDocumentError, clean_target, prepare, sentences_for_bpe
from hat_fairseq.data.kinds import Kind, kind_of
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.options import Options, Settings
from hat_fairseq.data.parallel import ordered_map, progress
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.record import Gold, Record
from hat_fairseq.data.records_json import json_line, read_records

SEGMENTS = 5000  # of a split, at most, that `round_trip` encodes and decodes


def records_path(text: Path, split: str) -> Path:
    """Path of the prepared records of a split."""
    return text / f"{split}.jsonl"


def read_split(
    reader: Reader, split: str, root: Path | None, options: Options, counts: Counter[str], others: set[object]
) -> Iterator[Record]:
    """The reader's records, at most `options.limit`.

    `others` has ids and hashes of the sources of earlier splits; those of this one are added. What occurs twice is
    counted as `ids_in_an_earlier_split` and `sources_in_an_earlier_split`. ValueError for an id that occurs twice, a
    split without records, or, unless the options say that this is meant, another number than the release has.
    """
    seen: set[str] = set()
    sources: set[int] = set()
    for record in islice(reader.read(split, root, counts), options.limit):
        if record.id in seen:
            raise ValueError(f"{reader.name}, {split}: {record.name} occurs twice")
        seen.add(record.id)
        sources.add(source := hash(record.source))
        counts["ids_in_an_earlier_split"] += record.id in others
        counts["sources_in_an_earlier_split"] += source in others
        yield record
    if not seen:
        raise ValueError(f"{reader.name}: the split {split} has no documents")
    others |= seen | sources
    expected = reader.release.get(split, (len(seen),))
    if options.limit is None and not options.partial and len(seen) not in expected:
        raise ValueError(
            f"{reader.name}: the split {split} has {len(seen):,} documents, a complete release "
            f"{' or '.join(f'{number:,}' for number in expected)}; complete it, or use what is there with --partial, "
            "or only the first N documents with --limit N"
        )


@dataclass
class Share:
    """A shard: record i of a split, from 0, belongs to shard `i % of + 1`.

    So any reader can be divided, nothing is counted first, and shards differ by one record at most. The price: each
    shard reads the whole input, although it processes its own records only; and merging interleaves lines.

    Of each split: what the reader dropped; ids, and digests of the sources; lines of each record that is not dropped.
    """

    number: int
    of: int
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    digests: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lines: dict[str, dict[str, int]] = field(default_factory=dict)

    def read(self, reader: Reader, split: str, root: Path | None, options: Options) -> Iterator[Record]:
        """The records of this shard."""
        self.digests[split], self.dropped[split], self.lines[split] = [], Counter(), {}
        records = islice(reader.read(split, root, self.dropped[split]), options.limit)
        for record in islice(records, self.number - 1, None, self.of):
            self.digests[split].append((record.id, sha256(repr(record.source).encode()).hexdigest()[:16]))
            yield record


def prepare_split(
    records: Iterable[Record],
    split: str,
    options: Options,
    text: Path,
    counts: Counter[str],
    workers: int,
    expected: int | None = None,
) -> Gold:
    """Write the prepared records, of which `expected` will come; adds to `counts` what was replaced or dropped."""
    path, kind, gold = records_path(text, split), kind_of(options.kind), Gold()
    prepared = ordered_map(partial(_prepare, options, split.startswith("test")), records, workers)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for record, record_counts in progress(prepared, path.name, expected):
            counts.update(record_counts)
            if record is not None:
                gold.add(record, kind.gold)
                file.write(json_line(record, kind) + "\n")
    return gold


def check_gold(split: str, gold: Gold, kind: Kind) -> None:
    """Raises ValueError for a split without records, or in which only some records have targets or labels."""
    if not gold.records:
        raise ValueError(f"{split}.jsonl: every document was dropped (--on-empty drop, --on-misaligned drop)")
    if gold.known and gold.unknown:
        raise ValueError(
            f"{split}: {gold.known} has {kind.gold}, {gold.unknown} has none; give all documents of a split "
            f"{kind.gold}, or none"
        )


def learn_bpe(text: Path, split: str, options: Options, workers: int, total: int) -> LearnedBpe:
    """Learn joint codes from all texts of the prepared records, sources and targets."""
    words: Counter[str] = Counter()
    path = records_path(text, split)
    counted = ordered_map(partial(_words, options), read_records(path, options.kind, split), workers)
    for words_of_record in progress(counted, f"count words of {path.name}", total):
        words.update(words_of_record)
    return LearnedBpe.learn_from_words(words, options.num_codes)


def round_trip(pipeline: TextPipeline, path: Path) -> dict[str, Any]:
    """Encodes and decodes the first target segments of prepared records: what a perfect model would lose.

    Returns `segments`, how many; `changed`, how many of them come back differently (white space, mostly); `bleu` of
    what comes back. Empty without targets, or if nothing can change: no word tokenizer, no BPE that normalises.
    """
    if pipeline.settings.target_tokenizer == "none" and pipeline.bpe.kind != "sentencepiece":
        return {}
    import sacrebleu

    language, encoder = pipeline.settings.target_language, pipeline.encoder()
    texts = list(islice((text for record in read_records(path) for text in clean_target(record)), SEGMENTS))
    if not texts:
        return {}
    back = [pipeline.decode(" ".join(encoder.pieces([text], "target")[1][0])) for text in texts]
    changed = sum(text != other for text, other in zip(texts, back, strict=True))
    bleu = sacrebleu.corpus_bleu(back, [texts], tokenize="zh" if language == "zh" else "13a", force=True).score
    return {"segments": len(texts), "changed": changed, "bleu": round(bleu, 2)}


def _prepare(options: Options, may_be_blind: bool, record: Record) -> tuple[Record | None, Counter[str]]:
    kind = kind_of(options.kind)
    kind.check(record)
    if kind.has_target and record.sentences is not None and options.splitter != "given":
        raise ValueError(
            f"{record.name} brings its own sentences or turns, and --splitter {options.splitter} is for running text; "
            "use --splitter given"
        )
    if kind.has_target and record.target is None and not may_be_blind:
        raise ValueError(f"{record.name} has no target")
    counts: Counter[str] = Counter()
    try:
        prepared = prepare(record, kind, options, counts, options.on_misaligned)
    except EmptyDocumentError as error:
        if options.on_empty == "error":
            raise EmptyDocumentError(f"{error}; remove it, or drop and count such: --on-empty drop") from error
        return None, Counter(documents_empty_dropped=1)
    except MisalignedError:
        if options.on_misaligned != "drop":
            raise
        return None, Counter(documents_misaligned_dropped=1) + words_of(
            record, (options.source_language, options.target_language)
        )
    return prepared, counts


def _words(settings: Settings, record: Record) -> Counter[str]:
    sentences = sentences_for_bpe(record, kind_of(settings.kind), settings)
    return Counter(word for sentence in sentences for word in sentence.split())
