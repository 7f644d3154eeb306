"""The steps of a local benchmark."""
