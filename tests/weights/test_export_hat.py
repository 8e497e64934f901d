"""`hat export` of encoder-decoders: from the same texts transformers generates fairseq's hypotheses; and back."""

import json
import shutil
import sys
from argparse import Namespace
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import ABSENT, hat, read_lines, run_command
from fairseq import checkpoint_utils

import hat_fairseq
from hat_fairseq import cli
from hat_fairseq.data.record import Record
from hat_fairseq.data.records_json import read_records
from hat_fairseq.generation.settings import for_transformers, of_transformers, packaged_options, without_effect
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.texts import DocumentToText
from hat_fairseq.model_folder import BIN
from hat_fairseq.register import register
from hat_fairseq.weights.hugging_face import read_weights

transformers = pytest.importorskip("transformers", reason="make setup")

register()  # checkpoints hold types that it lets torch load
GENERATION = {"beam": 4, "max_len_b": 40, "min_len": 3, "lenpen": 0.8, "no_repeat_ngram_size": 3}
BART = "--arch hat_bart_base --role-stream= --no-hierarchy --max-source-positions 122 --max-target-positions 122"
SMALL = " --encoder-layers 2 --decoder-layers 2"
for side in ("encoder", "decoder"):
    SMALL += f" --{side}-embed-dim 32 --{side}-ffn-embed-dim 48 --{side}-attention-heads 4"
FLAGS = [f"--{name.replace('_', '-')}={value}" for name, value in GENERATION.items()]
MODELS = {
    "roles": "",
    "bart": BART + SMALL,
    "pre-norm": "--encoder-normalize-before --decoder-normalize-before --encoder-learned-pos --activation-fn gelu "
    "--hierarchical-encoder-layers 2 --encoder-qkv-dim 32 --layernorm-embedding --role-stream= --decoder-kv-heads 2",
}
END = {"pre-norm": 3.0}  # how likely </s> is made
CLASSES = {"bart": "BartForConditionalGeneration"}


def export(path: Path, out: Path, data: Path, *flags: str) -> int:
    words = ["export", path, "--data", data, "--out", out, *flags]
    return cli.main([str(word) for word in words])


@pytest.fixture(scope="module", params=["roles", "bart", pytest.param("pre-norm", marks=pytest.mark.slow)])
def model(request: Any, train: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """checkpoint_last.pt in a folder named by the model; with noise, so that texts differ, and likely to end."""
    folder = tmp_path_factory.mktemp("trained") / request.param
    train(folder, *MODELS[request.param].split(), "--max-update", 3, "--disable-validation")
    checkpoint = torch.load(folder / "checkpoint_last.pt", weights_only=True)
    torch.manual_seed(4)
    for tensor in {tensor.data_ptr(): tensor for tensor in checkpoint["model"].values()}.values():
        if tensor.is_floating_point():
            tensor.add_(torch.randn_like(tensor) * 0.15)
    state = checkpoint["model"]
    end = state["decoder.output_projection.weight"][2]
    last = state.get("decoder.layer_norm.bias", state["decoder.layers.1.final_layer_norm.bias"])
    last.add_(END.get(request.param, 2.0) * end / end.norm())
    torch.save(checkpoint, folder / "checkpoint_last.pt")
    return folder / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def exported(model: Path, ami: Path) -> Path:
    folder = model.parent / "hf"
    assert export(model, folder, ami / BIN, *FLAGS) == 0
    return folder


@pytest.fixture(scope="module")
def texts(ami: Path) -> list[Record]:
    """Documents of different lengths, the last ones longer than the limit of the data."""
    records = read_records(ami / "text/test.jsonl")
    return [replace(r, target=None, sentences=None, turns=r.turns[: n + 1]) for n, r in enumerate(records)]


def turns(record: Record) -> list[dict[str, str]]:
    return [{"role": role, "text": text} for role, text in zip(record.roles, record.elements, strict=True)]


def test_texts_and_scores_are_fairseqs(exported: Path, model: Path, ami: Path, texts: list[Record]) -> None:
    summarizer = DocumentToText(load(str(model), ami / BIN, "cpu"), **GENERATION)
    task = summarizer.loaded.task
    generator = task.build_generator(summarizer.models, Namespace(**GENERATION))
    tokenizer = transformers.AutoTokenizer.from_pretrained(exported, trust_remote_code=True)
    auto = transformers.AutoModelForSeq2SeqLM
    peer, info = auto.from_pretrained(exported, trust_remote_code=True, output_loading_info=True)
    assert not any(info.values()), info
    assert type(peer).__name__ == CLASSES.get(model.parent.name, "HatForConditionalGeneration")
    inputs = tokenizer([turns(text) for text in texts], return_tensors="pt")
    out = peer.generate(**inputs, return_dict_in_generate=True, output_scores=True)
    sample = {"src_tokens": inputs["input_ids"], "src_lengths": inputs["input_ids"].ne(1).sum(1)}
    sample |= {"roles": inputs["role_ids"]} if "role_ids" in inputs else {}
    best = task.inference_step(generator, summarizer.models, {"net_input": sample})
    lengths = []
    for row, score, (hypothesis, *_) in zip(out.sequences, out.sequences_scores, best, strict=True):
        tokens = row[1:][row[1:].ne(1)]
        lengths.append(len(tokens))
        if model.parent.name == "bart" and len(tokens) > GENERATION["max_len_b"]:
            continue  # there transformers counts the last </s> as certain
        assert torch.equal(tokens, hypothesis["tokens"])
        assert float(score) == pytest.approx(float(hypothesis["score"]), abs=1e-4)
        text = summarizer.pipeline.decode(task.target_dictionary.string(hypothesis["tokens"]))
        assert tokenizer.decode(row) == text
    assert len({*lengths}) > 2
    assert min(lengths) <= GENERATION["max_len_b"]  # ended by itself


SUMMARIZE = """
import json, sys
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
tokenizer, model = (
    auto.from_pretrained(sys.argv[1], trust_remote_code=True) for auto in (AutoTokenizer, AutoModelForSeq2SeqLM)
)
ids = model.generate(**tokenizer(json.loads(sys.argv[2]), return_tensors="pt"))
print(json.dumps(tokenizer.batch_decode(ids)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("model", ["roles"], indirect=True)
def test_without_fairseq_a_folder_gives_the_same_texts(
    exported: Path, model: Path, ami: Path, texts: list[Record], without_fairseq: Callable[..., str]
) -> None:
    summarizer = DocumentToText(load(str(model), ami / BIN, "cpu"), **GENERATION)
    code = "import importlib.util, sys; print([name for name in sys.argv[1:] if importlib.util.find_spec(name)])"
    assert without_fairseq(code, *ABSENT, "torch", "hat_fairseq") == "['torch', 'hat_fairseq']\n"
    written = json.loads(without_fairseq(SUMMARIZE, exported, json.dumps([turns(text) for text in texts])))
    assert written == [row["text"] for row in summarizer.rows(texts)]


@pytest.mark.slow
@pytest.mark.fault(
    "Security", "a folder of `hat export` with other code in it", "`import hat_fairseq.hf`: it does not run"
)
def test_the_import_loads_a_folder_whose_code_does_not_run(exported: Path, texts: list[Record], tmp_path: Path) -> None:
    """Which texts these are, the test above compares."""
    folder = shutil.copytree(exported, tmp_path / "folder")
    for name in ("modeling_hat.py", "tokenization.py"):
        (folder / name).write_text('raise SystemExit("code of the folder")\n')
    code = SUMMARIZE.replace("import json", "import hat_fairseq.hf, json").replace(", trust_remote_code=True", "")
    assert "trust" not in code
    written = run_command(sys.executable, "-c", code, folder, json.dumps([turns(text) for text in texts[:2]])).stdout
    assert len(summaries := json.loads(written)) == 2
    assert all(map(str.strip, summaries))


def test_back_again_everything_is_the_same(exported: Path, model: Path, ami: Path, tmp_path: Path) -> None:
    saved = tmp_path / "saved"  # by transformers, as after a training
    for auto in (transformers.AutoModelForSeq2SeqLM, transformers.AutoTokenizer):
        auto.from_pretrained(exported, trust_remote_code=True).save_pretrained(saved)
    before = torch.load(model, weights_only=True)
    after = checkpoint_utils.load_checkpoint_to_cpu(str(saved))
    assert before["model"].keys() == after["model"].keys()
    assert all(torch.equal(tensor, after["model"][name]) for name, tensor in before["model"].items())
    for name in ("model", "task"):
        old, new = (dict(vars(x) if hasattr(x := c["cfg"][name], "arch") else x) for c in (before, after))
        for local in [key for key in old if key in ("data", "adam_betas") or str(old[key]).startswith("/")]:
            old.pop(local), new.pop(local, None)
        assert old == new
    for path in filter(Path.is_file, (saved / BIN).rglob("*")):
        assert path.read_bytes() == (ami / BIN / path.name).read_bytes()
    again = tmp_path / "again"
    assert cli.main(["export", str(saved), "--out", str(again)]) == 0
    first, second = read_weights(exported), read_weights(again)
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("model", ["roles"], indirect=True)
def test_options_of_generation(model: Path, ami: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of a folder stay in another export of it; transformers gets those that it has, all commands get all."""
    folder, out = tmp_path / "folder", tmp_path / "out"
    assert export(model, folder, ami / BIN, *FLAGS, "--max-len-a", "0.5") == 0
    assert (
        "differs: --max-len-a is an option of hat generate alone; transformers generates without it"
        in capsys.readouterr().out
    )
    assert hat("export", folder, "--out", out, "--beam", 3) == 0
    config = json.loads((out / "generation_config.json").read_text())
    assert (config["num_beams"], config["max_length"], config["min_length"]) == (3, 42, 4)
    assert (config["length_penalty"], config["no_repeat_ngram_size"]) == (0.8, 3)
    assert packaged_options(out) == {**GENERATION, "beam": 3, "nbest": 1, "max_len_a": 0.5}
    for flags, words in (
        (["--min-len", "60", "--max-len-b", "50"], "min_len 60 is more than the longest text, 50 tokens"),
        (["--beam", "0"], "beam must be at least 1, not 0"),
    ):
        assert export(model, tmp_path / "no", ami / BIN, *flags) == 2
        assert words in capsys.readouterr().err
    assert export(model, out, ami / BIN) == 2
    assert "exists" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "out"]


@pytest.mark.slow
def test_options_that_only_transformers_has_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """By a command and in Python, once; one that changes nothing is not."""
    assert hat("export", "demo", "--out", tmp_path / "P", "--min-len", 1, "--max-len-b", 9) == 0
    (source := tmp_path / "in.txt").write_text("PM: So we begin .\nID: Yes .\nPM: Good .\nID: Fine .\n")
    words = ["generate", tmp_path / "P", source, "--device", "cpu", "--overwrite", "--out", tmp_path / "out.jsonl"]
    assert hat(*words) == 0
    assert "transformers" not in caplog.text
    usual = read_lines(tmp_path / "out.jsonl")
    config = json.loads((tmp_path / "P/generation_config.json").read_text())
    config |= {"do_sample": True, "top_k": 3, "repetition_penalty": 1.3, "num_beam_groups": 1}
    (tmp_path / "P/generation_config.json").write_text(json.dumps(config))
    (tmp_path / "P/manifest.json").unlink()
    line = f"{tmp_path}/P/generation_config.json: no effect outside of transformers: do_sample, repetition_penalty"
    for use in (lambda: hat(*words), lambda: hat_fairseq.load(tmp_path / "P", device="cpu")):
        caplog.clear()
        use()
        assert [record.message for record in caplog.records].count(line) == 1
    assert read_lines(tmp_path / "out.jsonl") == usual


NEEDED = {"forced_eos_token_id": 2, "early_stopping": True}


def test_options_of_transformers_that_change_texts() -> None:
    """Those that fairseq has, too, are mapped; the others are named, unless they change nothing."""
    for values, options in (
        ({"min_new_tokens": 7, "min_length": 30, "max_new_tokens": 12}, {"min_len": 7, "max_len_b": 11}),
        ({"min_length": 8, "max_length": 42}, {"min_len": 7, "max_len_b": 40}),
    ):
        assert of_transformers(values) == options
        assert without_effect(values | NEEDED) == []
    changed = {
        "early_stopping": "never",
        "num_return_sequences": 2,
        "eos_token_id": [2, 7],
        "decoder_start_token_id": 0,
    }
    changed |= {"renormalize_logits": True, "watermarking_config": {"bias": 3.0}, "max_time": 2.5, "dola_layers": "low"}
    for name, value in changed.items():
        assert without_effect({**NEEDED, name: value, "num_beams": 4}) == [name]
    assert without_effect({"num_beams": 4}) == [f"a missing {name}" for name in NEEDED]
    assert without_effect({"num_beams": 1}) == ["a missing forced_eos_token_id"]
    assert without_effect({}) == []
    same = {
        "forced_eos_token_id": 2,
        "early_stopping": False,
        "num_beams": 1,
        "eos_token_id": [2],
        "suppress_tokens": [1],
        "top_k": 9,
    }
    assert without_effect(same | for_transformers({}, 64)) == without_effect(same) == []


@pytest.mark.slow
@pytest.mark.fault(
    "Checkpoints", "transformers saved into a folder of `hat export`", "refused, with the way out: remove manifest.json"
)
@pytest.mark.parametrize("model", ["roles"], indirect=True)
def test_what_transformers_saved_is_a_model(exported: Path, ami: Path, tmp_path: Path, capsys: Any) -> None:
    """Weights that were trained on, beside the manifest of the old ones, and without it."""
    folder = Path(shutil.copytree(exported, tmp_path / "hf"))
    peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder, trust_remote_code=True)
    with torch.no_grad():
        for parameter in peer.parameters():
            parameter.mul_(1.2)
    peer.save_pretrained(folder)
    documents = ami / "text/test.jsonl"
    words = ["generate", folder, documents, "--device", "cpu", "--out"]
    assert hat(*words, tmp_path / "out.jsonl") == 2
    assert "or, if transformers" in (error := capsys.readouterr().err) or "if transformers has saved" in error
    (folder / "manifest.json").unlink()
    assert hat(*words, tmp_path / "out.jsonl") == 0
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    texts = [turns(replace(record, target=None)) for record in read_records(documents)]
    inputs = tokenizer(texts, return_tensors="pt")
    assert [line["text"] for line in read_lines(tmp_path / "out.jsonl")] == tokenizer.batch_decode(
        peer.generate(**inputs)
    )
