"""`hat preprocess`: raw documents to fairseq's binary data. Inference encodes raw text with the same code.

    reader -> Record -> clean sentences -> words -> BPE tokens -> Row -> text files -> binary data

preprocess.py, options.py      the command, and its options; `Settings` are those that change the tokens
run.py                         all stages of a run: clean, learn, encode, binarize; read it first
stages.py, blocks.py           what a process does with a block of records; where its result is stored
manifest.py                    the figures of a split, with its labels; the manifest and the table
readers.py, tables.py          finds a reader of a dataset, or reads a folder of data; tables and parallel text
record.py, records_json.py     a `Record`: a document or example; the same as a JSON line
kind.py, kinds/                the base classes of a kind of data; a file for each: record, rows, targets, predictions
sentences.py                   a `Prepared` record: its texts in sentences of words, which are cleaned and divided once
transcripts.py, speakers.py     a file of what people say, its speakers and times; subtitles.py SubRip and WebVTT
pipeline.py                    the steps for one record: saved as pipeline.json, loaded by tasks and inference
text.py, word_tokenizer.py     text before the BPE: characters, sentences; words
bpe.py                         text to tokens and back; tokenizer_bpe.py and sentencepiece_bpe.py those of pretrained
                               models; gpt2_bpe.py reads the files of fairseq's BART and RoBERTa
rows.py, ids.py                a `Row`, the tokens of a sample, and the steps to it that kinds share; the record of each
places.py                      where the tokens of a row stand in the texts as they were given
long_input.py                  what stays of a row that is too long; sentences packed to chunks, rows and windows
binarize.py, dictionary.py     writes what fairseq-preprocess would write
formats.py                     what a file is, by its name
files.py, outputs.py           reads files with the place of what is wrong; writes them atomically
checksums.py                   compares a folder with its manifest

Nothing here imports torch or fairseq.
"""
