"""Building blocks: one idea per file, torch only. Nothing here knows fairseq, a config or a registry."""
