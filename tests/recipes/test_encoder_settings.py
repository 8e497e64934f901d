"""The encoders' recipes against tables of printed settings, read by fairseq's own parser.

Rohde et al. 2021 print of their encoder only the dropout on RACE, so its fine-tuning and pre-training are RoBERTa's:
Liu et al. 2019, Tables 9 and 10, and for MNLI the numbers of updates of fairseq's example for GLUE. The hierarchical
transformer is that of Chalkidis et al. 2022: the model card, and the authors' script for document classification.
Questions on documents have the settings of Zhang et al. 2021 (Poolingformer); `ernie_sparse_*` those of Liu et al.
2022, Tables 8 and 9, where a batch for two passes is half of the printed one (A.4).
"""

from __future__ import annotations

from typing import Any

import pytest
from fairseq import options
from fairseq.models import ARCH_MODEL_REGISTRY

from hat_fairseq.recipes import command as recipes
from hat_fairseq.recipes import files

# Of the encoder: 12 layers of 768 and dropout .1, as RoBERTa-base has it. Lengths are with </s>.
BASE = {"encoder_layers": 12, "encoder_embed_dim": 768, "encoder_ffn_embed_dim": 3072, "encoder_attention_heads": 12}
ROBERTA = BASE | {"arch": "hat_roberta_base", "dropout": 0.1, "attention_dropout": 0.1, "adam_betas": "(0.9, 0.98)"}
ROBERTA |= {"adam_eps": 1e-6, "clip_norm": 0.0, "length": 512, "max_positions": 512}
FINE_TUNED = ROBERTA | {"finetune_from_model": "roberta.base/model.pt"}
HIERARCHICAL = {"arch": "hierarchical_transformer_base_4096", "layout": "S|S|SD|S|S|SD|S|S|SD|S|S|SD", "length": 4096}
HIERARCHICAL |= {"segment_length": 128, "max_segments": 32, "segment_by": "marker", "clip_norm": 0.0, "dropout": 0.1}
HIERARCHICAL |= {"adam_betas": "(0.9, 0.999)", "adam_eps": 1e-8}
CLASSIFIED = HIERARCHICAL | {"lr": [1e-5], "update": 32, "pooling": "max", "criterion": "document_labels"}
CLASSIFIED |= {"weight_decay": 0.0, "finetune_from_model": "hierarchical-transformer-base-4096/model.pt"}
# What the released weights were trained with.
CLASSIFIED |= {"segment_positions": "none", "layer_norm_eps": 1e-12}
CLASSIFIED |= {"attend_segment_padding": True, "pool_padded_segments": True}
# Zhang et al. 2021, section 3.2; RoBERTa-large's sizes.
DOCUMENTS = {"arch": "poolingformer_large", "encoder_layers": 24, "encoder_embed_dim": 1024, "length": 4096}
DOCUMENTS |= {"encoder_ffn_embed_dim": 4096, "encoder_attention_heads": 16, "max_positions": 4096, "update": 64}
DOCUMENTS |= {"task": "document_question_answering", "criterion": "document_answers", "lr": [2e-5], "warmup": 0.1}
DOCUMENTS |= {"encoder_attention": "pooling", "encoder_attention_layers": "15-20", "global_tokens": "question"}
DOCUMENTS |= {"extend_positions": "tile", "finetune_from_model": "roberta.large/model.pt", "dropout": 0.1}
SPARSE = BASE | {"arch": "ernie_sparse_base", "dropout": 0.1, "attention_dropout": 0.1, "weight_decay": 0.1}
SPARSE |= {"length": 4096, "max_positions": 4096, "finetune_from_model": "roberta.base/model.pt", "clip_norm": 0.0}
TWICE = SPARSE | {"criterion": "self_attention_regularization", "base_criterion": "document_labels", "sar_roll": 8}
PRINTED: dict[str, dict[str, Any]] = {
    "squad2": FINE_TUNED
    | {"task": "question_answering", "criterion": "answer_spans", "lr": [1.5e-5], "weight_decay": 0.01}
    | {"update": 48, "epochs": (2, 130_319), "warmup": 0.06},
    "mnli": FINE_TUNED
    | {"task": "document_classification", "criterion": "document_labels", "lr": [1e-5], "weight_decay": 0.1}
    | {"update": 32, "max_update": 123_873, "warmup_updates": 7432},
    "race": FINE_TUNED
    | {"task": "multiple_choice", "criterion": "document_labels", "lr": [1e-5], "weight_decay": 0.1}
    | {"update": 16, "epochs": (4, 87_866), "warmup": 0.06, "dropout_schedule": "0,1"},
    "roberta_pretraining": ROBERTA
    | {"task": "masked_document_lm", "criterion": "masked_lm", "lr": [6e-4], "weight_decay": 0.01, "update": 8192}
    | {"max_update": 500_000, "warmup_updates": 24_000, "tokens_per_sample": 512, "mask_prob": 0.15},
    "hierarchical_transformer_pretraining": HIERARCHICAL
    | {"task": "masked_document_lm", "criterion": "masked_lm", "lr": [1e-4], "weight_decay": 0.01, "update": 128}
    | {"max_update": 50_000, "warmup": 0.1, "batch_size": 2, "distributed_world_size": 8, "mask_prob": 0.15}
    | {"finetune_from_model": "roberta.base/model.pt", "tokens_per_sample": 4096, "max_segments": 32},
    "natural_questions": DOCUMENTS | {"max_update": 20_000},
    "tydi_qa": DOCUMENTS | {"max_update": 8000, "finetune_from_model": "xlmr.large/model.pt"},
    "ernie_sparse_pretraining": SPARSE
    | {"task": "masked_document_lm", "criterion": "masked_lm", "lr": [3e-5], "update": 256, "warmup_updates": 10_000}
    | {"max_update": 1_000_000, "tokens_per_sample": 4096, "mask_prob": 0.15},
    "ernie_sparse_arxiv_categories": TWICE
    | {"task": "document_classification", "sar_alpha": 10, "lr": [6e-5], "update": 48 // 2, "epochs": (10, 29_000)}
    | {"warmup": 0.1},
    "ernie_sparse_imdb": TWICE
    | {"task": "document_classification", "sar_alpha": 0.1, "lr": [1e-5], "update": 64 // 2, "epochs": (20, 22_500)}
    | {"warmup": 0.1, "length": 2048},
    "ernie_sparse_hyperpartisan": SPARSE
    | {"task": "document_classification", "criterion": "document_labels", "lr": [3e-5], "update": 16}
    | {"epochs": (20, 517), "warmup": 0.1, "length": 1024},
    "ernie_sparse_wikihop": TWICE
    | {"task": "candidate_selection", "sar_alpha": 10, "lr": [3e-5], "update": 48 // 2, "epochs": (30, 43_738)}
    | {"warmup_updates": 200},
    "ernie_sparse_triviaqa": TWICE
    | {"task": "question_answering", "base_criterion": "answer_spans", "sar_alpha": 3, "lr": [3e-5], "update": 32 // 2}
    | {"epochs": (10, 110_648), "warmup": 0.1},
    "imdb": CLASSIFIED | {"task": "document_classification", "epochs": (20, 22_500), "warmup": 0.05},
    "hyperpartisan": CLASSIFIED | {"task": "document_classification", "epochs": (20, 517), "warmup": 0.05},
    "sequential_sentences": CLASSIFIED | {"task": "segment_classification", "warmup": 0.05},
    "multiple_choice": CLASSIFIED | {"task": "multiple_choice", "warmup": 0.05},
}
OURS = {"hyperpartisan_small"}
ENCODERS = {name for name in files.names() if not files.load(files.find(name))["generate"]}
ENCODERS -= {name for name in ENCODERS if name.startswith("lra_")}  # test_lra_settings.py


@pytest.mark.parametrize("name", PRINTED)
def test_training_is_as_printed(name: str) -> None:
    arrived = options.parse_args_and_arch(
        options.get_training_parser(), input_args=recipes.build_commands("train", name)[0][4:]
    )
    expected = dict(PRINTED[name])
    (freq,) = arrived.update_freq
    assert arrived.batch_size * freq * arrived.distributed_world_size == expected.pop("update")
    assert longest_row(name) == expected.pop("length")
    if "epochs" in expected:
        epochs, examples = expected.pop("epochs")
        per_epoch = arrived.batch_size * freq * arrived.distributed_world_size
        assert epochs == pytest.approx(arrived.max_update * per_epoch / examples, rel=0.06)
        assert arrived.max_update <= epochs * -(-examples // per_epoch), "each epoch ends with a smaller batch at most"
    if "warmup" in expected:
        assert arrived.warmup_updates == pytest.approx(expected.pop("warmup") * arrived.max_update, abs=0.5)
    config_class = ARCH_MODEL_REGISTRY[arrived.arch].kind.config_class
    known = {**config_class.from_args(arrived).__dict__, **vars(arrived)}
    assert {key: known[key] for key in expected} == expected
    assert arrived.lr_scheduler == "polynomial_decay" and float(arrived.total_num_update) == arrived.max_update
    assert arrived.optimizer == "adam" and arrived.bf16
    assert getattr(arrived, "no_hierarchy", False) == arrived.arch.startswith("poolingformer")


def longest_row(name: str) -> int:
    """In tokens, </s> included."""
    return int(str(files.load(files.find(name))["preprocess"]["max-source-tokens"]))


def test_every_encoder_recipe_is_in_the_table() -> None:
    assert set(PRINTED) | OURS == ENCODERS
