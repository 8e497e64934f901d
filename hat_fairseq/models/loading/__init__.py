"""Starting a model from a checkpoint: of the same model, of a plain one, of BART or of RoBERTa."""
