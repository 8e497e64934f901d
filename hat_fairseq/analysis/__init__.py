"""`hat look` and `hat show-attention`: attention weights of trained models and patterns of encoder attentions."""
