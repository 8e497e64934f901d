"""The head of `hat_evidence` up to 0.6, which the finished runs of `pretrained_hierarchy.py` are of.

Scores of the turns or sentences of a document for each question, from vectors of length 1 of both.

The state of a unit for a question is their products by channel, with the cosines of the unit and of those nearby, and
the place of the unit. Layers of encoders over these states follow: N reads the neighbours of a unit, D all units of the
document, as the segment-wise and the cross-segment layers of Chalkidis et al. 2022, section 3. All questions of a
document are independent of each other. O(Q N (K + N)) for K neighbours.

Legend: Q questions, N units, E channels of their vectors, C channels of the layers.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from hat_fairseq.modules.attention import FullAttention
from hat_fairseq.modules.batch_layout import BatchLayout
from hat_fairseq.modules.embedding import sines_and_cosines
from hat_fairseq.modules.layers import EncoderLayer, LayerSizes
from hat_fairseq.modules.segments import SegmentAttention

LAYERS = ("N", "D")
NEARBY = 8  # units on either side whose cosines a unit sees, their mean and the greatest
SCALE = 8.0  # of the channels of a vector of length 1 with some hundred of them


@dataclass(frozen=True)
class EvidenceSizes:
    """Numbers of the layers over turns or sentences; ValueError for other letters than those of `LAYERS`.

    `neighbours`: units of each of the parts that a layer N divides a document into.
    """

    layout: str = "N|D"
    neighbours: int = 24
    dim: int = 32
    ffn_dim: int = 64
    attention_heads: int = 4
    dropout: float = 0.1

    def __post_init__(self) -> None:
        if wrong := [letter for letter in self.layout.split("|") if letter not in LAYERS]:
            raise ValueError(
                f"--evidence-layout {self.layout}: unknown layer {wrong[0]!r}; write N or D with | between"
            )


THRESHOLDS = torch.arange(1, 100) / 100


def f1_by_threshold(scores: Tensor, labels: Tensor) -> Tensor:
    """Computes the F1 of the units whose probability reaches each of the `THRESHOLDS`: (K,)."""
    chosen = scores >= THRESHOLDS.unsqueeze(1)
    right = (chosen & labels).sum(dim=1).double()
    return 2 * right / (chosen.sum(dim=1) + labels.sum())


class EvidenceHead(nn.Module):
    """Scores units for questions.

    `threshold` is the probability from which on a unit is evidence; validation chooses it (`tasks.encoder_task`).
    """

    level = "evidence"
    threshold: Tensor

    def __init__(self, vector_dim: int, sizes: EvidenceSizes) -> None:
        super().__init__()
        dim = sizes.dim
        layer_sizes = LayerSizes(
            dim, sizes.ffn_dim, sizes.attention_heads, sizes.dropout, activation="gelu", normalize_before=True
        )
        self.unit_proj, self.question_proj = nn.Linear(vector_dim, dim), nn.Linear(vector_dim, dim)
        self.cosine_proj, self.place_proj = nn.Linear(4, dim), nn.Linear(3, dim)
        self.dropout = nn.Dropout(sizes.dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                layer_sizes,
                SegmentAttention(layer_sizes.attention_sizes, sizes.neighbours)
                if letter == "N"
                else FullAttention(layer_sizes.attention_sizes),
            )
            for letter in sizes.layout.split("|")
        )
        self.layer_norm, self.out_proj = nn.LayerNorm(dim), nn.Linear(dim, 1)
        self.register_buffer("threshold", torch.tensor(0.5))

    def reset_parameters(self) -> None:
        """Initialises everything as the constructor does: each part by itself, parts before the modules around them."""
        for module in [*self.modules()][:0:-1]:
            if callable(reset := getattr(module, "reset_parameters", None)):
                reset()
        nn.init.constant_(self.threshold, 0.5)

    def forward(self, questions: Tensor, units: Tensor) -> Tensor:
        """Maps (Q, E) and (N, E) vectors of length 1 -> (Q, N) scores, logits of probabilities."""
        x = self.unit_proj(self.dropout(units) * SCALE)
        cosines = (questions @ units.T).unsqueeze(1) * SCALE  # Q x 1 x N
        window = 2 * NEARBY + 1
        mean = F.avg_pool1d(cosines, window, 1, NEARBY, count_include_pad=False)
        best = F.max_pool1d(cosines, window, 1, NEARBY)
        features = torch.cat([cosines, cosines.square() / 4, mean, best], dim=1).transpose(1, 2)
        states = x * self.question_proj(questions * SCALE).unsqueeze(1) + x
        states = states + self.cosine_proj(features) + self._places(x)
        layout = BatchLayout()
        for layer in self.layers:
            states = layer(states, layout)
        return self.out_proj(self.layer_norm(states)).squeeze(-1)

    def _places(self, x: Tensor) -> Tensor:
        """Embeds the number of each unit, its share of the document, and the length of the document."""
        count = len(x)
        share = torch.arange(count, device=x.device) / max(1, count - 1)
        features = torch.stack([share, share.square(), torch.full_like(share, count / 500)], dim=1)
        return self.place_proj(features.to(x)) + sines_and_cosines(count, x.size(1), x.device).to(x)
