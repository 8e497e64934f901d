"""Sentences of papers with their roles: a reader of SumPubmed in the fields of Cohan et al. 2018.

The title of a section is the role of its sentences.

    hat preprocess studies/paper_roles.py --root PUBMED --out data-bin/roles --bpe tokenizer --bpe-dir minilm
"""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import record_from_json

KIND = "segments"
DEFAULTS = {"splitter": "given", "segments": "sentences"}
FILES = {"train": ("train", 400), "valid": ("val", 130), "test": ("test", 170)}  # the first papers
SHORTEST = 10  # sentences


def read(split: str, root: Path | None, counts: Counter[str]) -> Iterator[Record]:
    """Yield the papers with at least `SHORTEST` sentences."""
    assert root is not None, "--root is missing"
    name, most = FILES[split]
    with gzip.open(root / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        for _, line in zip(range(most), lines, strict=False):
            paper = json.loads(line)
            pairs = zip(paper["section_names"], paper["sections"], strict=True)
            rows = [(text, title) for title, sentences in pairs for text in sentences if text.strip()]
            if len(rows) < SHORTEST:
                counts["papers_too_short"] += 1
                continue
            segments, labels = map(list, zip(*rows, strict=True))
            record = {"id": paper["article_id"], "segments": segments, "labels": labels}
            yield record_from_json(record, f"{name}: {paper['article_id']}", KIND)
