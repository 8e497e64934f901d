"""`hat_evidence`, the name of the network over units that has a head of evidence alone, and its former settings.

Checkpoints and folders of it load as they are, such as the model `meeting`. `hat_units` computes the same.
"""

from dataclasses import dataclass
from typing import Any

from torch import nn

from ..networks import register_encoder
from ..options import changed, option
from .evidence_head import EvidenceHead
from .network import HatUnitsConfig, UnitsConfig, UnitsEncoder


@dataclass
class HatEvidenceConfig(UnitsConfig):
    """A RoBERTa over turns or sentences, and layers over these."""

    evidence_layout: str = option(
        "N|D", "the layers over turns or sentences, with | between them: N over neighbours, D over the document"
    )
    evidence_neighbours: int = changed(HatUnitsConfig, "unit_neighbours", 12)
    evidence_dim: int = changed(HatUnitsConfig, "unit_dim", 32)
    evidence_ffn_dim: int = changed(HatUnitsConfig, "unit_ffn_dim", 64)
    evidence_attention_heads: int = changed(HatUnitsConfig, "unit_attention_heads", 4)
    evidence_dropout: float = changed(HatUnitsConfig, "unit_dropout", 0.1)
    of_heads = "evidence_"


class EvidenceEncoder(UnitsEncoder):
    """Encodes the questions and the turns or sentences of documents, each by itself."""

    config_class = HatEvidenceConfig
    has_questions: Any = True

    def head(self, num_classes: int, inner_dim: int | None, level: str) -> nn.Module:
        if level != EvidenceHead.level:
            raise ValueError("hat_evidence is for data of --kind evidence; for others use --arch hat_units_*")
        return super().head(num_classes, inner_dim, level)


register_encoder("hat_evidence", EvidenceEncoder)
