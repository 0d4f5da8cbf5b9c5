"""Lets `nbgrader …` work from the repository's root; the settings are in `autograder/`."""

import os

c = get_config()  # noqa: F821 - nbgrader provides it and load_subconfig
load_subconfig("autograder/nbgrader_config.py")  # noqa: F821
c.CourseDirectory.root = os.path.dirname(os.path.abspath(__file__))
