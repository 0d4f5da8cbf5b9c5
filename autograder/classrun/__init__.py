"""Grade a class: one job per submission on several processes, one writer for the gradebook."""
