"""Every recipe from the raw release to a score: its own commands on a small release, with a small model.

Recipes that start from released weights start from small random ones in their layout, with a byte-level BPE learned
here; those that start from the HAT of CNN/DailyMail start from what the recipe cnn_dm has left here, and that of
multiple choice from what the recipe for pre-training has left. Of recipes that differ in one number one is run.
"""

import json
import os
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from building import Vocabulary, build, released_roberta
from byte_level_bpe import write_byte_level_bpe
from commands import REPOSITORY, environment, hat, read_lines, recipe_sections, run_command
from releases import write_release
from sentencepiece_model import write_model
from tokenizers_on_the_spot import write_tokenizer
from warm import WarmPython

from hat_fairseq.data.sentencepiece_bpe import SentencePieceBpe
from hat_fairseq.model_folder import bare_checkpoint
from hat_fairseq.recipes import command as recipes
from hat_fairseq.scoring.official import FILES

pytestmark = pytest.mark.slow
SECTIONS = recipe_sections()
ENCODERS = {name for name, sections in SECTIONS.items() if not sections["generate"]}
PRETRAINING = {name for name in ENCODERS if name.endswith("_pretraining")}
TRANSLATION = {"wmt20_en_de", "wmt20_en_cs", "ted17_zh_en", "libreoffice_help_en_de"}
POOLING = {"poolingformer_arxiv_16k", "hat_pooling_pubmed_16k"}
FROM_BART = {"pubmed", "arxiv", "cnn_dm", "xsum", *POOLING}
FROM_BERT = {"xsum_small"}
CHAINED = {"samsum", "ami", "icsi"}
EVIDENCE = {"ami_questions", "qmsum"}
CARRIED = {"ami", "icsi", "ami_small", "ami_small_long", "ami_questions"}

ENCODER = "--encoder-embed-dim 32 --encoder-ffn-embed-dim 48 --encoder-attention-heads 4"
BOTH = f"{ENCODER} --encoder-layers 1 --decoder-layers 1 --decoder-embed-dim 32 --decoder-ffn-embed-dim 48 "
BOTH += "--decoder-attention-heads 4"
TRAIN = "--max-update 2 --cpu --gpus 1 --num-workers 0"
POOLED = "--encoder-attention-layers 0 --attention-window 16 --pooling-window 64"  # one layer of one
LAYERS = {
    "hat_roberta_base": "--encoder-layers 2",
    "ernie_sparse_base": "--encoder-layers 2",
    **dict.fromkeys(
        ("poolingformer_base", "poolingformer_large"),
        "--encoder-layers 2 --encoder-attention-layers 1 --attention-window 32",
    ),
    "hierarchical_transformer_base_4096": "--layout S|SD",
}
LONGER = {"tydi_qa": "--max-source-tokens 1024 --window-overlap 100 --limit 4"}  # whole articles
LONGER |= dict.fromkeys(("natural_questions", "natural_questions_base"), "--max-source-tokens 256 --limit 4")


def save(model: Any, folder: Path, layout: Any = dict) -> None:
    """Weights as other people release them."""
    state = {name: tensor for name, tensor in model.state_dict().items() if not name.endswith("_fingerprint")}
    folder.mkdir()
    torch.save(bare_checkpoint(layout(state)), folder / "model.pt")


def write_bert(folder: Path) -> None:
    """minilm/, as `hat import` writes it for a BERT with the sizes of `BOTH`."""
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4, "num_hidden_layers": 1}
    write_tokenizer(folder / "bert", "uncased WordPiece")
    transformers.BertModel(transformers.BertConfig(vocab_size=1200, **sizes)).save_pretrained(folder / "bert")
    assert hat("import", "bert", folder / "bert", "--out", folder / "minilm/model.pt") == 0


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which all commands run, with bpe/, pieces/ and released weights in it."""
    folder = tmp_path_factory.mktemp("recipes")
    vocabulary = Vocabulary(write_byte_level_bpe(folder / "bpe") + 5, mask=True)
    positions = {"max_source_positions": 1024, "max_target_positions": 1024}
    save(build("hat_bart_base", f"{BOTH} --no-hierarchy", vocabulary, seed=7, **positions), folder / "bart.large")
    plain = f"{ENCODER} --encoder-layers 2 --no-hierarchy"
    roberta = build("hat_roberta_base", plain, vocabulary, max_positions=512)
    for name in ("roberta.base", "roberta.large"):
        save(roberta, folder / name, released_roberta)
    pieces = SentencePieceBpe(write_model(folder / "pieces")).pieces()
    many = Vocabulary(len(pieces) + 5, mask=True)  # four special tokens before them, <mask> after them
    save(build("hat_roberta_base", plain, many, max_positions=512), folder / "xlmr.large")
    flags = f"{ENCODER} {LAYERS['hierarchical_transformer_base_4096']} --segment-positions none"
    write_bert(folder)
    hierarchical = build("hierarchical_transformer_base_4096", flags, vocabulary)
    save(hierarchical, folder / "hierarchical-transformer-base-4096")
    return folder


def flags_of(name: str, reader: str) -> dict[str, str]:
    """The flags after each command of a recipe."""
    sections = SECTIONS[name]
    if name in ENCODERS:
        bpe = str(sections["preprocess"].get("bpe", "learned"))
        preprocess = {"sentencepiece": "--bpe-dir pieces", "gpt2": "--bpe-dir bpe"}.get(bpe, "--num-codes 300")
        preprocess += f" {LONGER.get(name, '--max-source-tokens 256')}"
        preprocess = "--overwrite" if reader.startswith("lra_") else preprocess  # a folder of two recipes
        preprocess = "--limit 3" if bpe == "tokenizer" else preprocess  # rows of any length
        layers = LAYERS.get(str(sections["train"]["arch"]), "--encoder-layers 1")
        train = f"{ENCODER} {TRAIN} {layers}" + " --bf16=null" * ("bf16" in sections["train"])
        return {"preprocess": preprocess, "train": train, "predict": "--device cpu"}
    preprocess = "--bpe-dir bpe" if name in FROM_BART | CHAINED else "" if name in FROM_BERT else "--num-codes 300"
    if name in CARRIED:
        preprocess += " --limit 3 --max-source-tokens 401 --max-target-tokens 101 --long-source truncate"
    train = f"{BOTH} {TRAIN} --validate-interval 1 --save-interval 1"
    train += f" {POOLED}" if name in {*POOLING, "ami_small_long"} else ""
    return {"preprocess": preprocess, "train": train, "generate": "--device cpu --beam 1 --min-len 2 --max-len-b 12"}


@cache
def run_recipe(name: str, workspace: Path, warm: WarmPython) -> dict[str, str]:
    """All commands of a recipe; the output of each, everything in it."""
    if name in CHAINED:
        run_recipe("cnn_dm", workspace, warm)
    reader, source = str(SECTIONS[name]["preprocess"]["reader"]), ""
    if reader == "raw/{recipe}":
        write_release(name, workspace / "raw" / name)
    elif name not in CARRIED:
        reader = Path(reader).stem
        if not (workspace / "release" / reader).exists():
            write_release(reader, workspace / "release" / reader)
        source = f"--partial --root release/{reader}"
    outputs = {}
    for verb, flags in flags_of(name, reader).items():
        if verb == "predict" and name in PRETRAINING:
            continue
        for command in recipes.build_commands(verb, name, f"{source * (verb == 'preprocess')} {flags}".split()):
            what = "score" if command[4] == "score" else verb
            outputs[what] = warm.run(command[3:], workspace, workspace / f"{name}.{what}.log")
    return outputs


@pytest.mark.parametrize("name", sorted(ENCODERS | FROM_BART | FROM_BERT | TRANSLATION | CARRIED | CHAINED))
def test_from_the_raw_release_to_a_score(name: str, workspace: Path, warm: WarmPython) -> None:
    outputs = run_recipe(name, workspace, warm)
    assert re.search(r"num_updates[\"']?:? [\"']?2\b|done training", outputs["train"])
    if name in PRETRAINING:
        assert (workspace / f"checkpoints/{name}/checkpoint_best.pt").exists()
        return
    split = {**SECTIONS[name]["generate"], **SECTIONS[name]["predict"]}["split"]
    records = read_lines(workspace / f"data-bin/{name}/text/{split}.jsonl")
    rows = read_lines(workspace / f"results/{name}/{split}.jsonl")
    assert [row["id"] for row in rows] == [record["id"] for record in records]
    assert rows
    official = FILES.get(name.removesuffix("_base"))  # which the authors' script scores
    assert bool(official) != (workspace / f"results/{name}/{split}.score.json").exists()
    if name in ENCODERS and official is None:
        figures = dict.fromkeys(EVIDENCE, "average precision") | {"squad2": "exact"}
        assert (figures | {"ernie_sparse_triviaqa": "exact_match"}).get(name, "accuracy") in outputs["score"]
    elif official is None:
        assert any(row["text"] for row in rows)
        assert {"segments" in row for row in rows} == {name in TRANSLATION}
        assert {"rouge": "ROUGE-L", "bleu": "BLEU"}[SECTIONS[name]["generate"]["score"].split()[0]] in outputs["score"]
    if official is not None:
        path = workspace / f"results/{name}/{official}"
        rows_of_file = json.loads(path.read_text())["predictions"] if path.suffix == ".json" else read_lines(path)
        assert [str(row["example_id"]) for row in rows_of_file] == [row["id"] for row in rows]
        table = outputs["preprocess"]
        assert re.search(r"gold answers that no window has +\d+ of \d+", table)
        assert "windows without answer" in table


def test_the_pretrained_encoder_is_what_fine_tuning_starts_from(workspace: Path, warm: WarmPython) -> None:
    """All of it, hierarchical attention included; only the head is new."""
    run_recipe("roberta_pretraining", workspace, warm)
    run_recipe("race", workspace, warm)
    flags = f"{ENCODER} {TRAIN} {LAYERS['hat_roberta_base']} --save-dir checkpoints/x --finetune-from-model "
    flags += "checkpoints/roberta_pretraining/checkpoint_best.pt"
    (command,) = recipes.build_commands("train", "race", flags.split())
    log = warm.run(command[3:], workspace, workspace / "from_pretraining.log")
    new = set(re.findall(r"^  ([a-z_]+\.\S+)$", log, re.MULTILINE))
    assert new, new
    assert all(tensor.startswith("classification_heads.") for tensor in new), new
    assert "sentence_attn" in (workspace / "race.train.log").read_text()  # from RoBERTa it is new


def test_the_script_of_an_experiment_runs_as_it_stands(workspace: Path, warm: WarmPython) -> None:
    name = "lra_listops"
    run_recipe(name, workspace, warm)
    path = environment(PATH=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for file in (workspace / f"checkpoints/{name}").glob("*.pt"):
        file.unlink()
    results = [workspace / f"results/{name}/test.{ending}" for ending in ("jsonl", "score.json")]
    for file in results:
        file.unlink()
    small = f"{ENCODER} --encoder-layers 2 --max-update 2 --cpu --num-workers 0".split()
    script = REPOSITORY / f"train_scripts/{name}.sh"
    run_command("bash", script, *small, "--distributed-world-size", 1, cwd=workspace, env=path)
    run_command("bash", REPOSITORY / f"generate_scripts/{name}.sh", cwd=workspace, env=path)
    assert all(file.is_file() for file in results)


@pytest.mark.parametrize("name", sorted(FROM_BART | CHAINED))
def test_exactly_the_expected_tensors_are_new(name: str, workspace: Path, warm: WarmPython) -> None:
    log = run_recipe(name, workspace, warm)["train"]
    new = set(re.findall(r"^  ((?:encoder|decoder)\.\S+)$", log, re.MULTILINE))
    parts = {re.sub(r"^(encoder|decoder\.layers\.\d+)\.", "", tensor).partition(".")[0] for tensor in new}
    pooled = {"layers"} if name in POOLING else set()
    if name in CHAINED:
        assert new == {"encoder.embed_segments.weight"}
    elif name.startswith("poolingformer"):
        assert parts == pooled
    else:
        assert parts == {"hierarchical_encoder", "sentence_attn", "sentence_attn_layer_norm"} | pooled
    assert all(".self_attn.pooled." in tensor for tensor in new if tensor.startswith("encoder.layers."))
    long = name in {"pubmed", "arxiv", "ami", "icsi"}
    assert ("encoder.embed_positions.weight: extended from 1026 to 3074 rows (random)" in log) == long
    assert ("encoder.embed_positions.weight: extended from 1026 to 16386 rows (tile)" in log) == (name in POOLING)
