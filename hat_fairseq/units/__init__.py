"""Small networks over vectors of sentences: what answers a question, labels of documents and of their sentences.

    record -> row of units -> vectors -> layers -> head -> probabilities, thresholds -> prediction -> figures or page

evidence.py        the kind `evidence`: questions on a document; its record, row, targets and prediction
network.py         `hat_units`: the encoder of units and its heads, a batch's way through all; read it first
vector_cache.py    vectors are computed once; vector_file.py keeps them for other runs (`--vectors`)
layers.py          layers that all heads share; gated_attention.py the weight of each unit
heads.py           labels of a document, labels of units; words.py a regression beside them, fit_words.py its fit
evidence_head.py   scores of units for questions, of what features.py computes of words and vectors
dataset.py         questions that a document does not answer; criterion.py the loss, and thresholds of a validation
answers.py         what a model finds: of `hat ask` (ask.py, ask_text.py, ask_page.py), of `Model.ask` (python.py)
score.py           `hat score evidence`, with the figures of scores.py
rules.py           BM25, which baselines.py makes a prediction; unit_vectors.py the vectors of baselines of labels
meeting.py         the packaged model `meeting`

Tasks, readers, labels and the command `predict` are those of the other rooms, which need nothing of this one. But
networks/__init__.py and data/kinds/__init__.py end with an import of `network` and of `evidence`, which register
themselves and need what stands above there; tests/test_imports.py lists the other places that name this room.
"""
