"""Starting a model from a checkpoint: of the same model, of its baseline without hierarchy, of BART or of RoBERTa."""
