"""From raw documents to fairseq's binary data: one path, used by preprocessing, interactive and inference alike.

    Document -> normalise -> sentences -> escape control tokens -> words -> BPE -> sentence markers -> one policy for
    long input, or for translations: chunks of both sides

Nothing here imports torch or fairseq.
"""
