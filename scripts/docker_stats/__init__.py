"""What containers used, out of what `docker stats` prints."""
