"""Folders that are damaged, or say two things: `hat import` refuses each in one line with the file or the text."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import encoders_of_today
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from hat_fairseq import cli
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe
from hat_fairseq.weights import proof


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("damaged") / "encoder"
    encoders_of_today.write("bge-base-en-v1.5", folder)
    return folder


def changed(name: str, *keys: str, value: Any) -> Callable[[Path], object]:
    """Sets the value under keys in a JSON file, which need not exist."""

    def change(folder: Path) -> None:
        path = folder / name
        record = place = json.loads(path.read_text()) if path.is_file() else {}
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        path.write_text(json.dumps(record))

    return change


def with_weights(
    change: Callable[[dict[str, torch.Tensor]], object], pickled: bool = False
) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        weights = load_file(folder / "model.safetensors")
        change(weights)
        (folder / "model.safetensors").unlink()
        torch.save(weights, folder / "pytorch_model.bin") if pickled else save_file(
            weights, folder / "model.safetensors"
        )

    return write


def without_a_shard(folder: Path) -> None:
    names = dict.fromkeys(load_file(folder / "model.safetensors"), "pytorch_model-00001-of-00002.bin")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": names}))


def tokens_beyond(folder: Path) -> None:
    (folder / "added_tokens.json").write_text(json.dumps({f"[E{row}]": row for row in range(1200, 1210)}))


ROW = "bert.embeddings.word_embeddings.weight"
LAYER = "bert.encoder.layer.1.output.dense.weight"
ENDS = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
GARBAGE = {"type": "Precompiled", "precompiled_charsmap": "AAAA"}
SLOW = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated", "invert": False}
DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "settings cut off": (
        lambda folder: (folder / "tokenizer_config.json").write_text('{"do_lower'),
        "tokenizer_config",
    ),
    "a map that is a list": (
        lambda folder: (folder / "special_tokens_map.json").write_text("[1]"),
        "special_tokens_map",
    ),
    "no last mark": (changed("tokenizer.json", "post_processor", "single", value=ENDS), "adds no [SEP]"),
    "truncation on the left": (changed("tokenizer_config.json", "truncation_side", value="left"), "the ids of "),
    "of another class": (changed("tokenizer_config.json", "tokenizer_class", value="XLMRobertaTokenizer"), "tokenizer"),
    "tokens beyond the rows": (tokens_beyond, "tokenizer.json has 1210 rows, and the embedding 1203"),
    "rules that panic": (changed("tokenizer.json", "normalizer", value=GARBAGE), "tokenizer.json is no tokenizer"),
    "an expression without end": (
        changed("tokenizer.json", "pre_tokenizer", value=SLOW),
        "tokenizer.json is no tokenizer",
    ),
    "a layer count of text": (changed("config.json", "num_hidden_layers", value="4"), "config.json: no number for"),
    "a shard too few": (without_a_shard, "pytorch_model.bin.index.json names the file"),
    "rows that were never written": (
        with_weights(lambda weights: weights.update({ROW: torch.zeros(1).expand(10**6, 10**6)}), pickled=True),
        f"{ROW} is no plain tensor",
    ),
    "many dimensions": (
        with_weights(lambda weights: weights.update({LAYER: torch.zeros([1] * 65)}), pickled=True),
        f"{LAYER} is no plain tensor",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_refused_in_one_line(name: str, encoder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    damage, words = DAMAGES[name]
    folder = Path(shutil.copytree(encoder, tmp_path / "folder"))
    damage(folder)
    assert cli.main(["import", str(folder), "--package", str(tmp_path / "package")]) == 2
    lines = [line for line in capfd.readouterr().err.splitlines() if line.startswith("hat: error")]
    assert len(lines) == 1
    assert str(folder) in lines[0]
    assert words in lines[0]
    assert not (tmp_path / "package").exists()


def test_another_state_is_refused_unless_unchecked(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(proof, "LARGEST", 1e-9)
    words = ["import", str(encoder), "--package", str(tmp_path / "package")]
    assert cli.main(words) == 2
    assert "states differ from those of transformers" in capsys.readouterr().err
    assert cli.main([*words, "--unchecked"]) == 0
    assert capsys.readouterr().out.endswith("nothing compared (--unchecked)\n")
    assert cli.main(["info", str(tmp_path / "package")]) == 0
    assert "nothing compared (--unchecked)" in capsys.readouterr().out


def test_an_import_without_transformers(
    encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    words = ["import", str(encoder), "--overwrite", "--out", str(tmp_path / "own/model.pt")]
    assert cli.main(words) == 0
    assert "ids of 7 texts equal those of tokenizers" in (printed := capsys.readouterr().out)
    assert printed.endswith("states not compared: transformers is not installed\n")
    folder = Path(shutil.copytree(encoder, tmp_path / "folder"))
    DAMAGES["no last mark"][0](folder)
    assert cli.main(["import", str(folder), "--out", str(tmp_path / "own/model.pt"), "--overwrite"]) == 2
    assert "adds no [SEP]" in capsys.readouterr().err


CASED = {"tokenizer_class": "BertTokenizer", "do_lower_case": False}
WORDS = {str(row): {"content": name, "special": False} for row, name in ((1200, "covid19"), (1201, "[E1]"))}


def with_markers(folder: Path) -> None:
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens(["[E1]", "[/E1]"])
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize(
    ("change", "text", "pieces"),
    [
        (with_markers, "x [E1] y", ["x", "[E1]", "y"]),
        (changed("added_tokens.json", "covid19", value=1200), "x covid19 y", ["x", "covid19", "y"]),
        (changed("tokenizer_config.json", "added_tokens_decoder", value=WORDS), "[E1]covid19", ["[E1]", "covid19"]),
        (lambda folder: (folder / "tokenizer_config.json").write_text(json.dumps(CASED)), "The", None),
    ],
    ids=["trained markers", "added_tokens.json", "added_tokens_decoder", "do_lower_case"],
)
def test_other_files_than_tokenizer_json_count(
    change: Callable[[Path], object], text: str, pieces: list[str] | None, encoder: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(encoder, tmp_path / "folder"))
    before = TokenizerBpe.load(folder / "tokenizer.json").encode(text)
    change(folder)
    assert cli.main(["import", str(folder), "--out", str(tmp_path / "own/model.pt")]) == 0
    tokens = TokenizerBpe.load(tmp_path / "own/tokenizer.json").encode(text)
    assert tokens != before
    assert pieces in (None, tokens)
