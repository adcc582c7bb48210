"""Imported for its functions."""
