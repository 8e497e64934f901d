"""Losses that fairseq lacks."""

from hat_fairseq.register import register

register()  # whichever of the packages is imported first
