"""Start a server the way Binder does: the `python3` on PATH decides which Jupyter it is.

Binder's own command imports jupyterlab and, if that works, becomes `jupyter-lab` with the arguments
it was given; otherwise it falls back to `jupyter-notebook`. An image whose `python3` is the wrong
one therefore fails here as it would there.
"""

import importlib.util
import os
import sys

command = "jupyter-lab" if importlib.util.find_spec("jupyterlab") else "jupyter-notebook"
os.execvp(command, [command, *sys.argv[1:]])
