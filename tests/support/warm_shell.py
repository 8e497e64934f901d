"""Commands of a shell without the seconds that importing torch and fairseq takes.

In front of PATH stands a folder with a program for each command. It hands its words, folder, variables and open files
to a process that has imported everything, which forks for it, and ends with the status of that. Such a command cannot
be stopped by a signal: the tests of signals start real ones.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from commands import REPOSITORY, environment
from warm import MODULES, forget_logs, import_all, run_module

PROGRAM = """#!{python} -SE
import json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({path!r})
request = json.dumps([["{module}", *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
socket.send_fds(server, [len(request).to_bytes(4, "big")], [0, 1, 2])
server.sendall(request)
answer = server.recv(16)
sys.exit(int(answer) if answer else "the process that runs commands has ended")
"""


@contextmanager
def warm_path() -> Iterator[str]:
    """Yields a PATH on which the commands of fairseq and of this package need no imports."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "socket"))
        for name, module in MODULES.items():
            program = Path(folder, name)
            program.write_text(PROGRAM.format(python=sys.executable, path=path, module=module))
            program.chmod(0o755)
        words, ready = [sys.executable, __file__, path], {"stdout": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, env=environment(), cwd=REPOSITORY, **ready) as process:  # type: ignore[call-overload]
            try:
                assert process.stdout.readline() == "ready\n"
                yield os.pathsep.join([folder, str(Path(sys.executable).parent), os.environ["PATH"]])
            finally:
                process.kill()


def serve(path: str) -> None:
    """Forks for each request: a process that waits for the command, and the command."""
    ready = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what modules print when they are imported is no answer
    import_all()
    server = socket.socket(socket.AF_UNIX)
    server.bind(path)
    server.listen()
    print("ready", file=ready, flush=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the first kind
    while True:
        client, _ = server.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            server.close()
            answer(client)
        client.close()


def answer(client: socket.socket) -> None:
    """Run the command of a request, send its status, and leave the process."""
    head, files, *_ = socket.recv_fds(client, 4, 3)
    with client.makefile("rb") as stream:
        words, folder, variables = json.loads(stream.read(int.from_bytes(head, "big")))
    child = os.fork()
    if child:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        client.sendall(str(status if status >= 0 else 128 - status).encode())
        os._exit(0)
    client.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    forget_logs()
    run_module(words)


if __name__ == "__main__":
    serve(sys.argv[1])
