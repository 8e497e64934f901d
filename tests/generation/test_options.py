"""Numbers of generation options that make no sense, and options without effect."""

from argparse import Namespace
from typing import Any

import pytest
from building import Vocabulary, build

from hat_fairseq.generation.options import check_options
from hat_fairseq.generation.settings import check_generation
from hat_fairseq.tasks.document_to_text import DocumentToTextTask


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling_topk": 0}, "--sampling-topk must be at least 1, or -1, not 0"),
        ({"sampling_topp": 0.0}, "--sampling-topp must be more than 0 and at most 1, or -1.0, not 0.0"),
        ({"sampling_topp": 1.5}, "--sampling-topp must be more than 0 and at most 1"),
        ({"sampling_topp": -0.5}, "--sampling-topp must be more than 0 and at most 1"),
        ({"diverse_beam_groups": 0}, "--diverse-beam-groups must be at least 1, or -1, not 0"),
        ({"diversity_rate": -3.0}, "--diversity-rate must be at least 0, or -1.0, not -3"),
    ],
)
def test_numbers_that_fairseq_takes_as_none_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_options(options)
    check_options({"sampling_topk": -1, "sampling_topp": -1.0, "diverse_beam_groups": -1, "diversity_rate": -1.0})
    check_options({"sampling_topk": 1, "sampling_topp": 1.0, "diverse_beam_groups": 1, "diversity_rate": 0.0})


@pytest.mark.parametrize(
    ("stated", "packaged", "message"),
    [
        ({"sampling_topk": 5, "sampling_topp": 0.9}, {"sampling": True}, "--sampling-topk 5 has no effect with"),
        ({"sampling_topk": 5}, {"sampling": True, "sampling_topp": 0.9}, "--sampling-topk 5 has no effect with"),
        ({"sampling": True, "diverse_beam_groups": 2}, {}, "--sampling and --diverse-beam-groups exclude each other"),
        ({"match_source_len": True}, {"sampling": True}, "--sampling and --match-source-len exclude each other"),
        ({"diverse_beam_strength": 1.0}, {"diverse_beam_groups": -1}, "no effect without --diverse-beam-groups"),
        ({"sampling_topp": 0.5}, {"sampling": False}, "--sampling-topp 0.5 has no effect without --sampling"),
    ],
)
def test_options_without_effect_are_refused(stated: dict[str, Any], packaged: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_generation(stated, packaged)
    check_generation({"sampling_topp": 0.9}, {"sampling": True, "sampling_topk": 5})
    check_generation({"sampling_topk": 5}, {"sampling": True, "sampling_topp": -1.0, "diverse_beam_groups": -1})


def test_more_words_to_draw_from_than_there_are_is_all_of_them() -> None:
    task = object.__new__(DocumentToTextTask)
    task.src_dict = task.tgt_dict = Vocabulary().target_dictionary
    generator = task.build_generator([build("hat_transformer_tiny")], Namespace(sampling=True, sampling_topk=10**6))
    assert generator.search.sampling_topk == len(task.tgt_dict)
