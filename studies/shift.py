#!/usr/bin/env python3
"""Does self-attention regularization (SAR) keep a prediction where it is when a document moves by some tokens?

    hat preprocess LABELS --kind classification --splitter punctuation --bpe tokenizer --bpe-dir minilm \
        --max-source-tokens 4096 --long-source truncate --out articles
    python studies/shift.py articles/bin minilm/model.pt

Liu et al. 2022 (ERNIE-Sparse) say that SAR makes predictions stable. LABELS has the 645 articles of SemEval-2019 Task 4
as train.jsonl (380), valid.jsonl (50, not read) and test.jsonl (215). A test article is read as it is, and with 1, 8 or
64 full stops before its first word. The whole encoder reads them: in the lower layers, too, chunks begin elsewhere.

All networks start from all-MiniLM-L6-v2. Its embeddings and four lower layers are frozen and read chunks of 512 tokens;
the two upper layers have the attention of the arm and are trained, with a linear layer on the mean of the states of the
article's own tokens, full stops before it excluded. That layer begins as the one of a frozen `chunks`, the same for all
arms of a seed. One article an update, no choice of an epoch. ERNIE-Sparse (blocks of 64 with representatives) learns
from two passes, as its criterion does: in the second the tokens are rolled by 8 before the first layer. Alpha is the
weight of the divergence of the two predictions; alpha 0 has two passes without it.
`bag of words` is a logistic regression on TF-IDF of words and pairs of words, which full stops do not change.

Figures: `changed`, the share of labels that differ from those of the unshifted article, mean of the shifts, and of each
shift; `changed, long`, of articles beyond 512 tokens; `divergence`, half of KL in both directions, in 0.01 nats;
`confidence`, the probability of the label. `small` reads 768 tokens of an article, one epoch; `full` 4,096 tokens,
three epochs, for a GPU. Intervals and [predictions](predictions.md) are as in `pretrained_hierarchy.py`.
"""

import json
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import benchmark_path  # noqa: F401 finds `harness`
import torch
import torch.nn.functional as F
from harness import RESULTS, flags, record_of
from pretrained_data import CHUNKS, DEVICE, LOWER, PRODUCTS, ROBERTA, Data, opened, states_of
from pretrained_hierarchy import ARMS as OTHERS
from pretrained_hierarchy import LEARNING_RATE, SPARSE, fit
from pretrained_tasks import FIRST, TASKS, Document, Figures
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from study_table import add_run, has_run
from torch import Tensor, nn

from hat_fairseq.criterions.self_attention_regularization import symmetric_divergence

STOP, ROLL, SHIFTS, TASK, HEAD_EPOCHS = ".", 8, (1, 8, 64), "shift", 20
SIZES = {"small": (768, 1), "full": (4096, 3)}  # tokens of an article, epochs
ARMS: dict[str, tuple[str, float | None]] = {  # flags, and the weight of the divergence of two passes; None: one pass
    "ERNIE-Sparse, alpha 0": (SPARSE, 0.0),
    "ERNIE-Sparse, alpha 5": (SPARSE, 5.0),
    "full": (f"{ROBERTA} full", None),
    "windows": (OTHERS["window"].model, None),
    "chunks": (CHUNKS, None),
}
Predict = Callable[[Document, int], Tensor]


def shifted(tokens: Tensor, before: int, stop: int) -> Tensor:
    """Puts so many full stops behind the first token, the marker of the first sentence."""
    return torch.cat([tokens[:1], tokens.new_full((before,), stop), tokens[1:]])


class Lower:
    """The states of the frozen lower layers, of each document, shift and roll once."""

    def __init__(self, data: Data, longest: int) -> None:
        self.encoder, self.longest = data.model(CHUNKS, 1), longest
        self.stop = data.reader.source_dictionary.index(STOP)
        self.states: dict[tuple[str, int, int], Tensor] = {}

    @torch.no_grad()
    def __call__(self, document: Document, before: int, roll: int) -> tuple[Tensor, Tensor]:
        """The (1, T) tokens and their (1, T, C) states."""
        tokens = shifted(document.tokens[: self.longest], before, self.stop).roll(roll)[None]
        key = document.id, before, roll
        if key not in self.states:
            self.states[key] = states_of(self.encoder, tokens).half()
        return tokens, self.states[key]


class Classifier(nn.Module):
    """Upper layers with an attention, and a linear layer on the mean of a document's own tokens."""

    def __init__(self, data: Data, lower: Lower, model: str, seed: int) -> None:
        super().__init__()
        self.encoder, self.lower = data.model(model, seed), lower
        self.layers, self.head = self.encoder.layers[LOWER:], data.task.head("", 0).to(DEVICE)

    def vector(self, document: Document, before: int = 0, roll: int = 0) -> Tensor:
        """The (1, C) mean, of length 1, of a document behind so many full stops, or rolled."""
        tokens, states = self.lower(document, before, roll)
        x = states_of(self.encoder, tokens, LOWER, states)[0]
        return F.normalize(torch.cat([x[:1], x[1 + before :]]).mean(dim=0, keepdim=True), dim=1)

    def forward(self, document: Document, before: int = 0, roll: int = 0) -> Tensor:
        """The (1, K) logits."""
        return self.head(None, self.vector(document, before, roll))


@torch.no_grad()
def measure(predict: Predict, document: Document) -> Figures:
    """What changes in the prediction for a document when it is shifted."""
    plain, others = predict(document, 0), [predict(document, before) for before in SHIFTS]
    gold, label, labels = int(document.gold), int(plain.argmax()), [int(each.argmax()) for each in others]
    changed, count, is_long = [int(each != label) for each in labels], len(SHIFTS), int(len(document.tokens) > FIRST)
    return {
        "accuracy": (int(label == gold), 1),
        "accuracy, shifted": (labels.count(gold), count),
        "changed": (sum(changed), count),
        "changed, long": (sum(changed) * is_long, count * is_long),
        **{f"changed by {before}": (each, 1) for before, each in zip(SHIFTS, changed, strict=True)},
        "divergence": (sum(float(symmetric_divergence(plain, each)) for each in others), count),
        "confidence": (float(plain.softmax(dim=1).max()), 1),
    }


def first_head(data: Data, lower: Lower, seed: int) -> dict[str, Tensor]:
    """Trains the linear layer on the vectors of frozen chunks; returns its weights."""
    chunks, train, task = Classifier(data, lower, CHUNKS, seed), data.splits["train"], data.task
    with torch.no_grad():
        vectors = {each.id: chunks.vector(each) for each in train}

    def loss(document: Document) -> Tensor:
        return task.loss(chunks.head(None, vectors[document.id]), document.gold.to(DEVICE)) / task.batch

    groups = [{"params": list(chunks.head.parameters()), "lr": task.learning_rate}]
    for _ in fit(groups, chunks.head, train, loss, HEAD_EPOCHS, task.batch, seed):
        pass
    return chunks.head.state_dict()


def run(data: Data, lower: Lower, name: str, head: dict[str, Tensor], seed: int, epochs: int) -> dict[str, Any]:
    """Trains and measures an arm, whose linear layer begins with these weights."""
    start, (model, alpha) = time.process_time(), ARMS[name]
    classifier = Classifier(data, lower, model, seed)
    classifier.head.load_state_dict(head)
    rates = {classifier.layers: LEARNING_RATE, classifier.head: data.task.learning_rate}
    groups = [{"params": list(part.parameters()), "lr": rate} for part, rate in rates.items()]

    def loss(document: Document) -> Tensor:
        outputs = [classifier(document, roll=roll) for roll in ((0,) if alpha is None else (0, ROLL))]
        nll = torch.stack([data.task.loss(each, document.gold.to(DEVICE)) for each in outputs]).sum()
        return nll + (alpha or 0.0) * symmetric_divergence(outputs[0], outputs[-1])

    for _ in fit(groups, classifier, data.splits["train"], loss, epochs, 1, seed):
        pass
    scores = {each.id: measure(classifier.eval(), each) for each in data.splits["test"]}
    return {"products": PRODUCTS, "cpu_seconds": round(time.process_time() - start), "scores": scores}


def run_words(data: Data) -> dict[str, Any]:
    """Measures the bag of words on the texts, with full stops before them."""
    files = [data.folder.parent / f"text/{split}.jsonl" for split in ("train", "test")]
    records = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    texts = {record["id"]: record["text"] for record in records}
    words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
    model, train = make_pipeline(words, LogisticRegression(C=10.0, max_iter=2000)), data.splits["train"]
    model.fit([texts[each.id] for each in train], [int(each.gold) for each in train])

    def predict(document: Document, before: int) -> Tensor:
        return torch.tensor(model.predict_log_proba([f"{STOP * before} {texts[document.id]}"]))

    return {"scores": {each.id: measure(predict, each) for each in data.splits["test"]}}


def main() -> None:
    logging.disable(logging.WARNING)
    parser = flags(RESULTS / "shift.csv.gz")
    parser.add_argument("data", type=Path, help="folder bin of hat preprocess, beside text")
    parser.add_argument("checkpoint", type=Path, help="MiniLM, from hat import")
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    args = parser.parse_args()
    torch.set_num_threads(1)
    longest, epochs = SIZES[args.size]
    data = opened(parser, TASKS["articles"](), args.data, args.checkpoint, args.data)
    lower = Lower(data, longest)
    add_run(
        args.out, record_of("scikit-learn", task=TASK, train="rules", arm="bag of words", seed=1, **run_words(data))
    )
    for seed in args.seeds:
        head = first_head(data, lower, seed)
        for name in args.arms:
            if not has_run(args.out, TASK, "upper", name, seed):
                result = run(data, lower, name, head, seed, epochs)
                add_run(args.out, record_of(task=TASK, train="upper", arm=name, seed=seed, size=args.size, **result))
                print(name, seed, f"{result['cpu_seconds']} s", flush=True)


if __name__ == "__main__":
    main()
