"""A trained sentencepiece model as BPE, for example that of XLM-RoBERTa; tokens are its pieces.

Sentencepiece normalises text first (XLM-RoBERTa's model by NFKC and rules for white space). So `decode` returns the
normalised text, and a token may have other characters than the original text.

Not read into `TokenizerBpe`, because `tokenizers` drops marks after ligatures, and of divisions of one score may take
another (`1 11` for `11 1`).
"""

from collections.abc import Iterable
from itertools import accumulate
from pathlib import Path

from hat_fairseq.data.bpe import Bpe
from hat_fairseq.data.dictionary import SPECIAL, UNKNOWN
from hat_fairseq.data.text import CONTROL_TOKENS
from hat_fairseq.data.tokenizer_bpe import SPACE

MODEL = "sentencepiece.bpe.model"  # its name in the releases of fairseq and Hugging Face


class SentencePieceBpe(Bpe):
    """Pieces of a sentencepiece model. Characters without a piece stay in the text, normalised.

    ValueError without the package, for a file that is no model, or one that marks words otherwise than XLM-RoBERTa's.
    """

    kind = "sentencepiece"

    def __init__(self, model: str | Path):
        self.files = (Path(model),)
        try:
            from sentencepiece import SentencePieceProcessor
        except ImportError as error:
            raise ValueError(f'{model} needs the package sentencepiece: pip install "hat_fairseq[data]"') from error
        try:
            self._processor = SentencePieceProcessor(model_file=str(model))
            self._processor.id_to_piece([*range(self._processor.piece_size())])  # fails where one is not UTF-8
        except (OSError, RuntimeError, UnicodeDecodeError) as error:
            raise ValueError(f"{model} is not a complete sentencepiece model: {error}") from error
        if self._processor.normalize("a") != f"{SPACE}a":
            raise ValueError(
                f"{model} puts no space before the first word (add_dummy_prefix), so sentences would run together; "
                "use a model that does, such as XLM-RoBERTa's"
            )
        if self._processor.is_byte(self._processor.piece_to_id("<0x00>")):
            raise ValueError(f"{model} has pieces for bytes (byte_fallback), which XLM-RoBERTa's has not; use another")

    def pieces(self) -> dict[str, int]:
        """Returns all pieces that a text can have, with their ids.

        Raises ValueError for one that no dictionary can have.
        """
        model = self._processor
        ids = range(model.piece_size())
        pieces = {model.id_to_piece(i): i for i in ids if not (model.is_control(i) or model.is_unknown(i))}
        if unfit := [piece for piece in pieces if piece in SPECIAL or any(end in piece for end in " \r\n")]:
            raise ValueError(
                f"{self.files[0]} has the piece {unfit[0]!r}, which a dictionary of fairseq cannot have; use a model "
                "without it"
            )
        return pieces

    def encode(self, text: str) -> list[str]:
        """Returns the pieces of a text.

        What only normalisation makes a control token (a full-width `<s>`) is `<unk>`, and so is a text of which
        normalisation leaves nothing.
        """
        pieces = self._processor.encode(text, out_type=str) or [""] * bool(text.strip(" "))
        return [SPECIAL[UNKNOWN] if not piece or piece in CONTROL_TOKENS else piece for piece in pieces]

    def decode(self, tokens: Iterable[str]) -> str:
        """Returns the normalised text; `<unk>` stays as it is."""
        return "".join(tokens).replace(SPACE, " ").removeprefix(" ")

    def extents(self, tokens: Iterable[str], text: str) -> list[tuple[int, int]]:
        """Implements `bpe.Bpe.extents`. Characters that normalisation removes belong to a token beside them."""
        letters = list(accumulate((character != " " for character in text), initial=0))
        # Of each normalised character the original one it comes from: several may come from one, and one from several.
        normalised, origins = self._processor.normalize(text, with_offsets=True)
        origins = [*origins[: len(normalised)], len(text)]
        extents: list[tuple[int, int]] = []
        end = covered = 0  # of the normalised characters, and of the letters
        if "".join(pieces := list(tokens)) != normalised:  # one is `<unk>`
            pieces = self._processor.encode(text, out_type=str)
        for piece in pieces:
            begin, end = end + len(piece) - len(piece.lstrip(SPACE)), end + len(piece)
            first, after = covered, end
            while begin < end and origins[after] <= origins[end - 1]:
                after += 1
            if begin < end:
                first, covered = min(covered, letters[origins[begin]]), letters[origins[after]]
            extents.append((first, covered))
        return extents or [(0, letters[-1])] * bool(text)
