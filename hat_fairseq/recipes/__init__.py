"""Recipes: configs/NAME.yaml -> one printed command of fairseq or `hat` -> its execution."""
