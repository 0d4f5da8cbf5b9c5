"""What instructors run: exercises, grading, audit. Never installed for students."""
