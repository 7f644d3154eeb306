"""Resource usage of containers, from the output of `docker stats`."""
