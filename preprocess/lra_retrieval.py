"""Retrieval of Long Range Arena: does one paper cite the other? (Radev et al. 2013; Tay et al. 2021.)

`--root` is the folder `tsv_data` of the authors' `lra_release.gz`
(https://github.com/google-research/long-range-arena; the link to the ACL Anthology Network itself is dead):
`new_aan_pairs.{train,eval,test}.tsv`, 147,086, 18,090 and 17,437 pairs. A line has five columns with tabs between them,
no header, and quotes that mean nothing: label (`1.0` or `0.0`), two ids, two texts. The release states no licence for
the texts.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import read_columns
from hat_fairseq.data.kinds import BytePair
from release import release_file, release_folder

KIND = "byte_pair"
RELEASE = {"train": (147086,), "valid": (18090,), "test": (17437,)}
FILES = {"train": "train", "valid": "eval", "test": "test"}
CONTENT = "new_aan_pairs.train.tsv, new_aan_pairs.eval.tsv and new_aan_pairs.test.tsv"
LABELS = {"0.0": "0", "1.0": "1", "0": "0", "1": "1"}
COLUMNS = 5


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[BytePair]:
    """Yield the pairs of a split; an id is the number of the line and both ids."""
    path = release_file(release_folder(root, CONTENT) / f"new_aan_pairs.{FILES[split]}.tsv", CONTENT)
    for number, columns in read_columns(path):
        if len(columns) != COLUMNS:
            raise ValueError(f"{path}:{number}: {len(columns)} columns instead of {COLUMNS}; is the file cut off?")
        label, first, second, text, other = columns
        if label not in LABELS:
            raise ValueError(f"{path}:{number}: the label is {label!r:.60}, not 0.0 or 1.0")
        name, origin = f"{number}-{first}-{second}", f"{path}:{number}"
        yield BytePair(name, text=text, second=other, label=LABELS[label], origin=origin)
