"""`hat import xlm_roberta`: the ids and the logits of transformers' XLM-RoBERTa, on Wikipedia in eleven languages."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from building import PAD, build
from fairseq.data import Dictionary
from sentencepiece_model import peer_tokenizer, tydi_lines, write_model
from small_peers import ENCODER_SIZES, assert_refused, small_peer

from hat_fairseq import cli
from hat_fairseq.data.sentencepiece_bpe import MODEL, SentencePieceBpe
from hat_fairseq.weights.rename import meta_model
from hat_fairseq.weights.roberta import start_flags

transformers = pytest.importorskip("transformers", reason="make setup")

LONGEST = 300  # tokens


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A sentencepiece model, and what transformers makes of it."""
    model = write_model(tmp_path_factory.mktemp("pieces"))
    return model, peer_tokenizer(model)


@pytest.fixture(scope="module")
def peer(tokenizer: tuple[Path, Any]) -> Any:
    rows, positions = len(tokenizer[1]), LONGEST + 2
    config = transformers.XLMRobertaConfig(
        vocab_size=rows, max_position_embeddings=positions, type_vocab_size=1, layer_norm_eps=1e-5, **ENCODER_SIZES
    )
    return small_peer(transformers.XLMRobertaForMaskedLM, config)


@pytest.fixture(scope="module")
def folder(tokenizer: tuple[Path, Any], folder: Path) -> Path:
    """As it is published, with sentencepiece.bpe.model."""
    shutil.copy(tokenizer[0], folder)
    return folder


def convert(folder: Path, out: Path) -> int:
    return cli.main(["import", "xlm_roberta", str(folder), "--out", str(out)])


class Task:
    """All that a model asks of a task."""

    def __init__(self, path: Path) -> None:
        self.source_dictionary = Dictionary.load(str(path))
        self.source_dictionary.add_symbol("<mask>")


@pytest.mark.slow
@torch.no_grad()
def test_text_to_the_logits_of_transformers(
    peer: Any, tokenizer: tuple[Path, Any], folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From lines to ids by our BPE and the written dictionary, and to logits by the imported weights."""
    out = tmp_path / "xlmr/model.pt"
    assert convert(folder, out) == 0
    printed = capsys.readouterr().out
    assert f"preprocess with: --bpe sentencepiece --bpe-dir {folder}\n" in printed
    task, bpe = Task(out.parent / "dict.txt"), SentencePieceBpe(folder / MODEL)
    dictionary = task.source_dictionary
    assert dictionary.symbols == tokenizer[1].convert_ids_to_tokens([*range(len(tokenizer[1]))])
    words = shlex.split(next(line for line in printed.splitlines() if "--arch hat_roberta_base " in line))
    flags = " ".join(words[2:-2]) + " --dropout 0 --attention-dropout 0 --no-hierarchy"
    model = build(words[1], flags, task, seed=5).eval()
    model.load_state_dict(dict(torch.load(out, weights_only=True)["model"]))
    rows = []
    for line in tydi_lines():
        ids = tokenizer[1](line)["input_ids"]
        assert dictionary.encode_line(" ".join(["<s>", *bpe.encode(line)]), add_if_not_exist=False).tolist() == ids
        rows += [torch.tensor(ids)] if len(ids) <= LONGEST else []
    batch = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=PAD)
    real = batch.ne(PAD)
    logits = peer(input_ids=batch, attention_mask=real.long()).logits
    assert len(rows) > 60
    assert (model(batch)[0] - logits)[real].abs().max() < 1e-4


@pytest.mark.slow
def test_the_published_size_is_a_named_architecture() -> None:
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    config = transformers.XLMRobertaConfig(
        vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, **sizes
    ).to_dict() | {"layer_norm_eps": 1e-5}
    flags = start_flags(config)[0]
    assert flags == ["--arch", "hat_roberta_large", "--layer-norm-eps", "1e-05", "--max-positions", "512"]
    with torch.device("meta"):
        peer = transformers.XLMRobertaForMaskedLM(transformers.XLMRobertaConfig(**config))
    plain = meta_model([*flags, "--no-hierarchy"], dict(peer.named_parameters()), 250002)
    assert sum(p.numel() for p in plain.parameters()) == peer.num_parameters() - 1024  # the row of the token type


def test_other_vocabularies_are_refused(copy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refusal(**settings: Any) -> str:
        write_model(copy, **settings)
        assert convert(copy, tmp_path / "new/model.pt") == 2
        assert not (tmp_path / "new").exists()
        return capsys.readouterr().err

    (copy / MODEL).unlink()
    assert convert(copy, tmp_path / "model.pt") == 0
    printed = capsys.readouterr().out
    assert f"no {MODEL} in the folder: no dict.txt written" in printed
    assert "preprocess with" not in printed
    assert not (tmp_path / "dict.txt").exists()
    rows = json.loads((copy / "config.json").read_text())["vocab_size"]
    text = f"pieces from number 3 on; an XLM-RoBERTa of {rows} rows has {rows - 5} from number 3 on; use the model of"
    assert f"{copy / MODEL} has {1400 - 3} {text}" in refusal(vocab_size=1400)
    assert "pieces from number 4 on" in refusal(pad_id=3)  # as many rows, each one piece further
    (copy / MODEL).write_bytes(b"")
    assert convert(copy, tmp_path / "new/model.pt") == 2
    assert "is not a complete sentencepiece model" in capsys.readouterr().err


def test_another_configuration_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "model_type is 'roberta', only 'xlm-roberta' can be converted to fairseq's XLM"
    assert_refused("xlm_roberta", copy, {"model_type": "roberta"}, words, capsys)


@torch.no_grad()
def test_a_package_with_the_model_of_the_folder(
    peer: Any, folder: Path, tokenizer: tuple[Path, Any], tmp_path: Path
) -> None:
    """bge-m3 and multilingual-e5 are such folders: ids by sentencepiece.bpe.model, states of transformers."""
    package = tmp_path / "package"
    assert cli.main(["import", str(folder), "--package", str(package)]) == 0
    assert (package / "bin" / MODEL).is_file()
    model = transformers.AutoModel.from_pretrained(package, trust_remote_code=True).eval()
    read = transformers.AutoTokenizer.from_pretrained(package, trust_remote_code=True)
    for line in tydi_lines()[:5]:
        ids = tokenizer[1](line[:60])["input_ids"]
        assert read([line[:60]])["input_ids"][0] == ids
        states = model(torch.tensor([ids])).last_hidden_state
        assert (states - peer.roberta(torch.tensor([ids])).last_hidden_state).abs().max() < 1e-5
