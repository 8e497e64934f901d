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
from typing import NoReturn

PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2)


def start(
    path: str, words: Sequence[str], folder: str, variables: Mapping[str, str], files: Sequence[int]
) -> tuple[socket.socket, int]:
    """Starts `python -m` with these words and open files; returns where its status will be, and its process."""
    answers = socket.socket(socket.AF_UNIX)
    answers.connect(path)
    request = json.dumps([list(words), folder, dict(variables)]).encode()
    socket.send_fds(answers, [len(request).to_bytes(4, "big")], files)
    answers.sendall(request)
    return answers, number(answers)


def status(answers: socket.socket) -> int:
    """Waits for the exit status of a command; negative for a signal."""
    with answers:
        return number(answers)


def number(answers: socket.socket) -> int:
    """Reads a line, and nothing of the next one."""
    line = b""
    while not line.endswith(b"\n"):
        assert (read := answers.recv(1)), "the process that runs commands has ended"
        line += read
    return int(line)


def main(path: str, module: str) -> NoReturn:
    answers, process = start(path, [module, *sys.argv[1:]], os.getcwd(), os.environ, [0, 1, 2])
    for each in PASSED_ON:
        if signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, lambda signum, _: os.kill(process, signum))
    code = status(answers)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    sys.exit(code)
