"""What a call of the tokenizer returns: columns of rows, and for each token where it stands in the texts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transformers import BatchEncoding

from ..data.dictionary import BOS, EOS, PAD, SPECIAL
from ..data.places import Place
from .call_options import CallOptions

MARKERS = frozenset((BOS, PAD, EOS))
#: What the columns that transformers does not know are padded with.
FILLS: dict[str, Any] = {"role_ids": PAD, "offset_mapping": (0, 0), "tokens": SPECIAL[PAD], "places": None}


@dataclass
class EncodedRow:
    """A row of a document: its ids with `</s>`, and beside each the id of its role and its place, where asked for."""

    document: int
    tokens: list[str]
    ids: list[int]
    roles: list[int] | None = None
    places: list[Place | None] | None = None
    labels: list[int] | None = None

    def without_markers(self, most: int | None) -> "EncodedRow":
        """Returns at most so many of its tokens, without markers and `</s>`."""
        left = [n for n, number in enumerate(self.ids) if number not in MARKERS][:most]
        lists: list[Any] = [self.tokens, self.ids, self.roles, self.places]
        tokens, ids, roles, places = (each and [each[n] for n in left] for each in lists)
        labels = self.labels and [number for number in self.labels if number not in MARKERS]
        return EncodedRow(self.document, tokens, ids, roles, places, labels)


class HatEncoding(BatchEncoding):
    """Columns by name, as of every tokenizer of transformers, with the methods that its fast ones have about tokens.

    `tokens_of_rows` and `places_of_rows` have the token and the place of each token of each row, padding included.
    """

    def __init__(
        self,
        data: dict[str, Any] | None = None,
        tokens_of_rows: Sequence[Sequence[str]] | None = None,
        places_of_rows: Sequence[Sequence[Place | None]] | None = None,
        tensor_type: Any = None,
    ):
        self._tokens, self._places = tokens_of_rows, places_of_rows
        super().__init__(data, tensor_type=tensor_type)

    @property
    def is_fast(self) -> bool:
        """Returns True: the methods below work."""
        return True

    def tokens(self, batch_index: int = 0) -> list[str]:
        """Returns the tokens of a row with its markers and padding."""
        if self._tokens is None:
            raise ValueError("the tokens of a copied encoding are not known")
        return list(self._tokens[batch_index])

    def _placed(self, batch_index: int) -> Sequence[Place | None]:
        if self._places is None:
            raise ValueError("places were not asked for: give return_offsets_mapping=True or is_split_into_words=True")
        return self._places[batch_index]

    def word_ids(self, batch_index: int = 0) -> list[int | None]:
        """Returns for each token the number of the sentence, segment or word that it is of.

        None for markers, and for the tokens of running text beside such elements. ValueError where places were not
        asked for, or no text is in such elements.
        """
        places = self._placed(batch_index)
        elements = [place.element for place in places if place is not None]
        if elements and all(element is None for element in elements):
            raise ValueError("word_ids: this text was not given in sentences, segments or words")
        return [place and place.element for place in places]

    def sequence_ids(self, batch_index: int = 0) -> list[int | None]:
        """Returns for each token the number of its text in the row, 0 or 1; None for markers."""
        return [place and place.part for place in self._placed(batch_index)]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "tokens": self._tokens, "places": self._places}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._tokens, self._places = state["tokens"], state["places"]


def columns_of(rows: Sequence[EncodedRow], options: CallOptions) -> dict[str, Any]:
    """Returns the columns of rows that have an entry for each token, also `tokens` and, where known, `places`."""
    columns: dict[str, Any] = {"input_ids": [row.ids for row in rows]}
    columns["attention_mask"] = [[1] * len(row.ids) for row in rows]
    columns["tokens"] = [row.tokens for row in rows]
    if rows and rows[0].roles is not None:
        columns["role_ids"] = [row.roles for row in rows]
    if rows and rows[0].places is not None:
        columns["places"] = [row.places for row in rows]
    if options.return_special_tokens_mask:
        columns["special_tokens_mask"] = [[int(each in MARKERS) for each in row.ids] for row in rows]
    if options.return_offsets_mapping:
        columns["offset_mapping"] = [[place[2:] if place else (0, 0) for place in row.places or ()] for row in rows]
    return columns
