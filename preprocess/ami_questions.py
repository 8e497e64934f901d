"""Questions on AMI meetings, and the turns that answer each of them: the part of QMSum whose meetings are AMI's.

Carried in `ami_questions_data/` (CC BY 4.0 and MIT, see ATTRIBUTION.txt there), so `--root` is not needed: 97, 20 and
20 meetings with 593, 125 and 129 questions. All of QMSum (Zhong et al. 2021): the reader `qmsum`. A `--root` may hold
other files of these names, and ExplainMeetSum with the few turns that support an answer; see `explainmeetsum.py`.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from explainmeetsum import CONTENT as CONTENT_OF_LINES
from explainmeetsum import FOLDER, read_meetings, with_lines
from hat_fairseq.data.records_json import read_records
from hat_fairseq.units.evidence import Evidence
from release import release_file

KIND = "evidence"
DEFAULTS = {"splitter": "given"}
RELEASE = {"train": (97,), "valid": (20,), "test": (20,)}
CONTENT = f"train.jsonl.gz, valid.jsonl.gz and test.jsonl.gz; or {CONTENT_OF_LINES}"
META = {"domain": "ami"}


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Evidence]:
    """Yield the meetings of a split; `root`: holds the three files, or only lines for those of this repository."""
    carried, name = Path(__file__).with_name("ami_questions_data"), f"{split}.jsonl.gz"
    lines = read_meetings(root, split)
    of_root = root is not None and ((root / name).is_file() or not (root / FOLDER).is_dir())
    folder = root if root is not None and of_root else carried
    for record in read_records(release_file(folder / name, CONTENT), KIND, counts=counts):
        assert isinstance(record, Evidence)
        yield with_lines(replace(record, meta=META | dict(record.meta or {})), lines, counts)
