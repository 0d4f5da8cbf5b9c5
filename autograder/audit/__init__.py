"""`autograder audit`: prove that every check accepts what is right and catches what is wrong."""
