"""Workers that share a long computation, on this machine or on a cluster."""

from .map import Workers, add_workers

__all__ = ["Workers", "add_workers"]
