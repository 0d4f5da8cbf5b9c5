"""Search the source of an answer for what its exercise forbids. Nothing is run."""
