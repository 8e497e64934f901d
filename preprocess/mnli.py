"""MultiNLI: does a sentence follow from another one? (Williams et al. 2018).

`--root` is a folder with one of the two common releases; in both, tabs are between columns and quotes mean nothing:

GLUE (https://gluebenchmark.com/tasks, `MNLI.zip`)
    `train.tsv`, `dev_matched.tsv` and `dev_mismatched.tsv`.
`multinli_1.0` (https://cims.nyu.edu/~sbowman/multinli/)
    `multinli_1.0_train.txt`, `multinli_1.0_dev_matched.txt` and `multinli_1.0_dev_mismatched.txt`.

The labels are `contradiction`, `entailment` and `neutral`; pairs on which the annotators did not agree have the
label `-`, are in `multinli_1.0` only, and are dropped and counted: 392,702 training pairs are left. `valid` is
dev_matched, on which MNLI-m is measured (9,815 pairs), `test` is dev_mismatched (9,832). GLUE's own test files, which
have no labels, are not read. A pair's id is its line in the file and its `pairID`.

Licence: the texts are under several, most of them OANC's, which permits everything (section 2 of the paper).
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.kinds import LabelledText
from release import count_other_release, read_tsv, release_file, release_folder

KIND = "classification"
DEFAULTS = {"splitter": "punctuation", "on_empty": "drop"}
RELEASE = {"train": (392702,), "valid": (9815,), "test": (9832,)}
FILES = {"train": "train", "valid": "dev_matched", "test": "dev_mismatched"}
COLUMNS = ("pairID", "sentence1", "sentence2", "gold_label")
LABELS = ("contradiction", "entailment", "neutral")
UNDECIDED = "-"
CONTENT = "train.tsv, dev_matched.tsv and dev_mismatched.tsv of GLUE, or the files of multinli_1.0"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[LabelledText]:
    """Yield the pairs of a split that have a label."""
    folder = release_folder(root, CONTENT)
    own = folder / f"multinli_1.0_{FILES[split]}.txt"
    glue = folder / f"{FILES[split]}.tsv"
    path = own if own.is_file() else release_file(glue, CONTENT)
    if path == own:
        count_other_release([glue], counts)
    for number, row in read_tsv(path, COLUMNS):
        if row["gold_label"] == UNDECIDED:
            counts["pairs_without_agreed_label_dropped"] += 1
            continue
        if row["gold_label"] not in LABELS:
            raise ValueError(f"{path}:{number}: the label is {row['gold_label']!r:.60}, not {', '.join(LABELS)}")
        yield LabelledText(
            id=f"{number}-{row['pairID']}",
            text=row["sentence1"],
            second=row["sentence2"],
            label=row["gold_label"],
            origin=f"{path}:{number}",
        )
