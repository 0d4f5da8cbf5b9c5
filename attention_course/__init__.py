"""What the notebooks of the attention course import: checks, explorers and plots.

It holds no reference solution and no hidden case.
"""

from attention_course.checking import CheckFailed, check
from attention_course.checks_file import CheckSetupError, example

__all__ = ["CheckFailed", "CheckSetupError", "check", "example"]
