"""hat_fairseq: hierarchical, long-document transformers as a fairseq plugin.

`--user-dir hat_fairseq`, or `import hat_fairseq`, registers the models, tasks, criterions and output decoders with
fairseq and makes checkpoints load safely. Importing it twice does nothing.
"""

import logging

__version__ = "0.2.0"

# What could not be imported. `hat doctor` has to work in a broken installation, so it is recorded here and not raised;
# fairseq's commands then say that they do not know the architecture.
import_error: ImportError | None = None

# On import fairseq advises to install tensorboardX, which has nothing to do with what was asked.
logging.getLogger("fairseq.tasks.text_to_speech").setLevel(logging.WARNING)

try:
    from . import compat

    compat.apply()
    from .criterions import answer_spans as answer_spans
    from .criterions import document_labels as document_labels
    from .criterions import masked_lm_from_sentences as masked_lm_from_sentences
    from .models import hat_bart as hat_bart
    from .models import hat_roberta as hat_roberta
    from .models import hat_transformer as hat_transformer
    from .models import hierarchical_transformer as hierarchical_transformer
    from .tasks import document_bpe as document_bpe
    from .tasks import document_classification as document_classification
    from .tasks import document_to_text as document_to_text
    from .tasks import masked_document_lm as masked_document_lm
    from .tasks import multiple_choice as multiple_choice
    from .tasks import question_answering as question_answering
    from .tasks import segment_classification as segment_classification
    from .tasks import token_classification as token_classification
except ImportError as error:
    if (error.name or "").partition(".")[0] == __name__:  # a mistake of ours
        raise
    import_error = error
    logging.getLogger(__name__).warning("hat_fairseq is not registered with fairseq: %s; see `hat doctor`", error)
