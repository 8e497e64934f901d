"""C4, English: long web pages to pre-train on (Raffel et al. 2020).

`--root` is a folder with `c4-train.00000-of-01024.json.gz` and so on, and `c4-validation.*.json.gz`, as `en` of
https://huggingface.co/datasets/allenai/c4 has them: JSON lines with `text`, `timestamp` and `url`, in 1,024 files
with 364,868,892 pages and 8 with 364,608. Some of the files will do. Licence: ODC-BY; the pages remain their authors'.

Only pages of more than `MIN_WORDS` words between white space are kept, the others are counted: the model card of
Chalkidis et al. 2022 says "long sequences (> 1024 subwords) of C4". Words are fewer than subwords and need no BPE; a
page that is kept has at least as many subwords. For another limit filter into a folder of JSON lines with `text` and
preprocess that with `--kind mlm`. There is no test part. A page's id is its file and line.
"""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.files import Fields, read_json_lines
from hat_fairseq.data.kinds import PretrainingText
from release import release_folder

KIND = "mlm"
SPLITS = ("train", "valid")
DEFAULTS = {"splitter": "library"}
MIN_WORDS = 1024
NAMES = {"train": "c4-train", "valid": "c4-validation"}
CONTENT = "c4-train.*.json.gz and c4-validation.*.json.gz"


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[PretrainingText]:
    """Yield the long pages of a split, file by file."""
    folder = release_folder(root, CONTENT)
    files = sorted(path for ending in ("json", "json.gz") for path in folder.glob(f"{NAMES[split]}.*.{ending}"))
    if not files:
        raise ValueError(f"{folder} has no {NAMES[split]}.*.json.gz; it must be a folder with {CONTENT}")
    if others := len({*folder.glob(f"{NAMES[split]}.*")} - {*files}):
        counts["files_without_json_or_json_gz_not_read"] += others
    for path in files:
        for number, record in read_json_lines(path, counts):
            where = f"{path}:{number}"
            text = Fields(record, where).text("text")
            if len(text.split()) <= MIN_WORDS:
                counts["short_pages_dropped"] += 1
                continue
            yield PretrainingText(f"{path.name.partition('.json')[0]}:{number}", text=text, origin=where)
