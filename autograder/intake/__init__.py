"""Intake: put real submissions, with all their accidents, in order before grading."""
