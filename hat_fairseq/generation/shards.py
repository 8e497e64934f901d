"""fairseq-generate in several processes, each with its share of the batches and its own GPU."""

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm import tqdm

from ..data.outputs import check_space
from .resume import PartialResults, named_flags

LAST_LINES = 15
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None
_PR_SET_PDEATHSIG = 1  # of <linux/prctl.h>
_SECONDS_BETWEEN_LOOKS = 0.3


def generate(
    arguments: Sequence[str], parts: PartialResults, missing: Collection[int], total: int, num_shards: int | None
) -> None:
    """Generates the missing samples into `parts`.

    Args:
        arguments: of fairseq-generate, without those of a shard.
        parts: what earlier calls generated.
        missing: numbers of samples.
        total: number of samples of the split.
        num_shards: number of processes; None: one for each GPU, or one on the CPU.

    Raises:
        ValueError: a precision that the device does not support; samples are still missing in the end (the last lines
            of the shards that failed are on stderr).
    """
    from ..kernels import check_precision, chosen_precision

    gpus = [] if "--cpu" in arguments else visible_gpus()
    flags = named_flags(arguments)
    cpu_precision = flags.get("--cpu-precision", ["fp32"])[-1]  # refused here, not after loading the model
    check_precision(chosen_precision("--fp16" in flags, "--bf16" in flags, cpu_precision), "cuda" if gpus else "cpu")
    check_space(parts.folder, 1e6)
    count = min(num_shards or len(gpus) or 1, len(missing))
    calls = parts.folder.glob(f"{parts.prefix}[0-9][0-9][0-9].shard-*")
    call = 1 + max((int(path.name.partition(".")[0].removeprefix(parts.prefix)) for path in calls), default=0)
    common = [sys.executable, "-P", "-m", "fairseq_cli.generate", *arguments]
    name = f"{parts.prefix}{call:03}"
    if skipped := sorted({*range(total)}.difference(missing)):
        skip = parts.folder / f"{name}.skip"
        skip.write_text("".join(f"{sample}\n" for sample in skipped), encoding="utf-8")
        common += ["--skip-samples", str(skip)]
        of_others = f", {total - len(parts.share(range(total)))} are of other machines" if parts.machine else ""
        print(f"{parts.folder}: {len(parts.finished())} samples are finished, {len(missing)} are missing{of_others}")
    folders = [parts.folder / f"{name}.shard-{shard}-of-{count}" for shard in range(count)]
    processes: list[subprocess.Popen[bytes]] = []
    with stopped_together(processes):
        with deferred_signals():
            for shard, folder in enumerate(folders):
                # fairseq-generate takes its share from these two flags and ignores its own --num-shards
                share = ["--distributed-world-size", str(count), "--distributed-rank", str(shard)]
                command = [*common, *share, "--results-path", str(folder)]
                processes.append(start(command, folder, gpus[shard % len(gpus)] if gpus else None, parts))
        wait(processes, folders, len(missing))
    if remaining := set(missing) - parts.finished():
        failed = [shard for shard, process in enumerate(processes) if process.returncode]
        for shard in failed:
            log = folders[shard] / "log.txt"
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LAST_LINES:]
            title = f"shard {shard} of {count} ended with {processes[shard].returncode}; the end of {log}:"
            print(title, *lines, sep="\n  ", file=sys.stderr)
        raise ValueError(
            f"{len(failed)} of {count} shards failed, {len(remaining)} of {len(missing)} samples are missing; finished "
            "samples are kept: correct the error and run the command again"
        )


def visible_gpus() -> list[str]:
    """The GPUs that this process sees, as names for CUDA_VISIBLE_DEVICES."""
    import torch

    named = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    count = torch.cuda.device_count()
    return (named or [str(number) for number in range(count)])[:count]


def start(command: list[str], folder: Path, gpu: str | None, parts: PartialResults) -> subprocess.Popen[bytes]:
    """Starts a shard; its output goes to log.txt in its folder."""
    folder.mkdir()
    parent = os.getpid()
    environment = os.environ if gpu is None else {**os.environ, "CUDA_VISIBLE_DEVICES": gpu}
    print(shlex.join(command if gpu is None else [f"CUDA_VISIBLE_DEVICES={gpu}", *command]), flush=True)
    with (folder / "log.txt").open("wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            pass_fds=[lock.fileno() for lock in parts.locks],  # a living shard keeps them
            preexec_fn=lambda: _end_with(parent),
        )


def _end_with(parent: int) -> None:
    """On Linux this process gets SIGTERM when its parent dies, even by SIGKILL; elsewhere it goes on to its end."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it died before
            os._exit(1)


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Signals take effect after the block: one in the middle of a start would leave a shard that nobody ends."""
    caught: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, lambda signum, _: caught.append(signum)) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    for signum in caught:
        signal.raise_signal(signum)


def wait(processes: Sequence[subprocess.Popen[bytes]], folders: Sequence[Path], total: int) -> None:
    """Waits for all shards, even if one fails; a terminal shows how many of `total` samples are finished."""
    offsets: dict[Path, int] = {}
    with tqdm(total=total, unit="sample", disable=None) as bar:
        while any(process.poll() is None for process in processes):
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            for path in [path for folder in folders if not bar.disable for path in folder.glob("generate-*.txt")]:
                with path.open("rb") as file:
                    file.seek(offsets.get(path, 0))
                    new = file.read()
                whole = new[: new.rfind(b"\n") + 1]
                offsets[path] = offsets.get(path, 0) + len(whole)
                bar.update(sum(line.startswith(b"D-") for line in whole.split(b"\n")))


@contextmanager
def stopped_together(processes: list[subprocess.Popen[bytes]]) -> Iterator[None]:
    """Ends the shards when this process ends, also by a signal that `cli` turns into SystemExit."""
    try:
        yield
    finally:
        for process in processes:
            if process.poll() is None:
                process.terminate()
        for process in processes:
            process.wait()
