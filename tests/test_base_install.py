"""`pip install .` without extras: nothing of the extra `train` can be imported, and folders of models are used."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from commands import ABSENT, hat, write_lines
from evidence_model import QUESTIONS, EvidenceModel
from fine_tuned import FineTuned

from hat_fairseq.data.checksums import checksums_of
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.weights.export import write_folder
from hat_fairseq.weights.names import DEMO
from hat_fairseq.weights.trained import Packaged, Trained

RUN = """
import sys
from hat_fairseq import cli
sys.stderr = sys.stdout
status = cli.main(sys.argv[2:])
loaded = {name.partition(".")[0] for name in sys.modules} & set(sys.argv[1].split())
print(status, sorted(loaded))
"""


class Made(NamedTuple):
    """What an installation with fairseq has written, and someone without it uses."""

    evidence: Path
    labels: Path
    documents: Path
    meetings: Path
    references: Path
    guesses: Path
    checkpoint: Path
    data: Path


@pytest.fixture(scope="module")
def made(
    evidence_model: EvidenceModel, fine_tuned: Callable[[str], FineTuned], tmp_path_factory: pytest.TempPathFactory
) -> Made:
    folder, model = tmp_path_factory.mktemp("made"), fine_tuned("classification")
    for name, each in (("evidence", evidence_model), ("labels", model)):
        assert (
            hat(
                "export",
                each.checkpoint,
                "--data",
                each.data / "bin" if name == "labels" else each.data,
                "--out",
                folder / name,
            )
            == 0
        )
    rows = [{"id": str(number), "label": label} for number, label in enumerate("abab")]
    write_lines(folder / "valid.jsonl", [])
    references = write_lines(folder / "references.jsonl", [row | {"text": f"It is {row['label']}."} for row in rows])
    return Made(
        folder / "evidence",
        folder / "labels",
        model.raw / "test.jsonl",
        model.raw.with_name("test.jsonl"),
        references,
        write_lines(folder / "guesses.jsonl", rows),
        model.checkpoint,
        model.data / "bin",
    )


COMMANDS = {
    "ask with its own model": "ask {turns} {question} --device cpu --out {out}.jsonl",
    "ask": "ask {evidence} {turns} {question} --device cpu --out {out}.jsonl",
    "embed": "embed {labels} {documents} --device cpu --out {out}.jsonl",
    "export": "export {labels} --half --out {out}",
    "predict": "predict {labels} {documents} --device cpu --out {out}.jsonl",
    "generate": "generate demo {meetings} --device cpu --max-len-b 5 --min-len 1 --out {out}.jsonl",
    "look": "look {labels} {documents} --device cpu --out {out}.json",
    "classification": "score classification {guesses} --references {references} --out {out}.json",
    "rouge": "score rouge {texts} --references {texts} --out {out}.json",
    "bleu": "score bleu {texts} --references {texts} --out {out}.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_base_install_uses_folders(
    command: str, made: Made, without_fairseq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # where the model is put together
    turns = [{"speaker": "A", "text": "What does it cost?"}, {"speaker": "B", "text": "It is twelve euros."}]
    files = made._asdict() | {
        "turns": write_lines(tmp_path / "turns.jsonl", [{"id": "m", "turns": turns}]),
        "texts": write_lines(tmp_path / "texts.jsonl", [{"id": "1", "text": "One text.", "target": "One text."}]),
        "question": QUESTIONS[0],
        "out": tmp_path / "out",
    }
    words = [word.format(**files) for word in command.split()]
    printed = without_fairseq(RUN, " ".join(ABSENT), *words)
    assert printed.splitlines()[-1] == "0 []", printed
    assert any(path.name.startswith("out") for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "package", "way_out"),
    [
        ("train {data} --arch hat_roberta_tiny", "fairseq", "pip install 'hat_fairseq[train]'"),
        ("export {checkpoint} --data {data} --out {out}", "fairseq", "pip install 'hat_fairseq[train]'"),
        ("plan ami_small", "fairseq", "pip install 'hat_fairseq[train]'"),
        (
            "score classification {guesses} --references {references} --baselines {references}",
            "scikit-learn",
            "pip install scikit-learn",
        ),
    ],
)
@pytest.mark.slow
def test_what_is_missing_is_one_line(
    command: str, package: str, way_out: str, made: Made, without_fairseq, tmp_path: Path
) -> None:
    words = [word.format(**made._asdict(), out=tmp_path / "out") for word in command.split()]
    *lines, last = without_fairseq(RUN, " ".join(ABSENT), *words).splitlines()
    assert last == "2 []"
    assert len(lines) == 1
    assert not list(tmp_path.iterdir())
    assert f"needs {package}, which is not installed: {way_out}" in lines[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evidence", "labels", "demo"])
def test_a_folder_is_written_again_as_through_fairseq(name: str, made: Made, tmp_path: Path) -> None:
    folder = ModelFolder.open(DEMO if name == "demo" else getattr(made, name))
    hashes = []
    for trained in (Packaged.of(folder), Trained.load(folder.path, folder.data)):
        (out := tmp_path / type(trained).__name__).mkdir()
        write_folder(out, "model", trained)
        hashes.append(checksums_of(out)["sha256"])
    assert hashes[0] == hashes[1]
    assert len(hashes[0]) > 8
