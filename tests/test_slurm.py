"""The job scripts of examples/ on two machines, namespaces of this one; only Slurm's commands are stand-ins."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from commands import REPOSITORY

TWO_MACHINES = REPOSITORY / "tests/support/slurm/two_machines"
NAMESPACES = ["unshare", "--user", "--map-root-user", "--net", "ip", "netns", "list"]
PREPROCESS = ["recipe", "preprocess", "ami_small", "--limit", "8", "--num-codes", "300"]
SMALL = "--cpu --batch-size 2 --max-update 6 --max-epoch 0 --log-interval 1 --disable-validation --num-workers 0"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        bool(shutil.which("ip") and subprocess.run(NAMESPACES, capture_output=True).returncode),
        reason="no right to make namespaces",
    ),
    pytest.mark.skipif(not shutil.which("ip"), reason="apt-get install iproute2"),
]


@pytest.fixture(autouse=True)
def files_of_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder that each machine has for itself; the paths of sockets have to be short."""
    with tempfile.TemporaryDirectory(prefix="ray") as folder:
        monkeypatch.setenv("RAY_TMPDIR", folder)
        yield


class Job:
    """A job script that runs on two machines, in a folder; `output` is what it and earlier jobs have printed."""

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        self.script, self.log = REPOSITORY / "examples" / script, folder / "job.log"
        (folder / "home").mkdir(exist_ok=True)
        environment = os.environ | {
            "HOME": str(folder / "home"),
            "OMP_NUM_THREADS": "1",
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(REPOSITORY),
            "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # until the second machine leaves at the end
        }
        words = [TWO_MACHINES, self.script, *arguments]
        with self.log.open("a") as log:
            self.process = subprocess.Popen(words, cwd=folder, env=environment, stdout=log, stderr=subprocess.STDOUT)

    def wait_for(self, text: str) -> None:
        deadline = time.monotonic() + 200
        while text not in self.output:
            assert self.process.poll() is None, self.output
            assert time.monotonic() < deadline, self.output
            time.sleep(0.05)

    def time_limit_is_near(self) -> None:
        """The signal that Slurm sends to the script alone."""
        scripts = psutil.Process(self.process.pid).children(recursive=True)
        next(each for each in scripts if each.cmdline()[1:2] == [str(self.script)]).send_signal(signal.SIGUSR1)

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def status(self) -> int:
        return self.process.wait(300)


def files(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process makes of the meetings."""
    folder = tmp_path_factory.mktemp("one")
    subprocess.run([sys.executable, "-m", "hat_fairseq.cli", *PREPROCESS], cwd=folder, check=True)
    return folder / "data-bin"


def test_hat_on_a_ray_cluster(data: Path, tmp_path: Path) -> None:
    """Interrupted near the time limit, then started again, as Slurm does with a job that is back in the queue."""
    first = Job(tmp_path, "slurm_ray.sh", *PREPROCESS)
    first.wait_for("Running command on head node")
    first.time_limit_is_near()
    assert first.status == 1
    assert "requeued job 7" in first.output
    second = Job(tmp_path, "slurm_ray.sh", *PREPROCESS)
    assert second.status == 0, second.output
    assert len(files(data)) > 10
    assert files(tmp_path / "data-bin") == files(data)
    assert (tmp_path / "home/.ray/auth_token").stat().st_mode & 0o077 == 0


def test_a_refusal_on_a_ray_cluster_is_the_status_of_the_job(tmp_path: Path) -> None:
    job = Job(tmp_path, "slurm_ray.sh", "preprocess", "nowhere/", "--out", "data")
    assert job.status == 2
    assert "nowhere" in job.output


def test_training_of_a_recipe(data: Path, tmp_path: Path) -> None:
    """Interrupted near the time limit, then started again: no update is made twice or left out."""
    (tmp_path / "data-bin").symlink_to(data)
    first = Job(tmp_path, "slurm_train.sh", "ami_small", *SMALL.split())
    first.wait_for('"num_updates": "2"')
    first.time_limit_is_near()
    assert first.status == 1, first.output
    assert "requeued job 7" in first.output, first.output
    second = Job(tmp_path, "slurm_train.sh", "ami_small", *SMALL.split())
    assert second.status == 0, second.output
    assert second.output.count("training on 2 devices") == 2
    logs = [json.loads(line) for line in re.findall(r"train_inner \| (\{.*?\})", second.output)]
    assert [int(log["num_updates"]) for log in logs] == [*range(1, 7)]
