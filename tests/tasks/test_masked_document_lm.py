"""Pre-training and fine-tuning `hat_roberta` with fairseq-train on AMI: markers stay, heads load, resuming is exact."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import USER_DIR
from helpers import is_new_part

from hat_fairseq.models.encoder_model import HatRobertaModel

CURVE = re.compile(r"train_inner \| (\{.*?\})")
TINY = "--encoder-embed-dim 16 --encoder-ffn-embed-dim 24 --encoder-layers 2 --encoder-attention-heads 2 "
COMMON = "--optimizer adam --lr 1e-3 --cpu --batch-size 2 --log-format json --log-interval 1 --num-workers 1 --seed 3 "
COMMON += "--no-epoch-checkpoints --disable-validation"


def losses(result: Any) -> list[float]:
    return [float(json.loads(match)["loss"]) for match in CURVE.findall(result.stdout + result.stderr)]


def weights(directory: Path) -> dict[str, torch.Tensor]:
    return torch.load(directory / "checkpoint_last.pt", weights_only=True)["model"]


@pytest.fixture(scope="module")
def corpus(run, ami: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The meetings' sources as fairseq's masked_lm reads them: `dict.txt` and `train.bin`."""
    out = tmp_path_factory.mktemp("masked_lm")
    prefixes = ["--trainpref", ami / "text/train.source", "--validpref", ami / "text/valid.source"]
    run("fairseq-preprocess", "--only-source", *prefixes, "--srcdict", ami / "bin/dict.source.txt", "--destdir", out)
    return out


@pytest.fixture(scope="module")
def sites(run, ami: Path, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """For sentence_prediction: the site where a meeting was recorded, the first letter of its id."""
    out = tmp_path_factory.mktemp("sites")
    ids = (ami / "text/train.ids").read_text(encoding="utf-8").splitlines()
    (out / "labels").write_text("".join(f"{name[0]}\n" for name in ids), encoding="utf-8")
    source = ["--trainpref", ami / "text/train.source", "--srcdict", corpus / "dict.txt"]
    run("fairseq-preprocess", "--only-source", *source, "--destdir", out / "input0")
    run("fairseq-preprocess", "--only-source", "--trainpref", out / "labels", "--destdir", out / "label")
    return out


@pytest.fixture(scope="module")
def pretrain(run, corpus: Path):
    def command(save_dir: Path, *flags: object, task: str = "masked_document_lm", check: bool = True) -> Any:
        model = f"--user-dir {USER_DIR} --task {task} --arch hat_roberta_base --criterion masked_lm {TINY} {COMMON} "
        model += "--tokens-per-sample 128 --sample-break-mode complete --mask-prob 0.3"
        return run("fairseq-train", corpus, *model.split(), "--save-dir", save_dir, *flags, check=check)

    return command


@pytest.fixture(scope="module")
def pretrained(pretrain, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    directory = tmp_path_factory.mktemp("pretrained")
    return directory, pretrain(directory, "--max-update", 5)


def samples(task_name: str, corpus: Path) -> tuple[Any, list[dict[str, torch.Tensor]]]:
    """The task, and twice every training document, with masks of two epochs."""
    from fairseq.tasks import TASK_REGISTRY
    from fairseq.tasks.masked_lm import MaskedLMConfig

    from hat_fairseq.tasks.masked_document_lm import MaskedDocumentLMConfig

    config = MaskedLMConfig if task_name == "masked_lm" else MaskedDocumentLMConfig
    options = {"tokens_per_sample": 128, "sample_break_mode": "complete", "mask_prob": 0.5, "seed": 1}
    task = TASK_REGISTRY[task_name].setup_task(config(data=str(corpus), **options))
    task.load_dataset("train")
    dataset, found = task.datasets["train"], []
    for epoch in (1, 2):
        dataset.set_epoch(epoch)
        found += [dataset.collater([dataset[i]]) for i in range(len(dataset))]
    rows = [{"source": s["net_input"]["src_tokens"][0], "target": s["target"][0]} for s in found]
    return task, rows


def test_markers_are_neither_masked_nor_predicted(corpus: Path, ami: Path) -> None:
    task, ours = samples("masked_document_lm", corpus)
    words = task.source_dictionary
    bos, pad, mask = words.bos(), words.pad(), words.index("<mask>")
    lines = (ami / "text/train.source").read_text(encoding="utf-8").splitlines()
    documents = {tuple(words.encode_line(line, add_if_not_exist=False).tolist()) for line in lines}
    assert len(ours) == 2 * len(documents)
    for row in ours:
        original = torch.where(row["target"] == pad, row["source"], row["target"])
        assert tuple(original.tolist()) in documents  # one marker at the start, and nothing else changed
        assert torch.equal(row["source"] == bos, original == bos)
        assert not (row["target"] == bos).any()
    assert max(int((row["source"] == bos).sum()) for row in ours) > 5  # so there are markers to spare
    predicted = sum(int((row["target"] != pad).sum()) for row in ours)
    words_in_all = sum(int((row["source"] != bos).sum()) for row in ours)
    assert predicted / words_in_all == pytest.approx(0.5, abs=0.05)
    assert any((row["source"] == mask).any() for row in ours)


def test_fairseqs_own_task_masks_markers(corpus: Path) -> None:
    """Why there is a task of ours."""
    task, rows = samples("masked_lm", corpus)
    bos, mask = task.source_dictionary.bos(), task.source_dictionary.index("<mask>")
    assert any(row["source"][:2].tolist() == [bos, bos] for row in rows)  # the task's marker and the document's
    assert sum(int(((row["target"] == bos) & (row["source"] == mask)).sum()) for row in rows) > 5


@pytest.mark.parametrize(
    ("task", "flags"),
    [("masked_lm", []), ("masked_document_lm", ["--sentence-queries", "bos"]), ("masked_lm", ["--no-hierarchy"])],
)
def test_two_updates(pretrain, tmp_path: Path, task: str, flags: list[str]) -> None:
    result = pretrain(tmp_path, "--max-update", 2, "--no-save", *flags, task=task)
    found = losses(result)
    assert len(found) == 2 and all(4 < loss < 12 for loss in found)


def test_resume_is_exact_in_the_second_epoch(pretrain, pretrained: tuple[Path, Any], tmp_path: Path) -> None:
    """Three updates an epoch, dropout on."""
    whole, result = pretrained
    save = ["--save-interval-updates", 1, "--keep-interval-updates", 1]
    first, second = (pretrain(tmp_path, "--max-update", updates, *save) for updates in (4, 5))
    assert len(losses(result)) == 5 and losses(first) + losses(second) == losses(result)
    one, other = weights(whole), weights(tmp_path)
    assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_fine_tuning_starts_from_the_checkpoint(run, sites: Path, pretrained: tuple[Path, Any], tmp_path: Path) -> None:
    flags = f"--user-dir {USER_DIR} --task sentence_prediction --criterion sentence_prediction --num-classes 3 {TINY} "
    flags += f"--arch hat_roberta_base --max-positions 128 {COMMON} --max-update 2 --classification-head-name site "
    flags += f"--restore-file {pretrained[0] / 'checkpoint_last.pt'} --save-dir {tmp_path} "
    flags += "--reset-optimizer --reset-dataloader --reset-meters --reset-lr-scheduler --required-batch-size-multiple 1"
    result = run("fairseq-train", sites, *flags.split())
    assert len(losses(result)) == 2
    after, before = weights(tmp_path), weights(pretrained[0])
    head = {f"classification_heads.site.{part}.{kind}" for part in ("dense", "out_proj") for kind in ("weight", "bias")}
    assert after.keys() - before.keys() == head
    assert all(name.startswith("encoder.lm_head.") for name in before.keys() - after.keys())
    moved = {name: float((after[name].float() - before[name].float()).abs().max()) for name in before if name in after}
    assert max(moved.values()) < 3e-3  # Adam goes no further in two steps of 1e-3
    assert all(moved[name] > 0 for name in before if is_new_part(name, HatRobertaModel) and "k_proj.bias" not in name)


def test_ranking_starts_from_the_checkpoint_with_more_positions(
    run, corpus: Path, pretrained: tuple[Path, Any], tmp_path: Path
) -> None:
    """Two candidates a sample, each with its context, as for RACE: twice as long as what was pre-trained on."""
    for name in ("input0", "input1", "input2"):
        (tmp_path / "data").mkdir(exist_ok=True)
        (tmp_path / "data" / name).symlink_to(corpus)
    (tmp_path / "data/label").mkdir()
    (tmp_path / "data/label/train.label").write_text("0\n1\n" * 3, encoding="utf-8")
    flags = (
        f"--user-dir {USER_DIR} --task sentence_ranking --criterion sentence_ranking --num-classes 2 {TINY} {COMMON} "
    )
    flags += (
        f"--arch hat_roberta_base --max-positions 256 --extend-positions tile --max-update 2 --save-dir {tmp_path} "
    )
    flags += f"--restore-file {pretrained[0] / 'checkpoint_last.pt'} --required-batch-size-multiple 1 "
    flags += "--reset-optimizer --reset-dataloader --reset-meters --reset-lr-scheduler"
    assert len(losses(run("fairseq-train", tmp_path / "data", *flags.split()))) == 2
    after = weights(tmp_path)
    assert after["classification_heads.sentence_classification_head.out_proj.weight"].shape == (1, 16)
    assert len(after["encoder.sentence_encoder.embed_positions.weight"]) == 258


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--mask-prob", "1.5"], "--mask-prob 1.5: it must be more than 0 and less than 1"),
        (["--mask-prob", "nan"], "--mask-prob nan: it must be more than 0 and less than 1"),
        (
            ["--random-token-prob", "0.95"],
            "--leave-unmasked-prob 0.1 and --random-token-prob 0.95: give shares whose sum",
        ),
    ],
)
def test_impossible_shares_are_refused(pretrain: Any, tmp_path: Path, flags: list[str], message: str) -> None:
    result = pretrain(tmp_path, *flags, check=False)
    assert result.returncode == 1 and f"hat_fairseq: error: {message}" in result.stderr.splitlines()[-1]
