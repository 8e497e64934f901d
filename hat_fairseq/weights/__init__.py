"""`hat import`, `export` and `average`: checkpoints, and weights in the formats of Hugging Face."""
