"""Tiny complete releases in the containers of the summarization datasets, filled with the carried meetings.

Each function makes the folder that a reader takes as ``--root``: three training and two other documents a split.
"""

from __future__ import annotations

import hashlib
import json
from itertools import islice
from pathlib import Path
from typing import Any

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records

CARRIED = Path(__file__).resolve().parents[2] / "preprocess"
MEETINGS = {"train": "train", "valid": "dev", "test": "test"}
SIZES = {"train": 3, "valid": 2, "test": 2}
TURNS = 30  # of each meeting


def meetings(split: str, corpus: str = "ami") -> list[Record]:
    path = CARRIED / f"{corpus}_data" / f"{corpus}.{MEETINGS[split]}.jsonl.gz"
    return list(islice(read_records(path), SIZES[split]))


def turns(meeting: Record) -> list[tuple[str, str]]:
    """Role and text of the first turns."""
    return list(zip(meeting.roles or (), meeting.sentences or (), strict=True))[:TURNS]


def write_lines(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8", newline="\n")


def cohan_article(meeting: Record) -> dict[str, Any]:
    sentences = [text.lower() for _, text in turns(meeting)]
    return {
        "article_id": meeting.id,
        "article_text": sentences,
        "abstract_text": [f"<S> {sentence.lower()} </S>" for sentence in meeting.target or ()],
        "labels": None,
        "section_names": ["introduction", "discussion"],
        "sections": [sentences[:10], sentences[10:]],
    }


def _write_cohan(root: Path, corpus: str) -> None:
    for split, name in {"train": "train.txt", "valid": "val.txt", "test": "test.txt"}.items():
        write_lines(root / name, [cohan_article(meeting) for meeting in meetings(split, corpus)])


def write_pubmed(root: Path) -> None:
    """As the folder ``pubmed-dataset``."""
    _write_cohan(root, "ami")


def write_arxiv(root: Path) -> None:
    """As the folder ``arxiv-dataset``."""
    _write_cohan(root, "icsi")


def write_cnn_dm(root: Path) -> None:
    """The original stories, by turns of the two papers."""
    for split, name in {"train": "all_train.txt", "valid": "all_val.txt", "test": "all_test.txt"}.items():
        urls = []
        for number, meeting in enumerate(meetings(split)):
            urls.append(f"http://example.org/{meeting.id}.html")
            folder = root / ("cnn", "dailymail")[number % 2] / "stories"
            folder.mkdir(parents=True, exist_ok=True)
            paragraphs = [text for _, text in turns(meeting)]
            paragraphs += [line for sentence in meeting.target or () for line in ("@highlight", sentence)]
            story = hashlib.sha1(urls[-1].encode()).hexdigest()
            (folder / f"{story}.story").write_text("\n\n".join(paragraphs) + "\n", encoding="utf-8")
        (root / "url_lists").mkdir(exist_ok=True)
        (root / "url_lists" / name).write_text("".join(f"{url}\n" for url in urls), encoding="utf-8")


def xsum_summary(meeting: Record) -> str:
    """The text of a ``.summary`` file, a button of the page included."""
    first = (meeting.target or ("",))[0]
    parts = {"URL": f"http://example.org/{meeting.id}", "TITLE": meeting.id, "FIRST-SENTENCE": first}
    parts["RESTBODY"] = "\n".join(["Share this with", *(text for _, text in turns(meeting))])
    return "\n\n".join(f"[SN]{name}[SN]\n{text}" for name, text in parts.items()) + "\n"


def write_xsum(root: Path) -> None:
    """As EdinburghNLP's archive with the list of the splits beside it."""
    folder = root / "bbc-summary-data"
    folder.mkdir(parents=True, exist_ok=True)
    ids: dict[str, list[str]] = {}
    for split, name in {"train": "train", "valid": "validation", "test": "test"}.items():
        ids[name] = [meeting.id for meeting in meetings(split)]
        for meeting in meetings(split):
            (folder / f"{meeting.id}.summary").write_text(xsum_summary(meeting), encoding="utf-8")
    (root / "XSum-TRAINING-DEV-TEST-SPLIT-90-5-5.json").write_text(json.dumps(ids), encoding="utf-8")


def samsum_chat(meeting: Record) -> dict[str, str]:
    dialogue = "\r\n".join(f"{role}: {text}" for role, text in turns(meeting))
    return {"id": meeting.id, "summary": " ".join((meeting.target or ())[:2]), "dialogue": dialogue}


def write_samsum(root: Path) -> None:
    """As ``corpus.7z``, unpacked."""
    root.mkdir(parents=True, exist_ok=True)
    for split, name in {"train": "train.json", "valid": "val.json", "test": "test.json"}.items():
        chats = [samsum_chat(meeting) for meeting in meetings(split)]
        (root / name).write_text(json.dumps(chats, indent=2), encoding="utf-8")
