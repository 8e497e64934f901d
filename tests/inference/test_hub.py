"""A package pushed to the Hugging Face Hub and loaded from it: over HTTP from a server of this machine, and offline."""

import json
import sys
from pathlib import Path

import pytest
from commands import environment, run_command
from hub_server import hub_server

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.checksums import checksums_of

LOAD = "import hat_fairseq, json, sys; model = hat_fairseq.load({!r}, device='cpu'); "
PREDICT = "predicted = model.predict(list(map(json.loads, open(sys.argv[1])))); "
PREDICT += "print(json.dumps([each.to_json() for each in predicted], sort_keys=True))"


def python(code: str, *arguments: object, status: int = 0, **variables: str) -> str:
    """The last line that a new process prints; huggingface_hub reads its variables when it is imported."""
    variables = environment(HF_TOKEN="hf_none", **variables)
    done = run_command(sys.executable, "-c", code, *arguments, env=variables, check=False)
    assert done.returncode == status, done.stderr
    return (done.stderr if status else done.stdout).strip().splitlines()[-1]


@pytest.fixture(scope="module")
def folder(fine_tuned, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made, out = fine_tuned("classification"), tmp_path_factory.mktemp("hub") / "P"
    assert cli.main(["export", str(made.checkpoint), "--data", str(made.data / "bin"), "--out", str(out)]) == 0
    return out


@pytest.mark.slow
@pytest.mark.fault("Security", "a package of the Hugging Face Hub that differs from its manifest", "refused by name")
def test_what_is_pushed_is_what_is_loaded(folder: Path, fine_tuned, tmp_path: Path) -> None:
    raw, home = fine_tuned("classification").raw / "test.jsonl", str(tmp_path / "home")
    predictions = hat_fairseq.load(folder, device="cpu").predict(map(json.loads, raw.open()))
    expected = [prediction.to_json() for prediction in predictions]
    with hub_server() as server:
        push = LOAD.format(str(folder)) + "print(model.push_to_hub('user/model', private=True))"
        assert python(push, HF_ENDPOINT=server.address, HF_HOME=home) == f"{server.address}/user/model"
        files = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        assert server.files == files
        predicted = python(LOAD.format("user/model@main") + PREDICT, raw, HF_ENDPOINT=server.address, HF_HOME=home)
        assert json.loads(predicted) == expected
        unknown = python(LOAD.format("user/none"), status=1, HF_ENDPOINT=server.address, HF_HOME=home)
        assert "user/none does not exist, and is no model of the Hugging Face Hub (" in unknown
        server.files["model.safetensors"] = server.files["model.safetensors"][:-1] + b"x"
        changed = python(LOAD.format("user/model"), status=1, HF_ENDPOINT=server.address, HF_HOME=str(tmp_path / "2"))
        assert "model.safetensors has changed since manifest.json was written" in changed
    nowhere = python(push, status=1, HF_ENDPOINT="http://127.0.0.1:9", HF_HOME=home)
    assert "user/model cannot be written on the Hugging Face Hub (" in nowhere
    offline = {"HF_HUB_OFFLINE": "1", "HF_HOME": home}
    command = f"predict user/model {raw} --out {tmp_path}/out.jsonl --device cpu --batch-size 8".split()
    python(f"import sys; from hat_fairseq import cli; sys.exit(cli.main({command!r}))", **offline)
    again = f"export user/model --out {tmp_path}/again".split()
    python(f"import sys; from hat_fairseq import cli; sys.exit(cli.main({again!r}))", **offline)
    assert (tmp_path / "again/model.safetensors").read_bytes() == (folder / "model.safetensors").read_bytes()
    labels = [json.loads(line)["label"] for line in (tmp_path / "out.jsonl").open()]
    assert labels == [row["label"] for row in expected]
    assert "user/other does not exist, and is no" in python(LOAD.format("user/other"), status=1, **offline)


PUSH = "from hat_fairseq.weights.names import push; print(push({!r}, 'user/model', private={}))"


@pytest.mark.parametrize(
    ("private", "file", "message"),
    [
        (False, None, "user/model exists and is public: make it private on the Hugging Face Hub, or push to another"),
        (True, "notes/mine.txt", "user/model has 'notes/mine.txt', which hat export has not written: push to another"),
        (True, "model.bin", "user/model has 'model.bin', which hat export has not written: push to another name"),
        (True, "README.md", ""),
        (True, ".gitattributes", ""),
    ],
)
def test_a_model_that_exists_is_looked_at_before_it_is_written(
    private: bool, file: str | None, message: str, tmp_path: Path
) -> None:
    assert cli.main(["export", "demo", "--out", str(tmp_path / "P")]) == 0
    with hub_server() as server:
        server.private, server.files = private, {file: b"mine"} if file else {}
        before = dict(server.files)
        variables = {"HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "home")}
        printed = python(PUSH.format(str(tmp_path / "P"), True), status=1 if message else 0, **variables)
        assert message in printed
        assert (server.files == before) == bool(message)


def test_files_of_the_folder_before_are_deleted_and_no_others(tmp_path: Path) -> None:
    for name in ("old", "new"):
        assert cli.main(["export", "demo", "--out", str(tmp_path / name)]) == 0
    (tmp_path / "old/a[b].json").write_text("{}")
    (tmp_path / "old/manifest.json").unlink()
    (tmp_path / "old/manifest.json").write_text(json.dumps(checksums_of(tmp_path / "old")))
    with hub_server() as server:
        variables = {"HF_ENDPOINT": server.address, "HF_HOME": str(tmp_path / "home")}
        python(PUSH.format(str(tmp_path / "old"), True), **variables)
        assert server.private
        assert "a[b].json" in server.files
        python(PUSH.format(str(tmp_path / "new"), True), **variables)
        files = (tmp_path / "new").rglob("*")
        assert server.files.keys() == {str(path.relative_to(tmp_path / "new")) for path in files if path.is_file()}


def test_a_checkpoint_cannot_be_pushed(fine_tuned) -> None:
    made = fine_tuned("classification")
    with pytest.raises(ValueError, match="not a whole folder of hat export"):
        hat_fairseq.load(made.checkpoint, made.data / "bin", "cpu").push_to_hub("user/model")
