"""Flags of the models: roles, dictionaries, shared tables and positions, and what is refused."""

from __future__ import annotations

import pytest
import torch
from building import PAD, SMALL_HIERARCHICAL, TINY, TINY_ENCODER, Vocabulary, build, documents, targets
from fairseq.data import Dictionary

LENGTHS = [17, 9, 2]


def test_roles_are_added_and_missing_or_surplus_ones_are_refused() -> None:
    """Padding of the source on the left moves the roles too."""
    source, target = documents(LENGTHS), targets(3, 8)
    roles = torch.where(source == PAD, PAD, 4 + torch.arange(17) % 2)
    with_roles = build("hat_transformer_tiny", task=Vocabulary(roles=2)).eval()
    without = build("hat_transformer_tiny").eval()
    assert "encoder.embed_segments.weight" not in without.state_dict()
    first = with_roles(source, None, target, roles=roles)[0]
    left = [torch.stack([row.roll(17 - n) for row, n in zip(x, LENGTHS, strict=True)]) for x in (source, roles)]
    torch.testing.assert_close(with_roles(left[0], None, target, roles=left[1])[0], first)
    assert not torch.allclose(first, with_roles(source, None, target, roles=roles.where(roles == PAD, 5))[0])
    with pytest.raises(ValueError, match="--role-stream"):
        with_roles(source, None, target)
    with pytest.raises(ValueError, match="--role-stream"):
        without(source, None, target, roles=roles)


def test_tables_are_shared_only_on_request() -> None:
    task = Vocabulary()
    task.target_dictionary = Vocabulary(33).target_dictionary
    model = build("hat_transformer", TINY, task)
    assert model(documents(LENGTHS), None, targets(3, 8, vocabulary=33))[0].size(-1) == 33
    task.target_dictionary = Dictionary()
    with pytest.raises(ValueError, match="--joined-dictionary"):
        build("hat_transformer_tiny", task=task)
    shared = build("hat_bart_base")
    assert shared.encoder.embed_tokens.weight is shared.decoder.output_projection.weight
    for flags, tied in (("", True), (" --untie-weights-roberta", False)):
        encoder = build("hat_roberta_base", TINY_ENCODER + flags).encoder
        assert (encoder.lm_head.weight is encoder.sentence_encoder.embed_tokens.weight) == tied


def test_the_longest_document_is_max_positions_or_that_of_the_task() -> None:
    assert build("hat_roberta_base", TINY_ENCODER, max_positions=64).max_positions() == 64
    assert build("hat_roberta_base", TINY_ENCODER, tokens_per_sample=40).max_positions() == 40
    assert build("hat_roberta_base", TINY_ENCODER).max_positions() == 512


BART = f"hat_bart_base {TINY}"
ATTENTION = f"{BART} --encoder-attention"
ERNIE = f"ernie_sparse_base {TINY_ENCODER} --sparse-block 4 --sparse-random 1 --max-positions 140"
REFUSED = [
    (f"{BART} --decoder-embed-dim 48", "--encoder-embed-dim 24 and --decoder-embed-dim 48 must be equal"),
    (f"{BART} --decoder-layers 0", "--decoder-layers 0: it must be at least 1"),
    (f"{BART} --decoder-kv-heads 3", "--decoder-kv-heads 3 .*heads 4: give one of 1, 2, 4$"),
    (f"{BART} --decoder-kv-heads 0", "--decoder-kv-heads 0 .*heads 4: give one of 1, 2, 4$"),
    (f"{ATTENTION} sliding", "--encoder-attention sliding: unknown; choose one of full, segments"),
    (f"{ATTENTION} window --pooling-window 8", "--pooling-window has no effect with --encoder-attention w"),
    (f"{ATTENTION} window --attention-window 0", "--attention-window 0: it must be at least 1"),
    (f"{ATTENTION} pooling --pooling-window 3", "--pooling-window 3: with --pooling-kernel 5 and --pooling-stride 4"),
    (f"{ATTENTION} segments --encoder-attention-layers 2", "has layers 0 to 1"),
    (f"{ATTENTION} segments --encoder-attention-layers 1-", "write layers as 0,6-8"),
    (f"{ATTENTION} segments --encoder-attention-layers 1-0", "has layers 0 to 1"),
    (f"{BART} --segment-length 8", "--segment-length has no effect with --encoder-attention full; remove it"),
    (f"{ERNIE} --encoder-attention full", "representative tokens need --encoder-attention block-sparse"),
    (f"{ERNIE} --sparse-block 1", "--sparse-block 1 has room for a representative only"),
    (f"{ERNIE} --sparse-window 2", "--sparse-window 2: it must be odd"),
    (f"{ERNIE} --encoder-qkv-dim 25", "the width of all heads .25. must be a multiple of their number"),
    (f"{ERNIE} --sparse-first 35", "--sparse-first 35 blocks of 4 tokens leave none of --max-positions 140 for rep"),
    (f"{ERNIE} --sparse-random 36", "--sparse-random 36: --max-positions 140 is only 35 blocks of 4 tokens"),
    (f"{ERNIE} --sparse-window 37 --no-hierarchy", "--sparse-window 37: --max-positions 140 is only 35 blocks of 4"),
    (f"{ERNIE} --no-hierarchy --document-pooling max", "--document-pooling max has no effect with --no-hierarchy"),
    (f"{ERNIE} --attention-dropout nan", "--attention-dropout nan: it must be from 0 to 1"),
    (f"hierarchical_transformer {SMALL_HIERARCHICAL}S|X", "unknown layer 'X'"),
]


def test_wrong_flags_are_refused() -> None:
    for words, message in REFUSED:
        arch, _, flags = words.partition(" ")
        with pytest.raises(ValueError, match=message):
            build(arch, flags)


def test_documents_that_are_too_long_are_refused() -> None:
    ernie, (arch, _, flags) = Vocabulary(mask=True), ERNIE.partition(" ")
    with pytest.raises(ValueError, match="a row of 141 tokens, but only 140 positions: raise --max-positions"):
        build(arch, flags, ernie)(documents([141]))
    segments = build("hierarchical_transformer", f"{SMALL_HIERARCHICAL}S|SD")
    with pytest.raises(ValueError, match="a document has 6 segments of up to 6 tokens, but --max-segments is 5"):
        segments(documents([31]))
    without = build("hierarchical_transformer", f"{SMALL_HIERARCHICAL}S|SD --segment-positions none")
    assert without(documents([31]))[0].isfinite().all()
