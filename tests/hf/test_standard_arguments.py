"""Arguments of `forward` and options of `generate` in transformers: each changes what comes out, or is refused by name.

Names that a later version of transformers adds make these tests fail until somebody decides about them.
"""

import inspect
from typing import Any

import pytest
import torch
from building import PAD, documents, targets
from hf_models import encoder, writer

transformers = pytest.importorskip("transformers", reason="make setup")
from hat_fairseq import hf  # noqa: E402

TOKENS, TARGETS = documents([17, 9, 12]), targets(3, 8)
MASK = TOKENS.ne(PAD).long()
SHORTER = MASK.clone()
SHORTER[:, 6:] = 0
WORDS = torch.randn(3, 17, 24)
SAME, REFUSED = "the same", "refused"
FORWARD: dict[str, Any] = {  # of encoders and encoder-decoders; a class that does not take an argument refuses it
    "input_ids": TOKENS.flip(0),
    "attention_mask": SHORTER,
    "decoder_input_ids": TARGETS.flip(0),
    "decoder_attention_mask": torch.ones(3, 8).tril(4),
    "inputs_embeds": WORDS,
    "decoder_inputs_embeds": torch.randn(3, 8, 24),
    "encoder_outputs": "",  # needs the model, see below
    "encoder_hidden_states": WORDS,
    "encoder_attention_mask": MASK,
    "past_key_values": "",  # test_outputs.py continues from a cache
    "global_attention_mask": MASK,
    "token_type_ids": MASK,
    "position_ids": MASK,
    "question_lengths": torch.tensor([2, 2, 2]),
    "labels": torch.tensor([0, 1, 1]),
    "use_cache": True,
    "output_attentions": True,
    "output_hidden_states": True,
    "return_dict": False,
    "kwargs": "",
}
OTHERS = "LEDForConditionalGeneration", "BartForConditionalGeneration", "LongformerForSequenceClassification"
OTHERS += "BigBirdForQuestionAnswering", "BigBirdForSequenceClassification", "BigBirdForMaskedLM", "RobertaModel"
TAKEN = "self", "start_positions", "end_positions"  # `test_answers_and_choices`


def given(model: Any) -> dict[str, Any]:
    return {"input_ids": TOKENS} | ({"decoder_input_ids": TARGETS} if model.config.is_encoder_decoder else {})


def outcome(model: Any, plain: Any, name: str, value: Any) -> str:
    try:
        out = model(**given(model) | {name: value})
    except ValueError as error:
        assert name in str(error), error
        return REFUSED
    return SAME if type(out) is type(plain) and str(out) == str(plain) else "another"


@torch.no_grad()
@pytest.mark.parametrize("name", [name for name, value in FORWARD.items() if not isinstance(value, str)])
def test_an_argument_of_forward(name: str) -> None:
    model, config = encoder("hat", {})
    encoders = [hf.HatModel(config), hf.HatForSequenceClassification(config), hf.HatForMaskedLM(config)]
    for each in [*(x.eval() for x in encoders), writer("bart")[1]]:
        value = FORWARD[name]
        if name == "labels" and not isinstance(each, hf.HatForSequenceClassification):
            value = TARGETS if each.config.is_encoder_decoder else TOKENS
        assert outcome(each, each(**given(each)), name, value) != SAME, type(each)


@torch.no_grad()
def test_padding_is_no_part_of_a_text() -> None:
    """As in fairseq; where it is likely, too."""
    texts = writer("bart")[1].generate(TOKENS, sequence_bias={(PAD,): 90.0}, **GREEDY)
    assert texts.size(1) >= 7
    assert not texts[:, :7].eq(PAD).any()


def test_the_arguments_of_forward_are_these() -> None:
    functions = [getattr(transformers, name).forward for name in OTHERS]
    names = {name for function in functions for name in inspect.signature(function).parameters}
    assert names - {*TAKEN} == FORWARD.keys()


FIRST = 54  # the first word of the greedy text
GREEDY = {"max_length": 8, "min_length": 7, "num_beams": 1, "do_sample": False}
SAMPLED, BEAMS, SCORES = {"do_sample": True}, {"num_beams": 3, "min_length": 3}, {"output_scores": True, "num_beams": 2}
GENERATE: dict[str, tuple[Any, dict[str, Any]]] = {  # a value of each option, and what it needs beside it
    "max_length": (6, {}),
    "max_new_tokens": (4, {}),
    "min_length": (8, {"max_length": 12, "eos_token_id": FIRST}),
    "min_new_tokens": (8, {"max_length": 12, "eos_token_id": FIRST}),
    "max_time": (0.0, {}),
    "stop_strings": (["a"], {}),
    "do_sample": (True, {}),
    "num_beams": (3, {}),
    "use_cache": (False, {}),
    "cache_implementation": ("static", {}),
    "temperature": (9.0, SAMPLED),
    "top_k": (1, SAMPLED),
    "top_p": (0.01, SAMPLED),
    "top_h": (0.01, SAMPLED),
    "min_p": (0.9, SAMPLED),
    "typical_p": (0.01, SAMPLED),
    "epsilon_cutoff": (0.3, SAMPLED),
    "eta_cutoff": (0.3, SAMPLED),
    "repetition_penalty": (9.0, {}),
    "encoder_repetition_penalty": (9.0, {}),
    "length_penalty": (-9.0, BEAMS | {"max_length": 20}),
    "no_repeat_ngram_size": (1, {}),
    "bad_words_ids": ([[FIRST]], {}),
    "renormalize_logits": (True, SCORES | {"suppress_tokens": [FIRST], "return_dict_in_generate": True}),
    "forced_bos_token_id": (7, {}),
    "forced_eos_token_id": (2, {}),
    "exponential_decay_length_penalty": ((1, 9.0), {"min_length": 1}),
    "suppress_tokens": ([FIRST], {}),
    "begin_suppress_tokens": ([FIRST], {}),
    "sequence_bias": ({(7,): 90.0}, {}),
    "guidance_scale": (2.0, {}),
    "watermarking_config": ({"bias": 90.0}, {}),
    "num_return_sequences": (2, {"num_beams": 2}),
    "output_attentions": (True, {"return_dict_in_generate": True}),
    "output_hidden_states": (True, {"return_dict_in_generate": True}),
    "output_scores": (True, {"return_dict_in_generate": True}),
    "output_logits": (True, {"return_dict_in_generate": True}),
    "return_dict_in_generate": (True, {}),
    "encoder_no_repeat_ngram_size": (1, {}),
    "decoder_start_token_id": (5, {}),
    "eos_token_id": (FIRST, {"min_length": 1}),
    "prompt_lookup_num_tokens": (2, {}),
    "assistant_early_exit": (1, {}),
    "prefill_chunk_size": (2, {}),
    "use_mtp": (True, {}),
    "token_healing": (True, {}),
    "low_memory": (True, BEAMS),
}
# These only change how it is computed, or belong to an option above or to one that needs code of the Hub.
OF_OTHERS = {"cache_config", "max_cache_len", "compile_config", "disable_compile", "continuous_batching_config"}
OF_OTHERS |= {"remove_invalid_values", "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule"}
OF_OTHERS |= {
    "assistant_confidence_threshold",
    "assistant_lookbehind",
    "assistant_ensemble_weight",
    "target_lookbehind",
}
OF_OTHERS |= {"target_lookbehind", "speculation_type", "max_matching_ngram_size", "pad_token_id", "bos_token_id"}
OF_OTHERS |= {"transformers_version", "early_stopping"}  # test_modeling.py has the latter
OF_OTHERS |= {"penalty_alpha", "dola_layers", "diversity_penalty", "num_beam_groups", "constraints", "force_words_ids"}


@torch.no_grad()
@pytest.mark.parametrize("name", GENERATE)
def test_an_option_of_generate(name: str) -> None:
    """As an argument, and in the configuration of the model."""
    model, (value, needed) = writer("bart")[1], GENERATE[name]
    if not hasattr(transformers.GenerationConfig(), name):
        pytest.skip(f"transformers {transformers.__version__} has no {name}")
    options = GREEDY | needed
    torch.manual_seed(1)
    plain = model.generate(TOKENS, **options)
    for where in ("argument", "configuration"):
        torch.manual_seed(1)
        try:
            if where == "argument":
                out = model.generate(TOKENS, **options | {name: value})
            else:
                for key, each in (options | {name: value}).items():
                    setattr(model.generation_config, key, each)
                out = model.generate(TOKENS)
        except ValueError as error:
            assert name.replace("_", " ") in str(error).replace("_", " ")
            continue
        same = type(out) is type(plain) and str(out) == str(plain)
        assert same == (name == "use_cache"), (where, out)


def test_the_options_of_generate_are_these() -> None:
    names = {name for name in transformers.GenerationConfig().to_dict() if not name.startswith("_")}
    assert names <= GENERATE.keys() | OF_OTHERS
