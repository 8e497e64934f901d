"""Small networks over vectors of sentences: from the rows of a task to its page in one place."""
