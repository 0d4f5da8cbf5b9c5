"""The search of a submission's source: evasions are found, honest answers are left alone."""

import pytest
from corpus.hidden_calls import HIDDEN
from corpus.honest_code import HONEST

from attention_course.source_rules.notebook import Notebook
from attention_course.source_rules.rules import search
from attention_course.source_rules.units import Cell

FORBIDDEN = {
    "broadcast_shape": ("numpy.*", "scipy.*", "torch.*", "numpy.broadcast_shapes"),
    "softmax": ("*softmax*",),
    "attention_backward": ("torch.*",),
    "einsum": ("numpy.einsum", "torch.Tensor.norm"),
}
GIVEN = (
    "import numpy as np\nfrom attention_course import check, example",
    "import matplotlib.pyplot as plt",
    "import torch",
    "def reference_of_the_course(scores):\n    return torch.softmax(scores, -1)",
)


def findings(exercise, cells, files=None):
    sources = [Cell(f"cell {n}", text, own=False) for n, text in enumerate(GIVEN, 1)]
    for number, text in enumerate(cells, len(GIVEN) + 1):
        sources.append(Cell(f"cell {number}", text))
    notebook = Notebook.read(sources, files)
    return search(notebook, ("check", exercise), FORBIDDEN[exercise])


@pytest.mark.parametrize("entry", HIDDEN, ids=lambda entry: entry.name)
def test_a_hidden_call_is_found(entry):
    found = findings(entry.exercise, entry.cells, entry.files)
    assert found, "nothing is found"
    assert entry.named in " ".join(finding.sentence for finding in found)


@pytest.mark.parametrize("entry", HONEST, ids=lambda entry: entry.name)
def test_an_honest_answer_is_left_alone(entry):
    assert [f.sentence for f in findings(entry.exercise, entry.cells, entry.files)] == []
