"""What an instructor takes away from a graded assignment: tables, answers, a report."""
