"""The BPE and the dictionary of a run: GPT-2's, a sentencepiece model, or those of an earlier run."""

import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from hat_fairseq.data.bpe import Bpe, NoBpe
from hat_fairseq.data.dictionary import DICTIONARIES, Dictionary, find_dictionary
from hat_fairseq.data.gpt2_bpe import Gpt2Bpe, find_gpt2_files
from hat_fairseq.data.kinds import kind_of
from hat_fairseq.data.options import Options, Settings, flag, options_of
from hat_fairseq.data.pipeline import TextPipeline
from hat_fairseq.data.rows import read_label_dictionary
from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe, find_sentencepiece_model
from hat_fairseq.data.text import SEPARATOR

# Settings that an earlier run has decided for data of another kind; for data of its own kind it decides all.
FOR_ANOTHER_KIND = ("source_tokenizer", "source_language")


@dataclass(frozen=True)
class Vocabulary:
    """The BPE, dictionary and settings of an earlier `bin` directory."""

    pipeline: TextPipeline
    dictionary: Path  # fairseq's dictionary of its input
    labels: list[str] | None  # its labels in the order of their classes, or None

    @classmethod
    def open(cls, directory: str | Path) -> Self:
        """Read a directory that `hat preprocess` wrote; ValueError if it is none, was changed, or has no dictionary."""
        directory = Path(directory)
        pipeline = TextPipeline.load(directory)
        dictionary, labels = find_dictionary(directory, "source"), find_dictionary(directory, "label")
        if dictionary is None:
            raise ValueError(f"{directory} has none of {', '.join(DICTIONARIES['source'])}")
        return cls(pipeline, dictionary, read_label_dictionary(labels) if labels else None)


def inherit(options: Options, arguments: Mapping[str, Any]) -> Options:
    """The options, with those that `--vocabulary` sets; ValueError if one among the `arguments` contradicts it."""
    earlier = f"--vocabulary {options.vocabulary}"
    pipeline = Vocabulary.open(str(options.vocabulary)).pipeline
    settings, is_text = pipeline.settings, pipeline.kind.is_text
    if kind_of(options.kind).is_text != is_text:
        raise ValueError(
            f"{earlier} is of data of the kind {settings.kind}, which has other tokens than --kind {options.kind}"
        )
    same_kind = settings.kind == options.kind
    names = [item.name for item in options_of(Settings)] if same_kind else FOR_ANOTHER_KIND
    inherited = {name: getattr(settings, name) for name in names}
    if is_text:
        inherited["bpe"] = pipeline.bpe.kind
    for name in ("bpe_dir", "num_codes"):
        if arguments.get(name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} and {earlier} contradict each other; leave one out")
    for item in options_of(Options):
        value = arguments.get(item.name)
        if value is not None and value != (earlier_value := inherited.get(item.name, value)):
            raise ValueError(
                f"{flag(item, value)} contradicts {earlier}, which has {flag(item, earlier_value)}; leave it out"
            )
    if not same_kind and options.target_separator and not settings.target_separator:
        raise ValueError(f"--target-separator: the dictionary of {earlier} has no {SEPARATOR}")
    return replace(options, **inherited)


def has_dictionary(options: Options) -> bool:
    """Tells whether the dictionary is fixed, not built from the training text."""
    return bool(options.vocabulary or kind_of(options.kind).alphabet) or options.bpe != "learned"


def ready_made(options: Options, vocabulary: Vocabulary | None, bpe_dir: Path | None, dictionary: Path) -> Bpe | None:
    """The BPE, or None if it is to be learned; its dictionary is copied if it has one. ValueError for missing files."""
    dictionary.parent.mkdir(exist_ok=True)
    if vocabulary:
        Dictionary.load(vocabulary.dictionary)  # an error there names the user's file
        shutil.copyfile(vocabulary.dictionary, dictionary)
        return vocabulary.pipeline.bpe
    if not (kind := kind_of(options.kind)).is_text:
        if kind.alphabet:
            _save(kind.alphabet, dictionary)
        return NoBpe()
    if options.bpe == "gpt2":
        gpt2 = find_gpt2_files(bpe_dir)
        shutil.copyfile(gpt2 / "dict.txt", dictionary)
        return Gpt2Bpe(gpt2 / "encoder.json", gpt2 / "vocab.bpe")
    if options.bpe == "sentencepiece":
        bpe = SentencePieceBpe(model := find_sentencepiece_model(bpe_dir))
        if (model.parent / "dict.txt").is_file():  # of a model with fewer entries, or more
            shutil.copyfile(model.parent / "dict.txt", dictionary)
        else:
            _save(bpe.pieces(), dictionary)
        return bpe
    return None


def _save(symbols: Iterable[str], path: Path) -> None:
    Dictionary((symbol, 1) for symbol in symbols).save(path)
