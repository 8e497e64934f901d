"""Our search and our generator find the hypotheses and scores of fairseq's generator, under every option."""

import math
from argparse import Namespace
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import pytest
import torch
from building import EOS, PAD, TINY, Vocabulary, build, documents, targets
from fairseq import search
from fairseq.dataclass.configs import GenerationConfig
from fairseq.sequence_generator import SequenceGenerator
from helpers import assert_close, block_texts_alone, rows_are_alone
from searching import our_search
from torch import Tensor

from hat_fairseq.data.dictionary import SPECIAL
from hat_fairseq.generation.options import DEFAULTS, parse_generation_options
from hat_fairseq.generation.shared_memory import SharedMemoryGenerator
from hat_fairseq.kernels import set_precision, torch_private
from hat_fairseq.kernels.precision import PackedLinear

LENGTHS = [17, 9, 2, 17, 5]
NO_BF16 = pytest.mark.skipif(not torch_private.BF16, reason="this CPU cannot multiply bf16")
NO_INT8 = pytest.mark.skipif(not torch_private.multiplies_int8(), reason="int8 needs oneDNN and a CPU with VNNI")
LOW = [pytest.param("bf16", marks=NO_BF16), pytest.param("int8", marks=NO_INT8)]
OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "greedy": {"beam_size": 1},
    "wide": {"beam_size": 7, "len_penalty": 2.0},
    "short is better": {"len_penalty": 0.0},
    "unnormalized": {"normalize_scores": False},
    "bigrams": {"no_repeat_ngram_size": 2},
    "trigrams": {"no_repeat_ngram_size": 3, "max_len_b": 60, "min_len": 40},
    "long": {"max_len_b": 90, "min_len": 70},
    "all of one length": {"max_len_b": 15, "min_len": 15},
    "one token": {"max_len_b": 1, "min_len": 1},
    "nothing but the end": {"max_len_b": 0, "min_len": 0},
    "length of the source": {"max_len_a": 1.0, "max_len_b": 2},
    "temperature and unknown": {"temperature": 0.7, "unk_penalty": 2.0},
    "more candidates than words": {"beam_size": 40, "max_len_b": 3, "min_len": 1},
    "as wide as may be": {"beam_size": 58, "max_len_b": 3, "min_len": 0},
}
SEARCHES: dict[str, Callable[[Any], search.Search]] = {
    "sampling": lambda d: search.Sampling(d, -1, -1.0),
    "sampling top k": lambda d: search.Sampling(d, 5, -1.0),
    "sampling top p": lambda d: search.Sampling(d, -1, 0.8),
    "diverse groups": lambda d: search.DiverseBeamSearch(d, 2, 0.5),
    "diverse siblings": lambda d: search.DiverseSiblingsSearch(d, 0.5),
    "allowed words": lambda d: search.PrefixConstrainedBeamSearch(d, lambda document, tokens: [EOS, 5, 6, 7, 8]),
}


def confident(twin: str = "", seed: int = 2, positions: int = 128) -> Any:
    """A random model whose hypotheses differ clearly in score and end at different lengths."""
    model = build("hat_transformer", TINY + twin, seed=seed, max_target_positions=positions).eval()
    with torch.no_grad():
        model.decoder.output_projection.weight.mul_(4)
        model.decoder.output_projection.weight[EOS].mul_(3)
    return model


def without(words: int, *others: int) -> Any:
    """A model in which the first so many words, and these symbols, have probability 0."""
    model = confident()
    ids = torch.tensor([*range(len(SPECIAL), len(SPECIAL) + words), *others])
    model.decoder.output_projection.register_forward_hook(lambda _, __, logits: logits.index_fill(-1, ids, -math.inf))
    return model


def generate(kind: type, models: list[Any], source: Tensor, **options: Any) -> list[list[dict[str, Tensor]]]:
    dictionary = models[0].decoder.dictionary
    prefix, strategy = options.pop("prefix_tokens", None), options.pop("strategy", None)
    ids = options.pop("ids", None)
    if strategy is not None:
        options["search_strategy"] = strategy(dictionary)
    generator = kind(models, dictionary, **{"beam_size": 4, "max_len_b": 15, "min_len": 3, **options})
    block_texts_alone(generator)
    sample: dict[str, Any] = {"net_input": {"src_tokens": source, "src_lengths": source.ne(PAD).sum(1)}}
    if ids is not None:
        sample["id"] = torch.tensor(ids)
    torch.manual_seed(7)
    return generator.generate(models, sample, prefix_tokens=prefix)


def assert_same(models: list[Any], source: Tensor, **options: Any) -> list[list[dict[str, Tensor]]]:
    hypotheses = generate(SharedMemoryGenerator, models, source, **options)
    assert_same_hypotheses(hypotheses, generate(SequenceGenerator, models, source, **options))
    if not options.keys() & {"strategy", "prefix_tokens"}:
        longest = [source.size(1)] * len(source)  # fairseq goes by the longest source of the batch
        ours = our_search(models, source, longest, **{"beam_size": 4, "max_len_b": 15, "min_len": 3, **options})
        assert_same_hypotheses(ours, hypotheses)
    return hypotheses


def assert_same_hypotheses(ones: list[list[dict[str, Tensor]]], others: list[list[dict[str, Tensor]]]) -> None:
    assert [len(beams) for beams in ones] == [len(beams) for beams in others]
    for one, other in zip((h for b in ones for h in b), (h for b in others for h in b), strict=True):
        assert torch.equal(one["tokens"], other["tokens"])
        assert_close(one["score"], other["score"])
        assert_close(one["positional_scores"], other["positional_scores"])


TWINS = pytest.mark.parametrize("twin", ["", " --no-hierarchy", " --decoder-kv-heads 2"], ids=["hat", "plain", "kv"])


@TWINS
def test_a_decoder_step_by_step_is_the_decoder_at_once(twin: str) -> None:
    """Two hypotheses a document, then one; documents that are finished leave the cache."""
    model, source, target = confident(twin), documents(LENGTHS), targets(10, 9)
    memory, state = model.encoder(source), {}
    full = model.decoder(target, memory)[0]
    steps = [model.decoder(target[:, :1], memory, state)[0]]
    keys = state["hat_decoder"].layers[0].encoder_attn.keys
    steps += [model.decoder(target[:, : i + 1], memory, state)[0] for i in range(1, 9)]
    assert state["hat_decoder"].layers[0].encoder_attn.keys is keys  # the memory is projected once
    assert all(step.size(1) == 1 for step in steps)
    assert_close(torch.cat(steps, 1), full)
    target, rows, state = target[::2], torch.tensor([0, 3, 4]), {}
    model.decoder(target[:, :4], memory, state)
    model.decoder.reorder_beams(state, rows, rows)
    rest = [model.decoder(target[rows, : i + 1], memory.select(rows), state)[0] for i in range(4, 9)]
    assert_close(torch.cat(rest, 1), full[::2][rows, 4:])


@TWINS
@pytest.mark.parametrize("precision", LOW)
def test_a_document_alone_and_in_a_batch_in_reduced_precision(twin: str, precision: str) -> None:
    """The encoder's states are equal to the last bit, the decoder's logits up to the rounding of one scale a row.

    Where products depend on the number of rows, all are equal up to rounding.
    """
    model, lengths = confident(twin), [64, 41, 17, 9, 2]
    source, previous = documents(lengths), targets(5, 8)
    expected = model(source, None, previous)[0]
    set_precision(model, precision)
    is_alone = rows_are_alone(precision)
    with torch.no_grad():
        together = model.encoder(source)
        logits = model.decoder(previous, together)[0]
        for row, length in enumerate(lengths):
            alone = model.encoder(source[row : row + 1, :length])
            assert_close(
                logits[row],
                model.decoder(previous[row : row + 1], alone)[0][0],
                torch.bfloat16,
                0.02 if is_alone else 0.1,
            )
            pairs = [(together.tokens[row, :length], alone.tokens[0])]
            if alone.spans is not None:
                pairs.append((together.spans[row, : alone.spans.size(1)], alone.spans[0]))
            for inside, by_itself in pairs:
                assert_close(inside, by_itself, torch.bfloat16, 0.1)
                assert torch.equal(inside, by_itself) or not is_alone
        assert_close(logits, expected, torch.bfloat16, 0.05)


def test_roles_reach_the_encoder() -> None:
    model = build("hat_transformer_tiny", task=Vocabulary(roles=3)).eval()
    outputs = []
    for role in (4, 5):
        generator = SharedMemoryGenerator([model], model.decoder.dictionary, beam_size=2, max_len_b=6)
        source = documents([9, 9])
        sample = {"net_input": {"src_tokens": source, "roles": torch.full_like(source, role)}}
        outputs.append(generator.generate([model], sample)[0][0]["positional_scores"])
    assert not torch.equal(*outputs)


@pytest.mark.parametrize(
    "flags",
    ["", *(pytest.param(flags, marks=pytest.mark.slow) for flags in (" --no-hierarchy", " --decoder-kv-heads 1"))],
)
@pytest.mark.parametrize(("name", "options"), OPTIONS.items())
def test_hypotheses_are_those_of_fairseq_under_every_option(name: str, options: dict[str, Any], flags: str) -> None:
    model = confident(flags)
    hypotheses = assert_same([model], documents(LENGTHS), **options)
    if name == "defaults":
        assert len({len(beams[0]["tokens"]) for beams in hypotheses}) > 1, "no document ends before another"
        for row, length in enumerate(LENGTHS):
            alone = assert_same([model], documents(LENGTHS)[row : row + 1, :length])
            assert_same_hypotheses(alone, hypotheses[row : row + 1])


@pytest.mark.parametrize("options", [{"max_len_b": 2}, {"max_len_b": 1, "beam_size": 1, "no_repeat_ngram_size": 2}])
def test_the_longest_text_of_a_document_follows_from_its_own_source(options: dict[str, Any]) -> None:
    """So its hypotheses are those that fairseq finds for it alone."""
    model, source, options = (
        confident(),
        documents(LENGTHS),
        {"max_len_a": 0.7, "min_len": 2, "beam_size": 3, **options},
    )
    together, lengths = our_search([model], source, **options), set()
    for row, length in enumerate(LENGTHS):
        alone = generate(SequenceGenerator, [model], source[row : row + 1, :length], **options)
        assert_same_hypotheses(together[row : row + 1], alone)
        lengths |= {len(each["tokens"]) - int(0.7 * length) - options["max_len_b"] for each in alone[0]}
    assert max(lengths) == 1, "no hypothesis is as long as it may be"
    with pytest.raises(ValueError, match="--min-len 4 is more than the longest text .*, 3 tokens for a source of 2"):
        our_search([model], source, **options | {"min_len": 4, "max_len_b": 2})


def test_words_that_cannot_follow() -> None:
    assert_same([without(7)], documents(LENGTHS))
    assert_same([without(20)], documents(LENGTHS), beam_size=50, max_len_b=1, min_len=1)  # fewer than hypotheses


def test_a_beam_wider_than_the_vocabulary_is_narrowed() -> None:
    options = {"beam_size": 70, "max_len_b": 3, "min_len": 0}
    hypotheses = generate(SharedMemoryGenerator, [confident()], documents(LENGTHS), **options)
    assert [len(beams) for beams in hypotheses] == [58] * len(LENGTHS)  # of 60 words
    assert all(int(each["tokens"].eq(EOS).sum()) == 1 for beams in hypotheses for each in beams)
    assert_same_hypotheses(our_search([confident()], documents(LENGTHS), **options), hypotheses)


def test_of_ensembles_small_and_large_batches_and_nothing_but_padding() -> None:
    both = [confident(seed=0), confident(" --no-hierarchy", seed=1)]
    for name in ("defaults", "bigrams", "temperature and unknown"):
        assert_same(both, documents(LENGTHS), **OPTIONS[name])
    for size in (1, 33):
        assert_same([confident()], documents([1 + n % 11 for n in range(size)]))
    assert_same([confident()], torch.cat([documents([5]), torch.full((1, 5), PAD)]))


@pytest.mark.parametrize("name", SEARCHES)
def test_other_searches_share_the_memory(name: str) -> None:
    assert_same([confident()], documents(LENGTHS), strategy=SEARCHES[name])


def test_diverse_beams_do_not_depend_on_the_batch_or_its_ids() -> None:
    """fairseq indexes what it knows of a batch by the ids of the data set."""
    model, source, strategy = confident(), documents(LENGTHS), SEARCHES["diverse groups"]
    for ids in ([3, 0, 4, 2, 1], [7, 100, 5, 6, 8]):
        hypotheses = generate(SharedMemoryGenerator, [model], source, strategy=strategy, ids=ids)
        for index, (length, identifier) in enumerate(zip(LENGTHS, ids, strict=True)):
            row = source[index : index + 1, :length]
            alone = generate(SharedMemoryGenerator, [model], row, strategy=strategy, ids=[identifier])
            assert_same_hypotheses(alone, hypotheses[index : index + 1])


def test_prefixes_of_different_lengths_and_one_that_ends() -> None:
    prefix = torch.tensor([[5, 6, 7], [7, PAD, PAD], [8, 9, PAD], [5, EOS, PAD], [PAD, PAD, PAD]])
    for beams, row in zip(assert_same([confident()], documents(LENGTHS), prefix_tokens=prefix), prefix, strict=True):
        wanted = row[row.ne(PAD)].tolist()
        assert all(h["tokens"][: len(wanted)].tolist() == wanted for h in beams)


def test_a_model_without_numbers_is_an_error_and_not_an_empty_text() -> None:
    model = confident()
    with torch.no_grad():
        model.decoder.output_projection.weight[7] = float("nan")
    generators = [partial(generate, SharedMemoryGenerator, strategy=each) for each in (None, *SEARCHES.values())]
    for searching in (our_search, *generators):
        with pytest.raises(ValueError, match="no text for 5 of 5 documents.*not numbers"):
            searching([model], documents(LENGTHS))


@pytest.mark.parametrize("searching", [our_search, partial(generate, SharedMemoryGenerator)])
def test_a_document_without_a_hypothesis_is_an_error(searching: Any) -> None:
    model = without(55, EOS)
    with pytest.raises(ValueError, match="no text for .*: no token may follow: give a smaller --min-len"):
        searching([model], documents(LENGTHS), no_repeat_ngram_size=2)


def test_a_model_prepared_for_inference_generates_the_same() -> None:
    flags = "--encoder-embed-dim 256 --decoder-embed-dim 256 --encoder-attention-heads 4 --decoder-attention-heads 4 "
    flags += "--encoder-layers 1 --decoder-layers 2 --dropout 0.1 --activation-fn gelu --share-all-embeddings "
    source = documents(LENGTHS)
    model = build("hat_transformer", flags + "--decoder-kv-heads 1", max_target_positions=128).eval()
    with torch.no_grad():
        model.decoder.output_projection.weight.mul_(2)
    expected = generate(SequenceGenerator, [model], source, min_len=8)
    two = Namespace(generation=Namespace(), common=Namespace(bf16=True), task=Namespace(cpu_precision="int8"))
    with pytest.raises(ValueError, match="choose one precision, not bf16 and int8"):
        model.prepare_for_inference_(two)
    with pytest.raises(ValueError, match="--cpu-precision int8: the model is on meta; give --fp16 or --bf16 there"):
        deepcopy(model).to("meta").prepare_for_inference_(Namespace(task=two.task, generation=Namespace()))
    model.prepare_for_inference_(Namespace(generation=Namespace()))
    assert any(isinstance(module, PackedLinear) for module in model.modules())
    assert_same_hypotheses(assert_same([model], source, min_len=8), expected)


@pytest.mark.parametrize("strategy", [None, SEARCHES["sampling"]], ids=["beams", "sampling"])
def test_the_hypotheses_of_a_document_share_its_memory(strategy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model, shapes = confident(), []
    forward = model.decoder.forward

    def watched(tokens: Tensor, encoder_out: Any, incremental_state: Any) -> Any:
        out = forward(tokens, encoder_out, incremental_state)
        keys = incremental_state["hat_decoder"].layers[0].encoder_attn.keys
        shapes.append((len(tokens), len(encoder_out.tokens), len(keys)))
        return out

    monkeypatch.setattr(model.decoder, "forward", watched)
    generate(SharedMemoryGenerator, [model], documents(LENGTHS), strategy=strategy)
    assert shapes[0] == (20, 5, 5)
    assert shapes[-1][0] < 20  # some documents end before others
    assert all(hypotheses == 4 * rows == 4 * keys for hypotheses, rows, keys in shapes)


def test_a_text_ends_where_the_positions_of_the_decoder_end() -> None:
    (hypotheses, *_) = assert_same([confident(positions=9)], documents(LENGTHS), max_len_b=40, min_len=8)
    assert {len(each["tokens"]) for each in hypotheses} == {9}


def test_options_have_fairseqs_defaults() -> None:
    assert parse_generation_options('{"beam": 4, "max_len_b": 30}', "--generation") == {"beam": 4, "max_len_b": 30}
    assert vars(GenerationConfig()).items() >= DEFAULTS.items()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"beem": 2}', "--generation: unknown generation option 'beem'; known are .*beam"),
        ("{beam: 2}", "--generation {beam: 2}: not JSON"),
        ("[4]", "--generation .4.: expected a JSON object"),
        ('{"beam": 0}', "beam must be at least 1, not 0"),
        ('{"min_len": -1}', "min_len must be at"),
        ('{"beam": true}', "^--generation: beam must be a whole number, not True"),
        ('{"beam": "4"}', "^--generation: beam must be a whole number, not '4'"),
        ('{"max_len_b": 20.5}', "^--generation: max_len_b must be a whole number, not 20.5"),
        ('{"max_len_a": -1}', "^--generation: max_len_a must be at least 0, not -1"),
        ('{"sampling": 1}', "^--generation: sampling must be true or false, not 1"),
        ('{"temperature": null}', "^--generation: temperature must be a number, not None"),
        ('{"no_repeat_ngram_size": 1}', "^--generation: no_repeat_ngram_size=1 would allow no word twice"),
        ('{"temperature": -0.5}', "temperature must be more than 0, not -0.5"),
        ('{"temperature": 0}', "temperature must be more than 0, not 0"),
    ],
)
def test_options_without_a_meaning_are_refused(text: str, message: str) -> None:
    """fairseq ignores unknown names and numbers that make no sense."""
    with pytest.raises(ValueError, match=message):
        parse_generation_options(text, "--generation")


def test_options_of_a_search_that_contradict_it_are_refused() -> None:
    constraints, model = torch.tensor([[1, 1, 5, 0]]), confident()
    sample = {"net_input": {"src_tokens": documents([5]), "src_lengths": torch.tensor([5])}}
    with pytest.raises(ValueError, match="lexical constraints need --constraints"):
        SharedMemoryGenerator([model], model.decoder.dictionary).generate([model], sample, constraints=constraints)
    constrained = search.LexicallyConstrainedBeamSearch(model.decoder.dictionary, "ordered")
    with pytest.raises(ValueError, match="only fairseq-interactive reads"):
        SharedMemoryGenerator([model], model.decoder.dictionary, search_strategy=constrained).generate([model], sample)
    with pytest.raises(ValueError, match="--no-repeat-ngram-size 1"):
        generate(SharedMemoryGenerator, [confident()], documents([5]), no_repeat_ngram_size=1)


@pytest.mark.parametrize("searching", [partial(generate, SharedMemoryGenerator), partial(our_search, max_len_b=15)])
def test_a_shortest_text_beyond_the_longest_is_refused(searching: Any) -> None:
    with pytest.raises(ValueError, match="--min-len 20 is more than the longest text allowed, 15 tokens"):
        searching([confident()], documents([5]), min_len=20)
