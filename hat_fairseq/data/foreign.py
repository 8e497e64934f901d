"""What a file holds that nothing here reads, by its first bytes, and what people can do with it."""

import json
import re

from hat_fairseq.data.files import UTF_16

TO_TEXT, TO_TABLE, TO_CAPTIONS = "save it as text (.txt)", "save it as .csv", "convert it to .srt or .vtt"
BYTES = {  # the first bytes of files
    b"%PDF-": f"a PDF document: {TO_TEXT}",
    b"PK\x03\x04": f"a zip archive or an office document (.docx, .xlsx): unpack it, {TO_TEXT}, or {TO_TABLE}",
    b"\xd0\xcf\x11\xe0": f"an old office document (.doc, .xls): {TO_TEXT}, or {TO_TABLE}",
    rb"{\rtf": f"a document of a word processor (RTF): {TO_TEXT}",
    **dict.fromkeys(UTF_16, "UTF-16; convert it to UTF-8: iconv -f utf-16 -t utf-8"),
    b"PAR1": "Parquet: end its name in .parquet",
    b"ARROW1": "Arrow: end its name in .arrow",
    b"\xff\xff\xff\xff": "Arrow: end its name in .arrow",
}
NULL = "binary, or UTF-16 without a mark (convert this to UTF-8 with iconv): it has null bytes"
_ATTRIBUTE = r"""[\w:.-]+\s+[\w:.-]+\s*=\s*["']"""
TEXTS = {  # how texts begin, in any case
    re.compile(pattern, re.IGNORECASE | re.MULTILINE): what
    for pattern, what in {
        rf"<(\?xml|!doctype|!--|html\b|tt\b|sami\b|{_ATTRIBUTE}|[\w:.-]+>\s*$)": "XML or HTML (such as TTML or SAMI): "
        f"{TO_TEXT}, or {TO_CAPTIONS}",
        r"\[script info\]": f"SubStation Alpha: {TO_CAPTIONS}, for example with ffmpeg",
        r"\{\d+\}\{\d*\}": f"MicroDVD: {TO_CAPTIONS}, for example with ffmpeg",
        r"\d+:\d\d:\d\d\.\d{3},\d+:\d\d:\d\d\.\d{3}\s*$": f"YouTube's format .sbv: {TO_CAPTIONS}",
        r"@(utf8|begin|window)\b": "CHAT of TalkBank: write what is said as `Name: text`, a turn on each line",
        r'file type = "oo': "a TextGrid of Praat: write what is said as `Name: text`, a turn on each line",
    }.items()
}
ADVICE = {  # what people can do with files of these names
    **dict.fromkeys(("doc", "docx", "odt", "rtf", "pdf", "htm", "html", "md", "epub", "pptx"), TO_TEXT),
    **dict.fromkeys(("xls", "xlsx", "ods", "tab"), TO_TABLE),
    **dict.fromkeys(("sbv", "ass", "ssa", "sub", "smi", "sami", "ttml", "dfxp", "xml", "stl", "lrc"), TO_CAPTIONS),
    **dict.fromkeys(("cha", "eaf", "textgrid", "trs"), "export what is said as .srt, or as `Name: text` in a .txt"),
}
JSON_LINES, JSON_OVER_LINES = "JSON lines", "JSON over several lines"
_SCANNER = json.JSONDecoder(parse_int=str, parse_float=str)
_JSON = re.compile(r"""\{\s*(".*?"\s*:|\}?\s*$)|\[\s*([{"\]]|$)""", re.MULTILINE)


def foreign(head: bytes) -> str | None:
    """Returns what a file is that begins with `head`, with the way out; None for data and text."""
    for begin, what in BYTES.items():
        if head.startswith(begin):
            return what
    if b"\0" in head:
        return NULL
    text = beginning(head)
    return next((what for pattern, what in TEXTS.items() if pattern.match(text)), None)


def beginning(head: bytes) -> str:
    """Returns the text of some bytes from the first character on that is no white space."""
    return head.decode("utf-8", errors="ignore").lstrip("\ufeff\u200b \t\r\n")


def json_of(text: str) -> str:
    """Returns what form of JSON a text begins as: `JSON_OVER_LINES` if its first value is a list or has line breaks."""
    if _JSON.match(text) is None:
        return ""
    try:
        _, end = _SCANNER.raw_decode(text)
    except (ValueError, RecursionError):  # cut off, or no JSON, which says its place when it is read
        end = 0
    return JSON_OVER_LINES if text.startswith("[") or "\n" in text[:end] else JSON_LINES


def is_object(line: str) -> bool:
    """Tells whether a line is a whole object of JSON."""
    try:
        return line.lstrip().startswith("{") and isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False
