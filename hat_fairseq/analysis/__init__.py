"""Looks inside trained models; changes nothing in them."""
