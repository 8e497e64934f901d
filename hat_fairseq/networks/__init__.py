"""The networks of the four papers, as compositions of `modules`: torch only, without fairseq and without a dictionary.

config.py                     the numbers of every encoder, and the table of its self-attentions
encoder.py, decoder.py        what all networks are composed of
hat.py                        HAT, the encoder-decoder
roberta.py, ernie_sparse.py, hierarchical_transformer.py
                              one encoder-only network each: its numbers, its parts, the state of a document
encoder_with_heads.py         an encoder with a masked-LM head or classification heads
build.py                      any of them from a description in plain numbers
"""
