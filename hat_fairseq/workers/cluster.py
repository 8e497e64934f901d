"""Workers on a Ray cluster: actors, replaced when they or their machines die (https://docs.ray.io)."""

import logging
import os
import re
import socket
import stat
import sys
import time
from collections.abc import Callable
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

from ..versions import versions
from .processes import Reply, answer, deferred_signals

SECONDS_BETWEEN_NOTES = 60
SECONDS_BETWEEN_SIGNALS = 0.5
SECONDS_TO_CONNECT = 10
ADDRESS = re.compile(r"[\w.-]+:\d+|\[[0-9a-fA-F:.]+\]:\d+")
HTTP_2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"  # preface, empty frame of settings
ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "token",  # else whoever reaches the ports runs code
    "RAY_NUM_REDIS_GET_RETRIES": "3",  # to connect, each of up to 40 seconds
}


class Actors:
    """Actors of a cluster, the same ones for one `map` after the other.

    Args:
        count: how many; None: one for each GPU if they are on GPUs and there are any, else one for each CPU.
        address: of the cluster; `auto` for that of this machine, `local` for one that this process starts and ends.
        on_gpus: each has a GPU, if the cluster has GPUs.
    Raises:
        ValueError: Ray is not installed, or no cluster answers.
    """

    max_deaths = 3  # workers that one item may end; a lost machine counts as well
    last_death = "{name} has ended 3 workers: {error}"

    def __init__(self, count: int | None, address: str, on_gpus: bool) -> None:
        self.folder = os.getcwd()
        self.ray = connect(address)
        resources = self.ray.cluster_resources()
        gpus = int(resources.get("GPU", 0)) if on_gpus else 0
        self.size = count or gpus or int(resources.get("CPU", 1))
        self.remote = self.ray.remote(num_cpus=1, num_gpus=int(gpus > 0), scheduling_strategy="SPREAD")(Remote)
        self.idle: list[Actor] = []
        self.starting: list[Actor] = []
        self.failures = 0  # since a worker has started

    def start(self, function: Callable[[Any], Any]) -> None:
        self.function = self.ray.put(function)
        for _ in range(self.size - len(self.idle) - len(self.starting)):
            self.replace()

    def replace(self) -> None:
        """Starts an actor, which is idle when it has answered."""
        with deferred_signals():
            handle = self.remote.remote()
            self.starting.append(Actor(self, handle, handle.begin.remote(self.folder)))

    def ready(self, busy: list["Actor"]) -> list["Actor"]:
        """Waits until some of the busy actors have answered, or others have started."""
        waited_for, begin = [*busy, *self.starting], time.monotonic()
        answered: list[Any] = []
        while not answered:
            with deferred_signals():  # Ray may drop the exception that a signal raises
                answered, _ = self.ray.wait([actor.answer for actor in waited_for], timeout=SECONDS_BETWEEN_SIGNALS)
            if not answered and not busy and time.monotonic() - begin >= SECONDS_BETWEEN_NOTES:
                begin = time.monotonic()
                print(f"waiting for a worker: the cluster has no room for {self.size}, or starts them", file=sys.stderr)
        done = [actor for actor in waited_for if actor.answer in answered]
        for actor in set(done).intersection(self.starting):
            self.starting.remove(actor)
            self._admit(actor)
        return [actor for actor in done if actor in busy]

    def _admit(self, actor: "Actor") -> None:
        try:
            good, value = actor.receive()
        except ChildProcessError as error:
            self.failures += 1
            if self.failures == self.max_deaths:
                raise ChildProcessError(f"no worker can start on the cluster: {error}") from None
            return self.replace()
        if not good:
            raise value
        machine, others = value
        for name, own in versions().items():
            if others[name] != own:
                raise ValueError(
                    f"{machine} has {name} {others[name]}, this machine has {own}: install the same on both"
                )
        self.failures = 0
        self.idle.append(actor)

    def stop(self) -> None:
        """Ends a map; what is still busy was abandoned, and ends with the connection."""
        self.function = None


class Actor:
    """An actor, and what it is asked for at present."""

    def __init__(self, pool: Actors, handle: Any, answer: Any) -> None:
        self.pool, self.handle, self.answer = pool, handle, answer

    def send(self, item: Any) -> None:
        with deferred_signals():
            self.answer = self.handle.call.remote([self.pool.function], item)

    def receive(self) -> Reply:
        try:
            with deferred_signals():
                return self.pool.ray.get(self.answer)
        except self.pool.ray.exceptions.RayError as error:
            cause = getattr(error, "cause", error)
            if not isinstance(cause, self.pool.ray.exceptions.RayError):
                return False, cause
            text = " ".join(str(cause).split())
            raise ChildProcessError(f"a worker died on the cluster ({text:.300})") from None


class Remote:
    """What an actor runs."""

    def begin(self, folder: str) -> Reply:
        """Answers with the name of this machine and its versions; relative paths are those of `folder`."""
        machine = socket.gethostname()
        if not os.path.isdir(folder):
            raise ValueError(f"{machine} has no folder {folder}: start the command in a folder of all machines")
        os.chdir(folder)
        return True, (machine, versions())

    def call(self, function: list[Any], item: Any) -> Reply:
        """Returns what the function says of an item.

        `function`: its reference, in a list so that Ray does not load it.
        """
        if getattr(self, "reference", None) != function[0]:
            import ray

            self.function, self.reference = ray.get(function[0]), function[0]
        return answer(self.function, item)


def connect(address: str) -> Any:
    """Returns Ray, connected to the cluster at an address; ValueError if there is none."""
    if "ray" not in sys.modules:  # which reads them when it is imported
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ValueError("--cluster needs Ray: pip install 'hat_fairseq[cluster]'") from None
    options: dict[str, Any] = {}
    place = address
    if address == "local":
        options = {"include_dashboard": False, "_temp_dir": str(own_folder() / "ray")}
    elif address == "auto":
        place = os.environ.get("RAY_ADDRESS") or recorded_address()
    host, _, port = place.rpartition(":")
    with suppress(OSError):
        (Path.home() / ".ray").mkdir(mode=0o700)  # Ray lets everybody read the token in it
    try:
        if address == "local":
            check_loopback()
        if port.isdecimal() and not place.startswith("ray://"):
            check_server(host.strip("[]"), int(port))  # Ray tries for minutes
        # Ray's own handler of SIGTERM, which it sets while it starts, raises where Ray may drop the exception. Ray puts
        # the current folder on the workers' import path: here one without modules.
        ray._private.utils.set_sigterm_handler = lambda handler: None
        with deferred_signals(), chdir(sys.prefix):
            ray.init(address=place, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        cause = " ".join(str(error).split())
        raise ValueError(
            f"--cluster {address}: no Ray cluster answers there, with the token of ~/.ray/auth_token "
            f"({cause:.300}); start one with `ray start --head`, or on Slurm as in examples/slurm_ray.sh"
        ) from None
    return ray


def check_server(host: str, port: int) -> None:
    """Raises OSError if no server of gRPC, which speaks HTTP/2, answers within seconds."""
    with socket.create_connection((host, port), SECONDS_TO_CONNECT) as connection:
        if os.environ.get("RAY_USE_TLS", "0") != "0":
            return
        connection.sendall(HTTP_2)
        if connection.recv(9, socket.MSG_WAITALL)[3:4] != b"\x04":
            raise ConnectionError("what answers is not Ray")


def check_loopback() -> None:
    """Raises OSError if this machine cannot connect to itself."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname(), SECONDS_TO_CONNECT).close()


def temporary_folder() -> Path:
    """Returns where Ray puts its folder `ray`."""
    return Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")


def recorded_address() -> str:
    """Returns the address that `ray start` of this user, or of root, has recorded on this machine.

    Ray leaves the folder open to all users, and would also take an address from the command line of any process: it
    would send the token to whoever wrote it. ValueError if there is no such file.
    """
    path = temporary_folder() / "ray" / "ray_current_cluster"
    advice = "give the address of the cluster: --cluster HOST:PORT, or RAY_ADDRESS"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            status, content = os.fstat(file.fileno()), file.read(1000).decode(errors="replace").strip()
    except OSError as error:
        reason = f"no Ray cluster answers: {path} cannot be read ({error.strerror})"
        raise ValueError(f"--cluster auto: {reason}; {advice}") from None
    if status.st_uid not in (0, os.getuid()) or not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        raise ValueError(f"--cluster auto: {path} is not a file of yours, and is not trusted; {advice}")
    if not ADDRESS.fullmatch(content):
        raise ValueError(f"--cluster auto: {path} has no address; {advice}")
    return content


def own_folder() -> Path:
    """Returns a folder of this user alone for Ray's files; ValueError if another user has made it."""
    folder = temporary_folder() / f"ray-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(0o700, parents=True)
    status = folder.lstat()
    if status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode) or status.st_mode & 0o077:
        raise ValueError(f"--cluster local: {folder} must be a folder of yours with mode 0700; set RAY_TMPDIR")
    return folder
