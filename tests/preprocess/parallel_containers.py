"""Tiny complete releases in the containers of the translation datasets, filled with the free texts that are carried.

Each function makes the folder that a reader takes as ``--root``. The counts are not those of the real releases, so
``hat preprocess`` takes them with ``--partial``.
"""

from __future__ import annotations

import gzip
import tarfile
from collections import Counter
from collections.abc import Callable
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from libreoffice_help_en_de import page_paths, read_page

SAMPLES = Path(__file__).resolve().parents[1] / "samples"


def libreoffice_en_de() -> list[Record]:
    uncounted = Counter[str]()
    with TemporaryDirectory() as directory:
        root = Path(directory)
        write_libreoffice_help_en_de(root)
        return [read_page(root, page, uncounted) for page in page_paths(root, uncounted)]


def libreoffice_en_cs() -> list[Record]:
    return list(read_records(SAMPLES / "libreoffice_en_cs.jsonl.gz"))


def wikipedia_zh_en() -> list[Record]:
    return list(read_records(SAMPLES / "wikipedia_zh_en.jsonl.gz"))


def segments(document: Record, side: int) -> tuple[str, ...]:
    """The source (0) or the target (1)."""
    return ((document.sentences or ()), (document.target or ()))[side]


def write(path: Path, lines: list[str]) -> None:
    """One line each, gzipped if the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def sgm(documents: list[Record], side: int, language: str, name: str = "newstest") -> list[str]:
    """One language of a test set, as until WMT20."""
    kind = f'srcset setid="{name}" srclang="any"' if side == 0 else f'refset setid="{name}" trglang="{language}"'
    lines = [f"<{kind}>"]
    for document in documents:
        lines += [f'<doc sysid="ref" docid="{escape(document.id)}" genre="news" origlang="en">', "<p>"]
        numbered = enumerate(segments(document, side), start=1)
        lines += [f'<seg id="{number}">{escape(text, quote=False)}</seg>' for number, text in numbered]
        lines += ["</p>", "</doc>"]
    return [*lines, f"</{kind.split()[0]}>"]


def xml(documents: list[Record], languages: tuple[str, str], name: str = "newstest") -> list[str]:
    """Both languages of a test set, as since WMT21."""
    lines = ["<?xml version='1.0' encoding='utf-8'?>", f'<dataset id="{name}">']
    for document in documents:
        lines.append(f'  <doc origlang="{languages[0]}" id="{escape(document.id)}">')
        for side, (tag, language) in enumerate(zip(("src", "ref"), languages, strict=True)):
            lines += [f'    <{tag} lang="{language}"' + (' translator="A">' if side else ">"), "      <p>"]
            numbered = enumerate(segments(document, side), start=1)
            lines += [f'        <seg id="{number}">{escape(text, quote=False)}</seg>' for number, text in numbered]
            lines += ["      </p>", f"    </{tag}>"]
        lines.append("  </doc>")
    return [*lines, "</dataset>"]


def tsv(documents: list[Record]) -> list[str]:
    """A training corpus, target language first, a line with a tab alone behind each document."""
    lines = []
    for document in documents:
        pairs = zip(segments(document, 1), segments(document, 0), strict=True)
        lines += [*(f"{theirs}\t{ours}" for theirs, ours in pairs), "\t"]
    return lines


def xliff(documents: list[Record], languages: tuple[str, str]) -> list[str]:
    """A training corpus as Rapid, target language first."""
    lines = ['<?xml version="1.0" encoding="utf-8"?>', '<xliff version="2.0">']
    for number, document in enumerate(documents, start=1):
        lines.append(f'<file id="{number}">')
        for unit, texts in enumerate(zip(segments(document, 1), segments(document, 0), strict=True), start=1):
            theirs, ours = (escape(text, quote=False) for text in texts)
            lines += [f'<unit id="{unit}">', "<segment>", f'<source xml:lang="{languages[1]}">{theirs}</source>']
            lines += [f'<target xml:lang="{languages[0]}">{ours}</target>', "</segment>", "</unit>"]
        lines.append("</file>")
    return [*lines, "</xliff>"]


def talk_head(number: int) -> list[str]:
    return [
        f"<url>https://www.ted.com/talks/{number}</url>",
        "<keywords>talks</keywords>",
        "<speaker>Nobody</speaker>",
        f"<talkid>{number}</talkid>",
        f"<title>Talk {number}</title>",
        "<description>TED Talk Subtitles and Transcript: a description.</description>",
    ]


def train_tags(documents: list[Record], side: int) -> list[str]:
    """One language of IWSLT17's training talks."""
    lines = []
    for number, document in enumerate(documents, start=1):
        lines += [f'<doc docid="{number}" genre="lectures">', *talk_head(number)]
        lines += [escape(text, quote=False) for text in segments(document, side)]
        lines += ['<reviewer href="http://www.ted.com/profiles/1">Nobody</reviewer>', "</doc>"]
    return lines


def iwslt_xml(documents: list[Record], side: int, language: str, first: int) -> list[str]:
    """One language of a dev or test set of IWSLT17; talks are numbered from ``first``, ``docid`` only in the file."""
    kind = "refset" if side else "srcset"
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', "<mteval>", f'<{kind} setid="iwslt2017" srclang="{language}">']
    for index, document in enumerate(documents):
        lines += [f'<doc docid="{index + 1 + side}" genre="lectures">', *talk_head(first + index)]
        numbered = enumerate(segments(document, side), start=1)
        lines += [f'<seg id="{number}"> {escape(text, quote=False)} </seg>' for number, text in numbered]
        lines.append("</doc>")
    return [*lines, f"</{kind}>", "</mteval>"]


def write_wmt20_en_de(root: Path) -> None:
    """The test sets as ``.sgm``."""
    _write_wmt20(root, libreoffice_en_de(), "de")
    for name, folder, part in (
        ("2018", "dev", slice(16, 19)),
        ("2020", "test/sgm", slice(19, 22)),
        ("2019", "dev", slice(22, 25)),
    ):
        for side, (kind, language) in enumerate((("src", "en"), ("ref", "de"))):
            path = root / folder / f"newstest{name}-ende-{kind}.{language}.sgm"
            write(path, sgm(libreoffice_en_de()[part], side, language, f"newstest{name}"))


def write_wmt20_en_cs(root: Path) -> None:
    """The test sets as ``.xml``."""
    _write_wmt20(root, libreoffice_en_cs(), "cs")
    for name, part in (("2018", slice(16, 20)), ("2020", slice(20, 25)), ("2019", slice(25, 30))):
        write(root / "dev" / "xml" / f"newstest{name}.en-cs.xml", xml(libreoffice_en_cs()[part], ("en", "cs")))


def _write_wmt20(root: Path, documents: list[Record], language: str) -> None:
    pair = f"{language}-en"
    write(root / f"europarl-v10.{pair}.tsv.gz", tsv(documents[:6]))
    write(root / f"news-commentary-v15.{pair}.tsv.gz", tsv(documents[6:12]))
    write(root / f"RAPID_2019.{pair}.xlf.gz", xliff(documents[12:16], ("en", language)))


def write_ted17_zh_en(root: Path) -> None:
    """Training with six talks, one in each set until 2014, ``tst2015`` to ``tst2017`` with one too."""
    talks = wikipedia_zh_en()
    for side, language in enumerate(("zh", "en")):
        write(root / "zh-en" / f"train.tags.zh-en.{language}", train_tags(talks[:6], side))
        for index, name in enumerate(["dev2010", *(f"tst{year}" for year in range(2010, 2018))]):
            pair = "en-zh" if language == "en" and name in ("tst2016", "tst2017") else "zh-en"
            path = root / pair / f"IWSLT17.TED.{name}.{pair}.{language}.xml"
            write(path, iwslt_xml([talks[6 + index % 6]], side, language, first=100 + index))


def write_libreoffice_help_en_de(root: Path) -> None:
    """The packages' folder with 25 pages."""
    with tarfile.open(SAMPLES / "libreoffice_pages.tar.gz") as archive:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4 and later
        archive.extractall(root, **safely)  # type: ignore[arg-type]


WRITERS: dict[str, Callable[[Path], None]] = {
    "wmt20_en_de": write_wmt20_en_de,
    "wmt20_en_cs": write_wmt20_en_cs,
    "ted17_zh_en": write_ted17_zh_en,
    "libreoffice_help_en_de": write_libreoffice_help_en_de,
}
