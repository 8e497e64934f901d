"""Layers, attentions and heads, one idea per file. They import torch and `kernels` only, and take plain numbers."""
