"""The tasks of `pretrained_hierarchy.py`: what a head computes, its loss, its figures, and rules to compare with.

Legend: Q questions, N units (turns or sentences) of a document, T tokens, K roles.
"""

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from earlier_evidence import THRESHOLDS, EvidenceHead, EvidenceSizes, f1_by_threshold
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, train_test_split
from torch import Tensor, nn
from vector_rules import OWN, best_of_chunk, chunk_numbers

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.embedding import sines_and_cosines
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.segments import SegmentAttention
from hat_fairseq.units.criterion import average_precision

ALONE, QUESTIONS = "hat_evidence_minilm", "questions"  # names of vectors
BOS, WIDTH, PARTS, UNREAD, FIRST = 0, 384, 20, -20.0, 512
Figures = dict[str, tuple[float, int]]  # sums, and of how many
Rule = Callable[[Any], np.ndarray]


@dataclass
class Document:
    """A document: (T,) ids, ids of its questions, labels, (Q, N) or (N,), and vectors of units by their names."""

    id: str
    tokens: Tensor
    questions: list[Tensor]
    gold: Tensor
    vectors: dict[str, Tensor] = field(default_factory=dict)

    @property
    def owners(self) -> Tensor:
        """The unit of each token."""
        return self.tokens.eq(BOS).cumsum(dim=0) - 1

    @property
    def units(self) -> list[list[int]]:
        """The ids of each unit, without its marker."""
        sizes = torch.bincount(self.owners).tolist()
        return [part[1:].tolist() for part in self.tokens.split(sizes)]

    @property
    def parts(self) -> np.ndarray:
        """In which twentieth of the document each unit is."""
        count = self.gold.size(-1)
        return np.arange(count) * PARTS // count


Splits = dict[str, list[Document]]


class Evidence:
    """Which units answer a question; a head gives (Q, N) logits."""

    name, figures = "document_evidence", ("average precision", "F1")
    learning_rate, batch, epochs = 3e-3, 3, 10

    def head(self, layout: str, neighbours: int) -> nn.Module:
        return EvidenceHead(WIDTH, EvidenceSizes(layout, neighbours))

    def loss(self, logits: Tensor, gold: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(logits, gold.float())

    def count(self, logits: Tensor) -> int:
        """The number of units that were read."""
        return logits.size(1)

    def completed(self, logits: Tensor, document: Document) -> Tensor:
        """Adds the units that were not read: they are no evidence."""
        return F.pad(logits, (0, document.gold.size(1) - logits.size(1)), value=UNREAD)

    def decide(self, outputs: Sequence[Tensor], documents: Sequence[Document]) -> int:
        """The number of the threshold that is best for these documents."""
        sums = torch.zeros(len(THRESHOLDS), dtype=torch.float64)
        for output, document in zip(outputs, documents, strict=True):
            for pair in self._asked(output, document):
                sums += f1_by_threshold(*pair)
        return int(sums.argmax())

    def measure(self, output: Tensor, document: Document, threshold: int) -> Figures:
        pairs = self._asked(output, document)
        precisions = [average_precision(*pair) for pair in pairs]
        f1 = [float(f1_by_threshold(*pair)[threshold]) for pair in pairs]
        return {"average precision": (sum(precisions), len(pairs)), "F1": (sum(f1), len(pairs))}

    def _asked(self, output: Tensor, document: Document) -> list[tuple[Tensor, Tensor]]:
        """Probabilities and labels of the units, for each question that has evidence."""
        rows = zip(output.float().sigmoid(), document.gold.bool(), strict=True)
        return [(scores, labels) for scores, labels in rows if labels.any()]

    def rules(self, train: Sequence[Document]) -> dict[str, Callable[[Document], Tensor]]:
        """Rules without trained layers; they give logits."""
        noise = np.random.default_rng(1)
        pairs = [(each.parts, each.gold.float().numpy()) for each in train]
        rates = np.array([np.concatenate([gold[:, parts == n].ravel() for parts, gold in pairs]).mean()
                          for n in range(PARTS)])  # fmt: skip
        bag = TfidfVectorizer(analyzer=lambda ids: map(str, ids), sublinear_tf=True)
        bag.fit([unit for each in train for unit in each.units])

        def cosine(document: Document) -> np.ndarray:
            return ((1 + document.vectors[QUESTIONS] @ document.vectors[ALONE].T) / 2).numpy()

        def words(document: Document) -> np.ndarray:
            questions = [ids.tolist()[1:-1] for ids in document.questions]
            return (bag.transform(questions) @ bag.transform(document.units).T).toarray()

        def chunks(document: Document) -> np.ndarray:
            return chunk_numbers(np.array([1 + len(unit) for unit in document.units]))

        def best(scores: np.ndarray, chunks: np.ndarray) -> np.ndarray:
            return (best_of_chunk(scores, chunks) + OWN * scores) / (1 + OWN)

        rules: dict[str, Rule] = {
            "random": lambda each: noise.random(each.gold.shape),
            "lead": lambda each: np.broadcast_to(np.linspace(1, 0, each.gold.size(1)), each.gold.shape),
            "rate of its twentieth": lambda each: np.broadcast_to(rates[each.parts], each.gold.shape),
            "bag of words": words,
            "bag of words, best of its chunk": lambda each: best(words(each), chunks(each)),
            "cosine": cosine,
            "cosine, first 512": lambda each: np.where(chunks(each) == 0, cosine(each), 0),
            "cosine, best of its chunk": lambda each: best(cosine(each), chunks(each)),
        }
        return {name: lambda each, rule=rule: torch.tensor(np.array(rule(each))).logit(1e-6)
                for name, rule in rules.items()}  # fmt: skip


class UnitsHead(nn.Module):
    """Logits of K classes for each unit, or with `pooled` for the document, from vectors of length 1 and their places.

    Those of a document are of the mean of its units.
    """

    def __init__(self, layout: str, neighbours: int, classes: int, pooled: bool = False, dim: int = 64) -> None:
        super().__init__()
        self.pooled = pooled
        sizes = LayerSizes(dim, 2 * dim, 4, 0.1, activation="gelu", normalize_before=True)
        self.unit_proj, self.place_proj = nn.Linear(WIDTH, dim), nn.Linear(3, dim)
        of = sizes.attention_sizes
        near, far = (lambda: SegmentAttention(of, neighbours)), (lambda: FullAttention(of))
        self.layers = nn.ModuleList(EncoderLayer(sizes, {"N": near, "D": far}[kind]()) for kind in layout.split("|"))
        self.dropout, self.norm, self.out_proj = nn.Dropout(0.1), nn.LayerNorm(dim), nn.Linear(dim, classes)

    def forward(self, questions: Tensor, units: Tensor) -> Tensor:
        """Maps (N, C) vectors -> (N, K), or (1, K) with `pooled`; there are no questions."""
        x, count = self.unit_proj(self.dropout(units) * 8), len(units)
        share = torch.arange(count, device=x.device) / max(1, count - 1)
        x = x + self.place_proj(torch.stack([share, share.square(), torch.full_like(share, count / 200)], dim=1))
        x = (x + sines_and_cosines(count, x.size(1), x.device)).unsqueeze(0)
        layout = BatchLayout()
        for layer in self.layers:
            x = layer(x, layout)
        x = self.norm(x).squeeze(0)
        return self.out_proj(x.mean(dim=0, keepdim=True) if self.pooled else x)


class MeanHead(nn.Module):
    """Logits of K classes for a document: a linear layer over the mean of the vectors of its units."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        self.dropout, self.out_proj = nn.Dropout(0.1), nn.Linear(WIDTH, classes)

    def forward(self, questions: Tensor, units: Tensor) -> Tensor:
        """Maps (N, C) vectors -> (1, K)."""
        return self.out_proj(self.dropout(units.mean(dim=0, keepdim=True)) * 8)


class Roles:
    """Which role a sentence has; a head gives (N, K) logits."""

    name, figures = "segment_classification", ("accuracy", "mean F1 of roles")
    learning_rate, batch, epochs = 2e-3, 4, 8
    roles: ClassVar = 3

    def head(self, layout: str, neighbours: int) -> nn.Module:
        return UnitsHead(layout, neighbours, self.roles)

    def loss(self, logits: Tensor, gold: Tensor) -> Tensor:
        return F.cross_entropy(logits, gold)

    def count(self, logits: Tensor) -> int:
        """The number of units that were read."""
        return len(logits)

    def completed(self, logits: Tensor, document: Document) -> Tensor:
        """Adds the units that were not read, as of the first role."""
        return F.pad(logits, (0, 0, 0, len(document.gold) - len(logits)))

    def decide(self, outputs: Sequence[Tensor], documents: Sequence[Document]) -> int:
        return 0

    def measure(self, output: Tensor, document: Document, decision: int) -> Figures:
        best, gold = output.argmax(dim=1), document.gold
        f1 = [2 * int((best.eq(role) & gold.eq(role)).sum()) / int(best.eq(role).sum() + gold.eq(role).sum())
              for role in gold.unique()]  # fmt: skip
        return {"accuracy": (int(best.eq(gold).sum()), len(gold)), "mean F1 of roles": (sum(f1) / len(f1), 1)}

    def rules(self, train: Sequence[Document]) -> dict[str, Callable[[Document], Tensor]]:
        """Rules without trained layers; they give logits."""
        noise, parts = np.random.default_rng(1), np.concatenate([each.parts for each in train])
        gold = np.concatenate([each.gold.numpy() for each in train])
        shares = np.array([np.bincount(gold[parts == part], minlength=self.roles) for part in range(PARTS)])
        bag = TfidfVectorizer(analyzer=lambda ids: map(str, ids), sublinear_tf=True, min_df=3)
        words = bag.fit_transform([unit for each in train for unit in each.units])
        model = LogisticRegression(max_iter=300).fit(words, gold)
        rules: dict[str, Rule] = {
            "random": lambda each: noise.random((len(each.gold), self.roles)),
            "constant": lambda each: np.broadcast_to(np.bincount(gold), (len(each.gold), self.roles)),
            "most frequent of its twentieth": lambda each: shares[each.parts],
            "bag of words": lambda each: model.predict_proba(bag.transform(each.units)),
        }
        return {name: lambda each, rule=rule: torch.tensor(np.array(rule(each), dtype=float))
                for name, rule in rules.items()}  # fmt: skip


class Papers:
    """Which class a document has; a head gives (1, K) logits."""

    name, figures = "document_classification", ("accuracy",)
    learning_rate, batch, epochs = 2e-3, 8, 8
    classes: ClassVar = 4
    folds: ClassVar = 1  # of `parts`, which are tested, each with a seed of its own
    parts: ClassVar = 3

    def head(self, layout: str, neighbours: int) -> nn.Module:
        return UnitsHead(layout, neighbours, self.classes, pooled=True) if layout else MeanHead(self.classes)

    def loss(self, logits: Tensor, gold: Tensor) -> Tensor:
        return F.cross_entropy(logits, gold)

    def count(self, logits: Tensor) -> int:
        """The document has one label, of whatever is read."""
        return 1

    def completed(self, logits: Tensor, document: Document) -> Tensor:
        return logits

    def decide(self, outputs: Sequence[Tensor], documents: Sequence[Document]) -> int:
        return 0

    def measure(self, output: Tensor, document: Document, decision: int) -> Figures:
        return {"accuracy": (int(output.argmax() == document.gold), 1)}

    def rules(self, train: Sequence[Document]) -> dict[str, Callable[[Document], Tensor]]:
        """Rules without trained layers; they give logits."""
        gold = np.concatenate([each.gold.numpy() for each in train])
        rules: dict[str, Rule] = {"majority": lambda each: np.bincount(gold, minlength=self.classes)}
        for name, most in {"bag of words": None, "bag of words, first 512": FIRST}.items():
            bag = TfidfVectorizer(analyzer=lambda ids: pairs(map(str, ids)), sublinear_tf=True, min_df=2)
            model = LogisticRegression(C=10.0, max_iter=2000)
            model.fit(bag.fit_transform([each.tokens[:most].tolist() for each in train]), gold)
            rules[name] = lambda each, bag=bag, model=model, most=most: model.predict_proba(
                bag.transform([each.tokens[:most].tolist()])
            )
        return {name: lambda each, rule=rule: torch.tensor(np.array(rule(each), dtype=float)).view(1, -1)
                for name, rule in rules.items()}  # fmt: skip

    def split(self, splits: Splits, seed: int) -> Splits:
        """Draws the parts anew: one of `parts` is the test part, and a tenth of the others the validation part."""
        documents = [each for part in splits.values() for each in part]
        labels = [int(each.gold) for each in documents]
        drawn = list(StratifiedKFold(self.parts, shuffle=True, random_state=1).split(labels, labels))
        others, test = drawn[(seed - 1) % self.folds]
        train, valid = train_test_split(others, test_size=0.1, random_state=1, stratify=[labels[n] for n in others])
        numbers = {"train": train, "valid": valid, "test": test}
        return {name: [documents[number] for number in part] for name, part in numbers.items()}


def pairs(words: Iterable[str]) -> list[str]:
    """The words, and the pairs of neighbours."""
    words = list(words)
    return words + [f"{one} {other}" for one, other in itertools.pairwise(words)]


class Articles(Papers):
    """Whether an article is hyperpartisan; seeds 1 to 5 each test another fifth."""

    figures = ("accuracy", "accuracy, long")
    classes: ClassVar = 2
    folds: ClassVar = 5
    parts: ClassVar = 5

    def measure(self, output: Tensor, document: Document, decision: int) -> Figures:
        is_right, is_long = int(output.argmax() == document.gold), int(len(document.tokens) > FIRST)
        return {"accuracy": (is_right, 1), "accuracy, long": (is_right * is_long, is_long)}


TASKS = {"evidence": Evidence, "roles": Roles, "articles": Articles, "papers": Papers}
