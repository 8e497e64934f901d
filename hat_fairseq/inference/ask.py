"""Ask a transcript: print the passages that answer questions, as text, JSON lines or a page.

A passage is consecutive turns whose probability reaches the threshold of the model. If none does for a question, the
best turn is shown.
"""

import argparse
import shutil
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..analysis.ask import Asked, ask_page
from ..data.columns import Columns
from ..data.files import of_type
from ..data.kinds import kind_of
from ..data.kinds.evidence import (
    Evidence,
    EvidenceKind,
    EvidenceOptions,
    EvidencePrediction,
    Unit,
    passages,
    raw_text,
    units_of_row,
)
from ..data.language import is_other_alphabet
from ..data.options import COLUMNS, METAVAR
from ..data.outputs import atomic_file, check_outputs
from ..data.speakers import Said, clock
from ..data.text import is_blank, normalise
from ..data.transcripts import STDIN, Transcript, chosen_of, read_transcript
from ..suggestions import unknown_flag
from ..weights.names import MEETING_NAME
from . import command, jobs, reading
from .labels import Predictor, refuse_nan
from .loading import Loaded, load, split_with
from .rows import Line, encode_documents, logged_changes
from .score import as_file

WRITES_STDOUT = True  # with --out -
PASSES_FLAGS_ON = True  # questions after an option, which argparse does not join with those before it
PASSAGES = 3
LINES = 12  # of a passage in the terminal
OTHER_ALPHABET = "the model meeting was trained on English, and many letters are of another alphabet: read with care"
QUESTION_MARKS = ("?", "？", "؟")
BEST = " > "  # before the most probable turn of a passage of several
SCORES = (
    "A probability says how likely it is that a turn belongs to an answer, compared with other turns of this "
    "transcript. "
    "It does not say that the transcript has an answer: read the passage."
)


@dataclass(frozen=True)
class Answers:
    """What a model finds in a document for each of its questions."""

    record: Evidence
    units: list[Unit]
    prediction: EvidencePrediction


def ask(loaded: Loaded, record: Evidence, options: EvidenceOptions | None = None, said: Sequence[Said] = ()) -> Answers:
    """Finds what answers the questions of a record.

    Each passage has its `rank`, from 1, and its `peak`, the number of the turn or sentence with the greatest
    probability. A question without passages has the `best` turn or sentence as a passage without a rank. If one of the
    turns that were `said` has a time, a passage has `time`, the seconds of its beginning and end.

    ValueError for a model of another kind, an empty document, or scores that are not numbers.
    """
    check_answers(loaded)
    predictor = Predictor(loaded)
    options = predictor.kind.options_of(options, loaded.models)
    (encoded,) = encode_documents([record], loaded)
    rows, outputs = [each.row for each in encoded], predictor.scores([*predictor.samples(encoded)])
    refuse_nan(record, outputs)
    prediction = predictor.kind.predict(record, rows, outputs, loaded.labels, options)
    assert isinstance(prediction, EvidencePrediction)
    answers = Answers(record, units_of_row(rows[0]), prediction)
    for question in prediction.questions:
        by_number = question["probabilities"]
        if not question["passages"]:
            question["best"] = best_of(answers, by_number)
        for passage in shown_passages(question):
            numbers = range(passage["first"], passage["last"] + 1)
            passage["peak"] = max(numbers, key=lambda number: by_number[number] or 0)
        for rank, passage in enumerate(question["passages"], start=1):
            passage["rank"] = rank
        for passage in shown_passages(question) if any(each.start is not None for each in said) else ():
            passage["time"] = [said[passage["first"]].start, said[passage["last"]].end]
    return answers


def best_of(answers: Answers, by_number: Sequence[float | None]) -> dict[str, Any]:
    """Returns the turn or sentence with the greatest probability as a passage."""
    unit = max(answers.units, key=lambda each: by_number[each.number] or 0)
    (passage,) = passages(answers.record, [unit], np.array([by_number[unit.number]]), EvidenceOptions(threshold=0))
    return passage


def shown_passages(question: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns the passages of a question, or its best turn alone."""
    return question["passages"] or [question["best"]]


def check_answers(loaded: Loaded) -> None:
    """Raises ValueError for models that find no passages."""
    if not isinstance(loaded.pipeline.kind, EvidenceKind):
        kind = loaded.pipeline.settings.kind
        raise ValueError(
            f"{loaded.paths[0]} was trained on the kind {kind!r}: questions need a model of the kind "
            f"{EvidenceKind.name!r}, which finds passages"
        )


def splitter_of(trained: str, splitter: str | None = None) -> str:
    """Returns how running text is split: as in training, or at punctuation where training had given turns."""
    return splitter or ("punctuation" if trained == "given" else trained)


def check_questions(questions: Sequence[str]) -> None:
    """Raises ValueError if there is no question, an empty one, or one that is no string."""
    if not questions:
        raise ValueError("no question: give one, or several")
    for number, question in enumerate(questions, start=1):
        of_type(question, str, f"question {number}")
    if empty := [number for number, question in enumerate(questions, start=1) if is_blank(question)]:
        raise ValueError(f"question {empty[0]} is empty")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help=command.MODEL)
    text = "the transcript to ask: plain text with a turn a line, JSON, a table, .srt, .vtt, a folder of splits, or a "
    text += "folder of hat preprocess; - is the standard input"
    parser.add_argument("input", metavar="INPUT", type=Path, help=text)
    parser.add_argument(
        "questions", metavar="QUESTION", nargs="*", help="one or more questions, each in quotation marks"
    )
    command.add_split(parser)
    command.add_data(parser)
    parser.add_argument("--id", metavar="ID", help="ask the document with this id, if INPUT has several")
    text = "read plain text without names as running text, and split it in this way (default: a line is a turn)"
    command.add_splitter(parser, text)
    parser.add_argument("--columns", action="append", metavar=METAVAR, help=COLUMNS)
    group = parser.add_argument_group("passages")
    text = "show at most this many passages for a question, best first (default: %(default)s)"
    group.add_argument("--passages", type=int, default=PASSAGES, metavar="N", help=text)
    text = "show turns with at least this probability as passages (default: the threshold of the model)"
    group.add_argument("--threshold", type=float, metavar="X", help=text)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON object for each question instead of text")
    text = "write the JSON objects to this file, which ends in .jsonl; - is the standard output, as with --json"
    group.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = "write the transcript with all passages as one HTML file, for any browser, without a network"
    group.add_argument("--page", type=Path, metavar="FILE", help=text)
    group.add_argument("--overwrite", action="store_true", help="replace the files of --out and --page")
    command.add_device(parser)


def main(args: argparse.Namespace) -> int:
    """Reads a transcript, asks and prints."""
    if unknown := [word for word in args.others if word.startswith("-")]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        raise ValueError(f"unrecognized arguments: {' '.join(unknown)}{unknown_flag(unknown, parser)}")
    args.questions += args.others
    if not args.questions:
        raise ValueError(f"no question after the transcript {str(args.input)!r}: write it in quotation marks")
    check_questions(args.questions)
    if warning := without_quotation_marks(args.questions):
        print(warning, file=sys.stderr)
    check_files(args)
    if args.passages < 1:
        raise ValueError(f"--passages must be at least 1, not {args.passages}")
    options = EvidenceOptions(args.threshold)
    transcript = transcript_of(args)
    record = transcript.record(args.questions)
    reading.check_splitter([record], args.splitter)
    print(transcript.describe(), file=sys.stderr)
    if args.model == MEETING_NAME and is_other_alphabet([*args.questions, raw_text(record)]):
        print(f"warning: {OTHER_ALPHABET}", file=sys.stderr)
    files = jobs.model_files(args, args.model)
    loaded = load(files.path, files.data, args.device, args.precision)
    command.say_precision(args.precision, loaded.precision)
    check_answers(loaded)
    split_with(loaded.pipeline, splitter_of(loaded.pipeline.settings.splitter, args.splitter))
    with logged_changes(loaded.pipeline):
        answers = ask(loaded, record, options, transcript.said)
    lines = list(lines_of(answers, args.passages))
    if args.out not in (None, command.STDOUT):  # before what is printed, whose reader may close it
        command.write_lines(args.out, lines)
    if args.page is not None:
        with atomic_file(args.page) as file:
            file.write(ask_page(asked(answers, transcript, model_name(args.model))).encode())
        print(f"{args.page}: the transcript with all passages", file=sys.stderr)
    if args.json or args.out == command.STDOUT:
        command.write_lines(command.STDOUT, lines)
    else:
        print("\n".join(printed(answers, transcript, lines)))
    return 0


def without_quotation_marks(questions: Sequence[str]) -> str:
    """Returns a warning if several questions look like the words of one, else nothing."""
    words = len(questions) > 1 and not any(len(question.split()) > 1 for question in questions)
    if not words or any(question.endswith(QUESTION_MARKS) for question in questions[:-1]):
        return ""
    return f"warning: {len(questions)} questions of one word each: a question of several words needs quotation marks"


def transcript_of(args: argparse.Namespace) -> Transcript:
    """Reads the transcript, or a document of a split of a folder; ValueError for a split of a file."""
    running, columns = args.splitter is not None, Columns(tuple(args.columns or ()))
    if args.input.is_dir():
        records = list(reading.records_of(args.input, args.split, kind_of(EvidenceKind.name), columns))
        chosen = records[chosen_of([record.id for record in records], args.id, args.input)]
        with as_file([chosen]) as file:
            return read_transcript(file, chosen.id, running)
    if args.split is not None:
        raise ValueError(f"--split {args.split} has no effect: {args.input} is no folder with splits; remove it")
    return read_transcript(args.input, args.id, running, columns=columns)


def check_files(args: argparse.Namespace) -> None:
    """Raises ValueError for files that may not be written, before the work begins."""
    inputs = [args.model, args.data, None if args.input == STDIN else args.input]
    if args.out not in (None, command.STDOUT) and args.out.suffix != ".jsonl":
        raise ValueError(f"--out {args.out} must end in .jsonl: passages are JSON lines")
    named = {"--out": args.out, "--page": args.page}
    wanted = {flag: path for flag, path in named.items() if path not in (None, command.STDOUT)}
    if args.overwrite and not wanted:
        raise ValueError("--overwrite has no effect without --out FILE or --page: remove it")
    check_outputs(wanted, args.overwrite, inputs)


def model_name(path: str) -> str:
    return "/".join(Path(path).parts[-2:])


def lines_of(answers: Answers, most: int) -> Iterator[Line]:
    """Yields a JSON object for each question, with at most so many passages; see `ask`."""
    for question in answers.prediction.questions:
        line: Line = {"id": answers.record.id, "question": question["question"]}
        line["threshold"] = round(answers.prediction.threshold, 6)
        line |= {"passages": question["passages"][:most], "passages_in_all": len(question["passages"])}
        yield line | ({} if question["passages"] else {"best": question["best"]})


# Text for a terminal


def printed(answers: Answers, transcript: Transcript, lines: Sequence[Line]) -> Iterator[str]:
    """Yields lines of text: each question with its passages, without characters that a terminal obeys."""
    for line in lines:
        yield from ["", *wrapped(line["question"])]
        if "best" in line:
            yield f"  No {transcript.unit} reaches the threshold, {line['threshold']:.3g}. The best one:"
        for passage in shown_passages(line):
            yield from printed_passage(answers, transcript, passage)
        if left := line["passages_in_all"] - len(line["passages"]):
            yield f"  [{left:,} more passage{'s' * (left != 1)}: --passages N]"
    yield from ["", *wrapped(SCORES)]


def printed_passage(answers: Answers, transcript: Transcript, passage: dict[str, Any]) -> Iterator[str]:
    """Yields the place of a passage, and its turns."""
    parts = [str(passage.get("rank", "-")), f"{passage['probability']:.2f}", place_of(passage, transcript.unit)]
    if "time" in passage and passage["time"][0] is not None:
        parts.append(clock(passage["time"][0]))
    if passage["roles"]:
        parts.append(clean(", ".join(passage["roles"])))
    yield from wrapped("  ".join(parts), "  ", keep_spaces=True)
    texts = {number: wrapped(text, "     ") for number, text in texts_of(answers.record, passage)}
    if len(texts) > 1 and passage["peak"] in texts:
        first, *rest = texts[passage["peak"]]
        texts[passage["peak"]] = [f" {BEST} {first.removeprefix('     ')}", *rest]
    before = []
    if sum(map(len, texts.values())) > LINES:  # begin one turn before the best one
        before = [number for number in texts if number < passage["peak"] - 1]
    lines = [line for number, each in texts.items() if number not in before for line in each]
    if before:
        yield f"     [{len(before):,} {unit_of(before, transcript)} before]"
    yield from lines[:LINES]
    if len(lines) > LINES:
        left = len(lines) - LINES
        yield f"     [{left:,} more line{'s' * (left != 1)}: --json has all]"


def unit_of(numbers: Sequence[int], transcript: Transcript) -> str:
    return f"{transcript.unit}{'s' * (len(numbers) != 1)}"


def place_of(passage: dict[str, Any], unit: str) -> str:
    """Says which turns a passage has; people count from 1."""
    first, last = passage["first"] + 1, passage["last"] + 1
    return f"{unit} {first:,}" if first == last else f"{unit}s {first:,}-{last:,}"


def texts_of(record: Evidence, passage: dict[str, Any]) -> Iterator[tuple[int, str]]:
    """Yields number and text of the turns of a passage, each after its speaker; running text as a whole."""
    if record.elements is None:
        yield passage["peak"], passage["text"]
        return
    for number in range(passage["first"], passage["last"] + 1):
        role, text = record.roles and record.roles[number], record.elements[number]
        if not is_blank(text):
            yield number, text if role is None else f"{role}: {text}"


def clean(text: str) -> str:
    return normalise(text, Counter())


def wrapped(text: str, indent: str = "", keep_spaces: bool = False) -> list[str]:
    """Returns text in lines that are no longer than the terminal is wide."""
    width = max(40, shutil.get_terminal_size().columns)
    text = text if keep_spaces else clean(text)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=f"{indent}  ")


# The page


def asked(answers: Answers, transcript: Transcript, model: str) -> Asked:
    """Returns what the page shows."""
    raw, prediction = raw_text(answers.record), answers.prediction
    said = transcript.said
    return Asked(
        document=answers.record.id,
        model=model,
        about=transcript.describe(),
        unit=transcript.unit,
        threshold=prediction.threshold,
        texts=[each.text for each in said] or [raw[unit.begin : unit.end] for unit in answers.units],
        speakers=[each.speaker for each in said] if transcript.speakers else [],
        starts=[each.start for each in said] if transcript.has_times else [],
        questions=prediction.questions,
    )
