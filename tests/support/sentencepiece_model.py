"""Small sentencepiece models in the layout of XLM-RoBERTa, trained on the spot, and transformers' tokenizer of one."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.data.sentencepiece_bpe import MODEL

SAMPLE = Path(__file__).parents[1] / "samples" / "tydi_questions.jsonl.gz"


def tydi() -> list[Record]:
    """Questions on Wikipedia articles in eleven languages."""
    return list(read_records(SAMPLE, "qa"))


def tydi_lines() -> list[str]:
    """The lines of their texts."""
    return [" ".join(line.split()) for record in tydi() for line in (record.text or "").split("\n") if line.strip()]


def write_model(folder: Path, lines: Iterable[str] | None = None, **settings: Any) -> Path:
    """A unigram model with XLM-RoBERTa's normalisation; rare characters of the lines have no piece."""
    folder.mkdir(parents=True, exist_ok=True)
    defaults = {"vocab_size": 1500, "character_coverage": 0.98, "normalization_rule_name": "nmt_nfkc"}
    fixed = {"hard_vocab_limit": False, "num_threads": 1, "minloglevel": 2}
    lines = tydi_lines() if lines is None else lines
    with open(folder / MODEL, "wb") as file:
        SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_writer=file, **{**defaults, **settings, **fixed}
        )
    return folder / MODEL


def peer_tokenizer(model: Path) -> Any:
    """What `XLMRobertaTokenizer.from_pretrained` makes of the model; it would read the file with protobuf."""
    import transformers
    from transformers.convert_slow_tokenizer import XLMRobertaConverter

    processor = SentencePieceProcessor(model_file=str(model))
    scored = [(processor.id_to_piece(i), processor.get_score(i)) for i in range(processor.piece_size())]
    normaliser = next(value for number, value in _fields(model.read_bytes()) if number == 3)
    rules = next(value for number, value in _fields(normaliser) if number == 2)
    vocabulary = XLMRobertaConverter.convert_from_spm(vocab=scored)
    return transformers.XLMRobertaTokenizer(**vocabulary, _spm_precompiled_charsmap=rules)


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and content of each field with a length in a protobuf message."""
    place = 0

    def number() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            value |= (byte & 127) << shift
            place, shift = place + 1, shift + 7
            if byte < 128:
                return value

    while place < len(message):
        key = number()
        if key & 7 == 2:
            end = number() + place
            yield key >> 3, message[place:end]
            place = end
        elif key & 7 == 0:
            number()
        else:
            place += {1: 8, 5: 4}[key & 7]
