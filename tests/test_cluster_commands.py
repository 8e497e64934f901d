"""Programs with `--cluster`, as processes of their own."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from commands import HEEDING
from ray_cluster import NODE, leftover

from hat_fairseq.data.files import files_below
from hat_fairseq.workers.cluster import ENVIRONMENT

AREA = "Several processes and machines"
pytestmark = pytest.mark.slow
FLAGS = ("--splitter", "punctuation", "--num-codes", "300")

PROBE = """
import importlib.util
import os
import sys
from pathlib import Path
from hat_fairseq.workers import Workers

def probe(name):
    environment = [os.environ[name] for name in ("RAY_USAGE_STATS_ENABLED", "RAY_AUTH_MODE")]
    return importlib.util.find_spec(name).origin, Path("file").read_text(), *environment

if __name__ == "__main__":
    with Workers(2, "local") as workers:
        for origin, *others in workers.map(probe, ["torch", "fairseq"]):
            assert "current" not in origin and others == ["content", "0", "token"], (origin, others)
        import ray
        assert len(ray.nodes()) == 1 and ray.get_runtime_context().gcs_address != os.environ["RAY_ADDRESS"]
"""


@pytest.mark.fault(
    "Security", "a torch or fairseq folder where a command with --cluster starts", "no worker imports it"
)
def test_a_cluster_of_its_own(cluster: Any, tmp_path: Path) -> None:
    """With RAY_ADDRESS set. Relative paths are those of the driver; the token is for this user alone."""
    (tmp_path / "probe.py").write_text(PROBE)
    for name in ("torch", "fairseq"):
        (tmp_path / "current" / name).mkdir(parents=True)
        (tmp_path / "current" / name / "__init__.py").touch()
    (tmp_path / "current/file").write_text("content")
    environment = {**os.environ, "RAY_ADDRESS": cluster.address, "HOME": str(tmp_path)}
    environment = {name: value for name, value in environment.items() if name not in ENVIRONMENT}
    words = [sys.executable, tmp_path / "probe.py"]
    done = subprocess.run(words, cwd=tmp_path / "current", env=environment, text=True, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / ".ray/auth_token").exists()
    assert not (tmp_path / ".ray").stat().st_mode & 0o077


def corpus(folder: Path, documents: int) -> Path:
    folder.mkdir()
    for split in ("train", "valid"):
        with (folder / f"{split}.jsonl").open("w") as file:
            for number in range(documents if split == "train" else 3):
                text = " ".join(f"Word{number * place % 997} goes {place % 89}." for place in range(1000))
                file.write(json.dumps({"id": f"{split}{number}", "text": text, "target": text[:90]}) + "\n")
    return folder


def preprocess(raw: Path, out: Path, *flags: object, **environment: str) -> subprocess.Popen:
    words = ["preprocess", raw, "--out", out, *FLAGS, *flags]
    command = [*HEEDING, sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, start_new_session=True, env={**os.environ, **environment}
    )


def content(out: Path) -> dict[str, bytes]:
    return {name: (out / name).read_bytes() for name in files_below(out) if name != "manifest.json"}


@pytest.mark.parametrize(
    ("token", "address", "message"),
    [("another", None, "Failed to connect"), (None, None, "no authentication token"), (None, "127.0.0.1:1", "refused")],
)
@pytest.mark.fault(AREA, "no cluster at the address, or no token for it", "one line within seconds, exit 2")
def test_no_connection(cluster: Any, tmp_path: Path, token: str | None, address: str | None, message: str) -> None:
    (tmp_path / ".ray").mkdir()
    if token:
        (tmp_path / ".ray/auth_token").write_text(token * 5)
    variables = {"HOME": str(tmp_path), "RAY_ADDRESS": address or cluster.address}
    process = preprocess(corpus(tmp_path / "raw", 3), tmp_path / "out", "--cluster", "auto", **variables)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert "Traceback" not in errors
    assert not (tmp_path / "out").exists()
    assert errors.splitlines()[-1].startswith("hat: error: --cluster auto: no Ray cluster answers")
    assert message in errors


@pytest.mark.parametrize(("talks", "message"), [(False, "timed out"), (True, "what answers is not Ray")])
@pytest.mark.fault(AREA, "an address at which something else than Ray listens", "one line within seconds, exit 2")
def test_another_server(private: Path, tmp_path: Path, talks: bool, message: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        process = preprocess(corpus(tmp_path / "raw", 3), tmp_path / "out", "--cluster", address)
        connection, _ = server.accept()
        if talks:
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        _, errors = process.communicate(timeout=40)
        connection.close()
    assert process.returncode == 2
    assert message in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("how", ["owner", "link", "text"])
@pytest.mark.fault("Security", "--cluster auto where another user has written Ray's file of the address", "refused")
def test_an_address_of_somebody_else(private: Path, tmp_path: Path, how: str) -> None:
    (path := tmp_path / "ray/ray_current_cluster").parent.mkdir()
    path.write_text("not an address" if how == "text" else "127.0.0.1:6379")
    if how == "owner":
        if os.getuid():
            pytest.skip("only root can give a file to another user")
        os.chown(path, 65534, 65534)
    if how == "link":
        path.symlink_to(path.rename(tmp_path / "address"))
    variables = {"RAY_TMPDIR": str(tmp_path), "RAY_ADDRESS": ""}
    process = preprocess(corpus(tmp_path / "raw", 3), tmp_path / "out", "--cluster", "auto", **variables)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 2
    assert errors.splitlines()[-1].endswith("--cluster HOST:PORT, or RAY_ADDRESS")


@pytest.mark.fault(AREA, "--cluster local on a machine without a loopback interface", "one line within seconds, exit 2")
def test_no_loopback(private: Path, tmp_path: Path) -> None:
    if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode:
        pytest.skip("only root has namespaces of the network")
    words = ["preprocess", corpus(tmp_path / "raw", 3), "--out", tmp_path / "out", *FLAGS, "--cluster", "local"]
    command = ["unshare", "--net", sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert "Network is unreachable" in done.stderr


def test_ray_is_not_imported_without_a_cluster(private: Path, tmp_path: Path) -> None:
    words = ["preprocess", str(corpus(tmp_path / "raw", 3)), "--out", str(tmp_path / "out"), *FLAGS, "--workers", "2"]
    code = f"import sys; from hat_fairseq.cli import main; main({words}); sys.exit('ray' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert (tmp_path / "out").exists()


@pytest.mark.fault(AREA, "SIGTERM, Ctrl-C or kill -9 of the driver", "Ray ends; the next run resumes to the same bytes")
def test_a_killed_driver(private: Path, tmp_path: Path, monkeypatch) -> None:
    raw, whole, out = corpus(tmp_path / "raw", 400), tmp_path / "whole", tmp_path / "out"
    monkeypatch.setenv("RAY_TMPDIR", str(temporary := private / "driver"))
    assert preprocess(raw, whole).wait() == 0
    process = preprocess(raw, out, "--cluster", "local")
    while not list(temporary.glob("ray-*/ray/session_*")) and process.poll() is None:
        time.sleep(0.01)
    process.terminate()  # while Ray starts
    assert (process.wait(120), leftover(temporary)) == (143, [])
    archives = tmp_path / ".out.blocks"
    for sent, send, status in (
        (signal.SIGTERM, os.kill, 143),
        (signal.SIGINT, os.killpg, 130),  # as a terminal does
        (signal.SIGKILL, os.kill, -9),
    ):
        shutil.rmtree(archives, ignore_errors=True)  # each time there is all to do
        process = preprocess(raw, out, "--cluster", "local", "--workers", 2)
        while not list(archives.glob("*.zip")) and process.poll() is None:
            time.sleep(0.01)
        send(process.pid, sent)
        assert (process.wait(120), leftover(temporary), out.exists()) == (status, [], False)
    finished = {path: path.stat().st_ino for path in archives.glob("*.zip")}
    assert finished
    process = preprocess(raw, out, "--cluster", "local", "--workers", 2)
    while process.poll() is None:
        for path, inode in finished.items():
            with suppress(FileNotFoundError):  # at the end
                assert path.stat().st_ino == inode  # not done again
        time.sleep(0.01)
    assert process.returncode == 0
    assert content(out) == content(whole)
    assert not leftover(temporary)


@pytest.mark.fault(
    AREA, "hat generate on a cluster: a machine is lost", "the same bytes; no finished batch is done again"
)
def test_generation_with_a_lost_machine(cluster: Any, ami: Path, checkpoint: Path, tmp_path: Path) -> None:
    words = ["generate", checkpoint, ami, "--split", "train"]
    words += ["--device", "cpu", "--batch-size", 1, "--min-len", 60, "--max-len-b", 60, "--out"]
    command = [sys.executable, "-m", "hat_fairseq.cli", *map(str, words)]
    subprocess.run([*command, tmp_path / "whole/train.jsonl"], check=True)
    nodes = [cluster.add_node(**NODE) for _ in range(2)]
    process = subprocess.Popen([*command, tmp_path / "out/train.jsonl", "--cluster", cluster.address])
    archives = tmp_path / "out/.train.jsonl.blocks"
    while len(list(archives.glob("*.zip"))) < 4:
        assert process.poll() is None
        time.sleep(0.01)
    finished = {path: path.stat().st_ino for path in archives.glob("*.zip")}
    cluster.remove_node(nodes[1], allow_graceful=False)
    while process.poll() is None:
        for path, inode in finished.items():
            with suppress(FileNotFoundError):  # at the end
                assert path.stat().st_ino == inode
        time.sleep(0.01)
    texts = [(tmp_path / name / "train.jsonl").read_bytes() for name in ("whole", "out")]
    assert process.returncode == 0
    assert texts[0] == texts[1]
    assert texts[0].count(b"\n") > len(finished)
