"""`hat_evidence`, the name of the network over units that has a head of evidence alone, and its former settings.

Checkpoints and folders of it load as they are, such as the model `meeting`. `hat_units` computes the same.
"""

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..modules.evidence import EvidenceHead
from ..modules.fields import option
from .units import UnitsConfig, UnitsEncoder


@dataclass
class HatEvidenceConfig(UnitsConfig):
    """A RoBERTa over turns or sentences, and layers over these."""

    evidence_layout: str = option(
        "N|D", "the layers over turns or sentences, with | between them: N over neighbours, D over the document"
    )
    evidence_neighbours: int = option(
        12, "the number of turns or sentences on either side that a layer N reads", least=1
    )
    evidence_dim: int = option(32, "the width of the layers over turns or sentences", least=2)
    evidence_ffn_dim: int = option(64, "the width of the feed-forward networks in these layers", least=1)
    evidence_attention_heads: int = option(4, "the number of attention heads in these layers", least=1)
    evidence_dropout: float = option(
        0.1, "the dropout of these layers; that of the vectors is twice as much", least=0, most=1
    )
    of_heads = "evidence_"


class EvidenceEncoder(UnitsEncoder):
    """Encodes the questions and the turns or sentences of documents, each by itself."""

    config_class = HatEvidenceConfig
    has_questions: Any = True

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        if level != EvidenceHead.level:
            raise ValueError("hat_evidence is for data of --kind evidence; for others use --arch hat_units_*")
        return super().head(num_classes, inner_dim, level)
