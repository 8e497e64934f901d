"""Asks the process of `warm.py` to run a command.

As a program (`main`) it passes signals on to the command and ends as the command has ended. The command is killed when
this process ends, so it can stand wherever the command could.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from typing import IO, NoReturn

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


def start(
    path: str, words: Sequence[str], folder: str, variables: Mapping[str, str], files: Sequence[int]
) -> tuple[IO[str], int]:
    """Starts `python -m` with these words and open files; returns where its status will be, and its process."""
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        request = json.dumps([list(words), folder, dict(variables)]).encode()
        socket.send_fds(server, [len(request).to_bytes(4, "big")], files)
        server.sendall(request)
        answers = server.makefile("r")
    return answers, int(answers.readline() or 0)


def status(answers: IO[str]) -> int:
    """Waits for the exit status of a command; negative for a signal."""
    with answers:
        line = answers.readline()
    assert line, "the process that runs commands has ended"
    return int(line)


def main(path: str, module: str) -> NoReturn:
    answers, process = start(path, [module, *sys.argv[1:]], os.getcwd(), os.environ, [0, 1, 2])
    for number in PASSED_ON:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda number, _: os.kill(process, number))
    code = status(answers)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
