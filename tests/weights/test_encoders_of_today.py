"""`hat import DIR`: states, ids, logits and gradients of transformers' encoders, with the options of published ones.

GTE, nomic-bert and Jina v3 are compared with transformers' own classes, which read the weights of the published code.
"""

import contextlib
import io
import json
import re
import shlex
import shutil
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import encoders_of_today
import numpy as np
import pytest
import torch
import transformers
from building import PAD, build
from encoders_of_today import PUBLISHED, change, core_of, padded
from fairseq.data import Dictionary
from fairseq.models import ARCH_MODEL_REGISTRY
from safetensors.torch import load_file, save_file
from sentencepiece_model import tydi_lines
from tokenizers import Tokenizer
from tokenizers_on_the_spot import write_modern
from torch import Tensor
from transformers import AutoModel

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.tokenizer_bpe import TokenizerBpe
from hat_fairseq.weights import rotary
from hat_fairseq.weights.families import RELEASES
from hat_fairseq.weights.hugging_face import read_config

OFF = " --dropout 0 --attention-dropout 0"
LENGTHS = [3, 8, 9, 10, 17, 18, 40, 100]  # a window of 8 on either side, and one of 6
LONG = [64, 65, 66, 130, 300]
LARGEST = 1e-5


class Task:
    """All that a model asks of a task."""

    def __init__(self, path: Path) -> None:
        self.source_dictionary = self.target_dictionary = Dictionary.load(str(path))
        self.source_dictionary.add_symbol("<mask>")
        self.role_dictionary = None


@dataclass
class Case:
    """A model of transformers, its folder, and what `hat import` has made of it."""

    name: str
    peer: Any
    tokenizer: Tokenizer
    folder: Path
    out: Path
    printed: str

    @property
    def family(self) -> str:
        return PUBLISHED[self.name].family

    @cached_property
    def starts(self) -> list[list[str]]:
        lines = [shlex.split(line) for line in self.printed.splitlines() if line.startswith("  --arch")]
        return [words[:-2] for words in lines]

    @cached_property
    def state(self) -> dict[str, Tensor]:
        return dict(torch.load(self.out, weights_only=True)["model"])

    def model(self, start: int = 0, more: str = " --no-hierarchy") -> Any:
        """A model of printed flags, loaded from the checkpoint."""
        words = self.starts[start]
        flags = " ".join(words[2:]) + OFF + more
        model = build(words[1], flags, Task(self.out.with_name("dict.txt")), seed=5).eval()
        model.load_state_dict(dict(self.state))
        return model

    @cached_property
    def rows(self) -> list[list[int]]:
        """Ids of transformers, of texts in eleven languages, cut to lengths around the window and beyond."""
        text = " ".join(line[:200] for line in tydi_lines()[:12])
        ids = self.tokenizer.encode(text).ids
        lengths = LONG if "128" in self.name else LENGTHS
        return [ids[: length - 1] + ids[-1:] for length in lengths]

    def ours(self, rows: list[list[int]]) -> list[list[int]]:
        """The ids of our dictionary for ids of transformers."""
        bpe = TokenizerBpe.load(self.out.with_name("tokenizer.json"))
        number = {row: ours for ours, row in reversed([*enumerate(bpe.rows)]) if row is not None}
        return [[number[row] for row in ids] for ids in rows]

    @property
    def peer_pad(self) -> int:
        return int(self.peer.config.pad_token_id or 0)

    def peer_batch(self, rows: list[list[int]]) -> dict[str, Tensor]:
        tokens = padded(rows, self.peer_pad)
        lengths = torch.tensor([len(row) for row in rows])
        return {"input_ids": tokens, "attention_mask": (torch.arange(tokens.size(1)) < lengths[:, None]).long()}


CASES: dict[str, Case] = {}


def imported(folder: Path, out: Path, *flags: str) -> tuple[int, str]:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        status = cli.main(["import", str(folder), "--out", str(out), *flags])
    return status, printed.getvalue()


@pytest.fixture(scope="module")
def case(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Case:
    name = request.param
    if name not in CASES:
        path = tmp_path_factory.mktemp("encoder")
        peer, tokenizer = encoders_of_today.write(name, path / "folder")
        status, printed = imported(path / "folder", path / "own/model.pt")
        assert status == 0
        assert f"folder: {PUBLISHED[name].family}\n" in printed
        CASES[name] = Case(name, peer, tokenizer, path / "folder", path / "own/model.pt", printed)
    return CASES[name]


SAME_AGAIN = ("ModernBERT-large", "gte-modernbert-base", "BioClinical-ModernBERT", "Ettin-17m", "EuroBERT-2.1B, tied")
SAME_AGAIN += ("multilingual-e5-small", "electra-base-generator", "arctic-embed-m")
EACH = pytest.mark.parametrize(
    "case",
    [pytest.param(name, marks=pytest.mark.slow) if name in SAME_AGAIN else name for name in PUBLISHED],
    indirect=True,
)
ONE_EACH = [
    next(name for name, each in PUBLISHED.items() if each.family == family)
    for family in dict.fromkeys(each.family for each in PUBLISHED.values())
]
OF_FAMILIES = pytest.mark.parametrize("case", ONE_EACH, indirect=True)


def largest(actual: Tensor, expected: Tensor) -> float:
    return float((actual - expected).abs().max()) / max(1.0, float(expected.abs().max()))


@EACH
@torch.no_grad()
def test_states_padded_and_alone(case: Case) -> None:
    model, batch = case.model(), case.peer_batch(case.rows)
    expected = core_of(case.peer)(**batch).last_hidden_state
    tokens = padded(case.ours(case.rows), PAD)
    states = model(tokens, features_only=True)[0]
    real = batch["attention_mask"].bool()
    differences = [largest(states[real], expected[real])]
    for row, whole in zip(tokens, expected, strict=True):
        alone = model(row[row != PAD][None], features_only=True)[0][0]
        differences.append(largest(alone, whole[: len(alone)]))
    left = torch.stack([torch.cat([row[row == PAD], row[row != PAD]]) for row in tokens])
    differences.append(largest(model(left, features_only=True)[0][left != PAD], expected[real]))
    print(f"PARITY {case.name} | states {max(differences):.1e}")
    assert max(differences) < LARGEST


@EACH
def test_ids_of_texts_in_eleven_languages(case: Case) -> None:
    """Those of the folder's own tokenizer.json, by the tokenizer that a training and a prediction use."""
    bpe = TokenizerBpe.load(case.out.with_name("tokenizer.json"))
    number = dict(zip(["<s>", "<pad>", "</s>", "<unk>", *bpe.symbols], bpe.rows, strict=False))
    for text in [*tydi_lines()[:60:2], "12 + 7 = 19", "naïve café", "x <table> y"]:
        ids = case.tokenizer.encode(text).ids
        assert [
            number["<s>"],
            *(number.get(token, number["<unk>"]) for token in bpe.encode(text)),
            number["</s>"],
        ] == ids, text


def has_head(case: Case) -> bool:
    return "encoder.lm_head.weight" in case.state


@EACH
@torch.no_grad()
def test_logits_of_masked_words(case: Case) -> None:
    if not has_head(case):
        assert case.family == "ultrabert" or "discriminator" in case.name
        assert "lm_head in the folder: a masked-LM" in case.printed or "no masked-LM head" in case.printed
        return
    model, batch = case.model(), case.peer_batch(case.rows[:4])
    bpe = TokenizerBpe.load(case.out.with_name("tokenizer.json"))
    known = [ours for ours, row in enumerate(bpe.rows) if row is not None]
    rows = [bpe.rows[ours] for ours in known]
    expected = case.peer(**batch).logits[..., rows]
    logits = model(padded(case.ours(case.rows[:4]), PAD))[0][..., known]
    real = batch["attention_mask"].bool()
    difference = largest(logits[real], expected[real])
    print(f"PARITY {case.name} | logits {difference:.1e}")
    assert difference < LARGEST


TABLES = ("embed_positions", "embed_tokens")  # of which BERT's importer makes sums


@EACH
def test_gradients(case: Case) -> None:
    """The gradients of transformers' parameters, converted as weights are, are those of ours."""
    model, rows = case.model().train(), case.rows[2:6]
    batch, tokens = case.peer_batch(rows), padded(case.ours(rows), PAD)
    real = batch["attention_mask"].bool()
    case.peer.zero_grad()
    # on a CPU dropout is off; the mode decides how our feed-forward networks keep their input
    states, expected = model(tokens, features_only=True)[0], core_of(case.peer)(**batch).last_hidden_state
    weight = torch.randn(expected.shape, generator=torch.Generator().manual_seed(7))
    (states * weight)[real].sum().backward()
    (expected * weight)[real].sum().backward()
    parameters = dict(case.peer.named_parameters(remove_duplicate=False))
    named = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in parameters.items()}
    release = RELEASES[case.family]
    config = read_config(
        case.folder / "config.json", release.fixed, release.sizes, release.target, release.defaults, release.rename
    )
    convert, tokenizer = release.convert, TokenizerBpe.load(case.folder / "tokenizer.json")
    if release.tokenizer is None:
        from hat_fairseq.weights.roberta import ROBERTA

        convert = ROBERTA.convert
    wanted = convert(named, config, tokenizer).model
    compared = 0
    for name, parameter in model.named_parameters():
        skipped = TABLES if "embed_token_type" not in "".join(case.state) else ()
        if "classification_heads" in name or "lm_head" in name or any(table in name for table in skipped):
            continue
        gradient = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        scale = max(float(each.abs().max()) for each in (gradient, wanted[name]))
        if "k_proj.bias" in name or not scale:  # which never changes a softmax
            continue
        if "embed_tokens" in name:
            gradient, wanted[name] = gradient[4:], wanted[name][4:]  # fairseq's padding has none
        if name.endswith((".fc1.bias", "embed_token_type.weight")) and not wanted[name].any():
            continue  # zeros that the release does not have
        assert float((gradient - wanted[name]).abs().max()) < 1e-4 * scale, name
        compared += 1
    assert compared > 20


@OF_FAMILIES
@torch.no_grad()
def test_segments_are_the_encoder_on_each_alone(case: Case) -> None:
    """Also segments that are longer than a window of local layers."""
    start = next(n for n, words in enumerate(case.starts) if words[1].startswith("hierarchical_transformer"))
    layers = case.starts[0][case.starts[0].index("--encoder-layers") + 1]
    layout = f" --layout {'|'.join('S' * int(layers))} --segment-length 60 --max-segments 20 --segment-by marker"
    model = case.model(start, layout)
    bos = case.tokenizer.encode("").ids[0]
    rows = [
        [bos, *case.rows[-1][1 + first : 1 + first + length]] for first, length in ((0, 5), (5, 59), (9, 1), (30, 30))
    ]
    states = model(torch.tensor([sum(case.ours(rows), [])]), features_only=True)[0][0]
    expected = [core_of(case.peer)(**case.peer_batch([row])).last_hidden_state[0] for row in rows]
    difference = largest(states, torch.cat(expected))
    print(f"PARITY {case.name} | segments {difference:.1e}")
    assert difference < LARGEST


@OF_FAMILIES
@torch.no_grad()
def test_bf16_is_as_near_as_that_of_transformers(case: Case) -> None:
    batch, tokens = case.peer_batch(case.rows), padded(case.ours(case.rows), PAD)
    real, core = batch["attention_mask"].bool(), core_of(case.peer)
    expected = core(**batch).last_hidden_state[real]
    states = case.model().to(torch.bfloat16)(tokens, features_only=True)[0][real].float()
    copy = deepcopy(core).to(torch.bfloat16)
    for name, module in core.named_modules():  # frequencies stay in fp32, as `from_pretrained` keeps them
        for key, buffer in module.named_buffers(recurse=False):
            if "inv_freq" in key:
                copy.get_submodule(name)._buffers[key] = buffer
    theirs = copy(**batch).last_hidden_state[real].float()
    ours, of_theirs = (float((x - expected).norm() / expected.norm()) for x in (states, theirs))
    print(f"PARITY {case.name} | bf16 {ours:.1e} of {of_theirs:.1e}")
    assert ours < 1.25 * of_theirs


# What published files say otherwise than transformers' class saves: names of tensors and of settings.
OLD_MODERNBERT = {"global_rope_theta": 160000.0, "local_rope_theta": 10000.0, "global_attn_every_n_layers": 3}
OLD_NOMIC = {"n_embd": 32, "n_inner": 48, "n_head": 4, "n_layer": 4, "n_positions": 120, "layer_norm_epsilon": 1e-12}
OLD_NOMIC |= {"rotary_emb_base": 1000, "activation_function": "swiglu", "prenorm": False, "use_rms_norm": None}
OLD_NOMIC |= {"rotary_emb_fraction": 1.0, "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False}
NTK = {"type": "ntk", "factor": 8.0}
CODE = {"AutoModel": "owner/code--modeling.Model"}
OLD_JINA = {"model_type": "xlm-roberta", "position_embedding_type": "rotary", "rotary_emb_base": 20000.0}
# by name: the settings that leave, those that come
OLDER = {
    "ModernBERT-base": (("rope_parameters", "layer_types"), OLD_MODERNBERT),
    "mmBERT-base": (("rope_parameters", "layer_types"), OLD_MODERNBERT | {"local_rope_theta": None}),
    "EuroBERT-210m": (("rope_parameters",), {"rope_theta": 250000.0, "rope_scaling": None, "auto_map": CODE}),
    "UltraBERT-150M": (
        ("rope_parameters", "layer_types"),
        {"attention_windows": [6, 6, None, 6], "rope_theta": [10000.0, 10000.0, 2560000.0, 10000.0], "auto_map": CODE},
    ),
    "nomic-embed-text-v1.5": (
        ("rope_parameters", *encoders_of_today.SIZES, "max_position_embeddings", "layer_norm_eps", "hidden_act"),
        OLD_NOMIC | {"auto_map": CODE},
    ),
    "gte-multilingual-base": (
        ("rope_parameters",),
        {
            "model_type": "new",
            "rope_theta": 20000.0,
            "rope_scaling": NTK,
            "position_embedding_type": "rope",
            "auto_map": CODE,
        },
    ),
    "jina-embeddings-v3": (("rope_parameters",), OLD_JINA | {"auto_map": CODE}),
}


@pytest.mark.parametrize("case", OLDER, indirect=True)
def test_settings_of_published_files(case: Case, tmp_path: Path) -> None:
    """They give the same weights and the same flags; for mmBERT one base for all layers."""
    leave, come = OLDER[case.name]
    folder = tmp_path / "folder"
    shutil.copytree(case.folder, folder)
    change(folder, **dict.fromkeys(leave))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | come))
    status, printed = imported(folder, tmp_path / "own/model.pt")
    assert status == 0
    lines = [line.partition(" --finetune")[0] for line in printed.splitlines() if line.startswith("  --arch")]
    expected = [line.partition(" --finetune")[0] for line in case.printed.splitlines() if line.startswith("  --arch")]
    assert lines == expected
    state = torch.load(tmp_path / "own/model.pt", weights_only=True)["model"]
    assert state.keys() == case.state.keys()
    assert all(torch.equal(tensor, case.state[name]) for name, tensor in state.items())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"attention_windows": [64, 256, None]}, "attention_windows: .* windows of different sizes"),
        ({"rope_theta": [1e4, 2e4, 1e6], "attention_windows": [64, 64, None]}, "rope_theta: .* different bases"),
    ],
)
def test_layers_of_ultrabert_that_differ_are_refused(settings: dict[str, Any], message: str) -> None:
    config = {"num_hidden_layers": 3, "hidden_size": 64, "num_attention_heads": 2}
    with pytest.raises(ValueError, match=message):
        rotary.ultrabert(config | settings)


@pytest.mark.parametrize("case", ["ModernBERT-base"], indirect=True)
def test_a_package_has_the_positions_of_the_weights(case: Case, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    flags = "--package", str(tmp_path / "package"), "--max-positions", "8"
    assert imported(case.folder, tmp_path / "model.pt", *flags)[0] == 2
    assert "--max-positions 8: the weights have" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "case", ["nomic-embed-text-v1.5", "gte-multilingual-base", "jina-embeddings-v3"], indirect=True
)
def test_names_of_the_class_and_of_published_files(case: Case, tmp_path: Path) -> None:
    """`save_pretrained` writes the published names; folders of other versions have those of the class."""
    folder = tmp_path / "folder"
    shutil.copytree(case.folder, folder)
    encoders_of_today.write_with_names_of_the_class(case.peer, folder)
    names = [{*load_file(each / "model.safetensors")} for each in (case.folder, folder)]
    assert any("encoder.layer" in name for name in names[0])
    assert not any("encoder.layer" in name for name in names[1])
    assert imported(folder, tmp_path / "own/model.pt")[0] == 0
    state = torch.load(tmp_path / "own/model.pt", weights_only=True)["model"]
    assert all(torch.equal(tensor, case.state[name]) for name, tensor in state.items())


@pytest.mark.parametrize("case", ["jina-embeddings-v3"], indirect=True)
def test_adapters_of_jina_are_left_out(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    shutil.copytree(case.folder, folder)
    weights = {}
    for name, tensor in load_file(folder / "model.safetensors").items():
        if name.endswith(("Wqkv.weight", "word_embeddings.weight")):
            stem = name.removesuffix("weight") + "parametrizations.weight"
            weights |= {
                f"{stem}.original": tensor,
                f"{stem}.0.lora_A": tensor[:2].clone(),
                f"{stem}.0.lora_B": tensor[:, :2],
            }
        else:
            weights[name] = tensor
    save_file({name: tensor.contiguous() for name, tensor in weights.items()}, folder / "model.safetensors")
    status, printed = imported(folder, tmp_path / "own/model.pt")
    assert status == 0
    assert "skipped, adapters for tasks (LoRA): " in printed
    state = torch.load(tmp_path / "own/model.pt", weights_only=True)["model"]
    assert all(torch.equal(tensor, case.state[name]) for name, tensor in state.items())


@OF_FAMILIES
@torch.no_grad()
def test_a_package_is_the_encoder_for_transformers_and_for_hat(case: Case, tmp_path: Path) -> None:
    """It loads in AutoModel; `hat export` of it, and what transformers saves, are the same again."""
    folder, again = tmp_path / "package", tmp_path / "again"
    with contextlib.redirect_stdout(io.StringIO()):
        assert cli.main(["import", str(case.folder), "--package", str(folder)]) == 0
        assert cli.main(["export", str(folder), "--out", str(again)]) == 0
    batch = case.peer_batch(case.rows)
    real = batch["attention_mask"].bool()
    expected = core_of(case.peer)(**batch).last_hidden_state[real]
    tokens = padded(case.ours(case.rows), PAD)
    models = [AutoModel.from_pretrained(folder, trust_remote_code=True)]
    models[0].save_pretrained(tmp_path / "saved")
    models += [AutoModel.from_pretrained(each, trust_remote_code=True) for each in (again, tmp_path / "saved")]
    states = [model.eval()(tokens, attention_mask=tokens.ne(PAD).long()).last_hidden_state[real] for model in models]
    assert largest(states[0], expected) < LARGEST
    assert all(torch.equal(each, states[0]) for each in states[1:])
    line = tydi_lines()[0]
    vectors = hat_fairseq.load(str(folder)).embed([{"segments": [line]}])[0].vectors
    assert np.isfinite(vectors).all()
    assert vectors.shape[1] == case.peer.config.hidden_size


REFUSED = {
    "an unknown tensor": ("ModernBERT-base", {}, "1 tensor is unknown for this config.json: model.more.weight"),
    "a missing tensor": ("ModernBERT-base", {}, "1 tensor is missing for this config.json: layers.1.attn.Wqkv.weight"),
    "one half of a pair": (
        "EuroBERT-210m",
        {},
        "1 tensor is missing for this config.json: layers.0.mlp.up_proj.weight",
    ),
    "another shape": ("ModernBERT-base", {}, "has shape (48, 48), config.json says"),
    "NaN": ("ModernBERT-base", {}, "NaN or infinite values in model.final_norm.weight"),
    "no weights": ("ModernBERT-base", {}, "has neither model.safetensors nor pytorch_model.bin"),
    "a missing shard": ("ModernBERT-base", {}, "model-00002-of-00002.safetensors"),
    "no vocabulary": ("ModernBERT-base", {}, "has neither tokenizer.json nor vocab.txt"),
    "no config": ("ModernBERT-base", {}, "config.json"),
    "another vocabulary": ("ModernBERT-base", {"vocab_size": 5000}, "rows, and the embedding 5000: the vocabulary of"),
    "fewer layers": (
        "nomic-embed-text-v1.5",
        {"num_hidden_layers": 3},
        "are unknown for this config.json: nomic_bert.enc",
    ),
    "T5": (
        "ModernBERT-base",
        {"model_type": "t5"},
        "no family of hat import has the model_type 't5'; it adds relative positions",
    ),
    "no model type": (
        "ModernBERT-base",
        {"model_type": None},
        "no family of hat import has the model_type None; known",
    ),
    "MPNet": (
        "bge-base-en-v1.5",
        {"model_type": "mpnet"},
        "model_type 'mpnet'; it adds relative positions to the attention, which no kernel",
    ),
    "other code": ("ModernBERT-base", {"auto_map": CODE}, "auto_map names code of its own, which is not run"),
    "an activation": (
        "ModernBERT-base",
        {"hidden_activation": "relu"},
        "hidden_activation is 'relu', only gelu or silu",
    ),
    "biases": ("ModernBERT-base", {"norm_bias": True}, "norm_bias is True, only False can be converted"),
    "untied": ("ModernBERT-base", {"tie_word_embeddings": False}, "tie_word_embeddings is False, only True"),
    "layer types": ("ModernBERT-base", {"layer_types": ["chunked"] * 4}, "layer_types: give full_attention or sliding"),
    "a scaled position": (
        "EuroBERT-210m",
        {"rope_parameters": {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 2.0}},
        "rotary positions of type 'yarn', factor 2.0: only default, linear from 1 on",
    ),
    "a part of a head": (
        "EuroBERT-210m",
        {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
        "rotary positions with 'partial_rotary_factor': only rope_type, type, rope_theta, factor can be converted",
    ),
    "shared keys": (
        "EuroBERT-210m",
        {"num_key_value_heads": "2"},
        "num_key_value_heads is '2': it must be a w",
    ),
    "a window": ("ModernBERT-base", {"local_attention": -1}, "local_attention is -1: it must be a whole number of at"),
    "token types": ("nomic-embed-text-v1.5", {"type_vocab_size": 3}, "weight has 2 rows, config.json says 3"),
    "a wide head": ("EuroBERT-210m", {"head_dim": 16}, "head_dim is 16, only 8 can be converted"),
    "pre-norm": ("nomic-embed-text-v1.5", {"prenorm": True}, "prenorm is True, only False can be converted"),
    "experts": ("nomic-embed-text-v1.5", {"num_experts": 8}, "num_experts is 8, only 0 can be converted"),
    "logn": ("gte-multilingual-base", {"logn_attention_scale": True}, "logn_attention_scale is True, only False"),
    "a small ELECTRA": (
        "electra-base-generator",
        {"embedding_size": 16},
        "embedding_size is 16, and the layers have 32",
    ),
    "text for a number": ("ModernBERT-base", {"hidden_size": "32"}, "no number for hidden_size"),
}


def spoil(what: str, folder: Path) -> None:
    """Changes the files of a folder."""
    path = folder / "model.safetensors"
    weights = load_file(path)
    if what == "an unknown tensor":
        weights["model.more.weight"] = torch.ones(1)
    elif what == "a missing tensor":
        del weights["model.layers.1.attn.Wqkv.weight"]
    elif what == "one half of a pair":
        del weights["model.layers.0.mlp.up_proj.weight"]
    elif what == "another shape":
        weights["model.layers.1.attn.Wo.weight"] = torch.ones(48, 48)
    elif what == "NaN":
        weights["model.final_norm.weight"][0] = float("nan")
    elif what == "no weights":
        path.unlink()
        return
    elif what == "a missing shard":
        shards = {name: f"model-0000{1 + n % 2}-of-00002.safetensors" for n, name in enumerate(weights)}
        first = {name: tensor for name, tensor in weights.items() if shards[name].startswith("model-00001")}
        save_file(first, folder / "model-00001-of-00002.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": shards}))
        path.unlink()
        return
    elif what == "no vocabulary":
        (folder / "tokenizer.json").unlink()
    elif what == "no config":
        (folder / "config.json").unlink()
    save_file(weights, path)


@pytest.mark.parametrize("what", REFUSED)
def test_bad_folders_get_one_line_and_nothing_is_written(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, settings, words = REFUSED[what]
    encoders_of_today.write(name, tmp_path / "folder")
    change(tmp_path / "folder", **settings)
    spoil(what, tmp_path / "folder")
    capsys.readouterr()
    for target in (["--out", str(tmp_path / "own/model.pt")], ["--package", str(tmp_path / "package")]):
        assert cli.main(["import", str(tmp_path / "folder"), *target]) == 2
        error = capsys.readouterr().err
        assert words in error
        assert error.count("\n") == 1
        assert str(tmp_path / "folder") in error
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_the_list_names_every_family(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["import", "--list"]) == 0
    printed = capsys.readouterr().out
    assert [line.partition(":")[0] for line in printed.splitlines() if not line.startswith(" ")] == [*RELEASES]
    for start in re.findall(r"starts (.*)", printed):
        assert {*start.split(", ")} <= {*ARCH_MODEL_REGISTRY}


@pytest.mark.parametrize("purpose", ["Model", "ForSequenceClassification", "ForMaskedLM with another activation"])
def test_a_head_for_another_task_is_no_masked_lm_head(purpose: str, tmp_path: Path) -> None:
    peer, _ = encoders_of_today.write("ModernBERT-base", tmp_path / "folder", purpose.partition(" ")[0])
    if "another" in purpose:
        change(tmp_path / "folder", classifier_activation="silu")
    status, printed = imported(tmp_path / "folder", tmp_path / "own/model.pt")
    assert status == 0
    assert "no masked-LM head: one will be newly initialised" in printed
    assert ("skipped, the masked-LM head, whose activation is another one" in printed) == ("another" in purpose)
    assert ("skipped, the hidden layer of a head for another task: head.dense" in printed) == ("Seq" in purpose)
    state = torch.load(tmp_path / "own/model.pt", weights_only=True)["model"]
    assert not any("lm_head" in name for name in state)
    wanted = core_of(peer).final_norm.weight
    assert torch.equal(state["encoder.sentence_encoder.layer_norm.weight"], wanted)


@torch.no_grad()
@pytest.mark.parametrize(("activation", "scaled"), [("gelu", True), ("relu", True), ("gelu", False)])
def test_mbart_starts_document_translation(activation: str, scaled: bool, tmp_path: Path) -> None:
    """Logits are those of transformers' mBART, in a batch with padding; cc25 has gelu, mbart-large-50 relu."""
    tokenizer = write_modern(tmp_path / "folder", "XLM-RoBERTa")
    layers = {"layers": 2, "ffn_dim": 40, "attention_heads": 4}
    sizes = {f"{side}_{name}": number for side in ("encoder", "decoder") for name, number in layers.items()}
    options = {
        "scale_embedding": scaled,
        "activation_function": activation,
        "max_position_embeddings": 40,
        "d_model": 24,
    }
    config = transformers.MBartConfig(vocab_size=tokenizer.get_vocab_size(), **options, **sizes)
    peer = encoders_of_today.random_model(transformers.MBartForConditionalGeneration, config)
    peer.save_pretrained(tmp_path / "folder")
    status, printed = imported(tmp_path / "folder", tmp_path / "own/model.pt")
    assert status == 0
    assert "folder: mbart\n" in printed
    assert "--bpe tokenizer" in printed
    case = Case("mBART", peer, tokenizer, tmp_path / "folder", tmp_path / "own/model.pt", printed)
    words = case.starts[0][2:-4]  # without the numbers of positions
    task, positions = Task(tmp_path / "own/dict.txt"), {"max_source_positions": 40, "max_target_positions": 40}
    model = build("hat_mbart_large", f"{' '.join(words)} --no-hierarchy{OFF}", task, **positions).eval()
    model.load_state_dict(dict(case.state))
    rows = [tokenizer.encode(line).ids[:length] for line, length in zip(tydi_lines()[:3], (30, 18, 7), strict=True)]
    source, target = case.peer_batch(rows), padded([row[2:9] for row in rows], 1)
    expected = peer(**source, decoder_input_ids=target).logits
    tokens = padded(case.ours(rows), PAD)
    logits = model(tokens, None, padded(case.ours([row[2:9] for row in rows]), PAD))[0]
    bpe = TokenizerBpe.load(tmp_path / "own/tokenizer.json")
    real = target.ne(1)
    assert largest(logits[real], expected[real][:, bpe.rows]) < LARGEST


@torch.no_grad()
def test_a_package_of_a_roberta_has_the_tokenizer_of_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = write_modern(tmp_path / "folder", "byte-level BPE")
    options = {"max_position_embeddings": 60} | encoders_of_today.SIZES | encoders_of_today.OF_ROBERTA
    config = transformers.RobertaConfig(vocab_size=tokenizer.get_vocab_size(), **options)
    peer = encoders_of_today.random_model(transformers.RobertaModel, config)
    peer.save_pretrained(tmp_path / "folder")
    assert cli.main(["import", str(tmp_path / "folder"), "--package", str(tmp_path / "package")]) == 0
    model = AutoModel.from_pretrained(tmp_path / "package", trust_remote_code=True).eval()
    rows = TokenizerBpe.load(tmp_path / "package/bin/bpe.json").rows
    for line in tydi_lines()[:5]:
        ids = [*tokenizer.encode(line).ids[:51], 2]
        states = model(torch.tensor([[rows.index(each) for each in ids]])).last_hidden_state
        assert largest(states, peer(torch.tensor([ids])).last_hidden_state) < LARGEST
    (tmp_path / "folder/tokenizer.json").unlink()
    assert cli.main(["import", str(tmp_path / "folder"), "--package", str(tmp_path / "other")]) == 2
    assert "--package of a RoBERTa needs" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
