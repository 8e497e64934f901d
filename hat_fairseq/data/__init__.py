"""`hat preprocess`: raw documents to fairseq's binary data. Inference encodes raw text with the same code.

    reader -> Record -> clean sentences -> words -> BPE tokens -> Row -> text files -> binary data

preprocess.py                  the command; read run.py next
run.py                         all stages of a run: clean, learn, encode, binarize
stages.py, blocks.py           what a process does with a block of records; where its result is kept
manifest.py                    the figures of a split, with its labels; the manifest and the table
options.py                     the options; `Settings` are those that change the tokens
readers.py                     finds a reader of a dataset, or reads a folder of data, also parallel text
record.py, records_json.py     a `Record`: a document or example; the same as a JSON line, or a row of a table
kind.py, kinds/                the base classes of a kind of data; a file for each: record, rows, targets, predictions
pipeline.py                    the steps for one record: saved as pipeline.json, loaded by tasks and inference
clean.py, text.py              sentences without line breaks and control tokens; alignment.py pairs segments
encoder.py                     sentences to rows, as the kind says; packing.py and long_input.py fit them to a length
rows.py                        a `Row`: the tokens of a sample; the file SPLIT.ids
bpe.py, word_tokenizer.py, detokenize.py    text to tokens and back
binarize.py, dictionary.py     writes what fairseq-preprocess would write; dictionary.py says where

Nothing here imports torch or fairseq.
"""
