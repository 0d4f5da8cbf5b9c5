"""What chapter 09 needs beside the student's answers: a tiny BERT, a real one, recorded runs."""
