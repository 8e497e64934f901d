"""What fine-tuned encoders say about examples: a split of the data, or raw documents."""
