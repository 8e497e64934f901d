from __future__ import annotations

import pytest

from hat_fairseq.scoring.rouge_settings import SENTENCE_METHODS, split_summary

TEXT = "Dr. Who came . He left... Then what ?\nNothing , really . \n\n"


@pytest.mark.parametrize(
    ("method", "sentences"),
    [
        ("none", ["Dr. Who came . He left... Then what ? Nothing , really ."]),
        ("given", ["Dr. Who came . He left... Then what ?", "Nothing , really ."]),
        ("files2rouge", ["Dr. Who came .", "He left... Then what ? Nothing , really ."]),
        ("punctuation", ["Dr.", "Who came .", "He left...", "Then what ?", "Nothing , really ."]),
    ],
)
def test_methods(method, sentences):
    assert split_summary(TEXT, method) == sentences


def test_detokenised_text_is_one_sentence_for_files2rouge():
    text = "One sentence. And another."
    assert split_summary(text, "files2rouge") == [text]
    assert len(split_summary(text, "punctuation")) == 2


def test_list_of_sentences():
    assert split_summary(["a  b", "", "c\td."], "given") == ["a b", "c d."]
    assert split_summary(["a b", "c d."], "none") == ["a b c d."]


@pytest.mark.parametrize("method", SENTENCE_METHODS)
def test_no_word_is_lost(method, ami_test):
    for document in ami_test[:5]:
        text = " ".join(document.sentences)
        assert " ".join(split_summary(text, method)).split() == text.split()


@pytest.mark.parametrize("method", SENTENCE_METHODS)
def test_empty(method):
    assert split_summary("", method) == []
    assert split_summary(" \n ", method) == []


def test_unknown_method():
    with pytest.raises(ValueError, match="'nltk'.*punctuation"):
        split_summary("a", "nltk")
