"""What one update of a recipe sees: the flags that follow from it, and the line that says it."""

from __future__ import annotations

import pytest

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import update
from hat_fairseq.recipes.update import split, values_of

UPDATE = "task: {data: d}\ntrain: {batch-size: 4}\nupdate: {batch-size: 64, gpus: 2}"
TOKENS = "task: {data: d}\ntrain: {max-tokens: 1024}\nupdate: {max-tokens: 131072, gpus: 8}"


@pytest.mark.parametrize(
    ("text", "extra", "freq", "gpus", "said"),
    [
        (UPDATE, "", "8", "2", "2 GPUs x 4 documents x 8 = 64 documents an update"),
        (UPDATE, "--gpus 1", "16", "1", "4 documents x 16 = 64 documents an update"),
        (UPDATE, "--gpus=4 --batch-size 16", "1", "4", "4 GPUs x 16 documents x 1 = 64 documents an update"),
        (UPDATE, "--distributed-world-size 1", "16", "1", "4 documents x 16 = 64 documents an update"),
        (UPDATE, "--update-batch-size 32", "4", "2", "2 GPUs x 4 documents x 4 = 32 documents an update"),
        (UPDATE, "--cpu --batch-size=1", "32", "2", "2 processes x 1 document x 32 = 64 documents an update"),
        (UPDATE, "--update-freq 3", "3", "2", "2 GPUs x 4 documents x 3 = 24 documents an update"),
        (UPDATE, "--update-freq 4,2", "4,2", "2", ""),
        (TOKENS, "", "16", "8", "8 GPUs x 1,024 tokens x 16 = 131,072 tokens an update"),
        (TOKENS, "--gpus 2 --max-tokens 4096", "16", "2", "2 GPUs x 4,096 tokens x 16 = 131,072 tokens an update"),
        (TOKENS, "--update-max-tokens 8192", "1", "8", "8 GPUs x 1,024 tokens x 1 = 8,192 tokens an update"),
        (
            UPDATE,
            "--update-max-tokens 8192 --max-tokens 2048",
            "2",
            "2",
            "2 GPUs x 2,048 tokens x 2 = 8,192 tokens an update",
        ),
        ("task: {data: d}\ntrain: {batch-size: 4}", "--gpus 2", None, "2", ""),
        (
            "task: {data: d}\ntrain: {batch-size: 4, max-tokens: null, update-freq: false}\n"
            "update: {batch-size: 8, max-tokens: null, gpus: 1}",
            "",
            "2",
            "1",
            "4 documents x 2 = 8 documents an update",
        ),
    ],
)
def test_update_freq_follows_from_what_an_update_sees(configs, text, extra, freq, gpus, said):
    configs(text)
    command = recipes.build_commands("train", "new", extra.split())[0]
    flags = values_of(split(command))
    assert (flags.get("update-freq"), flags["distributed-world-size"]) == (freq, gpus)
    assert update.describe(command) == said
    assert not {"gpus", "update-batch-size", "update-max-tokens"} & flags.keys()


@pytest.mark.parametrize(
    ("text", "extra", "message"),
    [
        (UPDATE, "--gpus 3", r"an update of 64 documents is not a multiple of 3 GPUs x 4$"),
        (UPDATE, "--batch-size 5 --gpus 1", r"an update of 64 documents is not a multiple of 5$"),
        (UPDATE, "--update-max-tokens 8193 --max-tokens 1024", r"of 8,193 tokens is not a multiple of 2 GPUs x 1,024$"),
        (UPDATE, "--gpus 0", "--gpus must be a whole number above 0, not '0'"),
        (UPDATE, "--gpus --cpu", "--gpus needs one whole number"),
        (
            UPDATE,
            "--max-tokens 2048",
            r"counted in documents, and --max-tokens would make it smaller: .*--update-max-tokens",
        ),
        (UPDATE, "--update-max-tokens 8192", "an update of 8192 tokens needs --max-tokens"),
        (UPDATE, "--update-batch-size 32 --update-freq 2", "--update-freq and --update-batch-size both set"),
        (UPDATE + "\n  ", "--update-batch-size 8 --update-max-tokens 8", "in documents or in tokens: .* not both"),
        ("task: {data: d, update-freq: 2, batch-size: 1}\nupdate: {batch-size: 4}", "", "--update-freq follows from"),
        ("task: {data: d}\nupdate: {batch_size: 4, gpu: 1}", "", "section 'update': unknown 'gpu'"),
    ],
)
def test_updates_that_cannot_be_had(configs, text, extra, message):
    configs(text)
    with pytest.raises(ValueError, match=message):
        recipes.build_commands("train", "new", extra.split())[0]
