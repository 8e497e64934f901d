"""Names of transformers' arguments: those that a later version adds fail here until somebody decides about them.

What they do is in test_modeling.py, test_outputs.py and test_calls.py, what is refused in test_refused_arguments.py.
"""

import inspect

import pytest
import torch
from building import PAD, documents
from hf_models import writer

transformers = pytest.importorskip("transformers", reason="make setup")
FORWARD = """
input_ids attention_mask decoder_input_ids decoder_attention_mask inputs_embeds decoder_inputs_embeds encoder_outputs
encoder_hidden_states encoder_attention_mask past_key_values global_attention_mask token_type_ids position_ids
question_lengths labels use_cache output_attentions output_hidden_states return_dict kwargs self start_positions
end_positions
"""
PEERS = "LEDForConditionalGeneration", "BartForConditionalGeneration", "LongformerForSequenceClassification"
PEERS += "BigBirdForQuestionAnswering", "BigBirdForSequenceClassification", "BigBirdForMaskedLM", "RobertaModel"
GENERATE = """
max_length max_new_tokens min_length min_new_tokens max_time stop_strings do_sample num_beams use_cache
cache_implementation temperature top_k top_p top_h min_p typical_p epsilon_cutoff eta_cutoff repetition_penalty
encoder_repetition_penalty length_penalty no_repeat_ngram_size bad_words_ids renormalize_logits forced_bos_token_id
forced_eos_token_id exponential_decay_length_penalty suppress_tokens begin_suppress_tokens sequence_bias guidance_scale
watermarking_config num_return_sequences output_attentions output_hidden_states output_scores output_logits
return_dict_in_generate encoder_no_repeat_ngram_size decoder_start_token_id eos_token_id prompt_lookup_num_tokens
assistant_early_exit prefill_chunk_size use_mtp token_healing low_memory cache_config max_cache_len compile_config
disable_compile continuous_batching_config remove_invalid_values is_assistant num_assistant_tokens
num_assistant_tokens_schedule assistant_confidence_threshold assistant_lookbehind assistant_ensemble_weight
target_lookbehind speculation_type max_matching_ngram_size pad_token_id bos_token_id transformers_version early_stopping
penalty_alpha dola_layers diversity_penalty num_beam_groups constraints force_words_ids
"""


def test_the_arguments_of_forward_are_these() -> None:
    functions = [getattr(transformers, name).forward for name in PEERS]
    assert {name for each in functions for name in inspect.signature(each).parameters} == {*FORWARD.split()}


def test_the_options_of_generate_are_these() -> None:
    names = {name for name in transformers.GenerationConfig().to_dict() if not name.startswith("_")}
    assert names <= {*GENERATE.split()}


@torch.no_grad()
def test_padding_is_no_part_of_a_text() -> None:
    """As in fairseq; where it is likely, too."""
    options = {"max_length": 8, "min_length": 7, "num_beams": 1, "do_sample": False}
    texts = writer("bart")[1].generate(documents([17, 9, 12]), sequence_bias={(PAD,): 90.0}, **options)
    assert texts.size(1) >= 7
    assert not texts[:, :7].eq(PAD).any()
