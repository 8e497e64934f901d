"""From raw records to fairseq's binary data: one road, used by preprocessing, interactive and inference alike.

    reader -> Record -> clean sentences -> words -> BPE tokens -> Row -> text streams -> binary data

record.py, records_json.py     what a reader yields: documents and examples
kind.py, kinds.py              what a kind of data is; and the kinds, as values
options.py                     the options of `hat preprocess`, and those that decide the tokens (`Settings`)
clean.py, text.py              sentences without line breaks and control tokens; alignment.py pairs them
encoder.py, encode_*.py        from sentences to rows; packing.py and long_input.py decide what fits
rows.py                        rows, and the tables of ids and spans beside the binary data
pipeline.py                    all of that for one directory, saved and loaded
stages.py, encode_split.py     the same for a whole split; build.py for a whole dataset; share.py for a shard of it
preprocess.py, merge.py        the commands
binarize.py, binary.py, dictionary.py    what fairseq-preprocess would write
bpe.py, word_tokenizer.py, detokenize.py, token_spans.py    tokens and the way back

Nothing here imports torch or fairseq.
"""
