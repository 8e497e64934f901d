"""From a question on the paragraphs of a document to rows, windows of it, and from annotations to their labels.

A row is `<s> question </s> </s> <s> paragraph 1 <s> paragraph 2 ...`. In its spans, a paragraph's marker stands for the
paragraph, and the tokens behind it for characters of this paragraph. Its label is `START END PARAGRAPH TYPE`: first and
last token of the short answer (`0 0` for none), number of the paragraph's marker in the row (0, the question's, for
none), and one of `ANSWER_TYPES`.
"""

from collections import Counter
from collections.abc import Sequence

from hat_fairseq.data.encode_answers import NO_ANSWER, characters_of, window_rows
from hat_fairseq.data.encoder import Encoder
from hat_fairseq.data.labels import ANSWER_TYPES
from hat_fairseq.data.record import Annotation, Record
from hat_fairseq.data.rows import Row, Unit, marked
from hat_fairseq.data.token_spans import Span, find_span, kept_characters, token_spans

NO_LABEL = [*NO_ANSWER, "0", ANSWER_TYPES[0]]


def encode_document_question(encoder: Encoder, record: Record) -> list[Row]:
    """One row for each window of whole paragraphs, the question before each; LongInputError if there is no room."""
    texts = record.sentences
    assert texts is not None  # as the kind demands
    positions = list(map(kept_characters, texts))

    def refer(sentences: list[str], ready: list[str], pieces: list[list[str]]) -> list[list[Span | None]]:
        each = zip(sentences, ready, pieces, positions, strict=True)
        return [token_spans([text], [words], [tokens], places, encoder.bpe)[0] for text, words, tokens, places in each]

    question = marked([encoder.one_segment(record, record.parts[0])])
    context = encoder.units(record, texts, element="paragraph", refer=refer)
    rows = window_rows(encoder, record, question, context, paragraphs=True)
    if record.annotations is not None:
        _label(choose_annotation(record.annotations), positions, context, rows, encoder.counts)
    return rows


def choose_annotation(annotations: Sequence[Annotation]) -> Annotation:
    """The annotation to train on: the one with the first paragraph, of those with short answers if there are any.

    As in the public baseline for Natural Questions (Alberti et al. 2019).
    """
    found = sorted((each for each in annotations if each.paragraph is not None), key=lambda each: each.paragraph or 0)
    return next((each for each in found if each.spans), found[0] if found else Annotation())


def _label(
    annotation: Annotation,
    positions: Sequence[Sequence[int]],
    context: Sequence[Unit],
    rows: Sequence[Row],
    counts: Counter[str],
) -> None:
    """Label the rows that have the answer, and all others with `NO_LABEL`.

    A row has a short answer, from the start of its first span to the end of its last one, if all of it is there; a
    paragraph without short answer likewise, but if no row has all of it, each row with a piece of it.

    Adds to `counts`: `answers_not_found` (no token stands for them), `examples_left_without_answer` (no row has it),
    `answers_inside_tokens` (rows whose first or last token stands for more than the answer).
    """
    for row in rows:
        row.streams["label"] = NO_LABEL
    number = annotation.paragraph
    if number is None:
        return
    places = [_place(row, number) for row in rows]
    if annotation.spans:
        begin, end = min(span.start for span in annotation.spans), max(span.end for span in annotation.spans)
        wanted = characters_of(begin, end, positions[number])
        counts["answers_not_found"] += wanted is None
        for row, (marker, tokens) in zip(rows, places, strict=True):
            found = find_span(row.spans[tokens], *wanted) if wanted and marker else None
            if wanted and found:
                first, last = (tokens.start + token for token in found)
                counts["answers_inside_tokens"] += (row.spans[first][0], row.spans[last][1]) != wanted
                row.streams["label"] = [str(first), str(last), str(marker), "span"]
    else:
        longest = max(tokens.stop - tokens.start for _, tokens in places)
        least = len(context[number]) if longest == len(context[number]) else 1
        for row, (marker, tokens) in zip(rows, places, strict=True):
            if marker and tokens.stop - tokens.start >= least:
                row.streams["label"] = [*NO_ANSWER, str(marker), annotation.yes_no or "paragraph"]
    counts["examples_left_without_answer"] += all(row.label == NO_LABEL for row in rows)


def _place(row: Row, paragraph: int) -> tuple[int, slice]:
    """Number of a paragraph's marker in a row, 0 if it is not there; and where its tokens are."""
    markers = [place for place, span in enumerate(row.spans) if isinstance(span, int)]
    for number, place in enumerate(markers, start=1):
        if row.spans[place] == paragraph:
            return number, slice(place + 1, markers[number] if number < len(markers) else len(row.spans))
    return 0, slice(0, 0)
