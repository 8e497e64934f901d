"""`hat info`: facts about models, checkpoints and data, and what is refused."""

import json
from pathlib import Path

import pytest
from commands import hat, refusal, write_lines
from safetensors.torch import load_file

from hat_fairseq import info
from hat_fairseq.models.architectures import ARCHITECTURES

FIXTURES = Path(__file__).parent / "fixtures/v0.3"


def test_the_folder_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert hat("info", "demo", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    weights = load_file(Path(info.__file__).parent / "demo_model/model.safetensors")
    assert facts["parameters"] == sum(each.numel() for each in weights.values() if each.is_floating_point())
    expected = {"what": "folder of a model", "network": "hat_transformer", "task": "document_to_text", "kind": "text"}
    expected |= {"architecture": "hat_transformer_tiny", "precision": "fp16", "licence": "cc-by-4.0"}
    assert expected.items() <= facts.items()
    assert facts["trained on"].startswith("ami; documents: train 97")
    assert facts["limits"]["max_source_positions"] == 1024
    assert facts["limits"]["long_source"] == "truncate"
    assert facts["files"]["model.safetensors"] > 2 * facts["parameters"]
    assert facts["vocabulary"]["role"] == 4
    assert hat("info", "demo") == 0
    assert "parameters    1,734,784\n" in capsys.readouterr().out


def test_packaged_models_and_architectures_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert hat("info", "--json") == 0
    known = json.loads(capsys.readouterr().out)
    parameters = {each["name"]: each["parameters"] for each in known["architectures"]}
    expected = {"hat_roberta_base": 153_063_513, "poolingformer_base": 132_787_545, "ernie_sparse_base": 127_449_177}
    assert (expected | {"hierarchical_transformer_base_4096": 152_779_353}).items() <= parameters.items()
    assert {name for names in ARCHITECTURES.values() for name in names} == parameters.keys()
    assert all(each["paper"] for each in known["architectures"])
    assert {each["name"]: each["architecture"] for each in known["models"]}.items() >= {
        ("demo", "hat_transformer_tiny"),
        ("meeting", "hat_units_minilm"),
    }
    assert hat("info") == 0
    assert "153,063,513  HAT, Rohde et al. 2021\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["hat_bart", "hat_roberta", "hierarchical_transformer"])
def test_a_checkpoint(name: str) -> None:
    facts = info.info(str(FIXTURES / f"{name}.pt"))
    assert facts["what"] == "checkpoint of fairseq"
    assert facts["architecture"].startswith(name)
    assert facts["updates"] == 4
    assert facts["parameters"] > 1000
    assert facts["precision"] == "fp32"
    assert [*facts["files"]] == [f"{name}.pt"]


def test_data_of_preprocess(tmp_path: Path) -> None:
    rows = [{"id": "a", "text": "So we go on .", "target": "We go ."}]
    for split in ("train", "valid", "test"):
        write_lines(tmp_path / f"raw/{split}.jsonl", rows)
    assert (
        hat("preprocess", tmp_path / "raw", "--out", tmp_path / "data", "--num-codes", 10, "--splitter", "punctuation")
        == 0
    )
    for place in ("data", "data/bin"):
        facts = info.info(str(tmp_path / place))
        assert (facts["what"], facts["kind"]) == ("data of hat preprocess", "text")
        assert facts["documents"] == {"train": 1, "valid": 1, "test": 1}
        assert facts["vocabulary"]["source"] > 0


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nosuch", "nosuch does not exist: give a checkpoint"),
        (".", "is no folder of a model (config.json), and no directory of hat preprocess"),
        ("a.txt", "a.txt"),
    ],
)
def test_what_is_none_of_these(name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("text")
    error = refusal("info", name)
    assert message in error
    assert error.count("\n") == 1
    assert "HAT_TRACEBACK" not in error


def test_what_a_folder_says_reaches_the_terminal_without_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "be\x1b[31m\u202ert"}))
    assert hat("info", str(tmp_path)) == 0
    refused = capsys.readouterr().out.splitlines()[-1]
    assert refused.isprintable()
    assert "be\\x1b[31m\\u202ert" in refused
