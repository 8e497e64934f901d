"""`hat score`: metrics of texts, labels and answers, with confidence intervals and a signature of the settings."""
