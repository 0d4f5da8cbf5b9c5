"""`autograder demo`: an instructor's whole round on a bundled class."""
