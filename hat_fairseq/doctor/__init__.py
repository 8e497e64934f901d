"""Checks an installation. Nothing here may import a package that is not in the standard library."""
