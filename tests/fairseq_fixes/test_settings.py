"""Settings of a training: moving averages, and settings without effect."""

import re
import sys
from pathlib import Path

import pytest
from commands import USER_DIR, environment, run_command, training_words
from fairseq import options
from warm import WarmPython

from hat_fairseq.kernels import cpu_precisions
from hat_fairseq.register import register

register()  # applies the corrections


@pytest.mark.slow
def test_the_evaluation_of_a_language_model_takes_a_shard(warm: WarmPython, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a b c d\nb c\nc d e\ne a\n")
    text, data, model = tmp_path / "text", tmp_path / "bin", tmp_path / "model"
    files = ["--trainpref", text, "--validpref", text, "--destdir", data]
    log = tmp_path / "log"
    warm.run(["fairseq_cli.preprocess", "--only-source", *map(str, files)], tmp_path, log)
    shared = [data, "--user-dir", USER_DIR, "--task", "language_modeling", "--cpu", "--sample-break-mode", "eos"]
    words = "--arch transformer_lm --optimizer adam --decoder-layers 1 --tokens-per-sample 16 --batch-size 2"
    training = [*shared, *words.split(), "--save-dir", model, "--max-update", 1]
    warm.run(["fairseq_cli.train", *map(str, training)], tmp_path, log)
    words = ["--path", model / "checkpoint_last.pt", "--gen-subset", "valid", "--batch-size", 1]
    counts = []
    for flags in ([], ["--num-shards", 2], ["--num-shards", 2, "--shard-id", 1]):
        trusting = environment(HAT_FAIRSEQ_TRUST="transformer_lm,language_modeling")
        result = run_command("fairseq-eval-lm", *shared, *words, *flags, env=trusting)
        counts.append(int(re.search(r"Evaluated (\d+) tokens", result.stdout + result.stderr)[1]))
    assert counts[0] == counts[1] + counts[2]
    assert all(counts)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--shard-id", 1, "--num-shards", 2], "error: --num-shards and --shard-id have no effect: "),
        (["--save-async"], "hat_fairseq: error: --write-checkpoints-asynchronously has no effect on a training: "),
        (["--store-ema"], "error: --store-ema: fairseq's averages"),
        (["--ema-decay", 0.5], "error: --ema-decay: fairseq's averages"),
        (["--ignore-prefix-size", "1"], "error: --ignore-prefix-size: fairseq divides the loss"),
        (["--use-plasma-view"], "error: --use-plasma-view: it needs Plasma"),
        (["--tpu"], "error: --tpu: hat_fairseq runs on GPUs and CPUs"),
        *([] if "bf16" in cpu_precisions() else [(["--amp"], "error: --amp: this CPU cannot multiply bf16")]),
        (
            ["--best-checkpoint-metric", "rougeL"],
            "error: --best-checkpoint-metric rougeL: a larger one is better, so add",
        ),
        (
            ["--maximize-best-checkpoint-metric"],
            "error: --best-checkpoint-metric loss: a smaller one is better, so rem",
        ),
        (
            ["--update-ordered-indices-seed"],
            "error: --update-ordered-indices-seed has no effect without --update-epoch-",
        ),
        (["--lr-scheduler", "polynomial_decay"], "hat_fairseq: error: --total-num-update is missing"),
        (["--batch-size", 0], "error: --batch-size must be at least 1, not 0"),
        (
            ["--max-tokens-valid", 5],
            "error: --max-tokens 5 (in a validation --max-tokens-valid) is too low: one sample has",
        ),
        (
            ["--task", "document_to_text", "-s", "en"],
            "hat_fairseq: error: {data}/dict.en.txt is missing, the dictionary of -s en: ",
        ),
        (["--update-freq", 0], "error: --update-freq must be at least 1, not 0"),
        (["--log-interval", 0], "error: --log-interval must be at least 1, not 0"),
        (["--adam-betas", "0.9"], "error: --adam-betas 0.9: it must be two numbers"),
        (["--optimizer-overrides", "{weight_decay:0.5}"], "it must be a dictionary, as"),
        (["--continue-once", "missing.pt"], "error: --continue-once missing.pt does not exist"),
        (["--save-dir", "/proc/no/checkpoints"], "No such file or directory: '/proc/no"),
        (["--save-dir", __file__], f"Not a directory: '{__file__}"),
        (["--save-dir", f"{__file__}/checkpoints"], f"Not a directory: '{__file__}/checkpoints'"),
        (["--quantization-config-path", "missing.yaml"], "missing.yaml"),
        (["--valid-subset", "dev"], "fairseq: error: Dataset not found: dev ("),
        (["--model-parallel-size", 2], "fairseq: error: Please install the megatron submodule"),
    ],
)
def test_a_setting_that_cannot_be_followed_is_refused_in_a_line(
    run, ami: Path, tmp_path: Path, flags: list[object], message: str
) -> None:
    words = training_words(ami / "bin", tmp_path, "--max-update", 1, *flags)
    result = run("fairseq-train", *words, check=False)
    message = message.replace("{data}", str(ami / "bin"))
    assert result.returncode, result.stderr
    assert message in result.stderr, result.stderr
    assert result.stderr.count("\n") == 1, result.stderr
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.parametrize("command", ["generate", "validate"])
def test_a_command_that_reads_all_data_takes_no_shard(run, ami: Path, command: str) -> None:
    words = [ami / "bin", "--user-dir", USER_DIR, "--task", "document_to_text", "--path", "a.pt", "--shard-id", 1]
    result = run(f"fairseq-{command}", *words, "--num-shards", 2, check=False)
    assert result.returncode
    assert result.stderr.count("\n") == 1
    assert "--num-shards and --shard-id have no effect: the processes of a command divide the data" in result.stderr


def test_a_training_without_the_size_of_a_batch_is_refused_in_a_line(run, ami: Path, tmp_path: Path) -> None:
    words = training_words(ami / "bin", tmp_path, "--max-update", 1)
    place = words.index("--batch-size")
    result = run("fairseq-train", *words[:place], *words[place + 2 :], check=False)
    assert result.returncode
    assert result.stderr.count("\n") == 1
    assert "the size of a batch is missing: give --batch-size N (documents) or --max-tokens N" in result.stderr


@pytest.mark.slow
def test_the_line_begins_with_the_name_of_the_command(ami: Path, tmp_path: Path) -> None:
    """In a process of its own."""
    result = run_command("fairseq-train", *training_words(ami / "bin", tmp_path, "--tpu"), check=False)
    assert result.stderr.startswith("fairseq-train: error: --tpu: ")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arch", "way_out"),
    [
        ("hat_bart_large", "add --task document_to_text"),
        ("poolingformer_bart_base", "add --task document_to_text"),
        ("hat_roberta_tiny", "such as --task document_classification"),
        ("hierarchical_transformer_tiny", "such as --task document_classification"),
    ],
)
def test_a_training_of_a_model_of_this_package_names_its_task(run, ami: Path, arch: str, way_out: str) -> None:
    words = [ami / "bin", "--user-dir", USER_DIR, "--arch", arch, "--batch-size", 1, "--cpu", "--optimizer", "adam"]
    result = run("fairseq-train", *words, check=False)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "error: --task is missing, and fairseq's default, translation, has no sentence" in result.stderr
    assert way_out in result.stderr


@pytest.mark.parametrize(
    ("flags", "warns"),
    [
        ("--task translation --arch hat_transformer_tiny", True),
        ("--task masked_lm --arch hat_roberta_tiny", True),
        ("--task translation --arch hat_transformer_tiny --no-hierarchy", False),
        ("--task document_to_text --arch hat_transformer_tiny", False),
        ("--task masked_lm --arch poolingformer_tiny", False),
        ("--task masked_lm --arch hierarchical_transformer_tiny", False),
        ("--task translation --arch transformer", False),
    ],
)
def test_a_task_without_markers_of_sentences_is_said(flags: str, warns: bool, caplog, monkeypatch) -> None:
    monkeypatch.setattr("sys.argv", ["fairseq-train", "data", *flags.split()])
    monkeypatch.setattr("sys.excepthook", sys.excepthook)  # which a command replaces
    options.parse_args_and_arch(options.get_training_parser())
    assert ("no sentence has a marker <s> unless" in caplog.text) == warns
