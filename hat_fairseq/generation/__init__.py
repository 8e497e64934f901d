"""What happens to the output of fairseq-generate."""
