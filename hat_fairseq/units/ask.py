"""Ask a transcript: print the passages that answer questions, as text, JSON lines or a page.

A passage is consecutive turns whose probability reaches the threshold of the model; its lines are the turns that most
probably answer. Of a question that nothing answers, the closest passage is shown, and said to be that.
"""

import argparse
import os
import sys
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from os.path import exists, isfile  # False for a word that is too long to be a name
from pathlib import Path
from typing import BinaryIO

from ..data.files import json_lines, of_type
from ..data.formats import STDIN
from ..data.kinds import kind_of
from ..data.language import is_other_alphabet
from ..data.outputs import atomic_file, check_outputs
from ..data.record import Turn
from ..data.text import is_blank
from ..data.transcripts import Transcript, chosen_of, of_record, read_transcript
from ..inference import command, jobs, reading
from ..inference.labels import Predictor, refuse_nan
from ..inference.loaded import Loaded
from ..inference.loading import load, split_with, verb_of
from ..inference.rows import encode_documents, logged_changes
from ..kernels import AUTO
from ..model_folder import is_model_folder
from ..options import options_of
from ..suggestions import did_you_mean, unknown_flag
from ..weights.names import MEETING_NAME, NAMES
from .answers import Answers
from .ask_page import ask_page
from .ask_text import printed
from .evidence import Evidence, EvidenceKind, EvidenceOptions, EvidencePrediction, raw_text, units_of_row

WRITES_STDOUT = True  # with --out -
PASSES_FLAGS_ON = True  # questions after an option, which argparse does not join with those before it
PASSAGES = 3
USAGE = "hat ask [MODEL] TRANSCRIPT QUESTION..."
OTHER_ALPHABET = "the model meeting was trained on English, and many letters are of another alphabet: read with care"
QUESTION_MARKS = ("?", "？", "؟")
CHECKPOINT = ".pt"


def ask(
    loaded: Loaded, record: Evidence, options: EvidenceOptions | None = None, transcript: Transcript | None = None
) -> Answers:
    """Finds what answers the questions of a record. A threshold of the options also decides whether anything does.

    `transcript`: that of the record, whose times the answers have.

    ValueError for a model of another kind, an empty document, or scores that are not numbers.
    """
    options = options or EvidenceOptions()
    check_answers(loaded)
    predictor = Predictor(loaded)
    decision = predictor.kind.options_of(options, loaded.models)
    (encoded,) = encode_documents([record], loaded)
    rows, outputs = [each.row for each in encoded], predictor.scores([*predictor.samples(encoded)])
    refuse_nan(record, outputs)
    prediction = predictor.kind.predict(record, rows, outputs, loaded.labels, decision)
    assert isinstance(prediction, EvidencePrediction)
    units, judges = {unit.number: unit for unit in units_of_row(rows[0])}, decision.answers > 0
    answers = Answers(record.id, (), judges, record, transcript or of_record(record), units)
    return answers.found(prediction, options.threshold is not None)


def check_answers(loaded: Loaded, name: str | None = None) -> None:
    """Raises ValueError for models that find no passages; `name`: what the user calls them."""
    kind = loaded.pipeline.kind
    if not isinstance(kind, EvidenceKind):
        raise ValueError(
            f"{name or loaded.paths[0]} was trained on the kind {kind.name!r}: questions need a model of the kind "
            f"{EvidenceKind.name!r}, which finds passages; this one is for hat {verb_of(kind)}"
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
    text = (
        "the checkpoint or folder of a model that finds passages, or USER/NAME on the Hugging Face Hub; several with : "
    )
    text += f"between them are an ensemble (default: {MEETING_NAME}, a model of this package)"
    parser.add_argument("model", metavar="MODEL", nargs="?", help=text)
    text = "the transcript to ask: plain text with a turn a line, JSON, a table, .srt, .vtt, a folder of splits, or a "
    text += "folder of hat preprocess; - is the standard input"
    parser.add_argument("input", metavar="TRANSCRIPT", nargs="?", help=text)
    text = "one or more questions, each in quotation marks"
    parser.add_argument("questions", metavar="QUESTION", nargs="*", help=text)
    parser.usage = f"{USAGE} [options]"
    command.add_split(parser)
    command.add_data(parser)
    parser.add_argument("--id", metavar="ID", help="ask the document with this id, if TRANSCRIPT has several")
    text = "read plain text without names as running text, and split it in this way (default: a line is a turn)"
    command.add_splitter(parser, text)
    group = parser.add_argument_group("passages")
    text = "show at most this many passages for a question, best first (default: %(default)s)"
    options_of(EvidenceOptions)["most_passages"].add_to(group, dest="passages", default=PASSAGES, help=text)
    text = "show turns with at least this probability as passages, whether or not the model says that they answer "
    text += "(default: the model decides)"
    options_of(EvidenceOptions)["threshold"].add_to(group, help=text)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print a JSON object for each question instead of text")
    text = "write the JSON objects to this file, which ends in .jsonl; - is the standard output, as with --json"
    group.add_argument("--out", type=Path, metavar="FILE", help=text)
    text = "write the transcript with all passages as one HTML file, for any browser, without a network"
    group.add_argument("--html", type=Path, metavar="FILE", help=text)
    group.add_argument("--overwrite", action="store_true", help="replace the files of --out and --html")
    command.add_device(parser)
    parser.set_defaults(precision=AUTO)  # a transcript is read twice, and in bf16 in a third of the time


def main(args: argparse.Namespace) -> int:
    """Reads a transcript, asks and prints."""
    read_words(args)
    check_questions(args.questions)
    if warning := without_quotation_marks(args.questions):
        print(warning, file=sys.stderr)
    check_files(args)
    options = replace(EvidenceOptions(args.threshold, args.passages), most_passages=None)  # the page has all
    transcript = transcript_of(args)
    record = with_questions(transcript, args.questions)
    reading.check_splitter([record], args.splitter)
    print(transcript.describe(), file=sys.stderr)
    if args.model == MEETING_NAME and is_other_alphabet([*args.questions, raw_text(record)]):
        print(f"warning: {OTHER_ALPHABET}", file=sys.stderr)
    with opened(args) as files:  # which appear before anything is printed, because its reader may close it
        answers = answers_of(args, record, options, transcript)
        lines = answers.lines(args.passages)
        if "--out" in files:
            files["--out"].writelines(json_lines(lines))
        if "--html" in files:
            files["--html"].write(ask_page(answers, model_name(args.model)).encode())
        check_files(args)  # another program may have written them meanwhile
    if args.html is not None:
        print(f"{args.html}: the transcript with all passages", file=sys.stderr)
    if args.json or args.out == command.STDOUT:
        command.write_lines(command.STDOUT, lines)
    else:
        print("\n".join(printed(answers, args.passages)))
    return 0


def with_questions(transcript: Transcript, questions: Sequence[str]) -> Evidence:
    """Returns a transcript as a record with questions; ValueError for an empty question."""
    if transcript.text is not None:
        return Evidence(transcript.name, questions=tuple(questions), text=transcript.text)
    turns = tuple(Turn(each.text, speaker=each.speaker) for each in transcript.said)
    return Evidence(transcript.name, questions=tuple(questions), turns=turns)


def answers_of(args: argparse.Namespace, record: Evidence, options: EvidenceOptions, transcript: Transcript) -> Answers:
    """Loads the model and asks it."""
    files = jobs.model_files(args, args.model)
    loaded = load(files.path, files.data, args.device, args.precision)
    command.say_precision(args.precision, loaded.precision)
    check_answers(loaded, args.model)
    split_with(loaded.pipeline, splitter_of(loaded.pipeline.settings.splitter, args.splitter))
    with logged_changes(loaded.pipeline):
        return ask(loaded, record, options, transcript)


# The words of the command


def read_words(args: argparse.Namespace) -> None:
    """Sets model, input and questions by all words, wherever options stand between them; ValueError for bad ones."""
    if unknown := [word for word in args.others if word.startswith("-") and word != str(STDIN)]:
        parser = argparse.ArgumentParser()
        add_arguments(parser)
        raise ValueError(f"unrecognized arguments: {' '.join(unknown)}{unknown_flag(unknown, parser)}")
    words = [word for word in (args.model, args.input, *args.questions, *args.others) if word is not None]
    has_model = bool(words) and is_model(*words[:2])
    args.model, words = (words[0], words[1:]) if has_model else (MEETING_NAME, words)
    if not words:
        raise ValueError(f"no transcript: {USAGE}")
    transcript, *args.questions = words
    args.input = Path(transcript)
    if args.input != STDIN and not exists(transcript):
        what = "the transcript" if has_model else "neither a model nor a transcript:"
        meant = "" if has_model else did_you_mean(transcript, NAMES)
        raise ValueError(f"{what} {transcript!r:.200} does not exist; {USAGE}{meant}")
    if not args.questions:
        raise ValueError(f"no question after the transcript {transcript!r}: write it in quotation marks; {USAGE}")
    if files := [question for question in args.questions if isfile(question)]:
        raise ValueError(f"{files[0]!r}, after the transcript {transcript!r}, is a file and no question; {USAGE}")


def is_model(word: str, following: str = "") -> bool:
    """Tells whether the first word is MODEL: it names one that exists, or nothing, and a transcript follows."""
    if all(map(is_named_model, word.split(os.pathsep))):
        return True
    follows = following == str(STDIN) or exists(following)
    return follows and word != str(STDIN) and not exists(word)


def is_named_model(path: str) -> bool:
    """Tells whether it is the name of a model of this package, the folder of a model, or a checkpoint."""
    if not exists(path):
        return path in NAMES
    return is_model_folder(path) or path.endswith(CHECKPOINT) or is_saved_by_torch(path)


def is_saved_by_torch(path: str) -> bool:
    """Tells whether it is a file of torch.save, by its content; a pipe is not read."""
    if not isfile(path):
        return False
    with suppress(OSError, zipfile.BadZipFile), zipfile.ZipFile(path) as file:
        return any(name.endswith("/data.pkl") for name in file.namelist())
    return False


def without_quotation_marks(questions: Sequence[str]) -> str:
    """Returns a warning if several questions look like the words of one, else nothing."""
    words = len(questions) > 1 and not any(len(question.split()) > 1 for question in questions)
    if not words or any(question.endswith(QUESTION_MARKS) for question in questions[:-1]):
        return ""
    return f"warning: {len(questions)} questions of one word each: a question of several words needs quotation marks"


def transcript_of(args: argparse.Namespace) -> Transcript:
    """Reads the transcript, or a document of a split of a folder; ValueError for a split of a file."""
    if args.input.is_dir():
        records = list(reading.records_of(args.input, args.split, kind_of(EvidenceKind.name)))
        chosen = records[chosen_of([record.id for record in records], args.id, args.input)]
        return of_record(chosen)
    if args.split is not None:
        raise ValueError(f"--split {args.split} has no effect: {args.input} is no folder with splits; remove it")
    return read_transcript(args.input, args.id, args.splitter is not None)


# Files


def files_of(args: argparse.Namespace) -> dict[str, Path]:
    """Returns the files that are wanted, by their flags."""
    named = {"--out": args.out, "--html": args.html}
    return {flag: path for flag, path in named.items() if path not in (None, command.STDOUT)}


def check_files(args: argparse.Namespace) -> None:
    """Raises ValueError for files that may not be written."""
    inputs = [args.model, args.data, None if args.input == STDIN else args.input]
    if args.out not in (None, command.STDOUT) and args.out.suffix != ".jsonl":
        raise ValueError(f"--out {args.out} must end in .jsonl: passages are JSON lines")
    wanted = files_of(args)
    if args.overwrite and not wanted:
        raise ValueError("--overwrite has no effect without --out FILE or --html: remove it")
    check_outputs(wanted, args.overwrite, inputs)


@contextmanager
def opened(args: argparse.Namespace) -> Iterator[dict[str, BinaryIO]]:
    """Opens the files, by their flags, which appear when the block ends; ValueError if another process writes one."""
    with ExitStack() as stack:
        yield {flag: stack.enter_context(atomic_file(path, alone=True)) for flag, path in files_of(args).items()}


# The page


def model_name(path: str) -> str:
    return "/".join(Path(path).parts[-2:])
