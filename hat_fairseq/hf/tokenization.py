"""The text pipeline of hat_fairseq as a tokenizer of transformers: `<s>` before each sentence, words, BPE, limits.

It reads the folder that `hat export` writes, and gives the ids that `hat preprocess` gives, for every kind of data.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..data.dictionary import EOS, PAD, SPECIAL, mostly_unknown
from ..data.long_input import LongInputError
from ..data.options import Settings
from ..data.places import PlacedPipeline, places_of_row
from ..data.record import Record
from ..data.records_json import record_from_json
from ..data.rows import Row
from .call_options import CHUNK, CallOptions
from .documents import CHOICES, GivenDocument, batch_of, given_document, has_pair, names_of, parts_of
from .encoding import FILLS, EncodedRow, HatEncoding, columns_of
from .vocabulary import VocabularyTokenizer, smallest


class HatTokenizer(VocabularyTokenizer):
    """Documents to ids, and generated ids to text; the arguments are those of `VocabularyTokenizer`."""

    @property
    def is_fast(self) -> bool:
        """Returns True: transformers asks with it whether a tokenizer gives offsets and `word_ids`."""
        return True

    def __call__(
        self,
        text: Any = None,
        text_pair: Any = None,
        text_target: Any = None,
        text_pair_target: Any = None,
        **options: Any,
    ) -> HatEncoding:
        """Encodes documents as the training data were.

        Args:
            text: a document or a batch of them, of the forms that `documents.py` describes.
            text_pair: the second text of each document: an answer, a choice, a second sentence; where a question comes
                first, that is `text`, and this is the document.
            text_target: the target of each document, a string or a list of its sentences or segments.
            text_pair_target: refused, because a target is one text.
            padding: True or "longest" to the longest row, "max_length" to `max_length` or the longest that the model
                takes; False or "do_not_pad": not. Without it, only rows that become tensors are padded.
            truncation: True or "longest_first": keep the first tokens of a row that is too long, as `--long-source
                truncate` does; "only_first" and "only_second" where the kind cuts that text of a pair. Without it
                long documents are what they were in training, and a row that the model does not take is refused.
            max_length: tokens of the longest row with its markers; alone it asks for truncation. Where the training
                data or the model have a lower limit, that holds.
            max_target_length: the same for `text_target`, instead of `max_length`.
            stride: tokens that two windows of a document share, for the kinds with windows.
            is_split_into_words: `text` is a document in sentences, segments, words or turns, or a list of such.
            add_special_tokens: False leaves out `<s>` and `</s>`.
            pad_to_multiple_of, padding_side: as of `pad`.
            return_tensors: "pt" or "np".
            return_overflowing_tokens: a document may become several rows: chunks, windows, choices, the two of a pair.
            return_attention_mask, return_special_tokens_mask, return_length: with these columns or without.
            return_offsets_mapping: the characters of each token in its text, or in its element of a document in pieces.
            return_token_type_ids: refused if True.
            split_special_tokens: `<mask>` in a text is text; all other special tokens always are.
            verbose: False gives no warnings.
        Returns:
            `input_ids` and `attention_mask`; `role_ids` if the model has roles; `labels`, the ids of `text_target`; the
            columns that are asked for; with several rows a document `overflow_to_sample_mapping`, the number of the
            document of each row. Of one document each is a list of numbers, of a batch a list of rows. With
            `text_target` alone, its ids are `input_ids`.
        Raises:
            ValueError: a document that is empty or too long, or lacks roles or its second text; an argument that would
                change the format of the training data, or that has no effect.
        """
        chosen = CallOptions.of({"split_special_tokens": self.split_special_tokens} | options)
        if text_pair_target is not None:
            raise ValueError("text_pair_target: a target is one text; give text_target")
        if text is None and text_target is None:
            raise ValueError("give text, or text_target")
        if text_target is not None and not self.pipeline.kind.has_target:
            kind = self.pipeline.kind.name
            raise ValueError(f"text_target: data of the kind {kind} have no texts as targets; give labels as numbers")
        before = Counter(self.pipeline.counts)
        if text is None:
            targets, single = batch_of(text_target, False, "text_target")
            rows = [self._target_row(target, n, chosen) for n, target in enumerate(targets)]
        else:
            documents, single = self._documents(text, text_pair, chosen)
            targets = self._targets(text_target, len(documents), single)
            encoder = self._encoder(chosen, text_target is not None)
            pairs = enumerate(zip(documents, targets, strict=True))
            rows = [row for n, pair in pairs for row in self._encoded(*pair, n, encoder, chosen)]
        self._report(self.pipeline.counts - before, chosen.verbose)
        return self._columns(rows, single, chosen)

    def _encoder(self, options: CallOptions, with_target: bool) -> PlacedPipeline:
        """Returns the pipeline of a call; ValueError for offsets where places are not known."""
        kind = self.pipeline.kind
        places = options.is_split_into_words and kind.is_text
        if options.return_offsets_mapping and not (places := kind.is_text):
            raise ValueError(f"return_offsets_mapping=True: the places of tokens of the kind {kind.name} are not known")
        mask = self._reads_mask and not options.split_special_tokens
        return self._pipeline(self._settings(options, with_target), places, mask)

    def _documents(self, text: Any, text_pair: Any, options: CallOptions) -> tuple[list[GivenDocument], bool]:
        """Returns the documents of a call, and whether it is one; checks the options with them."""
        kind, settings = self.pipeline.kind, self.pipeline.settings
        texts, single = batch_of(text, options.is_split_into_words, "text")
        pairs: list[Any] = [None] * len(texts)
        if text_pair is None and len(parts_of(kind)) + (CHOICES in names_of(kind)) > 1:  # as in transformers
            divided = [each if isinstance(each, tuple) and len(each) == 2 else (each, None) for each in texts]
            texts, pairs = [first for first, _ in divided], [second for _, second in divided]
        if text_pair is not None:
            pairs = [text_pair] if single else batch_of(text_pair, False, "text_pair")[0]
        if len(pairs) != len(texts) or (text_pair is not None and not single and isinstance(text_pair, str)):
            raise ValueError(f"text_pair is for {len(pairs)} documents, and text has {len(texts)}")

        def warn(name: str, message: str) -> None:
            self._warn(name, message, options.verbose)

        documents = [given_document(kind, settings, each, pair, warn) for each, pair in zip(texts, pairs, strict=True)]
        pair = any(has_pair(kind, each.record) for each in documents)
        options.check(kind, settings, self.truncation_side, pair)
        return documents, single

    def _targets(self, text_target: Any, number: int, single: bool) -> list[Any]:
        if text_target is None:
            return [None] * number
        targets = [text_target] if single else batch_of(text_target, False, "text_target")[0]
        if len(targets) != number or (not single and isinstance(text_target, str)):
            raise ValueError(f"text_target is for {len(targets)} documents, and text has {number}")
        return targets

    def _encoded(
        self, document: GivenDocument, target: Any, number: int, encoder: PlacedPipeline, options: CallOptions
    ) -> list[EncodedRow]:
        """Returns the rows of a document with its target, which may be None."""
        rows = self._rows(document.record, number + 1, encoder, target)
        if encoder.kind.packs and options.truncates and not options.return_overflowing_tokens:
            encoder.counts["source_tokens_truncated"] += sum(len(row.tokens) for row in rows[1:])
            rows = rows[:1]
        if document.only_first:
            rows = rows[:1]
        if len(rows) > 1 and not options.return_overflowing_tokens:
            raise ValueError(
                f"document {number + 1} becomes {len(rows)} rows: give return_overflowing_tokens=True "
                "(overflow_to_sample_mapping says which rows are of which document)"
            )
        encoded = [self._row(row, number) for row in rows]
        if problem := next(filter(None, (mostly_unknown(each.ids) for each in encoded)), ""):
            self._warn("unknown", f"document {number + 1}: {problem}; its result is worth little", options.verbose)
        for row, each in zip(rows, encoded, strict=True):
            each.places = places_of_row(row, document.begins) if encoder.places else None
        return [self._chosen_tokens(row, options) for row in encoded]

    def _row(self, row: Row, number: int) -> EncodedRow:
        ids = [*map(self.source.ids.__getitem__, row.tokens), EOS]
        encoded = EncodedRow(number, [*map(str, row.tokens), SPECIAL[EOS]], ids)
        if self.roles is not None:
            encoded.roles = [*map(self.roles.ids.__getitem__, row.streams["role"]), EOS]
        if "target" in row.streams:
            encoded.labels = self._target_ids(row)
        return encoded

    def _chosen_tokens(self, row: EncodedRow, options: CallOptions) -> EncodedRow:
        if options.add_special_tokens:
            return row
        return row.without_markers(options.max_length if options.truncates else None)

    def _target_ids(self, row: Row) -> list[int]:
        return [*map(self.target.ids.__getitem__, row.streams["target"]), EOS]

    def _target_row(self, target: Any, number: int, options: CallOptions) -> EncodedRow:
        """Returns the row of a target alone, which is whole where chunks of a document would divide it."""
        settings = replace(self._settings(options, True), aligned=False, roles=False, role_in_text=False)
        settings = replace(settings, max_source_tokens=None)
        (row,) = self._rows({"sentences": ["x"]}, number + 1, self._pipeline(settings), target)
        tokens = [*row.streams["target"], SPECIAL[EOS]]
        return self._chosen_tokens(EncodedRow(number, tokens, self._target_ids(row)), options)

    @property
    def _reads_mask(self) -> bool:
        """Whether `<mask>` in a text is the token; an encoder with labels may have it in its dictionary, too."""
        return self.has_mask and self.pipeline.kind.packs

    def _pipeline(self, settings: Settings, places: bool = False, mask: bool = False) -> PlacedPipeline:
        return PlacedPipeline(settings, self.pipeline.bpe, self.pipeline.counts, places=places, has_mask=mask)

    def _settings(self, options: CallOptions, with_target: bool) -> Settings:
        """Returns those of the training with the limits of a call."""
        settings, kind = self.pipeline.settings, self.pipeline.kind
        if not options.truncates:
            return settings
        marked = options.add_special_tokens or options.return_overflowing_tokens
        longest = smallest(options.max_length if marked else None, settings.max_source_tokens, self.limit)
        changes: dict[str, Any] = {}
        if longest is not None:
            changes |= {"max_source_tokens": longest}
            if CHUNK in kind.policies and options.return_overflowing_tokens:
                changes |= {"long_source": CHUNK}
                changes |= {} if options.stride is None else {"window_overlap": options.stride}
            elif not kind.packs and not settings.long_source.startswith("truncate"):
                changes |= {"long_source": "truncate"}
        most = options.max_target_length or options.max_length
        longest = smallest(most if options.add_special_tokens else None, settings.max_target_tokens, self.target_limit)
        if with_target and longest is not None:
            changes |= {"max_target_tokens": longest, "long_target": "truncate"}
        try:
            return replace(settings, **changes)
        except ValueError as error:
            raise ValueError(f"max_length={most}: {error}") from error

    def _rows(self, record: dict[str, Any], number: int, encoder: PlacedPipeline, target: Any = None) -> list[Row]:
        kind = self.pipeline.kind
        record = {"id": str(number), **record}
        if target is not None:
            if twice := {"target", "summary"} & record.keys():
                raise ValueError(f"document {number} has a {min(twice)}, and text_target is another one")
            record["target"] = target
        read: Record = replace(record_from_json(record, f"document {number}", kind), origin=None)
        try:
            rows = encoder.encode(read) if target is None else encoder.rows(read)
        except LongInputError as error:
            raise LongInputError(f"{error}; in a call truncation=True does that") from error
        for stream, limit in (("source", self.limit), ("target", self.target_limit)):
            longest = max(len(row.streams.get(stream, ())) + 1 for row in rows)
            if limit is not None and longest > limit:
                raise ValueError(
                    f"document {number}: {longest} tokens are more than the model takes, {limit}; "
                    "give truncation=True to keep the first ones"
                )
        return rows

    def rows(self, document: Any, number: int = 1) -> list[Row]:
        """Returns the rows of a document, without `</s>`; `Row` says what each token stands for.

        Args:
            document: a list of sentences, segments or words; a list of turns `{"role", "text"}`; running text, which is
                split as the training data were; or a dictionary with the keys of docs/data.md for the kind of the data.
            number: names the document in messages.
        """
        kind, settings = self.pipeline.kind, self.pipeline.settings
        read = given_document(kind, settings, document, None, lambda name, text: self._warn(name, text, True))
        return self._rows(read.record, number, self._pipeline(settings, mask=self._reads_mask))

    def _columns(self, rows: Sequence[EncodedRow], single: bool, options: CallOptions) -> HatEncoding:
        """Returns the rows as columns, padded as the options say."""
        columns = self._padded(columns_of(rows, options), options, options.max_length)
        tokens, places = columns.pop("tokens"), columns.pop("places", None)
        if options.return_attention_mask is False:
            columns.pop("attention_mask")
        if options.return_length:
            columns["length"] = [len(row.ids) for row in rows]
        if rows and rows[0].labels is not None:
            labels = {"input_ids": [row.labels for row in rows]}
            most = options.max_target_length or options.max_length or self.target_limit
            padded = self._padded(labels, options, most)["input_ids"]
            # A loss leaves <pad> out, too, but a Trainer that divides it by the number of labels would count them.
            columns["labels"] = [[-100 if number == PAD else number for number in row] for row in padded]
        if options.return_overflowing_tokens:
            columns["overflow_to_sample_mapping"] = [row.document for row in rows]
        elif single and options.return_tensors is None:
            columns = {name: column[0] for name, column in columns.items()}
        return HatEncoding(columns, tokens, places, options.return_tensors)

    def _padded(self, columns: dict[str, Any], options: CallOptions, length: int | None) -> dict[str, Any]:
        if not options.pads or not columns["input_ids"]:
            return columns
        padding = True if options.padding is None else options.padding
        if padding != "max_length":
            self._warn_of_length(options)
            length = None
        multiple, side = options.pad_to_multiple_of, options.padding_side
        return dict(self.pad(columns, padding, length, pad_to_multiple_of=multiple, padding_side=side).data)

    def _warn_of_length(self, options: CallOptions) -> None:
        if options.max_length is not None and not options.truncates:
            message = f"max_length={options.max_length} has no effect: give truncation=True, or padding='max_length'"
            self._warn("max_length", message, options.verbose)

    def _pad(self, encoded_inputs: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Pads all columns of a row; the length of each but `labels` is that of `input_ids`."""
        length = len(encoded_inputs["input_ids"])
        side = kwargs.get("padding_side") or self.padding_side
        if side == "left" and not self.pipeline.kind.has_target:
            raise ValueError("padding_side='left': an encoder reads rows from their first token on; pad on the right")
        padded: dict[str, Any] = super()._pad(encoded_inputs, *args, **kwargs)
        for name, fill in FILLS.items():
            if name in padded and len(padded[name]) == length:
                padding = [fill] * (len(padded["input_ids"]) - length)
                padded[name] = [*padding, *padded[name]] if side == "left" else [*padded[name], *padding]
        return padded

    def _get_padding_truncation_strategies(self, padding: Any = False, *args: Any, **options: Any) -> Any:
        if padding == "max_length" and options.get("max_length") is None and self.limit is None:
            raise ValueError('padding="max_length": this tokenizer has no limit; give max_length or padding=True')
        return super()._get_padding_truncation_strategies(padding, *args, **options)

    def encode(self, text: Any, text_pair: Any = None, **options: Any) -> Any:
        """Returns the ids of a document; arguments as of a call."""
        return self(text, text_pair, **options)["input_ids"]

    def tokenize(self, text: Any, pair: Any = None, add_special_tokens: bool = False, **options: Any) -> list[str]:
        """Returns the tokens of a document as they are written, also those that the dictionary does not have."""
        return self(text, pair, add_special_tokens=add_special_tokens, **options).tokens()

    def num_special_tokens_to_add(self, pair: bool = False) -> int:
        """Returns the least number of markers of a row: `<s>` and `</s>`, and `</s> </s> <s>` between two texts.

        Between a question and a document that has a target stands `<s>` alone.
        """
        return 2 + pair * (1 if self.pipeline.kind.has_target else 3)

    def build_inputs_with_special_tokens(self, token_ids_0: Any, token_ids_1: Any = None) -> list[int]:
        """Raises ValueError: ids do not say where sentences begin."""
        raise ValueError(
            "build_inputs_with_special_tokens: markers stand before sentences; call the tokenizer on texts"
        )

    def prepare_for_model(self, *args: Any, **options: Any) -> Any:
        """Raises ValueError: ids do not say where sentences begin."""
        raise ValueError("prepare_for_model: markers stand before sentences; call the tokenizer")
