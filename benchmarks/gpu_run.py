"""How `gpu.py` runs its checks: in processes of their own, which a failure or a fault of the GPU may end."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

import gpu_speed
import harness
import torch
from worker import Facts

# A check's seconds on a fast GPU, at most, and what it runs; None: a setting of `gpu_speed.py`.
Checks = dict[str, tuple[int, Callable[[], Facts] | None]]


class Workers:
    """A process for the checks that are not timed; after a failure, which may spoil the GPU's context, a new one."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.threads, self.child = args.threads, None

    def ask(self, name: str, limit: float) -> Facts:
        """What a check found, within `limit` seconds, or its error."""
        self.child = child = self.child or harness.start("checks", 0, self.threads, {})
        timer = threading.Timer(limit, child.kill)
        timer.start()
        try:
            found = harness.ask(child, name, name, {"name": "gpu.py"})
        except SystemExit as error:
            found = {"ok": False, "error": f"{error}; it was given {limit} seconds"}
        finally:
            timer.cancel()
        if "error" in found:
            self.close()
        return found

    def close(self) -> None:
        if self.child is not None:
            harness.end(self.child)
            self.child = None


def serve(checks: Checks) -> None:
    """Runs the checks whose names come on stdin, up to the first that fails; output of libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        run = checks[line.strip()][1]
        assert run is not None
        try:
            found = run()
        except Exception as error:
            traceback.print_exc()
            found = {"ok": False, "error": f"{type(error).__name__}: {error}"[:1000]}
        answers.write(json.dumps(found) + "\n")
        answers.flush()
        torch.cuda.empty_cache()


def timed(name: str, args: argparse.Namespace, limit: float, record: Facts) -> Facts:
    """Runs a setting of `gpu_speed.py` and takes what it measured into the record."""
    setting, index = gpu_speed.SETTINGS[name], list(gpu_speed.SETTINGS).index(name)
    absent = gpu_speed.absent(setting)
    present = [contender for contender in setting["contenders"] if contender not in absent]
    words = ["--settings", str(index), "--threads", str(args.threads), "--contenders", *present]
    if args.small:
        changes = [f"{key}={value}" for key, value in gpu_speed.small(setting).items()]
        words += ["--rounds", "1", "--set", *changes]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, gpu_speed.__file__, *words, "--out", out]
        process = subprocess.Popen(command, stdout=2, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            _, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            errors = f"not at its end after {limit} seconds"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # its contenders, too
            process.wait()
        if not out.is_file():
            return {"ok": False, "error": errors.strip()[-1000:]}
        new = json.loads(out.read_text(encoding="utf-8"))
    for part, key in (("settings", "name"), ("runs", "setting"), ("processes", "setting"), ("checks", "setting")):
        measured = {one[key] for one in new[part]}
        record[part] = [one for one in record[part] if one[key] not in measured] + new[part]
    record["summary"] = harness.summary(record["runs"], record["reference"])
    sentences = new["checks"][0]["verified"]
    lacking = [f"{contender}: {reason}" for contender, reason in absent.items()] + gpu_speed.without_a_gpu(present)
    found = {"ok": not any(sentence.startswith("FAILED") for sentence in sentences)}
    return found | ({"not on this device": lacking} if lacking else {})
