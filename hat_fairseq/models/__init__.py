"""fairseq models: thin compositions of `modules`, one dataclass read once, named architectures. No arithmetic."""
