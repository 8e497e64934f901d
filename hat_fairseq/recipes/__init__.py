"""`hat recipe`: turns configs/NAME.yaml into one command of fairseq or `hat`, prints it and runs it."""
