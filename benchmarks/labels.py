"""Labels of long documents from kept vectors: heads, words and baselines over folds and seeds, one row each.

    python benchmarks/labels.py FILE --work DIR --out benchmarks/results/labels.csv.gz [--folds 5] [--seeds 3]

FILE has JSON lines with id, text and label. The vectors of its sentences are computed once, by the MiniLM of the extra
`minilm`, and kept in DIR. A row of the table is a fold, a seed and a system: how many of the documents of the fold it
labels right, of all and of those with more than 380 words. Systems: the network with gated attention over vectors
alone, in context and both; words; the mean of both; and the baselines of `hat score classification --baselines`.
"""

import argparse
import csv
import gzip
import io
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from hat_fairseq import cli
from hat_fairseq.data.records_json import read_records
from hat_fairseq.inference.loading import load
from hat_fairseq.inference.rows import row_of
from hat_fairseq.models.fit_words import fit_words
from hat_fairseq.modules.unit_heads import DocumentHead, mean_of_probabilities
from hat_fairseq.modules.units import UnitSizes
from hat_fairseq.networks.units import UNIT_VECTORS
from hat_fairseq.scoring.baselines import FIRST, OF_DOCUMENTS, LabelledDocument, baselines

COLUMNS = ("fold", "seed", "system", "documents", "right", "long_documents", "long_right")
EPOCHS, BATCH, LR, DECAY = 15, 8, 1e-3, 0.05  # those of configs/base/units.yaml


def hat(*words: object) -> None:
    """Runs a command of `hat`; RuntimeError if it fails."""
    if cli.main(list(map(str, words))):
        raise RuntimeError(f"hat {' '.join(map(str, words))} failed")


def documents_of(file: Path, work: Path) -> list[dict[str, Any]]:
    """Returns the ids of tokens and the vectors of each document, from DIR if they are there."""
    if (stored := work / "vectors.pt").is_file():
        return torch.load(stored, weights_only=True)
    if not (work / "minilm").is_dir():
        hat("import", "minilm", "--package", work / "minilm")
    loaded = load(work / "minilm", precision="auto")
    loaded.pipeline.settings = replace(loaded.pipeline.settings, kind="classification")
    encoder, documents = units_encoder(work / "minilm"), []
    for record in read_records(file, "classification"):
        (row,) = loaded.pipeline.encode(record)
        tokens = row_of(row.tokens, loaded.source)
        units = [*encoder.units(tokens.tolist())]
        with torch.no_grad():
            alone, context = torch.cat([*encoder.encode_alone([units])]), next(encoder.encode_in_context([units]))
        vectors = {"alone": alone.half(), "context": F.normalize(context, dim=1).half()}
        documents.append({"text": str(record.text), "label": str(record.label), "ids": tokens, **vectors})
    torch.save(documents, stored)
    return documents


def units_encoder(folder: Path) -> Any:
    """Returns the encoder of a folder as that of `hat_units`."""
    from hat_fairseq.model_folder import ModelFolder
    from hat_fairseq.networks import build
    from hat_fairseq.recipes.labels import OF_TRAINING

    own = ModelFolder.open(folder)
    assert own.description is not None
    every = own.description["settings"].items()
    settings = {name: value for name, value in every if not name.startswith(OF_TRAINING)}
    description = {"network": "hat_units", "settings": settings, "heads": {}}
    model = build(description | {"vocab_size": own.description["vocab_size"]}).eval()
    model.load_state_dict(own.tensors(), strict=False)
    return model.core


def vectors_of(document: dict[str, Any], which: str) -> Tensor:
    names = ("alone", "context") if which == "both" else (which,)
    return torch.cat([document[name].float() for name in names], dim=1)


def batch(documents: list[dict[str, Any]], which: str) -> tuple[Tensor, Tensor]:
    vectors = [vectors_of(each, which) for each in documents]
    lengths = torch.tensor(list(map(len, vectors)))
    padded = torch.nn.utils.rnn.pad_sequence(vectors, batch_first=True)
    return padded, torch.arange(padded.size(1)) >= lengths[:, None]


def trained(train: list[dict[str, Any]], gold: Tensor, classes: int, which: str, seed: int) -> DocumentHead:
    """Trains the head of the recipe."""
    torch.manual_seed(seed)
    head = DocumentHead(vectors_of(train[0], which).size(1), classes, UnitSizes("none", dropout=0.15))
    optimizer = torch.optim.AdamW(head.parameters(), LR, weight_decay=DECAY)
    for _ in range(EPOCHS):
        for places in torch.randperm(len(train)).split(BATCH):
            logits = head.network(*batch([train[place] for place in places], which))
            optimizer.zero_grad()
            F.cross_entropy(logits, gold[places]).backward()
            optimizer.step()
    return head.eval()


def folds_of(labels: np.ndarray, folds: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    from sklearn.model_selection import StratifiedKFold

    yield from StratifiedKFold(folds, shuffle=True, random_state=1).split(labels, labels)


def rows_of(documents: list[dict[str, Any]], folds: int, seeds: int) -> Iterator[dict[str, Any]]:
    """Yields the rows of the table."""
    names = sorted({each["label"] for each in documents})
    gold = torch.tensor([names.index(each["label"]) for each in documents])
    for fold, (own, test) in enumerate(folds_of(gold.numpy(), folds)):
        known, asked = [documents[place] for place in own], [documents[place] for place in test]
        is_long = np.array([len(each["text"].split()) > FIRST for each in asked])

        def row(seed: int, system: str, right: np.ndarray, fold: int = fold, is_long: np.ndarray = is_long) -> Any:
            counts = (len(right), int(right.sum()), int(is_long.sum()), int(right[is_long].sum()))
            return dict(zip(COLUMNS, (fold, seed, system, *counts), strict=True))

        held = max(1, len(own) // 8)  # validation of the baselines
        plain = [
            LabelledDocument((each["text"],), (each["label"],), each["alone"].float().numpy()) for each in documents
        ]
        train, valid, wanted = ([plain[place] for place in part] for part in (own[held:], own[:held], test))
        for each in baselines([*OF_DOCUMENTS], train, valid, wanted):
            right = np.array([a == b.labels for a, b in zip(each.labels, wanted, strict=True)])
            yield row(0, f"baseline: {each.title}", right)
        words = DocumentHead(1, len(names), UnitSizes("none")).words
        assert words is not None
        fit_words(words, [each["ids"] for each in known], gold[own].tolist())
        of_words = torch.cat([words(each["ids"][None]) for each in asked])
        yield row(0, "words", (of_words.argmax(dim=1) == gold[test]).numpy())
        for seed in range(seeds):
            for which in UNIT_VECTORS:
                head = trained(known, gold[own], len(names), which, seed)
                with torch.no_grad():
                    network = head.network(*batch(asked, which))
                both = mean_of_probabilities(network, of_words)
                for system, logits in ((f"gated, {which}", network), (f"gated, {which}, and words", both)):
                    yield row(seed, system, (logits.argmax(dim=1) == gold[test]).numpy())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--folds", type=int, default=5)
    parser.add_argument("--seeds", type=int, default=3)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    text = io.StringIO()
    table = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    table.writeheader()
    for row in rows_of(documents_of(args.file, args.work), args.folds, args.seeds):
        print(json.dumps(row), flush=True)
        table.writerow(row)
    args.out.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


if __name__ == "__main__":
    main()
