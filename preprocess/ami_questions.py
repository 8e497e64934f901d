"""Questions on AMI meetings, and the turns that answer each of them: the part of QMSum whose meetings are AMI's.

Carried in `ami_questions_data/` (CC BY 4.0 and MIT, see ATTRIBUTION.txt there), so `--root` is not needed: 97, 20 and
20 meetings with 593, 125 and 129 questions. All of QMSum (Zhong et al. 2021): the reader `qmsum`.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from release import release_file

KIND = "evidence"
DEFAULTS = {"splitter": "given"}
RELEASE = {"train": (97,), "valid": (20,), "test": (20,)}
CONTENT = "train.jsonl.gz, valid.jsonl.gz and test.jsonl.gz"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the meetings of a split; `root`: holds the three files; None for those of this repository."""
    folder = root or Path(__file__).with_name("ami_questions_data")
    yield from read_records(release_file(folder / f"{split}.jsonl.gz", CONTENT), KIND, counts=counts)
