"""Machines for a benchmark at DigitalOcean: made, shown, removed."""
