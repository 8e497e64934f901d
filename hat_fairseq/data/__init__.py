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
text.py, alignment.py          sentences without line breaks and control tokens; source and target segments in pairs
row_encoder.py                 texts to rows, in steps that kinds share
packing.py, long_input.py      consecutive sentences to chunks, rows and windows; what stays of a row that is too long
rows.py                        a `Row`: the tokens of a sample; its labels; the file SPLIT.ids
bpe.py, word_tokenizer.py      text to tokens and back; a file for each BPE
binarize.py, dictionary.py     writes what fairseq-preprocess would write; dictionary.py says where

Nothing here imports torch or fairseq.
"""
