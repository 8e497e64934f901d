"""What `render.py` says of each question: a heading, two or three sentences, and how contenders are shown."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Caption:
    """`labels` replace names of contenders; they may refer to entries of the setting, as in "layout {layout}"."""

    heading: str
    introduction: str
    labels: dict[str, str] = field(default_factory=dict)


INTERLEAVED = """
In the questions below, contenders take turns, each in a process of its own. Seconds are the median [least, most] over
the rounds; *times* is the median [least, most] of the quotient, within a round, to the contender whose times are 1.00
(more than 1: slower); peak memory is that of the process, weights included.
"""

CAPTIONS = {
    "hierarchy": Caption(
        "Does the hierarchy help?",
        """\
HAT beside its plain twin (`--no-hierarchy`): the same data, settings and number of updates. Mean ± standard deviation
over seeds; the difference is taken seed by seed. A difference that is not several times its standard deviation shows
nothing.""",
    ),
    "classification": Caption(
        "Do the encoders learn?",
        """\
Document classification by recipes, beside a bag of words (TF-IDF of words and pairs of words, logistic regression, C
and checkpoints chosen on the validation part). Test accuracy and macro F1: mean ± standard deviation over seeds. The
interval (95 %, bootstrap over the test documents, mean over seeds) is wide, because there are few documents.
`hyperpartisan_granite` was a recipe until version 0.3: granite-embedding-30m-english (6 layers of 384), fine-tuned.""",
    ),
    "long_encoders": Caption(
        "What does a long document cost?",
        """\
Forward and backward of one document, encoders of the same width and number of token-level layers without heads and
dropout, random weights, 3 token-level layers.""",
        {
            "hierarchical_transformer": "`hierarchical_transformer`, {layout}",
            "hat_roberta": "`hat_roberta`, a sentence every {sentence} tokens",
            "full attention": "`hat_roberta` with `--no-hierarchy`: full attention",
            "longformer": "Longformer (`transformers`), window 512",
            "bigbird": "BigBird (`transformers`), block sparse 64, 3 random",
        },
    ),
    "training_hierarchy": Caption(
        "What does the hierarchy cost in training?",
        """\
One update (forward, backward, clipping, fairseq's Adam) of HAT-BART and of its plain twin (`--no-hierarchy`): one
document, a sentence every 32 tokens, dropout and attention dropout 0.1, 2 + 2 layers. Each parameter of the hierarchy
takes 16 bytes (itself, its gradient, two moments of Adam): 11.8M and 21.0M of them are the difference in memory.""",
        {"hat": "`hat_bart_base`", "plain": "`hat_bart_base --no-hierarchy`"},
    ),
    "training_fairseq": Caption(
        "Is training faster than fairseq's?",
        """\
One update (forward, backward, clipping, fairseq's Adam) of HAT-BART, its hierarchy included, beside fairseq's own BART
of the same width and 2 + 2 layers, which has none: dropout 0.1, label smoothing 0.1, one document or four. Without
attention dropout both sides have torch's fused attention, which is the same, and what is won on linear maps and loss is
about what the hierarchy costs. One document's memory is then mostly parameters, gradients and Adam's moments: 16 bytes
for each of HAT's 86.6M parameters, 1.4 of its 2.6 GB; with four documents most of it is activations.""",
        {
            "ours": "`hat_bart_base`, `--criterion chunked_label_smoothed_cross_entropy`",
            "ours, checkpointed": "the same with `--checkpoint-activations`",
            "fairseq": "fairseq's `bart_base`, `--criterion label_smoothed_cross_entropy`",
        },
    ),
    "generation_fairseq": Caption(
        "Is generation faster than fairseq's?",
        """\
Beam search (beam 4, an exact number of new tokens) with random weights, width 768, 2 + 2 layers, 1 + 1 for a batch of 8
long documents. The plain twin and both models of fairseq have the same weights. fairseq's `transformer` keeps the
states of a document once for each hypothesis, its `bart` once for all. Seconds are those of a whole batch.""",
        {
            "hat": "`hat_bart_base`, our generator",
            "plain": "its plain twin (`--no-hierarchy`), our generator",
            "fairseq transformer": "fairseq's `transformer`",
            "fairseq bart": "fairseq's `bart`",
        },
    ),
    "generation_transformers": Caption(
        "Is generation faster than that of transformers?",
        """\
The same search by `generate` of transformers' BART, with SDPA, 2 + 2 layers and the weights of the plain twin. It
repeats every document for its hypotheses.""",
        {
            "hat": "`hat_bart_base`, our generator",
            "plain": "its plain twin (`--no-hierarchy`), our generator",
            "transformers": "`transformers`, dynamic cache",
            "transformers, static cache": "`transformers`, static cache",
        },
    ),
    "generation_ctranslate2": Caption(
        "Is generation faster than that of CTranslate2?",
        """\
The same search by CTranslate2 on the CPU, 2 + 2 layers and the weights of the plain twin, converted. Its peak memory
includes torch and fairseq (about 0.4 GB), which convert here and which it does not need.""",
        {
            "hat": "`hat_bart_base`, our generator",
            "hat int8": "the same with `--cpu-precision int8`",
            "plain": "its plain twin (`--no-hierarchy`), our generator",
            "ctranslate2": "CTranslate2, fp32",
            "ctranslate2 int8": "CTranslate2, int8",
            "ctranslate2 split": "CTranslate2, fp32, batch divided among threads",
            "ctranslate2 int8 split": "CTranslate2, int8, batch divided among threads",
        },
    ),
    "precision": Caption(
        "What does reduced precision bring?",
        """\
HAT-BART with its linear maps in fp32, bfloat16 and int8, on the CPU: the search above with random weights, 2 + 2 layers
of 768, and texts for the test split of a recipe by a trained model, scored. Every text differs from that of fp32 in
some word, and differences of a point in either direction are within the intervals of so few documents.""",
    ),
    "source_length": Caption(
        "How do time and memory grow with the source?",
        """\
One update of HAT-BART beside fairseq's own BART as sources grow: targets of 512 tokens, 1 + 1 layers, attention dropout
0.1.

![seconds and memory over source tokens](results/source_length.png)""",
        {"ours": "`hat_bart_base`", "fairseq": "fairseq's `bart_base`"},
    ),
    "preprocessing": Caption(
        "Is preprocessing faster than fairseq's?",
        """\
From documents to a binarised dataset: `hat preprocess` beside fairseq's GPT-2 BPE in a pool of processes followed by
`fairseq-preprocess`, whole commands with their start-up.""",
    ),
    "start_up": Caption(
        "Does the plugin slow down the start?",
        """\
A cold `fairseq-generate` on one short document, the whole process: our task and model with `--user-dir`, beside
fairseq's own translation task and transformer.""",
    ),
}
