"""fairseq tasks, and what they are made of: datasets of documents and the way back to text."""

from hat_fairseq.register import register

register()  # whichever of the packages is imported first
