"""Work-arounds that need no training run; the others are tested in tests/tasks/test_training.py."""

from __future__ import annotations

import numpy as np
import torch
from fairseq import options
from fairseq.data import ListDataset, TokenBlockDataset
from fairseq.ngram_repeat_block import NGramRepeatBlock

from hat_fairseq.fairseq_fixes import REPLACED
from hat_fairseq.register import register

register()  # applies the corrections


def test_no_function_is_replaced_twice() -> None:
    """Else the order of two corrections would depend on the order in which they are installed."""
    assert len({(owner, name) for owner, name, _ in REPLACED}) == len(REPLACED) > 20


def test_rows_as_samples_work_with_numpy_2() -> None:
    """--sample-break-mode eos asks for np.compat.long, which numpy 2 does not have; numpy itself stays as it is."""
    rows = [torch.tensor([5] * length + [2]) for length in (1, 2, 5)]
    sizes = [len(row) for row in rows]
    dataset = TokenBlockDataset(ListDataset(rows, sizes), sizes, 512, pad=1, eos=2, break_mode="eos")
    assert [len(dataset[index]) for index in range(3)] == sizes
    assert hasattr(np, "compat") == (np.lib.NumpyVersion(np.__version__) < "2.0.0")


def test_ngrams_are_looked_for_in_the_tokens_not_in_the_padding() -> None:
    tokens = torch.tensor([[2, 5, 6, 7, 5, 6, 1, 1]])  # "5 6" comes again: 7 must not follow
    scores = torch.zeros(1, 9)
    NGramRepeatBlock(3)(tokens, scores, bsz=1, beam_size=1, step=5)
    assert scores[0].isinf().nonzero().flatten().tolist() == [7]


def test_training_has_the_criterion_of_its_task() -> None:
    for flags, criterion in (
        ("--task document_to_text --arch hat_transformer_tiny", "chunked_label_smoothed_cross_entropy"),
        ("--task document_to_text --arch hat_transformer_tiny --criterion=cross_entropy", "cross_entropy"),
        ("--task masked_document_lm --arch hat_roberta_tiny", "masked_lm"),
        ("--task segment_classification --arch hat_roberta_tiny", "document_labels"),
        ("--task question_answering --arch hat_roberta_tiny", "answer_spans"),
        ("--task document_question_answering --arch hat_roberta_tiny", "document_answers"),
        ("--task translation --arch transformer", "cross_entropy"),
    ):
        args = options.parse_args_and_arch(options.get_training_parser(), ["data", *flags.split()])
        assert args.criterion == criterion
        assert not criterion.startswith("chunked") or args.label_smoothing == 0  # the flags of the criterion are there
    args = options.parse_args_and_arch(options.get_generation_parser(), ["data", "--task", "document_to_text"])
    assert args.criterion == "cross_entropy"
