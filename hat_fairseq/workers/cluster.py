"""Workers on a Ray cluster: actors, replaced when they or their machines die (https://docs.ray.io)."""

import logging
import os
import socket
import sys
import time
from collections.abc import Callable
from contextlib import chdir, suppress
from pathlib import Path
from typing import Any

from ..versions import versions
from .processes import Answer, answer, deferred_signals

SECONDS_BETWEEN_NOTES = 60
SECONDS_BETWEEN_SIGNALS = 0.5
SECONDS_TO_CONNECT = 10
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
            self.starting.append(Actor(self, handle, handle.begin.remote(os.getcwd())))

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

    def receive(self) -> Answer:
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

    def begin(self, folder: str) -> Answer:
        """Answers with the name of this machine and its versions; relative paths are those of `folder`."""
        machine = socket.gethostname()
        if not os.path.isdir(folder):
            raise ValueError(f"{machine} has no folder {folder}: start the command in a folder of all machines")
        os.chdir(folder)
        return True, (machine, versions())

    def call(self, function: list[Any], item: Any) -> Answer:
        """What the function says of an item; `function`: its reference, in a list so that Ray does not load it."""
        if getattr(self, "reference", None) != function[0]:
            import ray

            self.function, self.reference = ray.get(function[0]), function[0]
        return answer(self.function, item)


def connect(address: str) -> Any:
    """Ray, connected to the cluster at an address; ValueError if there is none."""
    if "ray" not in sys.modules:  # which reads them when it is imported
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
    try:
        import ray
    except ImportError:
        raise ValueError("--cluster needs Ray: pip install 'hat_fairseq[cluster]'") from None
    options: dict[str, Any] = {"include_dashboard": False} if address == "local" else {}
    host, _, port = (os.environ.get("RAY_ADDRESS", address) if address == "auto" else address).rpartition(":")
    with suppress(OSError):
        (Path.home() / ".ray").mkdir(mode=0o700)  # Ray lets everybody read the token in it
    try:
        if port.isdecimal():
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_CONNECT).close()  # Ray tries for minutes
        # Ray's own handler of SIGTERM, which it sets while it starts, raises where Ray may drop the exception. Ray puts
        # the current folder on the workers' import path: here one without modules.
        ray._private.utils.set_sigterm_handler = lambda handler: None
        with deferred_signals(), chdir(sys.prefix):
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, **options)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        cause = " ".join(str(error).split())
        raise ValueError(
            f"--cluster {address}: no Ray cluster answers to this ~/.ray/auth_token ({cause:.300}); start one with "
            "`ray start --head`, or on Slurm as in examples/slurm_ray.sh"
        ) from None
    return ray
