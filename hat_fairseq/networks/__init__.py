"""The networks of the four papers, as compositions of `modules`: torch only, without fairseq and without a dictionary.

`config.py` has their numbers, `hat.py`, `roberta.py`, `segments.py` and `representatives.py` one composition each.
"""
