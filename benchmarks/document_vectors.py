"""Vectors of the units of documents by the encoder of a folder, with the attention of each arm in its upper layers.

Legend: T tokens, N units (sentences or turns) of a document, C channels.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from harness import Facts, Job, forget_peak, peak_memory, process_of
from torch import Tensor

from hat_fairseq.inference.loading import load
from hat_fairseq.inference.rows import row_of
from hat_fairseq.kernels import choose_precision, set_precision
from hat_fairseq.model_folder import ModelFolder
from hat_fairseq.modules.batch_layout import span_means
from hat_fairseq.modules.in_context import nearby_means
from hat_fairseq.modules.layers import run_layer
from hat_fairseq.networks import NETWORKS, build
from hat_fairseq.networks.config import ATTENTIONS, flags_of
from hat_fairseq.recipes.labels import OF_TRAINING
from hat_fairseq.units.evidence import Evidence

CHUNK, AROUND = 512, 384  # tokens
ALONE, CONTEXT, WINDOWED = "alone", "in context", f"context {AROUND}"
CHUNKS, FIRST, WHOLE = "chunks", f"first {CHUNK}", "whole encoder"
Settings = dict[str, Any]
Arms = dict[str, tuple[str, Settings]]


def arms_of(layers: int) -> Arms:
    """The network and the settings of each arm; the others of the encoder stay."""
    plain = {"no_hierarchy": True}
    window = {**plain, "encoder_attention": "window", "attention_window": 128}
    blocks = {"sparse_block": 64, "sparse_window": 3, "sparse_first": 0, "sparse_last": 0, "sparse_random": 0}
    segments = {"layout": "|".join("S" * layers), "max_segments": 1 << 14}
    return {
        CHUNKS: ("hierarchical_transformer", {**segments, "segment_length": CHUNK}),
        "segments of 128": ("hierarchical_transformer", {**segments, "segment_length": 128}),
        "windows of 128": ("hat_roberta", window),
        "blocks of 64": ("ernie_sparse", {**plain, **blocks}),
        "full": ("hat_roberta", plain),
    }


@dataclass
class Document:
    """A document: its record, (T,) ids, the ids of its questions and units, and vectors of units by arm."""

    record: Any
    tokens: Tensor
    questions: list[Any]
    units: list[Any]
    asked: Tensor | None = None
    vectors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.record.id)


class Encoders:
    """The encoder of a folder: its vectors of sentences, and its upper layers with the attention of each arm."""

    def __init__(self, folder: Path, more: Arms, only: str | None = None) -> None:
        """Builds the arms, or one of them; ValueError for another folder, or if none could be compared."""
        self.folder, self.own = folder, ModelFolder.open(folder)
        if self.own.description is None or self.own.description["network"] != "hat_roberta":
            raise ValueError(f"{folder}: no encoder of hat import, whose network is hat_roberta")
        self.settings, self.vocabulary = self.own.description["settings"], self.own.description["vocab_size"]
        layers = int(self.settings["encoder_layers"])
        self.lower = layers * 2 // 3
        self.arms, self.refused = dict[str, Any](), dict[str, str]()
        for name, (network, settings) in {**arms_of(layers), **more}.items():
            if only in (None, name):
                try:
                    self.arms[name] = self.network(network, self.changed(network, settings)).core
                except ValueError as error:
                    self.refused[name] = str(error)
        if CHUNKS in self.refused:
            raise ValueError(f"{folder}: no arm can be compared: {self.refused[CHUNKS]}")

    @cached_property
    def loaded(self) -> Any:
        return load(self.folder, precision="auto")

    @cached_property
    def units(self) -> Any:
        """The encoder that reads each unit alone, or documents in chunks that overlap."""
        about = {name: value for name, value in self.settings.items() if not name.startswith(OF_TRAINING)}
        return self.network("hat_units", about).core

    @cached_property
    def whole(self) -> Any:
        return self.network("hat_roberta", self.settings).core

    def changed(self, network: str, settings: Settings) -> Settings:
        """The settings of the encoder that a network has, but for those of its attention, and with those of an arm."""
        of_attention = {*flags_of(ATTENTIONS.values()), "encoder_attention", "encoder_attention_layers"}
        known = NETWORKS[network].__dataclass_fields__.keys() - of_attention
        return {name: value for name, value in self.settings.items() if name in known and value is not None} | settings

    def network(self, network: str, settings: Settings) -> Any:
        """A network with the weights of the encoder, packed for inference; ValueError if it needs others."""
        about = {"network": network, "settings": settings, "vocab_size": self.vocabulary}
        model: Any = build({**about, "heads": {}}).eval()
        state = self.own.tensors()
        if network == "hierarchical_transformer":
            state = {named_by_segments(name): tensor for name, tensor in state.items()}
            table, types = "encoder.embed_positions.weight", model.core.embed_token_type
            if table in state:  # the upper layers read none, and those of a segment are the first
                state[table] = state[table][: len(model.core.embed_positions.weight)]
            if types is not None and "encoder.embed_token_type.weight" not in state:
                state["encoder.embed_token_type.weight"] = torch.zeros_like(types.weight)
        lacking = [name for name in model.load_state_dict(state, strict=False).missing_keys
                   if ".layers." in name or ".embed_" in name]  # fmt: skip
        if lacking:
            raise ValueError(f"it has parts that the encoder lacks, such as {lacking[0]}; these need a training")
        set_precision(model, choose_precision("auto", "cpu"))
        return model

    def documents(self, records: Iterable[Any], kind: str, longest: int) -> Iterator[Document]:
        """Divides records into tokens and units; tokens beyond `longest` are not read."""
        self.loaded.pipeline.settings = replace(self.loaded.pipeline.settings, kind=kind)
        for record in records:
            (row,) = self.loaded.pipeline.encode(record)
            ids = row_of(row.tokens, self.loaded.source).tolist()
            questions = self.units.parts(ids)[0] if isinstance(record, Evidence) else []
            units = self.units.parts(ids)[1] if questions else list(self.units.units(ids))
            sizes = np.cumsum([1 + len(unit) for unit in units])
            units = units[: max(1, int((sizes <= longest).sum()))]
            flat = [token for unit in units for token in (self.units.vocabulary.bos, *unit)]
            yield Document(record, torch.tensor(flat[:longest]), questions, units)

    @torch.no_grad()
    def read(self, document: Document) -> Iterator[tuple[str, float]]:
        """Gives a document its vectors; yields the name of each and the CPU seconds that they took."""
        fits, begin = self.whole.fits(document.tokens), time.process_time()

        def spent() -> float:
            nonlocal begin
            before, begin = begin, time.process_time()
            return begin - before

        if document.questions:
            document.asked = self.units.alone(document.questions)
        spent()
        document.vectors[ALONE] = self.units.alone(document.units)
        yield ALONE, spent()
        means = next(self.units.encode_in_context([document.units]))
        document.vectors[CONTEXT] = F.normalize(means, dim=1)
        yield CONTEXT, (of_context := spent())
        sizes = torch.tensor(list(map(len, document.units)))
        document.vectors[WINDOWED] = F.normalize(nearby_means(means, sizes, AROUND), dim=1)
        yield WINDOWED, of_context + spent()
        ids, owners = document.tokens[None], torch.arange(len(sizes)).repeat_interleave(1 + sizes)[None, :]
        owners = owners[:, : len(document.tokens)]
        below = states_of(self.arms[CHUNKS], ids, slice(None, self.lower))
        of_lower = spent()
        for name, encoder in self.arms.items():
            states = states_of(encoder, ids, slice(self.lower, None), below)
            document.vectors[name] = F.normalize(span_means(states, owners, len(document.units))[0][0], dim=1)
            yield name, of_lower + spent()
        document.vectors[FIRST] = document.vectors[CHUNKS][: 1 + int(owners[0, :CHUNK].max())]
        if fits:
            states = states_of(self.whole, ids, slice(None))
            document.vectors[WHOLE] = F.normalize(span_means(states, owners, len(document.units))[0][0], dim=1)
            yield WHOLE, spent()


def states_of(encoder: Any, tokens: Tensor, layers: slice, states: Tensor | None = None) -> Tensor:
    """The (1, T, C) states of (1, T) tokens after some layers, of the tokens or of states before these layers."""
    batch = encoder.arrange(tokens)
    layout, more = batch.layout, [encoder.segment_positions] if hasattr(encoder, "segment_positions") else []
    if states is None:
        x = encoder.embed(batch.tokens, batch.rows)
    else:
        x = states
        if layout.slots is not None:
            x = layout.slots.put(x.new_zeros(1, layout.slots.size, x.size(2)), x)
    for layer in encoder.layers[layers]:
        x = run_layer(layer, x, layout, *more)
    if layers.stop is None and encoder.layer_norm is not None:
        x = encoder.layer_norm(x)
    return layout.gather(x).float()


def named_by_segments(name: str) -> str:
    """The name that a tensor of RoBERTa has in `hierarchical_transformer`."""
    return re.sub(r"(?<=layers\.)(\d+)\.", r"\1.segment_wise.", name.replace(".sentence_encoder.", "."))


def memory_of(folder: Path, more: Arms, names: Sequence[str], tokens: int) -> dict[str, int]:
    """The peak bytes above the weights of the upper layers of each arm on one document, in a process of its own."""
    most = dict[str, int]()
    for name in names:
        setting = {"name": "memory", "folder": str(folder), "more": more, "tokens": tokens}
        with process_of(memory_job, name, setting) as ask:
            ask("step")
            most[name] = ask("end")["bytes_above_weights"]
    return most


def memory_job(name: str, setting: dict[str, Any]) -> Job:
    encoders = Encoders(Path(setting["folder"]), setting["more"], only=name)
    ids = torch.randint(10, 1000, (1, setting["tokens"]), generator=torch.Generator().manual_seed(1))
    below = torch.randn(1, setting["tokens"], encoders.settings["encoder_embed_dim"])
    with torch.no_grad():
        states_of(encoders.arms[name], ids[:, :64], slice(encoders.lower, None), below[:, :64])
    forget_peak()
    before = peak_memory()

    @torch.no_grad()
    def step() -> Facts:
        states_of(encoders.arms[name], ids, slice(encoders.lower, None), below)
        return {}

    return Job(step, {}, lambda: {"bytes_above_weights": max(0, peak_memory() - before)})
