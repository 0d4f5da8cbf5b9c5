"""Load scripts of the repository that are in no package."""

import importlib.util
import sys
from types import ModuleType

from autograder.masters import ROOT


def load_script(name: str) -> ModuleType:
    """Load "experiments/some_script.py" as a module; it does not run as a program."""
    spec = importlib.util.spec_from_file_location("loaded_script", ROOT / name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look themselves up
    spec.loader.exec_module(module)
    return module
