"""A trained model as one Python object: `hat_fairseq.load(DIR)`."""

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from ..analysis.look import Look
from ..data.files import Fields
from ..data.kinds import Prediction
from ..data.record import Record
from ..data.records_json import record_from_json
from ..generation.settings import check_generation, packaged_options
from ..networks.encoder import UNLIMITED
from ..options import as_in_python
from ..units.answers import Answers
from ..weights.names import local_paths, push
from ..workers import progress
from .embed import Embedder, Embedding, EmbedOptions, options_for
from .labels import Predictor
from .loaded import Data
from .loading import load, split_with
from .look_at import look_at, model_to_look_at
from .reading import check_splitter
from .rows import logged_changes, longest_first
from .text_encoder import CONTEXT, EncodeResult, TextEncoder
from .texts import DocumentToText

logger = logging.getLogger(__name__)

Input = str | Mapping[str, Any] | Record  # a text, or a JSON object as in docs/data.md, whose id may be left out


class Model:
    """A trained model, for documents in Python; results are in their order. See `loading.load` for arguments.

    Each method raises ValueError for what the model cannot do, and for a document that cannot be read. `splitter`: how
    running text is split, "punctuation" or "library"; None: as in training.
    """

    @as_in_python()
    def __init__(self, path: str | Path, data: Data = None, device: str | None = None, precision: str = "fp32") -> None:
        self.path = local_paths(path)
        self.loaded = load(self.path, data, device, precision)
        self.models = self.loaded.models
        self.pipeline, self.name = self.loaded.pipeline, "/".join(Path(path).parts[-2:])
        self.kind = self.pipeline.settings.kind
        trained = self.pipeline.settings.splitter
        self.splitter = trained if self.pipeline.kind.has_running_text else None
        self.generation = packaged_options(self.path)

    def __repr__(self) -> str:
        loaded = self.loaded
        longest = "any length" if loaded.longest == UNLIMITED else f"at most {loaded.longest:,} tokens"
        return (
            f"Model({self.name!r}, kind {self.kind}, {loaded.architecture}, {loaded.parameters:,} parameters, "
            f"{longest}, {loaded.precision} on {loaded.device})"
        )

    @as_in_python()
    def generate(
        self, documents: Iterable[Input], batch_size: int | None = None, splitter: str | None = None, **generation: Any
    ) -> list[str]:
        """Generates the text of each document; `generation`: fairseq's options, e.g. beam=4, before the package's."""
        self._check("generate", splitter)
        check_generation(generation, self.generation)
        model = DocumentToText(self.loaded, **self.generation | generation)
        records = self._records(documents, splitter)
        order = longest_first(records)  # in a batch are documents of about the same length
        with logged_changes(self.pipeline):
            texts = {row["id"]: row["text"] for row in progress(model.rows(order, batch_size), "generate", len(order))}
        return [texts[record.id] for record in records]

    @as_in_python()
    def predict(
        self,
        documents: Iterable[Input],
        batch_size: int | None = None,
        splitter: str | None = None,
        details: bool = False,
        **options: Any,
    ) -> list[Prediction]:
        """Predicts each document (docs/using.md).

        Args:
            details: see `Predictor.predictions`.
            options: of the kind of data, e.g. no_answer_threshold=1.5 for questions.
        """
        self._check("predict", splitter)
        model = Predictor(self.loaded)
        chosen = model.kind.chosen(options)
        with logged_changes(self.pipeline):
            return list(model.predictions(self._records(documents, splitter), batch_size, None, chosen, details))

    @as_in_python()
    def ask(
        self,
        document: Input | Path | Sequence[Any],
        questions: str | list[str] | tuple[str, ...],
        most_passages: int | None = None,
        threshold: float | None = None,
        splitter: str | None = None,
        id: str | None = None,
    ) -> Answers:
        """Finds the passages of a document that answer a question, or each of several.

        The answers have a `Question` for each, which has a `Passage` for each that answers it; see `answers.py`.

        Args:
            document: also the path of a transcript, as for `hat ask`, or a list of turns or sentences. Turns are
                objects as in a file of JSON, also with `start` and `end`. A string of WebVTT, of SubRip, or of lines
                that begin with names is read as such a file; others are running text. The characters of passages are
                those of running text, or of all turns with a line break between two.
            threshold: of passages; it also decides whether anything answers, instead of the model.
            splitter: of running text; None: as in training, or at punctuation where the training had turns.
            id: which document, where the path has several.
        """
        from ..units.python import ask  # not above: it needs this package

        return ask(self, document, questions, most_passages, threshold, splitter, id)

    @as_in_python()
    def embed(
        self,
        documents: Iterable[Input],
        of: str = "sentence",
        pooling: str | None = None,
        alone: bool = False,
        raw: bool = False,
        batch_size: int | None = None,
        splitter: str | None = None,
        context: int | None = None,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        queries: bool = False,
    ) -> list[Embedding]:
        """Computes the vectors of the sentences, segments or whole of each document; see `EmbedOptions`.

        `document_prompt`, `query_prompt`, `queries`: see `choose_prompt`.
        """
        split_with(self.pipeline, splitter or self.splitter)
        options = EmbedOptions(of, pooling, alone, raw, context)
        options = options_for(self.loaded.paths[0], options, queries, query_prompt, document_prompt)
        model = Embedder(self.loaded, options)
        with logged_changes(self.pipeline):
            return list(model.embeddings(self._records(documents, splitter), batch_size))

    @as_in_python()
    def encoder(self, context: int = CONTEXT) -> TextEncoder:
        """Returns an object that stands where a `SentenceTransformer` stands; see `TextEncoder`."""
        return TextEncoder(self.loaded, context)

    @as_in_python()
    def encode_query(self, inputs: str | Sequence[str], **options: Any) -> EncodeResult:
        """Computes the vectors of queries; see `TextEncoder`."""
        return self.encoder().encode_query(inputs, **options)

    @as_in_python()
    def encode_document(
        self, inputs: str | Sequence[str] | Sequence[Sequence[str]], context: int = CONTEXT, **options: Any
    ) -> EncodeResult:
        """Computes the vectors of documents, or of the chunks of each document in its context; see `TextEncoder`."""
        return self.encoder(context).encode_document(inputs, **options)

    @as_in_python()
    def look(
        self,
        document: Input,
        occlusion: bool = False,
        splitter: str | None = None,
        **generation: Any,
    ) -> Look:
        """Shows the attention in a document; see `look_at`; `generation`: as above."""
        check_generation(generation, self.generation)
        (record,) = self._records([document], splitter)
        split_with(self.pipeline, splitter or self.splitter)
        with logged_changes(self.pipeline):
            return look_at(model_to_look_at(self.loaded, self.generation | generation), record, occlusion, self.name)

    def push_to_hub(self, name: str, private: bool = False) -> str:
        """Uploads the folder of `hat export` that it was loaded from to the Hugging Face Hub; returns its address."""
        return push(self.path, name, private)

    def _check(self, method: str, splitter: str | None) -> None:
        split_with(self.pipeline, splitter or self.splitter)
        if method != (own := "generate" if self.pipeline.kind.has_target else "predict"):
            other = "ask" if self.pipeline.kind.verb == "ask" else "look"
            raise ValueError(f"{self.name} cannot {method}: a model of the kind {self.kind!r} can {own} and {other}")

    def _records(self, documents: Iterable[Input], splitter: str | None) -> list[Record]:
        if isinstance(documents, str | Mapping | Path):
            raise ValueError("give a list of documents: [document]")
        if hasattr(documents, "columns") and hasattr(documents, "to_dict"):  # whose iterator yields names of columns
            raise ValueError("a table of pandas: give its rows, table.to_dict('records')")
        if not isinstance(documents, Iterable):
            raise ValueError(f"give a list of documents, not {type(documents).__name__}")
        documents = list(documents)
        stated = {each.id for each in documents if isinstance(each, Record)}
        stated |= {str(each["id"]) for each in documents if isinstance(each, Mapping) and "id" in each}
        free = (str(number) for number in count(len(documents) + 1) if str(number) not in stated)
        records = [
            self._record(number, document, str(number) if str(number) not in stated else next(free))
            for number, document in enumerate(documents, start=1)
        ]
        if len({record.id for record in records}) < len(records):
            raise ValueError("two documents have the same id; remove the ids, or give different ones")
        if records:
            check_splitter(records, splitter)
        return records

    def _record(self, number: int, document: Input, default_id: str) -> Record:
        if isinstance(document, Record):
            return document
        if isinstance(document, str) and is_file_name(document):
            raise ValueError(f"document {number}, {document!r:.200}, is the name of a file: give its text")
        fields = {"text": document} if isinstance(document, str) else Fields(document, f"document {number}").record
        return record_from_json({"id": default_id, **fields}, f"document {number}", self.kind)


def is_file_name(text: str) -> bool:
    """Tells whether a text of one line is the name of a file that exists."""
    return "\n" not in text and os.path.isfile(text)
