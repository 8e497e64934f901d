"""Other people's weights, in and out: BART, RoBERTa and the released HAT of Chalkidis et al. 2022."""
