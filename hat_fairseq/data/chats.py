"""Chats, as programs such as WhatsApp export them: a date, a time of the day and a name before each message.

    [03.05.24, 09:15:01] Name: text
    03/05/2024, 09:15 - Name: text
    03/05/2024 09:15 - Name: text

A line without a date goes on with the message before it. A message without a name is one of the program.
"""

import re
from collections import Counter
from collections.abc import Sequence

from hat_fairseq.data.speakers import DIRECTIONS, Said, is_short, seconds

CHAT = "chat"  # the format
_DAY = r"(?:\d{4}[./-]\d{1,2}[./-]\d{1,2}|\d{1,2}[./-]\d{1,2}[./-]\d{2,4})"
_AT = r"(?:(?:at|à|às|um|a las|alle)\s)?"
_TIME = r"(?P<time>\d{1,2}:\d\d(?::\d\d)?)(?:\s?(?P<half>[AaPp])\.?\s?[Mm]\.?)?"
_NAME = rf"(?:(?P<name>[^\s:][^:\n]{{0,59}}):(?:\s+[{DIRECTIONS}]*|$))?"
_MESSAGE = re.compile(rf"[{DIRECTIONS}]*(?P<open>\[)?{_DAY},?\s{_AT}{_TIME}(?(open)\]|\s[-–])\s+[{DIRECTIONS}]*{_NAME}")


def turns_of_chat(lines: Sequence[str]) -> list[Said] | None:
    """Returns the lines of a chat with their speakers, and the times of messages in seconds of the day.

    Returns None for other texts: a chat begins with a date, and some name returns.
    """
    matches = list(map(_MESSAGE.match, lines))
    names = Counter(match["name"] for match in matches if match and match["name"])
    if not matches or matches[0] is None or max(names.values(), default=0) < 2:
        return None
    said, speaker = list[Said](), None
    for line, match in zip(lines, matches, strict=True):
        start, text = None, line
        if match is not None:
            start, speaker = seconds(match["time"], match["half"], of_day=True), match["name"]
            text = line[match.end() :]
            if speaker is not None and (not is_short(speaker) or about_another(speaker, names)):
                speaker, text = None, line[match.start("name") :]
        said.append(Said(text, speaker, start))
    return said


def about_another(name: str, names: Counter[str]) -> bool:
    """Returns whether what stands before a colon is a message of the program, such as `Ann renamed the group “A`."""
    rests = [name.removeprefix(f"{other} ") for other in names if name.startswith(f"{other} ")]
    return names[name] == 1 and any(rest[0].islower() for rest in rests)  # `Ann Lee` is somebody else than `Ann`
