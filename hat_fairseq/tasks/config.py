"""The options of the plugin's tasks, in addition to those of their base tasks in fairseq."""

from dataclasses import dataclass, field
from typing import Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks.masked_lm import MaskedLMConfig
from fairseq.tasks.translation import TranslationConfig
from omegaconf import MISSING

from ..kernels import CPU_PRECISIONS
from .training import HELP


@dataclass
class PluginTaskConfig(FairseqDataclass):
    dropout_schedule: Optional[str] = field(default=None, metadata={"help": HELP})
    # Batches are drawn with (seed, epoch): built anew in every epoch they are the same after a resume.
    rebuild_batches: bool = field(default=True, metadata={"help": "build new batches for each epoch"})
    # Workers that live on keep the dataset of the first epoch, and with it its random choices.
    reuse_dataloader: bool = field(default=False, metadata={"help": "keep data workers from epoch to epoch"})


@dataclass
class DocumentToTextConfig(PluginTaskConfig, TranslationConfig):
    # fairseq would infer the pair from file names, and take the role stream's files for it.
    source_lang: Optional[str] = field(default="source", metadata={"help": "source stream", "argparse_alias": "-s"})
    target_lang: Optional[str] = field(default="target", metadata={"help": "target stream", "argparse_alias": "-t"})
    left_pad_source: bool = field(default=False, metadata={"help": "pad the source on the left"})
    role_stream: Optional[str] = field(
        default=None,
        metadata={"help": "name of the parallel stream of segment ids, e.g. role; adds segment embeddings"},
    )
    eval_rouge: bool = field(
        default=False, metadata={"help": "generate during validation and report rouge1, rouge2 and rougeL"}
    )
    eval_rouge_args: str = field(
        default="{}", metadata={"help": "generation options for --eval-rouge as JSON, e.g. '{\"beam\": 2}'"}
    )
    cpu_precision: ChoiceEnum(list(CPU_PRECISIONS)) = field(  # type: ignore[valid-type]
        default="fp32", metadata={"help": "precision of linear layers in CPU generation (fp32: exact)"}
    )


@dataclass
class MaskedDocumentLMConfig(PluginTaskConfig, MaskedLMConfig):
    pass


@dataclass
class EncoderTaskConfig(PluginTaskConfig):
    data: str = field(default=MISSING, metadata={"help": "the bin directory that hat preprocess wrote"})
    max_positions: Optional[int] = field(
        default=None, metadata={"help": "longest row in tokens, </s> included (default: what the model takes)"}
    )


@dataclass
class DocumentBpeConfig(FairseqDataclass):
    document_pipeline: str = field(
        default="", metadata={"help": "directory with the pipeline.json of `hat preprocess` (its bin directory)"}
    )
