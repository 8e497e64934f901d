"""`--bpe document`: turns generated tokens into text with the pipeline that made the training data.

fairseq-generate and fairseq-interactive then print final text on their D- lines: BPE undone, control tokens restored.
"""

from dataclasses import dataclass, field

from fairseq.data.encoders import register_bpe
from fairseq.dataclass import FairseqDataclass

from ..data.pipeline import TextPipeline


@dataclass
class DocumentBpeConfig(FairseqDataclass):
    document_pipeline: str = field(
        default="", metadata={"help": "directory with the pipeline.json of `hat preprocess` (its bin directory)"}
    )


@register_bpe("document", dataclass=DocumentBpeConfig)
class DocumentBpe:
    """Decodes tokens to text; the task encodes whole documents itself."""

    def __init__(self, config: DocumentBpeConfig) -> None:
        if not config.document_pipeline:
            raise ValueError("--bpe document needs --document-pipeline DIR, the bin directory of `hat preprocess`")
        self.pipeline = TextPipeline.load(config.document_pipeline)

    def encode(self, text: str) -> str:
        """Text of a document without its sentences: `document_to_text` encodes documents by itself."""
        return text

    def decode(self, tokens: str) -> str:
        return self.pipeline.decode(tokens)
