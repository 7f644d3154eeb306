"""Draws measured runs: plots and self-contained pages."""
