"""`hat plan`: the memory that a training needs, computed on tensors without storage."""
