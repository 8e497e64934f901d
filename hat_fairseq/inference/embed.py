"""Write vectors of the sentences, segments or whole documents of an input, each in the context of its document.

A vector is the mean of the states of its tokens, or the state of its marker `<s>`, and has length 1. The marker of a
sentence and the `</s>` of a row count as tokens, so a sentence alone has the vector that sentence-transformers computes
with the weights of a MiniLM. A document that is longer than the model is divided into as few rows as possible, at the
ends of segments; the context is then the row. With `context` a document is instead read in chunks that overlap, without
markers between sentences, and a vector is the mean of the tokens around its sentence (`modules.in_context`). A prompt,
such as `passage: `, is put before each row and each chunk. What the folder of a model says is `VectorSettings`.

Legend: B rows, T tokens of a row, N vectors, C channels.
"""

import argparse
import base64
import sys
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property, partial
from itertools import chain, count
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from ..data.bpe import Bpe
from ..data.dictionary import BOS, EOS
from ..data.kinds.windows import as_given, kept_characters, places_of
from ..data.long_input import cut, group_within
from ..data.outputs import atomic_file
from ..data.pipeline import TextPipeline
from ..data.record import Record, Text, roles_of
from ..data.sentences import Divided, Divider, Sentence
from ..data.text import BOS_TOKEN, normalise, shown
from ..modules.in_context import means_in_context, nearby_means
from ..options import OptionError, check_effects, check_values, option, options_of, read_options
from ..weights.vector_settings import DOCUMENT, QUERY, VectorSettings
from ..workers import progress
from . import command, jobs, reading
from .loading import Loaded, verb_of
from .rows import Line, batches, check_batches, count_unknown, padded, row_of

UNITS, POOLINGS = ("sentence", "segment", "document"), ("mean", "marker")
WRITES_STDOUT = True  # with --out -
RECORDS = 32  # for a worker at a time, at least
SHORTEST = 8  # tokens of a row that a prompt must leave
PROBES = ("a", "The 1.")  # texts after a prompt


@dataclass(frozen=True)
class EmbedOptions:
    """What vectors are of; ValueError for an unknown name.

    Attributes:
        of: with most data a segment is a sentence.
        pooling: the marker of a document is its first one. None: that of the folder of the model.
        raw: the vectors keep their length.
        context: None: from rows with markers.
        prompt: a text that is put before each row or chunk.
    """

    of: str = option(
        "sentence",
        "write a vector for each of these; a segment begins with a marker and may hold several sentences",
        UNITS,
    )
    pooling: str | None = option(
        None,
        "compute a vector as the mean of the states of its tokens, or take the state of its marker <s>; a document "
        "that is longer than the model's limit has that of its first row (default: as the folder says, else mean)",
        POOLINGS,
    )
    alone: bool = option(False, "encode each sentence or segment without its document")
    raw: bool = False
    context: int | None = option(
        None,
        "read a document in chunks that overlap, and compute a vector as the mean of all tokens within N tokens of the "
        "middle of its sentence or segment, and of the tokens of that; 0: of the latter alone",
        least=0,
        excludes="alone",
    )
    prompt: str = ""

    def __post_init__(self) -> None:
        check_values(EmbedOptions, self)
        check_effects(EmbedOptions, vars(self))
        if self.alone and self.of == "document":
            raise OptionError("{alone} is for sentences and segments: a document has no other context", alone=None)
        if self.context is not None:
            self.check_context()

    def check_context(self) -> None:
        """Raises ValueError for options that a width contradicts."""
        if self.of == "document":
            text = "{context} is for sentences and segments: a document has no other context. Remove {context}, or {of}"
            raise OptionError(text, context=None, of="document")
        if self.pooling == "marker":
            text = "{context} averages tokens, and chunks have no markers inside: remove {context}, or {pooling}"
            raise OptionError(text, context=None, pooling="marker")

    def of_folder(self, settings: VectorSettings, path: str) -> "EmbedOptions":
        """Returns the same with the pooling of the folder `path`; ValueError for [CLS] where none is."""
        if self.pooling is not None or settings.pooling is None:
            return self
        if settings.pooling == "marker" and self.context is not None:
            text = "{context} averages tokens, and vectors of {} are the state of [CLS]: remove {context}, or {pooling}"
            raise OptionError(text, path, context=None, pooling="mean")
        if settings.pooling == "marker" and self.of != "document" and not self.alone:
            text = "vectors of {} are the state of [CLS], of which a document has one: give {alone}, {of} or {pooling}"
            raise OptionError(text, path, alone=None, of="document", pooling="mean")
        return replace(self, pooling=settings.pooling)


def choose_prompt(
    settings: VectorSettings, queries: bool = False, query: str | None = None, document: str | None = None
) -> str:
    """Returns the prompt for queries, or else for documents; ValueError for several choices.

    Args:
        settings: of the folder, which has the default.
        queries: the texts are queries; with `query` they are, too.
        query, document: prompts that are given.
    """
    if sum([queries, query is not None, document is not None]) > 1:
        text = "{queries}, {query_prompt} and {document_prompt} contradict each other: give one of them"
        raise OptionError(text, queries=None, query_prompt=None, document_prompt=None)
    if queries and not settings.prompt(QUERY):
        text = "{queries} has no effect: the model has no prompt for queries; remove it, or give {query_prompt}"
        raise OptionError(text, queries=None, query_prompt=None)
    prompt = document if query is None else query
    return settings.prompt(QUERY if queries else DOCUMENT) if prompt is None else prompt


@dataclass
class Embedding:
    """The vectors of a document.

    Attributes:
        id: of the document.
        spans: begin and end of the characters of each vector, the end exclusive. They count in the text, or in the
            elements joined by line breaks.
        vectors: (N, C) in fp32.
        texts: these characters.
    """

    id: str
    spans: list[tuple[int, int]]
    vectors: np.ndarray
    texts: list[str]

    def to_line(self) -> Line:
        """Returns a JSON object that `from_line` reads."""
        vectors = base64.b64encode(self.vectors.tobytes()).decode()
        return {"id": self.id, "spans": self.spans, "texts": self.texts, "vectors": vectors}

    @classmethod
    def from_line(cls, line: Line) -> "Embedding":
        flat = np.frombuffer(base64.b64decode(line["vectors"]), np.float32)
        spans = [(begin, end) for begin, end in line["spans"]]
        return cls(line["id"], spans, flat.reshape(len(spans), -1), line["texts"])


Owned = list[tuple[str, int]]  # tokens with the indices of their vectors
RowStates = Callable[[list[Tensor]], Iterator[tuple[int, Tensor]]]  # see `Embedder.states_of`


@dataclass
class Pieces:
    """A document for the model: rows of (token, number of its vector), and where each vector is.

    The rows have markers; with `context` there is one row, which has none.
    """

    rows: list[Owned]
    spans: list[tuple[int, int]]


class Embedder:
    """Embeds documents with one model; ValueError for several, or one that reads more than a text."""

    def __init__(self, loaded: Loaded, options: EmbedOptions) -> None:
        if len(loaded.models) != 1:
            raise ValueError("vectors are those of one model, not of an ensemble: give one")
        settings = loaded.pipeline.settings
        check_reads_text(loaded.pipeline, loaded.paths[0], loaded.roles is not None)
        without_markers = settings.segments != "sentences" and not options.alone
        options = options.of_folder(VectorSettings.read(loaded.paths[0]), loaded.paths[0])
        if options.of == "sentence" and options.pooling == "marker" and without_markers:
            text = "sentences of this model have no markers of their own: {of}, or {pooling}"
            raise OptionError(text, of="segment", pooling="mean")
        self.loaded, self.options, self.model = loaded, options, loaded.models[0]
        if options.context is not None and not self.reads_plain_rows():
            text = "{context} is for encoders without hierarchy, such as an imported BERT, and {} ({}) reads markers "
            text += "<s> inside of a text: remove {context}"
            raise OptionError(text, loaded.paths[0], loaded.architecture, context=None)
        self.pipeline, self.encoder = loaded.pipeline, loaded.pipeline.encoder()

    @cached_property
    def prompt(self) -> tuple[list[str], str]:
        """Returns the tokens of the prompt of a row, and what stands before the words after it; ValueError if long."""
        tokens, lead = prompt_of(self.pipeline.bpe, self.options.prompt)
        if self.loaded.longest - len(tokens) < SHORTEST:
            raise ValueError(f"the prompt has {len(tokens)} tokens, too many for a model of {self.loaded.longest}")
        return tokens, lead

    def embeddings(
        self, records: Iterable[Record], batch_size: int | None = None, max_tokens: int | None = None
    ) -> Iterator[Embedding]:
        """Yields the vectors of each record, in order; `batch_size`, `max_tokens`: see `rows.batches`.

        All records are encoded first. ValueError for one that is empty, or has more than one text.
        """
        check_batches(batch_size)
        records = list(records)
        documents = [self.pieces(record) for record in records]
        tokens = [list(map(self.ids, document.rows)) for document in documents]
        if not any(tokens):
            return
        for record, rows in zip(records, tokens, strict=True):
            count_unknown(record.name, rows, self.pipeline)
        pooled = self.of_rows if self.options.context is None else self.in_context
        vectors = pooled(documents, tokens, partial(self.states_of, batch_size=batch_size, max_tokens=max_tokens))
        for record, document, each in zip(records, documents, vectors, strict=True):
            scaled = each if self.options.raw else F.normalize(each, dim=1)
            texts = [as_given(text_of(record))[begin:end] for begin, end in document.spans]
            yield Embedding(record.id, document.spans, scaled.numpy(), texts)

    def of_rows(
        self, documents: Sequence[Pieces], tokens: Sequence[list[Tensor]], states_of: RowStates
    ) -> Iterator[Tensor]:
        """Yields the (N, C) vectors of each document from the states of its rows, which are added up as they come."""
        rows = list(chain.from_iterable(tokens))
        places = [(number, *each) for number, document in enumerate(documents) for each in self.owners(document)]
        sums: dict[int, Tensor] = {}
        for index, states in states_of(rows):
            number, owners, used = places[index]
            if number not in sums:
                sums[number] = states.new_zeros(len(documents[number].spans), states.size(1))
            sums[number].index_add_(0, owners[used], states[used])
        counts = [torch.zeros(len(document.spans), 1) for document in documents]
        for number, owners, used in places:
            counts[number] += owners[used].bincount(minlength=len(counts[number])).unsqueeze(1)
        for number, tokens_of in enumerate(counts):
            yield sums[number] / tokens_of

    def owners(self, document: Pieces) -> Iterator[tuple[Tensor, Tensor]]:
        """Yields for each row of a document the (T,) numbers of the vectors of its tokens, and which tokens count."""
        last = -1
        for row in document.rows:
            owners = torch.tensor([*(number for _, number in row), row[-1][1]])  # `</s>` with the last
            used = torch.ones_like(owners, dtype=torch.bool)
            if self.options.pooling == "marker":  # the first token of each vector in a row, not where it goes on
                used = F.pad(owners[1:] != owners[:-1], (1, 0), value=True) & (owners > last)
                last = int(owners[-1])
            yield owners, used

    def in_context(
        self, documents: Sequence[Pieces], tokens: Sequence[list[Tensor]], states_of: RowStates
    ) -> Iterator[Tensor]:
        """Yields the (N, C) vectors of each document from chunks; its one row has no markers."""
        owners = [torch.tensor([owner for _, owner in document.rows[0]]) for document in documents]
        sizes = [each.unique_consecutive(return_counts=True)[1] for each in owners]
        pieces = [
            [piece.tolist() for piece in row[:-1].split(each.tolist())]  # without </s>
            for (row,), each in zip(tokens, sizes, strict=True)
        ]
        prompt = [self.loaded.source.ids[token] for token in self.prompt[0]]

        def states_of_chunks(chunks: list[list[int]]) -> Iterator[tuple[int, Tensor]]:
            for index, states in states_of([torch.tensor([BOS, *prompt, *chunk, EOS]) for chunk in chunks]):
                yield index, states[len(prompt) :]  # its first row, of the last token before the chunk, is not used

        means = means_in_context(pieces, self.loaded.longest - 2 - len(prompt), states_of_chunks)
        for mean, each in zip(means, sizes, strict=True):
            yield nearby_means(mean, each, min(self.options.context or 0, int(each.sum())))

    def states_of(
        self, rows: Sequence[Tensor], batch_size: int | None, max_tokens: int | None
    ) -> Iterator[tuple[int, Tensor]]:
        """Yields the index of each row and its (T, C) states, in the order of their lengths."""
        for batch in batches(list(map(len, rows)), batch_size, max_tokens):
            yield from zip(batch, self.states([rows[index] for index in batch]), strict=True)

    def reads_plain_rows(self) -> bool:
        """Returns whether the encoder has no hierarchy, which begins sentences or segments at markers."""
        encoder = getattr(self.model, "core", None) or self.model.encoder
        return bool(getattr(getattr(encoder, "config", None), "no_hierarchy", False))

    def pieces(self, record: Record) -> Pieces:
        """Divides a record into rows that the model takes; ValueError if it is empty or has more than one text."""
        text, settings, encoder = text_of(record), self.pipeline.settings, self.encoder
        self.pipeline.kind.check(record)
        split = settings.segments != "none" or settings.splitter != "given"
        counts = Counter[str]() if self.options.alone else self.pipeline.counts
        divided = Divider(settings, counts).sentences(record, text, split)
        positions = kept_characters(text, settings.line_breaks if split else "space")
        places = places_of((sentence.text for sentence in divided.sentences), positions)
        if self.options.alone:
            divided = divided._replace(sentences=self.as_written(as_given(text)[slice(*each)] for each in places))
        self.pipeline.counts["roles_left_out"] += len(roles_of(getattr(record, "turns", None)) or ())
        units = [[(token, number) for token in tokens] for number, tokens in enumerate(self.units(divided))]
        apart = self.options.alone and self.options.of == "sentence"
        segments, inside = units if apart else encoder.segments(units), dict[int, list[int]]()
        owned: list[Owned] = []  # the segments, with the number of its vector beside each token
        for number, segment in enumerate(segments):
            owners = [
                {"sentence": sentence, "segment": number, "document": 0}[self.options.of] for _, sentence in segment
            ]
            owned.append([(token, owner) for (token, _), owner in zip(segment, owners, strict=True)])
            for (_, sentence), owner in zip(segment, owners, strict=True):
                inside.setdefault(owner, []).append(sentence)
        spans = [(places[min(numbers)][0], places[max(numbers)][1]) for _, numbers in sorted(inside.items())]
        if self.options.context is not None:
            return Pieces([list(chain.from_iterable(owned))], spans)
        parts = [[segment] for segment in owned] if self.options.alone else [owned]
        rows = [row for part in parts for row in self.fitting(part)]
        self.pipeline.counts["documents_in_several_rows"] += not self.options.alone and len(rows) > 1
        return Pieces(rows, spans)

    def units(self, divided: Divided) -> list[list[str]]:
        """Returns the tokens of each sentence; one that is encoded alone begins as a text does."""
        sentences = [each._replace(words=self.prompt[1] + each.words) for each in divided.sentences]
        if self.options.alone and self.pipeline.settings.segments == "sentences":
            return [unit for each in sentences for unit in self.encoder.units(divided._replace(sentences=[each]))]
        return self.encoder.units(divided._replace(sentences=[*sentences[:1], *divided.sentences[1:]]))

    def as_written(self, texts: Iterable[str]) -> list[Sentence]:
        """Returns texts with their own white space; where words are separated, with single spaces."""
        if self.pipeline.settings.source_tokenizer != "none":
            texts = (normalise(text, self.pipeline.counts) for text in texts)
        texts = [text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts]
        return Divider(self.pipeline.settings, self.pipeline.counts).words(texts, "source")

    def fitting(self, segments: list[Owned]) -> list[Owned]:
        """Returns as few rows of about the same length as the model takes; a longer segment is cut."""
        longest = self.loaded.longest - 1 - len(self.prompt[0])  # without </s>
        segments = [list(piece) for segment in segments for piece in cut(segment, longest - 1)]
        total = sum(1 + len(segment) for segment in segments)

        def groups_of(limit: int) -> list[list[Owned]]:
            return list(group_within(segments, lambda each, _: (1 + len(each),), (limit,)))

        for number in count(len(groups_of(longest))):
            limits = range(-(-total // number), longest + 1)  # the least limit that needs no further row
            groups = groups_of(limits[bisect_left(limits, True, key=lambda each: len(groups_of(each)) <= number)])
            rows = [[pair for each in group for pair in ((BOS_TOKEN, each[0][1]), *each)] for group in groups]
            rows = [[row[0], *((token, row[0][1]) for token in self.prompt[0]), *row[1:]] for row in rows]
            if all(map(self.fits, rows)) or len(groups) == len(segments):
                break
        return rows

    def fits(self, row: Owned) -> bool:
        tokens = self.ids(row)
        core = getattr(self.model, "core", None)
        return len(tokens) <= self.loaded.longest and (core is None or core.fits(tokens))

    def ids(self, row: Owned) -> Tensor:
        return row_of((token for token, _ in row), self.loaded.source)

    @torch.no_grad()
    def states(self, rows: Sequence[Tensor]) -> list[Tensor]:
        """Computes the (T, C) states of each row in fp32; those of markers are the last that the encoder has."""
        tokens = padded(rows).to(self.loaded.device)
        if not hasattr(self.model, "decoder"):
            states = self.model.encode(tokens).tokens
        else:
            encoded = self.model.encoder(tokens)
            states = encoded.tokens
            if encoded.spans is not None and self.options.pooling == "marker":  # of the encoder on top
                states = encoded.layout.representatives.scatter(states, encoded.spans.to(states))
        return [state[: len(row)].float().cpu() for state, row in zip(states, rows, strict=True)]

    def encode(
        self, texts: Sequence[str], longest: int | None = None, batch_size: int | None = None, shows: bool = False
    ) -> list[Tensor]:
        """Computes the (C,) vectors of texts by themselves, each one row; an empty text has one, too.

        Args:
            longest: tokens of a row with markers; what is beyond is truncated, and counted. None: as the model reads.
            shows: says how far it is.
        """
        limit = min(longest or self.loaded.longest, self.loaded.longest)
        rows, vectors, counts = [], [torch.zeros(0)] * len(texts), self.pipeline.counts
        for sentence in self.as_written(map(shown, texts)):
            divided = Divided([sentence._replace(words=self.options.prompt + sentence.words)])
            tokens = [BOS_TOKEN, *self.encoder.units(divided)[0]]
            counts.update(texts_truncated=len(tokens) >= limit, tokens_truncated=max(0, len(tokens) + 1 - limit))
            rows.append(row_of(tokens[: limit - 1], self.loaded.source))
        every = self.states_of(rows, batch_size, None)
        for index, states in progress(every, "encode", len(rows), "texts") if shows else every:
            vectors[index] = states[0] if self.options.pooling == "marker" else states.mean(dim=0)
        return vectors


def prompt_of(bpe: Bpe, prompt: str) -> tuple[list[str], str]:
    """Returns the tokens of a prompt, and what stands before the words of the text after it.

    ValueError for one whose last token depends on the text.
    """
    if not prompt:
        return [], ""
    tokens = bpe.encode(prompt.rstrip())
    for lead in (bpe.separator, ""):
        if all(bpe.encode(prompt + text) == tokens + bpe.encode(lead + text) for text in PROBES):
            return tokens, lead
    text = "the prompt {} must end with a space, because its last token depends on the text after it: change "
    text += "{query_prompt} or {document_prompt}"
    raise OptionError(text, repr(prompt)[:80], query_prompt=None, document_prompt=None)


def check_reads_text(pipeline: TextPipeline, path: str, roles: bool = False) -> None:
    """Checks that a model reads texts, and neither questions nor roles beside them; ValueError for others."""
    settings = pipeline.settings
    read = {each.name: each.default for each in fields(pipeline.kind.record)}
    asked = MISSING in (read.get("question"), read.get("questions"))
    if asked or "choices" in read or not pipeline.kind.is_text:
        what = "has questions beside the text" if asked else "has choices beside the text"
        what, verb = what if pipeline.kind.is_text else "is no text", verb_of(pipeline.kind)
        text = f"{path} reads the kind {settings.kind}, which {what}: use hat {verb}"
        raise ValueError(f"{text}; embed is for models of one text")
    if roles or settings.role_in_text:
        raise ValueError(f"{path} reads roles beside the text, which embed does not: use another model")


def text_of(record: Record) -> Text:
    """Returns the only text of a record; ValueError for a record with several."""
    if len(record.texts()) != 1:
        raise ValueError(f"{record.name} has {len(record.texts())} texts, such as a question: embed is for one")
    return record.texts()[0]


@dataclass
class Vectors(jobs.Job):
    """Embeds records; see `Embedder.embeddings` for the arguments."""

    batch_size: int | None
    max_tokens: int | None
    options: EmbedOptions

    def make_model(self, loaded: Loaded) -> Embedder:
        return Embedder(loaded, self.options)

    def lines(self, records: Sequence[Record]) -> list[Line]:
        return [each.to_line() for each in self.model.embeddings(records, self.batch_size, self.max_tokens)]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    command.add_model_and_input(parser, model="the checkpoint or folder of an encoder of texts without roles")
    command.add_out(
        parser, "write the vectors to this file: .npz with arrays of numpy, or .jsonl with one vector a line"
    )
    group = parser.add_argument_group("vectors")
    for each in options_of(EmbedOptions).values():
        each.add_to(group, help=each.help_with_default)
    text = "put this text before each document, sentence or segment that is encoded (default: the prompt for documents "
    text += "that the folder of the model has)"
    group.add_argument("--document-prompt", metavar="TEXT", help=text)
    text = "INPUT has queries: put this text before each"
    group.add_argument("--query-prompt", metavar="TEXT", help=text)
    text = "INPUT has queries: put the prompt for queries before each that the folder of the model has"
    group.add_argument("--queries", action="store_true", help=text)
    command.add_batches(parser)
    command.add_machine(parser)


def main(args: argparse.Namespace) -> int:
    """Embeds records and writes the vectors, with ids and places in the text."""
    if args.out.suffix not in (".npz", ".jsonl") and args.out != command.STDOUT:
        raise ValueError(f"--out {args.out} must end in .npz or .jsonl")
    command.check_lines(args.out, args.overwrite, [args.input, args.data, args.model])
    check_batches(args.batch_size, args.max_tokens)
    options = read_options(EmbedOptions, args)
    workers, files = command.workers_of(args), jobs.model_files(args, args.model)
    pipeline = files.pipeline(workers)
    check_reads_text(pipeline, str(args.model))
    options = options_for(files.path, options, args.queries, args.query_prompt, args.document_prompt)
    if options.prompt:
        whose = f", which {args.model} has," if args.query_prompt is args.document_prompt is None else ""
        print(f"prompt: {options.prompt!r}{whose} before each text", file=sys.stderr)
    read = reading.read_input(args, pipeline, has_turns=True)
    job, size = Vectors(files, args.batch_size, args.max_tokens, options), max(RECORDS, 8 * (args.batch_size or 0))
    with jobs.results_of(job, read.with_text, size, f"{args.out.stem}: embed", args.out, workers) as (results, _):
        command.check_lines(args.out, args.overwrite, ())  # a run that had the lock may have written it
        if args.out.suffix == ".npz":
            number = write_arrays(
                args.out,
                [Embedding.from_line(line) for line in results],
                [each.id for each in read.records if each.id in read.empty],
            )
        else:
            embedded = list(results)
            lines = read.in_order(iter(embedded), empty=True)
            number = sum(len(line.get("spans", ())) for line in lines)
            command.write_lines(args.out, chain.from_iterable(map(lines_of, lines)))
    command.say(args.out, f"{number} vectors of {len(read.with_text)} documents")
    return 0


def options_for(
    path: str, options: EmbedOptions, queries: bool = False, query: str | None = None, document: str | None = None
) -> EmbedOptions:
    """Returns the options with the pooling of the folder `path`, and with the prompt; see `choose_prompt`."""
    settings = VectorSettings.read(path)
    return replace(options.of_folder(settings, path), prompt=choose_prompt(settings, queries, query, document))


def write_arrays(out: Path, embeddings: Sequence[Embedding], empty: Sequence[str] = ()) -> int:
    """Writes `vectors` (N, C), and for each the `ids` of its document, its `numbers` there, `begins` and `ends`.

    `empty`: the ids of documents without text, an array of their own.
    """
    spans = np.array([span for each in embeddings for span in each.spans], np.int64).reshape(-1, 2)
    arrays = {
        "vectors": np.concatenate([each.vectors for each in embeddings])
        if embeddings
        else np.zeros((0, 0), np.float32),
        "ids": np.array([each.id for each in embeddings for _ in each.spans], np.str_),
        "numbers": np.array([number for each in embeddings for number in range(len(each.spans))], np.int64),
        "begins": spans[:, 0],
        "ends": spans[:, 1],
        "empty": np.array(empty, np.str_),
    }
    with atomic_file(out) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return len(spans)


def lines_of(line: Line) -> Iterator[dict[str, Any]]:
    """Yields the line of each vector of a document; that of a document without text as it is."""
    if "vectors" not in line:
        yield line
        return
    embedding = Embedding.from_line(line)
    for number, (begin, end) in enumerate(embedding.spans):
        place = {"id": embedding.id, "number": number, "begin": begin, "end": end, "text": embedding.texts[number]}
        yield place | {"vector": embedding.vectors[number].tolist()}
