"""Tries the calls of transformers that people make of LED, BigBird and the models of this package.

    python docs/transformers_calls.py

prints the table of docs/transformers.md: `yes`, `refused` with a line that names the argument, `no` for another error,
and `-` where a model has no such use. A test compares it with the page.
"""

import copy
import logging
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from hat_fairseq import hf
from hat_fairseq.data.bpe import LearnedBpe
from hat_fairseq.data.dictionary import Dictionary
from hat_fairseq.data.options import Settings
from hat_fairseq.data.pipeline import FILE_NAME, TextPipeline

TEXTS = ["The bridge was closed. It opened on Monday.", "A committee met. It decided nothing."]
TARGETS = ["The bridge is open.", "Nothing was decided."]
SIZES = {"encoder_embed_dim": 16, "encoder_ffn_embed_dim": 32, "encoder_layers": 2, "encoder_attention_heads": 2}
DECODER = {name.replace("encoder", "decoder"): value for name, value in SIZES.items()}
WORDS = sorted({word for text in (*TEXTS, *TARGETS) for word in text.replace(".", " .").split()})


class Peer:
    """One kind of model: its tokenizer, and a folder for the encoder and for the encoder-decoder, or None."""

    def __init__(self, folder: Path, tokenizer: Any, encoder: Any = None, writer: Any = None) -> None:
        self.tokenizer, self.folders = tokenizer, dict[str, Path]()
        for name, model in (("encoder", encoder), ("writer", writer)):
            if model is not None:
                model.save_pretrained(folder / name)
                tokenizer.save_pretrained(folder / name)
                self.folders[name] = folder / name
        self.any = next(iter(self.folders.values()))

    def load(self, auto: str, which: str = "encoder", **options: Any) -> Any:
        if which not in self.folders:
            raise LookupError(which)
        return getattr(transformers, auto).from_pretrained(self.folders[which], **options).eval()

    def inputs(self, **options: Any) -> Any:
        return self.tokenizer(TEXTS, padding=True, return_tensors="pt", **options)

    def loss(self, auto: str, labels: Any, which: str = "encoder", **options: Any) -> Any:
        model, inputs = self.load(auto, which, **options), self.inputs()
        inputs = {name: x for name, x in inputs.items() if name in ("input_ids", "attention_mask")}
        value = model(**inputs, **(labels if isinstance(labels, dict) else {"labels": labels})).loss
        value.backward()
        return value

    def base(self, **options: Any) -> Any:
        which = "encoder" if "encoder" in self.folders else "writer"
        return self.load("AutoModel", which, **options)

    def out(self, **options: Any) -> Any:
        inputs = self.inputs()
        return self.base()(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"], **options)

    def generate(self, **options: Any) -> Any:
        inputs = self.inputs()
        ids = {name: inputs[name] for name in ("input_ids", "attention_mask")}
        return self.load("AutoModelForSeq2SeqLM", "writer").generate(**ids, max_new_tokens=4, **options)


def embedded(peer: Peer) -> Any:
    ids, model = peer.inputs()["input_ids"], peer.base()
    more = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    return model(inputs_embeds=model.get_input_embeddings()(ids), **more)


def with_lora(peer: Peer) -> Any:
    from peft import LoraConfig, get_peft_model

    return get_peft_model(peer.base(), LoraConfig(target_modules="all-linear"))


def resized(peer: Peer) -> Any:
    model = peer.base()
    model.resize_token_embeddings(model.get_input_embeddings().num_embeddings + 8)
    return model(input_ids=peer.inputs()["input_ids"])


def states(peer: Peer, name: str, **options: Any) -> None:
    """Looks for states or weights of all layers, which an encoder-decoder has under the name of its encoder."""
    out = peer.out(**options)
    present(bool(out.get(name) or out.get(f"encoder_{name}")))


def present(value: bool) -> None:
    """Raises AssertionError for a result that is not there."""
    assert value


CLASSES = torch.tensor([0, 1])
CALLS: dict[str, Callable[[Peer], Any]] = {
    "`AutoModel.from_pretrained(folder)`": lambda p: p.base(),
    "`AutoModelForMaskedLM`, `labels=`": lambda p: p.loss("AutoModelForMaskedLM", p.inputs()["input_ids"]),
    "`AutoModelForSequenceClassification`, `labels=`": lambda p: p.loss("AutoModelForSequenceClassification", CLASSES),
    "the same with `num_labels=5`": lambda p: p.loss("AutoModelForSequenceClassification", CLASSES, num_labels=5),
    "`AutoModelForTokenClassification`, `labels=`": lambda p: p.loss(
        "AutoModelForTokenClassification", torch.zeros_like(p.inputs()["input_ids"])
    ),
    "`AutoModelForQuestionAnswering`": lambda p: p.loss(
        "AutoModelForQuestionAnswering", {"start_positions": CLASSES, "end_positions": CLASSES}
    ),
    "`AutoModelForMultipleChoice`": lambda p: p.load("AutoModelForMultipleChoice")(
        input_ids=p.inputs()["input_ids"].unsqueeze(0)
    ),
    "`AutoModelForSeq2SeqLM`, `labels=`": lambda p: p.loss(
        "AutoModelForSeq2SeqLM",
        p.tokenizer(text_target=TARGETS, padding=True, return_tensors="pt")["input_ids"],
        "writer",
    ),
    "`output_hidden_states=True`": lambda p: states(p, "hidden_states", output_hidden_states=True),
    "`output_attentions=True`, full attention": lambda p: states(p, "attentions", output_attentions=True),
    "`return_dict=False`": lambda p: present(isinstance(p.out(return_dict=False), tuple)),
    "`inputs_embeds=` alone": embedded,
    "an argument that does not exist": lambda p: p.out(no_such_argument=1),
    "`resize_token_embeddings`": resized,
    "`get_input_embeddings`": lambda p: present(p.base().get_input_embeddings() is not None),
    "`gradient_checkpointing_enable`": lambda p: p.base().train().gradient_checkpointing_enable(),
    "`from_pretrained(folder, dtype=bfloat16)`": lambda p: p.base(dtype=torch.bfloat16),
    "`config.hidden_size`, `num_hidden_layers`": lambda p: present(
        (p.base().config.hidden_size, p.base().config.num_hidden_layers) == (16, 2)
    ),
    "`deepcopy`": lambda p: copy.deepcopy(p.base()),
    "LoRA of peft on `all-linear`": with_lora,
    "`generate(num_beams=4)`": lambda p: p.generate(num_beams=4),
    "`generate(do_sample=True)`": lambda p: p.generate(do_sample=True),
    "`generate(output_scores=True)`": lambda p: present(
        bool(p.generate(output_scores=True, return_dict_in_generate=True).scores)
    ),
    "`generate(output_attentions=True)`": lambda p: present(
        p.generate(output_attentions=True, return_dict_in_generate=True).cross_attentions[0] is not None
    ),
    "`generate(prompt_lookup_num_tokens=2)`": lambda p: p.generate(prompt_lookup_num_tokens=2),
    "`generate(no_repeat_ngram_size=2)`": lambda p: p.generate(no_repeat_ngram_size=2),
    "`tokenizer(string)`": lambda p: present(isinstance(p.tokenizer(TEXTS[0])["input_ids"][0], int)),
    "`tokenizer(list)`": lambda p: present(len(p.tokenizer(TEXTS)["input_ids"]) == 2),
    "`tokenizer(..., text_target=...)`": lambda p: present("labels" in p.tokenizer(TEXTS, text_target=TARGETS)),
    "`truncation=True, max_length=6`": lambda p: present(
        len(p.tokenizer(TEXTS[0], truncation=True, max_length=6)["input_ids"]) == 6
    ),
    '`padding="max_length", max_length=64`': lambda p: present(
        len(p.tokenizer(TEXTS[0], padding="max_length", max_length=64)["input_ids"]) == 64
    ),
    "`pad_to_multiple_of=8`": lambda p: present(
        len(p.tokenizer(TEXTS[0], padding=True, pad_to_multiple_of=8)["input_ids"]) % 8 == 0
    ),
    "`return_offsets_mapping=True`": lambda p: p.tokenizer(TEXTS[0], return_offsets_mapping=True)["offset_mapping"],
    '`return_tensors="pt"`': lambda p: p.inputs(),
    "`encode`, `tokenize`": lambda p: (p.tokenizer.encode(TEXTS[0]), p.tokenizer.tokenize(TEXTS[0])),
    "`decode(skip_special_tokens=True)`": lambda p: p.tokenizer.decode(
        p.tokenizer(TEXTS[0])["input_ids"], skip_special_tokens=True
    ),
    "`decode` of labels with -100": lambda p: p.tokenizer.decode([5, -100, -100]),
    "`add_tokens` of a new word": lambda p: p.tokenizer.add_tokens(["unheard-of"]),
    "`model_max_length`": lambda p: present(p.tokenizer.model_max_length == 64),
    '`pipeline("text-classification")` on strings': lambda p: transformers.pipeline(
        "text-classification", p.load("AutoModelForSequenceClassification"), tokenizer=p.tokenizer
    )(TEXTS),
    '`pipeline("feature-extraction")` on strings': lambda p: transformers.pipeline(
        "feature-extraction", p.base(), tokenizer=p.tokenizer
    )(TEXTS, batch_size=2),
}


def outcome(call: Callable[[Peer], Any], peer: Peer) -> str:
    """Returns yes, refused, no or -; refused is a ValueError."""
    try:
        call(peer)
    except LookupError as error:
        return "-" if str(error) in ("'encoder'", "'writer'", "encoder", "writer") else "no"
    except ValueError as error:
        return "-" if "Unrecognized configuration class" in str(error) else "refused"
    except Exception:
        return "no"
    return "yes"


def word_tokenizer() -> Any:
    vocabulary = {word: n for n, word in enumerate(["<s>", "<pad>", "</s>", "<unk>", "<mask>", *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    special = {
        "bos_token": "<s>",
        "pad_token": "<pad>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "mask_token": "<mask>",
    }
    special |= {"cls_token": "<s>", "sep_token": "</s>"}
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **special)


def own_tokenizer(folder: Path) -> Any:
    (folder / "bin").mkdir(parents=True)
    pipeline = TextPipeline(Settings(splitter="punctuation"), LearnedBpe.learn([*TEXTS, *TARGETS] * 3, 60))
    pipeline.save(folder / "bin")
    tokens = sorted({token for text in (*TEXTS, *TARGETS) for token in pipeline.bpe.encode(text.replace(".", " ."))})
    tokens = sorted({*tokens, *(t for text in (*TEXTS, *TARGETS) for t in pipeline.bpe.encode(text))})
    Dictionary((token, 1) for token in tokens).save(folder / "bin/dict.source.txt")
    return hf.HatTokenizer(str(folder / "bin" / FILE_NAME), limit=64)


def peers(folder: Path) -> dict[str, Peer]:
    torch.manual_seed(0)
    words, size = word_tokenizer(), len(WORDS) + 5
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "vocab_size": size}
    led = transformers.LEDConfig(
        d_model=16, encoder_layers=2, decoder_layers=2, encoder_ffn_dim=32, decoder_ffn_dim=32, attention_window=[8, 8],
        encoder_attention_heads=2, decoder_attention_heads=2, max_encoder_position_embeddings=64,
        max_decoder_position_embeddings=64, decoder_start_token_id=2, **ids,
    )  # fmt: skip
    bird = transformers.BigBirdConfig(
        hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32, max_position_embeddings=64,
        attention_type="original_full", **ids,
    )  # fmt: skip
    own = own_tokenizer(folder / "own_tokenizer")
    encoder = hf.HatConfig("hat_roberta", SIZES | {"max_positions": 64, "encoder_learned_pos": True}, len(own.source))
    writer = hf.HatConfig("hat_transformer", SIZES | DECODER | {"share_all_embeddings": True}, len(own.source))
    return {
        "LED": Peer(folder / "led", words, None, transformers.LEDForConditionalGeneration(led)),
        "BigBird": Peer(folder / "bird", words, transformers.BigBirdForMaskedLM(bird)),
        "hat_fairseq": Peer(folder / "own", own, hf.HatForMaskedLM(encoder), hf.HatForConditionalGeneration(writer)),
    }


def table() -> str:
    """Returns the rows of the table."""
    with tempfile.TemporaryDirectory() as folder:
        kinds = peers(Path(folder))
        rows = [
            f"| {name} | {' | '.join(outcome(call, each) for each in kinds.values())} |" for name, call in CALLS.items()
        ]
        return "\n".join([f"| call | {' | '.join(kinds)} |", f"|---|{'---|' * len(kinds)}", *rows])


if __name__ == "__main__":
    transformers.logging.set_verbosity_error()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    print(table())
