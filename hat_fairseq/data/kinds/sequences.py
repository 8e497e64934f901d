"""Labels of sequences of symbols: tokens, bytes or pixels, without BPE."""

from dataclasses import dataclass
from typing import Any, ClassVar

from hat_fairseq.data.kind import LabelledKind, labelled
from hat_fairseq.data.options import POLICIES
from hat_fairseq.data.record import Record, Text, Texts, as_label
from hat_fairseq.data.rows import Row, RowEncoder
from hat_fairseq.data.sentences import Divided, Divider, Prepared, Sentence
from hat_fairseq.data.text import BOS_TOKEN, CONTROL_TOKENS, EmptyDocumentError, is_blank

BYTES = tuple(map(str, range(256)))  # the symbols of bytes and of pixels


@dataclass(frozen=True)
class SymbolSequence(Record, reads=("tokens",), gold="label", repairs={"label": as_label}):
    """A sequence of symbols with a label."""

    tokens: Texts
    label: str | None = None


@dataclass(frozen=True)
class ByteSequence(
    Record,
    reads=("text", "pixels"),
    one_of=("text", "pixels"),
    gold="label",
    repairs={"label": as_label},
):
    """A text as bytes, or an image as pixels from 0 to 255, with a label."""

    text: str | None = None
    pixels: tuple[int, ...] | None = None
    label: str | None = None

    @property
    def parts(self) -> tuple[Text, ...]:
        """Returns the text, or the pixels as symbols."""
        return (tuple(map(str, self.pixels or ())) if self.text is None else self.text,)


@dataclass(frozen=True)
class BytePair(Record, reads=("text", "second"), gold="label", repairs={"label": as_label}):
    """A pair of texts as bytes, which the model encodes separately, with a label."""

    second: str
    text: str
    label: str | None = None


class SequenceKind(LabelledKind):
    """A label for each sequence of symbols: targets (B,), logits (B, K)."""

    name, task = "sequence", "sequence_classification"
    record: ClassVar[type[Record]] = SymbolSequence
    policies = POLICIES[:2]
    options = ()

    def check_texts(self, record: Any) -> None:
        if any(all(map(is_blank, [text] if isinstance(text, str) else text)) for text in record.parts):
            raise EmptyDocumentError(f"{record.name} has an empty sequence")

    def divide(self, divider: Divider, record: Any) -> list[Divided]:
        """Returns the symbols of each part as the words of one sentence."""
        self.check_texts(record)
        lines = (" ".join(self._symbols(record, text)) for text in record.parts)
        return [Divided([Sentence(line, line)]) for line in lines]

    def encode(self, encoder: RowEncoder, prepared: Prepared) -> list[Row]:
        """Returns one row for each part: `<s>` and the symbols of the part, which is truncated by itself."""
        record, rows = prepared.record, []
        for number, text in enumerate(prepared.texts):
            (sentence,) = text.sentences
            symbols = encoder.bpe.encode(sentence.words)
            encoder.totals["source_tokens"] += len(symbols)
            tokens = encoder.truncate(record, [BOS_TOKEN, *symbols], "source")
            rows.append(Row(record.id, number, len(prepared.texts), labelled(record, tokens)))
        return rows

    def _symbols(self, record: Record, text: Text) -> list[str]:
        """The bytes of a text in UTF-8, or tokens and pixels as they are; ValueError for unfit ones."""
        if isinstance(text, str):
            symbols = list(map(BYTES.__getitem__, text.encode("utf-8", "surrogatepass")))
        else:
            symbols = list(text)
            if self.alphabet and (unknown := set(symbols).difference(self.alphabet)):
                raise ValueError(f"{record.name} has the pixel {min(unknown)}; pixels are numbers from 0 to 255")
            for symbol in set(symbols):
                if symbol.split() != [symbol] or symbol in CONTROL_TOKENS:
                    raise ValueError(
                        f"{record.name} has the token {symbol!r:.60}; tokens have no white space and are not "
                        f"{', '.join(CONTROL_TOKENS)}"
                    )
        return symbols


class ByteSequenceKind(SequenceKind):
    """A label for the bytes of a text, or for the pixels of a picture."""

    name = "byte_sequence"
    record: ClassVar[type[Record]] = ByteSequence
    alphabet = BYTES


class BytePairKind(ByteSequenceKind):
    """A label for each pair of texts, two consecutive rows of bytes; the head reads the states of both."""

    name = "byte_pair"
    record = BytePair
    head_level = "pair"
    joins_rows = True

    def sample_target(self, targets: list[Any]) -> Any:
        """Returns the label, which both rows have."""
        if len(targets) != 2:
            raise ValueError(f"{len(targets)} rows instead of two")
        return targets[0]
