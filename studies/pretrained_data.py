"""MiniLM for `pretrained_hierarchy.py`: documents with the states of its frozen lower layers, and upper layers of arms.

Legend: T tokens, N units (turns or sentences) of a document, C channels.
"""

import argparse
import hashlib
import pickle
import shlex
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NoReturn

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.tasks import TASK_REGISTRY
from harness import where
from pretrained_tasks import ALONE, BOS, QUESTIONS, WIDTH, Document, Splits
from torch import Tensor

from hat_fairseq.data.ids import read_ids
from hat_fairseq.kernels.precision import AUTO, choose_precision
from hat_fairseq.modules.batch_layout import span_means
from hat_fairseq.modules.layers import run_layer
from hat_fairseq.register import register
from hat_fairseq.tasks.encoder_task import EncoderTaskConfig

register()  # registers the architectures
LOWER, EOS = 4, 2
ROBERTA = "hat_roberta_minilm --no-hierarchy --encoder-attention"
SEGMENTS = "hierarchical_transformer_minilm --max-segments 400 --layout"
CHUNKS = f"{SEGMENTS} 'S|S|S|S|S|S' --segment-length 512"
DEVICE = torch.device(where())
UNREADABLE = (OSError, ValueError, KeyError, EOFError, RuntimeError, pickle.UnpicklingError)
PRODUCTS = choose_precision(AUTO, DEVICE)
products = partial(torch.autocast, DEVICE.type, torch.bfloat16, enabled=PRODUCTS == "bf16")


class Models:
    """MiniLM with the attention of an arm."""

    def __init__(self, dictionary: Any, checkpoint: Path) -> None:
        self.dictionary = dictionary
        self.state = torch.load(checkpoint, map_location="cpu", weights_only=False)["model"]

    def model(self, flags: str, seed: int) -> Any:
        """The encoder that these flags say, from MiniLM; new parts have the initial values of the seed."""
        torch.manual_seed(seed)
        model = build(flags, self.dictionary)
        model.load_state_dict({name: tensor.clone() for name, tensor in self.state.items()})
        return model.core.eval().to(DEVICE)


class Data(Models):
    """The documents of a task, MiniLM, and the states of its lower layers, which are kept in files."""

    def __init__(self, task: Any, folder: Path, checkpoint: Path, cache: Path) -> None:
        self.task, self.folder, self.cache = task, folder, cache
        self.reader = TASK_REGISTRY[task.name].setup_task(EncoderTaskConfig(data=str(folder)))
        super().__init__(self.reader.source_dictionary, checkpoint)
        self.splits = {split: list(self._documents(split)) for split in ("train", "valid", "test")}
        cache.mkdir(parents=True, exist_ok=True)

    def _documents(self, split: str) -> Iterator[Document]:
        self.reader.load_dataset(split)
        dataset = self.reader.datasets[split]
        for number, line in enumerate(read_ids(self.folder / f"{split}.ids")):
            sample = dataset[number]
            tokens, questions = sample["tokens"][0][:-1], []
            if ends := tokens.eq(EOS).nonzero().flatten().tolist():  # questions `</s> </s>` units
                before, tokens = tokens[: ends[0]], tokens[ends[1] + 1 :]
                starts = before.eq(BOS).nonzero().flatten().tolist()
                parts = before.split([b - a for a, b in zip(starts, [*starts[1:], len(before)], strict=True)])
                questions = [torch.cat([part, part.new_tensor([EOS])]) for part in parts]
            gold = torch.tensor(sample["target"]).view(*([len(questions)] * bool(questions)), -1)
            yield Document(line.document_id, tokens, questions, gold)

    def parts(self, seed: int) -> Splits:
        """The documents for training, validation and test; of some tasks these are drawn, by the seed."""
        return self.task.split(self.splits, seed) if hasattr(self.task, "split") else self.splits

    @torch.no_grad()
    def prepare(self, model: str, questions: bool = False) -> None:
        """Gives all documents the vectors of their units, or of their questions, by the frozen model of these flags."""
        name = QUESTIONS if questions else model
        path = self.cache / f"vectors.{hashlib.sha256(name.encode()).hexdigest()[:8]}.pt"
        documents = [each for split in self.splits.values() for each in split]
        if not path.is_file():
            encoder, vectors = self.model(model, 1), []
            for document in documents:
                units = [ids[1:-1].tolist() for ids in document.questions] if questions else document.units
                if model != ALONE:
                    vectors.append(vectors_of(encoder, document, self.lower(document)))
                elif units:
                    with products():
                        vectors.append(encoder.alone(list(map(tuple, units))))
                else:
                    vectors.append(torch.zeros(0, WIDTH, device=DEVICE))
            torch.save([each.half() for each in vectors], path)
        for document, each in zip(documents, torch.load(path, map_location=DEVICE), strict=True):
            document.vectors[name] = each.float()

    @cached_property
    def below(self) -> tuple[Any, Any]:
        """The models whose lower layers read documents and questions."""
        return self.model(CHUNKS, 1), self.model(f"{ROBERTA} full", 1)

    @torch.no_grad()
    def lower(self, document: Document, layers: int = LOWER) -> tuple[Tensor, Tensor]:
        """The states of the lower layers: of the tokens of the document, and of its questions, one after the other."""
        path = self.cache / f"{document.id}.{'lower' if layers == LOWER else f'lower{layers}'}.pt"
        if not path.is_file():
            chunks, full = self.below
            of_questions = [states_of(full, ids[None], layers) for ids in document.questions]
            asked = torch.cat([torch.zeros(1, 0, WIDTH, device=DEVICE), *of_questions], dim=1)
            torch.save((states_of(chunks, document.tokens[None], layers).half(), asked.half()), path)
        return torch.load(path, map_location=DEVICE)


def refuse(parser: ArgumentParser, reason: str) -> NoReturn:
    """Ends a command with one line and the status 2."""
    parser.exit(2, f"{parser.prog}: error: {' '.join(reason.split())}\n")


def opened(parser: ArgumentParser, task: Any, folder: Path, checkpoint: Path, cache: Path) -> Data:
    """Reads the documents and the checkpoint that a command names, or refuses them."""
    try:
        return Data(task, folder, checkpoint, cache)
    except UNREADABLE as error:
        refuse(parser, f"{folder}, {checkpoint}: {error}")


def opened_models(parser: ArgumentParser, checkpoint: Path) -> Models:
    """Reads a checkpoint with the vocabulary beside it, or refuses them."""
    try:
        dictionary = Dictionary.load(str(checkpoint.with_name("dict.txt")))
        dictionary.add_symbol("<mask>")
        return Models(dictionary, checkpoint)
    except UNREADABLE as error:
        refuse(parser, f"{checkpoint} and dict.txt beside it: {error}; `hat import minilm --out minilm/model.pt`")


def build(flags: str, dictionary: Any) -> Any:
    """The model of an architecture and flags, without dropout."""
    arch, *words = shlex.split(flags)
    parser = ArgumentParser(argument_default=argparse.SUPPRESS, allow_abbrev=False)
    ARCH_MODEL_REGISTRY[arch].add_args(parser)
    args = parser.parse_args([*words, "--dropout", "0", "--attention-dropout", "0"])
    args.arch = arch
    ARCH_CONFIG_REGISTRY[arch](args)
    return ARCH_MODEL_REGISTRY[arch].build_model(args, Namespace(source_dictionary=dictionary))


def states_of(encoder: Any, tokens: Tensor, lower: int = LOWER, states: Tensor | None = None) -> Tensor:
    """The (1, T, C) states of (1, T) tokens after the lower layers, or of those `states` after the upper ones."""
    batch = encoder.arrange(tokens.to(DEVICE))
    layout, positions = batch.layout, [encoder.segment_positions] if hasattr(encoder, "segment_positions") else []
    with products():
        if states is None:
            x = encoder.embed(batch.tokens, batch.rows)
        else:
            x = states.float()
            if layout.slots is not None:
                x = layout.slots.put(x.new_zeros(1, layout.slots.size, WIDTH), x)
            if layout.representatives is not None and layout.representatives.inserted:  # as the first of its block
                x = layout.representatives.scatter(x, layout.representatives.gather(x.roll(-1, dims=1)))
        for layer in encoder.layers[:lower] if states is None else encoder.layers[lower:]:
            x = run_layer(layer, x, layout, *positions)
    return layout.gather(x).float()


def vectors_of(
    encoder: Any, document: Document, lower: tuple[Tensor, Tensor], most: int | None = None, layers: int = LOWER
) -> Tensor:
    """The (N, C) vectors of the units that begin among the first `most` tokens, by the upper layers."""
    tokens, states, before = document.tokens[None, :most], lower[0][:, :most], 0
    if getattr(encoder.config, "global_tokens", None) == "question":  # `<s> question <s> question </s> <s> unit ...`
        asked = torch.cat(document.questions)
        real = asked.ne(EOS)
        real[-1] = True
        tokens = torch.cat([asked[real][None], tokens], dim=1)
        states = torch.cat([lower[1][:, real.to(states.device)], states], dim=1)
        before = int(real.sum())
    states = states_of(encoder, tokens, layers, states)[:, before:]
    owners = document.owners[None, :most].to(DEVICE)
    return F.normalize(span_means(states, owners, int(owners.max()) + 1)[0][0], dim=1)
