"""`--score`: the result of a command of inference is scored against the gold of its input."""

import argparse
import shlex
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from ..cli import Parser
from ..data.outputs import check_output, check_outputs
from ..data.pipeline import TextPipeline
from ..data.record import Record
from ..data.records_json import json_line
from ..scoring import command as score_command
from ..scoring.bleu import make_bleu, settings_of
from ..scoring.command import checked as checked_score
from .command import SPLIT, STDOUT
from .loading import bin_of


class Score:
    """The value of --score as arguments of `hat score`; a mistake in them ends the process.

    The scores are written to the file of their own `--json`, or beside `out`.

    Raises:
        ValueError: a record has no gold; a tokenizer is missing; the file of the scores exists, is an input,
            or is that of --out.
    """

    def __init__(self, args: argparse.Namespace, records: Sequence[Record], pipeline: TextPipeline) -> None:
        gold = pipeline.kind.gold
        if args.out == STDOUT or gold is None:
            raise ValueError("--score needs a file of --out" if gold else "--score: these data have no gold: remove it")
        if blind := next((record for record in records if getattr(record, gold) is None), None):
            raise ValueError(f"{blind.name} has no {gold} to score with: leave out --score")
        self.words, self.out, self.input = shlex.split(args.score), args.out, args.input
        folder = bin_of(args.input)
        self.records, self.pipeline = records, pipeline
        self.stored = folder and folder.resolve().parent / "text" / f"{args.split or SPLIT}.jsonl"
        with self.references() as references:
            inputs = [args.input, args.data, args.model]
            if (parsed := self.parse(references)).json is None:
                file = args.out.with_suffix(".score.json")
                check_output(file, args.overwrite, inputs)
                self.words += ["--json", str(file), "--overwrite"]
            else:
                check_outputs({"--json of --score": Path(parsed.json)}, parsed.overwrite, inputs)
                if Path(parsed.json).resolve() == args.out.resolve():
                    raise ValueError("--json of --score and --out name the same file")
            if gold not in (keys := score_command.METRICS[parsed.metric].gold):
                raise ValueError(f"--score {parsed.metric} is about {' or '.join(keys)}, and these data have {gold}")
            checked_score(parsed)
            if parsed.metric == "bleu":
                make_bleu(settings_of(parsed))

    @contextmanager
    def references(self) -> Iterator[Path]:
        """Yields the file of the records: that of `hat preprocess`, or a temporary one, which no error names."""
        if self.stored:
            yield self.stored
        else:
            with as_file(self.records, self.pipeline) as path:
                try:
                    yield path
                except ValueError as error:
                    raise ValueError(str(error).replace(str(path), str(self.input))) from error

    def parse(self, references: Path) -> argparse.Namespace:
        parser = Parser(prog="hat score", allow_abbrev=False)
        score_command.add_arguments(parser)
        return parser.parse_args([*self.words, "--hypotheses", str(self.out), "--references", str(references)])

    def write(self) -> int:
        """Scores what was written; returns the exit status."""
        with self.references() as references:
            command = f"hat score {shlex.join([*self.words, '--hypotheses', str(self.out)])}"
            stored = f" --references {shlex.quote(str(references))}"
            print(f"{command}{stored if self.stored else f', with the gold of {self.input}'}", flush=True)
            return int(score_command.write_scores(checked_score(self.parse(references))))


@contextmanager
def as_file(records: Iterable[Record], pipeline: TextPipeline | None = None) -> Iterator[Path]:
    """Yields a temporary file of records, beside the pipeline as in a folder of `hat preprocess`."""
    with TemporaryDirectory() as folder:
        path, binary = Path(folder, "text", "records.jsonl"), Path(folder, "bin")
        path.parent.mkdir()
        binary.mkdir()
        if pipeline:
            pipeline.save(binary)
        path.write_text("".join(f"{json_line(record)}\n" for record in records), encoding="utf-8")
        yield path
