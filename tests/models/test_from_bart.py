"""From a Hugging Face BART to a training HAT: converter, restore hook and fairseq-train together."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
import torch
from building import PAD, Vocabulary, build, dictionary, documents, targets
from helpers import assert_close

SIZES = (
    "--encoder-embed-dim 24 --decoder-embed-dim 24 --encoder-ffn-embed-dim 40 --decoder-ffn-embed-dim 40 "
    "--encoder-layers 2 --decoder-layers 2 --encoder-attention-heads 4 --decoder-attention-heads 4"
)


def hugging_face_bart(folder: Path, vocabulary: int, positions: int = 64):
    from transformers import BartConfig, BartForConditionalGeneration

    torch.manual_seed(0)
    layers = {f"{side}_{name}": n for side in ("encoder", "decoder") for name, n in SMALL.items()}
    config = BartConfig(vocab_size=vocabulary, d_model=24, max_position_embeddings=positions, init_std=0.2, **layers)
    model = BartForConditionalGeneration(config).eval()
    model.save_pretrained(folder)
    return model


SMALL = {"layers": 2, "ffn_dim": 40, "attention_heads": 4}


@pytest.fixture(scope="module")
def converted(run, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bart")
    model = hugging_face_bart(folder / "hf", vocabulary=60)
    run(sys.executable, "-m", "hat_fairseq.cli", "import", "bart", folder / "hf", "--out", folder / "model.pt")
    return model, torch.load(folder / "model.pt", weights_only=True)["model"]


def test_plain_twin_computes_hugging_faces_logits(converted) -> None:
    bart, state = converted
    plain = build("hat_bart_base", SIZES + " --no-hierarchy", Vocabulary(60), max_target_positions=64).eval()
    plain.load_state_dict(dict(state))
    source, target = documents([17, 9, 2]), targets(3, 8)
    expected = bart(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=target).logits
    actual = plain(source, None, target)[0]
    assert float((actual - expected).detach().abs().max()) < 1e-4
    assert float(expected.detach().std()) > 0.1  # the comparison is not one of zeros


@pytest.mark.parametrize("kv_heads", [1, 2])
def test_heads_that_share_keys_start_from_the_means_of_barts(converted, kv_heads: int) -> None:
    """Ainslie et al. 2023, section 2.1; where the heads of a group are equal, the logits are BART's."""
    state = {name: tensor.clone() for name, tensor in converted[1].items()}
    bart = build("hat_bart_base", SIZES + " --no-hierarchy", Vocabulary(60), max_target_positions=64).eval()
    flags = SIZES + f" --no-hierarchy --decoder-kv-heads {kv_heads}"
    shared = build("hat_bart_base", flags, Vocabulary(60), max_target_positions=64).eval()
    shared.load_state_dict(dict(state))
    key, loaded = "decoder.layers.1.encoder_attn.k_proj.weight", shared.state_dict()
    heads = [state[key][first : first + 6] for first in range(0, 24, 6)]
    means = [sum(heads[i : i + 4 // kv_heads]) / (4 // kv_heads) for i in range(0, 4, 4 // kv_heads)]
    assert_close(loaded[key], torch.cat(means))
    for name in loaded:
        if "encoder_attn.k_proj" in name or "encoder_attn.v_proj" in name:
            groups = loaded[name].unflatten(0, (kv_heads, 6))
            state[name] = groups.repeat_interleave(4 // kv_heads, 0).flatten(0, 1)
    bart.load_state_dict(dict(state))
    source, target = documents([17, 9, 2]), targets(3, 8)
    assert_close(shared(source, None, target)[0], bart(source, None, target)[0])


def test_hat_from_bart_differs_from_bart_by_its_hierarchy_only(converted) -> None:
    bart, state = converted
    hat = build("hat_bart_base", SIZES, Vocabulary(60), max_target_positions=64).eval()
    hat.load_state_dict(dict(state))
    source = documents([17, 9, 2])
    encoded = hat.encoder(source)
    expected = bart.model.encoder(input_ids=source, attention_mask=(source != PAD).long()).last_hidden_state
    for row, length in enumerate([17, 9, 2]):
        assert_close(encoded.tokens[row, :length], expected[row, :length])


def test_fairseq_train_starts_from_it(run, train, ami: Path, tmp_path: Path) -> None:
    """`<mask>` row in the checkpoint only, 16 positions extended to 128, then one update and a checkpoint."""
    words = [line.split()[0] for line in (ami / "bin/dict.source.txt").read_text().splitlines()]
    hugging_face_bart(tmp_path / "hf", vocabulary=len(dictionary(words)) + 1, positions=16)
    run(sys.executable, "-m", "hat_fairseq.cli", "import", "bart", tmp_path / "hf", "--out", tmp_path / "model.pt")
    flags = ["--arch", "hat_bart_base", *SIZES.split(), "--max-target-positions", 64, "--extend-positions", "tile"]
    reset = ["--reset-optimizer", "--reset-dataloader", "--reset-meters", "--max-update", 1, "--disable-validation"]
    result = train(tmp_path / "out", *flags, *reset, "--restore-file", tmp_path / "model.pt")
    log = result.stdout + result.stderr
    assert "encoder.embed_positions.weight: extended from 18 to 130 rows (tile)" in log
    assert "encoder.embed_tokens.weight: dropped its last row, that of <mask>" in log
    new = re.findall(r"^  ((?:en|de)coder\.\S+)$", log, flags=re.MULTILINE)
    assert len(new) == 16 + 2 * 10 + 1
    assert (tmp_path / "out/checkpoint_last.pt").exists()
