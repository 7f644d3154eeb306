"""Draws what was measured: plots and self-contained pages from the folders of runs."""
