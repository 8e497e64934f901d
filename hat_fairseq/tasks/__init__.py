"""fairseq tasks, and what they are made of: datasets of documents and the way back to text."""
