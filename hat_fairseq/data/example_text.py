"""The parts of an example before the BPE: clean sentences, the same in training and inference."""

from collections import Counter
from collections.abc import Iterator

from hat_fairseq.data.example import Example, Text
from hat_fairseq.data.prepare import EmptyDocumentError, ready_for_bpe
from hat_fairseq.data.sentence_split import split_sentences
from hat_fairseq.data.settings import Settings
from hat_fairseq.data.text import normalise

MAIN_PART = {"qa": 1}  # of each kind the part that may be long: the text of a question; of all others the first
WITH_LABELS = {"segments": "segment", "tokens": "word"}  # each of them has a label, so none may vanish


def main_part(task: str) -> int:
    """Number of the part that is truncated when it is too long together with a question or a choice."""
    return MAIN_PART.get(task, 0)


def clean_sentences(example: Example, text: Text, is_main: bool, settings: Settings, counts: Counter[str]) -> list[str]:
    """Normalised sentences, segments or words of a part; none of them is empty.

    Running text is split by the settings' splitter. It is one sentence if segments are not wanted, and if the splitter
    is ``given`` and this is not the main part: a question, a choice.

    Raises:
        EmptyDocumentError: nothing is left.
        ValueError: running text as main part with the splitter ``given``, or an empty element that has a label.
    """
    clean = normalised(example, text, settings.task, counts)
    if isinstance(text, str):
        return _split(example, clean[0], is_main, settings)
    counts["sentences_empty"] += sum(not sentence for sentence in clean)
    return list(filter(None, clean))


def normalised(example: Example, text: Text, task: str, counts: Counter[str]) -> list[str]:
    """A part without line breaks and the like: the whole text, or each of its elements.

    Raises:
        EmptyDocumentError: nothing is left, or nothing of an element that has a label.
    """
    clean = [normalise(element, counts) for element in ([text] if isinstance(text, str) else text)]
    if task in WITH_LABELS and not all(clean):
        raise EmptyDocumentError(f"{example.name}: its {WITH_LABELS[task]} {clean.index('') + 1} is empty")
    if not any(clean):
        raise EmptyDocumentError(f"{example.name} has an empty part: no sentence with text in it")
    return clean


def texts(example: Example) -> Iterator[tuple[int, Text]]:
    """Number and text of every distinct part; a context shared by all choices comes once."""
    yield from enumerate(example.inputs[0])
    for parts in example.inputs[1:]:
        yield 1, parts[1]


def words(example: Example, settings: Settings) -> Counter[str]:
    """The words of an example as they go into the BPE, to learn it from."""
    uncounted: Counter[str] = Counter()
    found: Counter[str] = Counter()
    for number, text in texts(example):
        clean = clean_sentences(example, text, number == main_part(settings.task), settings, uncounted)
        for sentence in ready_for_bpe(clean, settings, uncounted):
            found.update(sentence.split())
    return found


def _split(example: Example, text: str, is_main: bool, settings: Settings) -> list[str]:
    given = settings.splitter == "given"
    # Rows of pre-training end between sentences even if sentences have no markers.
    if (settings.segments == "none" and (given or settings.task != "mlm")) or (given and not is_main):
        return [text]
    try:
        return split_sentences(text, settings.splitter, settings.source_language)
    except ValueError as error:
        way_out = "; or --segments none" if given else ""
        raise ValueError(f"{example.name}: {error}{way_out}") from error
