"""The stages of preprocessing between the reader and fairseq; each reads and writes files that a person can open."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from tqdm import tqdm

from hat_fairseq.data.alignment import MisalignedError, words_of
from hat_fairseq.data.document import Document, read_documents
from hat_fairseq.data.encoded import EncodedPair
from hat_fairseq.data.learned_bpe import LearnedBpe
from hat_fairseq.data.manifest import SplitReport
from hat_fairseq.data.parallel import ordered_map
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.prepare import EmptyDocumentError, prepare, source_sentences, target_sentences
from hat_fairseq.data.readers import Reader
from hat_fairseq.data.settings import Settings
from hat_fairseq.data.word_tokenizer import count_words

Item = TypeVar("Item")
Encoded = tuple[EncodedPair, Counter[str], Counter[str]]  # the tokens, words of both sides, what was replaced


class Policies(NamedTuple):
    """Policies for documents without text and for misaligned documents."""

    on_empty: str = "error"  # or drop
    on_misaligned: str = "error"  # one of alignment.POLICIES
    blind: bool = False  # whether a split may be without targets


def documents_path(text: Path, split: str) -> Path:
    """Where the prepared documents of a split are kept."""
    return text / f"{split}.documents.jsonl"


def read_split(
    reader: Reader,
    split: str,
    root: Path | None,
    limit: int | None,
    counts: Counter[str],
    partial_release: bool = False,
    others: set[object] | None = None,
) -> Iterator[Any]:
    """The reader's documents or examples, at most ``limit``.

    Args:
        others: ids and hashes of the sources of earlier splits; those of this one are added. What occurs twice is
            counted as ``ids_in_an_earlier_split`` and ``sources_in_an_earlier_split``.

    Raises:
        ValueError: an id that occurs twice, a split without documents, or, unless ``limit`` or ``partial_release`` say
            that this is meant, another number of documents than the release has.
    """
    seen: set[str] = set()
    sources: set[int] = set()
    others = set() if others is None else others
    documents: Iterator[Any] = reader.read(split, root, counts)
    for document in islice(documents, limit):
        if document.id in seen:
            raise ValueError(f"{reader.name}, {split}: {document.name} occurs twice")
        seen.add(document.id)
        sources.add(source := hash(document.source))
        counts["ids_in_an_earlier_split"] += document.id in others
        counts["sources_in_an_earlier_split"] += source in others
        yield document
    if not seen:
        raise ValueError(f"{reader.name}: the split {split} has no documents")
    others |= seen | sources
    expected = reader.release.get(split, (len(seen),))
    if limit is None and not partial_release and len(seen) not in expected:
        raise ValueError(
            f"{reader.name}: the split {split} has {len(seen):,} documents, a complete release "
            f"{' or '.join(f'{number:,}' for number in expected)}; complete it, or use what is there with --partial, "
            "or only the first N documents with --limit N"
        )


def prepare_split(
    documents: Iterable[Document], settings: Settings, policies: Policies, path: Path, workers: int
) -> Counter[str]:
    """Write the prepared documents to ``path`` and return what was replaced or dropped.

    Raises:
        ValueError: no document is left, or only some have a target.
    """
    counts: Counter[str] = Counter()
    written = 0
    prepared = ordered_map(partial(_prepare, settings, policies), documents, workers)
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for line, line_counts in progress(prepared, path.name):
            counts.update(line_counts)
            if line is not None:
                file.write(line + "\n")
                written += 1
    check_some_left(path)
    if 0 < (blind := counts["documents_without_target"]) < written:
        raise ValueError(f"{path.name}: {blind} of {written} documents have no target: give all of them one, or none")
    return counts


def check_some_left(path: Path) -> None:
    """Raises ValueError if nothing was written to a file of documents."""
    if not path.stat().st_size:
        raise ValueError(f"{path.name}: every document was dropped (--on-empty drop, --on-misaligned drop)")


def learn_bpe(path: Path, settings: Settings, num_codes: int, workers: int) -> LearnedBpe:
    """Learn joint codes from the sources and targets of prepared documents."""
    words: Counter[str] = Counter()
    counted = ordered_map(partial(_words, settings), read_documents(path), workers)
    for words_of_document in progress(counted, f"count words of {path.name}"):
        words.update(words_of_document)
    return LearnedBpe.learn_from_words(words, num_codes)


def role_labels(path: Path) -> tuple[str, ...]:
    """The roles of prepared documents, sorted.

    Raises:
        ValueError: there are none.
    """
    labels = {role for document in read_documents(path) for role in document.roles or ()}
    if not labels:
        raise ValueError(f"{path.name}: --roles needs documents with roles, and none has any; use --no-roles")
    return tuple(sorted(labels))


def encode_split(pipeline: TextPipeline, text: Path, split: str, workers: int, by_source: bool = False) -> SplitReport:
    """Write the streams and the ids of a split: one line for each document or chunk, the same number in every file.

    Args:
        by_source: see ``TextPipeline.encode_pair``.
    """
    report = SplitReport()
    streams = ["source", "ids", "target"] + (["role"] if pipeline.settings.roles is not None else [])
    paths = {stream: text / f"{split}.{stream}" for stream in streams}
    documents = read_documents(documents_path(text, split))
    with ExitStack() as stack:
        files = {
            stream: stack.enter_context(open(path, "w", encoding="utf-8", newline="\n"))
            for stream, path in paths.items()
        }
        encoded = ordered_map(partial(_encode, pipeline, by_source), documents, workers)
        for pair, totals, counts in progress(encoded, f"{split}: BPE"):
            _add(report, pair, totals, counts)
            files["target"].writelines(" ".join(target) + "\n" for target in pair.targets)
            for part in pair.parts:
                files["source"].write(" ".join(part.tokens) + "\n")
                files["ids"].write(f"{part.id}\t{part.chunk}\t{part.num_chunks}\t{part.sentences}\n")
                if part.roles is not None:
                    files["role"].write(" ".join(part.roles) + "\n")
    if not report.target_lengths:  # a blind test set
        paths.pop("target").unlink()
    check_line_counts(list(paths.values()))
    return report


def check_line_counts(paths: Sequence[Path]) -> None:
    """Parallel files must have equally many lines.

    Raises:
        ValueError: they have not; with each file and its number of lines.
    """
    counts = {}
    for path in paths:
        with open(path, "rb") as file:
            counts[path] = sum(1 for _ in file)
    if len(set(counts.values())) > 1:
        figures = ", ".join(f"{path} has {number}" for path, number in counts.items())
        raise ValueError(f"parallel files differ in their number of lines: {figures}")


def _words(settings: Settings, document: Document) -> Counter[str]:
    uncounted: Counter[str] = Counter()
    sentences = source_sentences(document, settings, uncounted)
    sentences += target_sentences(document, settings, uncounted) or []
    return Counter(word for sentence in sentences for word in sentence.split())


def _prepare(settings: Settings, policies: Policies, document: Document) -> tuple[str | None, Counter[str]]:
    if document.sentences is not None and settings.splitter != "given":
        raise ValueError(
            f"document {document.id!r} brings its own sentences or turns, and --splitter {settings.splitter} is for "
            "running text; use --splitter given"
        )
    if document.target is None and not policies.blind:
        raise ValueError(f"{document.name} has no target")
    counts: Counter[str] = Counter(documents_without_target=int(document.target is None))
    try:
        prepared = prepare(document, settings, counts, policies.on_misaligned)
    except EmptyDocumentError as error:
        if policies.on_empty == "error":
            raise EmptyDocumentError(f"{error}; remove it, or drop and count such: --on-empty drop") from error
        return None, Counter(documents_empty_dropped=1)
    except MisalignedError:
        if policies.on_misaligned != "drop":
            raise
        return None, Counter(documents_misaligned_dropped=1) + words_of(document, settings.languages)
    return json.dumps(prepared.to_json(), ensure_ascii=False), counts


def _encode(pipeline: TextPipeline, by_source: bool, document: Document) -> Encoded:
    pipeline.counts.clear()
    pair = pipeline.encode_pair(document, by_source)
    source, target = pipeline.settings.languages
    words = Counter(
        source_words=sum(count_words(text, source) for text in document.sentences or ()),
        target_words=sum(count_words(text, target) for text in document.target or ()),
        source_tokens=pair.source_tokens,
        target_tokens=pair.target_tokens,
    )
    return pair, words, Counter(pipeline.counts)


def _add(report: SplitReport, pair: EncodedPair, totals: Counter[str], counts: Counter[str]) -> None:
    report.documents += 1
    report.sentences += sum(part.sentences for part in pair.parts)
    report.source_lengths += [len(part.tokens) for part in pair.parts]
    report.target_lengths += map(len, pair.targets)
    report.totals.update(totals)
    report.treatments.update(counts)


def progress(items: Iterable[Item], what: str) -> Iterable[Item]:
    """The items, with a progress bar on a terminal."""
    return tqdm(items, desc=what, unit=" documents", leave=False, disable=None)  # None: only on a terminal
