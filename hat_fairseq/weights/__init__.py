"""`hat import`, `export`, `package` and `average`: checkpoints, and weights in the formats of Hugging Face."""
