"""From raw documents to fairseq's binary data: one path, used by preprocessing, interactive and the hub alike.

    Document -> normalise -> escape control tokens -> sentences -> BPE -> sentence markers -> one policy for long input

Nothing here imports torch or fairseq.
"""
