"""The demo's class: what students hand in, from right answers to attacks.

Each submission is described in a few lines and built into a notebook when the demo runs.
"""

from __future__ import annotations

import copy
from pathlib import Path

import nbformat
from nbformat.notebooknode import NotebookNode

from autograder.demo import attacks
from autograder.demo.building import STUB, Code, Edit, Submission
from autograder.masters import CHECK_PREFIX, grade_id

CHAPTER = attacks.CHAPTER

# --- accidents -----------------------------------------------------------------------------------


def _position(notebook: NotebookNode, name: str) -> int:
    return next(i for i, cell in enumerate(notebook.cells) if grade_id(cell) == name)


def paste_twice(name: str, first_copy: str) -> Edit:
    """The answer stands there twice, as Jupyter's copy and paste leaves it; the first is wrong."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        position = _position(notebook, name)
        pasted = copy.deepcopy(notebook.cells[position])
        pasted.id = "pasted-copy"
        notebook.cells[position].source = first_copy
        notebook.cells.insert(position + 1, pasted)

    return edit


def delete_check(name: str) -> Edit:
    """A check cell is gone."""

    def edit(notebook: NotebookNode, folder: Path) -> None:
        del notebook.cells[_position(notebook, CHECK_PREFIX + name)]

    return edit


def lose_metadata(notebook: NotebookNode, folder: Path) -> None:
    """All cells come without metadata, as some editors save them."""
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})


# --- the class -----------------------------------------------------------------------------------

BROKEN = "def decoder_step(state, encoder_states:\n    return state @ encoder_states\n"
ENDLESS = """def causal_attention(queries, keys, values):
    place = 0
    while place < queries.shape[-2]:
        scores = queries[..., place, :] @ keys.swapaxes(-1, -2)
    return scores @ values, scores
"""
DEADLY = """import os


def shuffle_test(x, order, w_q, w_k, w_v, positions=None):
    os._exit(1)
"""
CLASS = (
    Submission("ada", "everything right"),
    Submission(
        "ben",
        "right in another style: logarithms, einsum, −1e9",
        {
            "softmax": "with_logarithms",
            "decoder_step": "decoder_by_broadcasting",
            "scaled_scores": "scores_by_einsum",
            "masked_softmax": "with_minus_billion",
            "scaled_dot_product_attention": "attention_by_einsum",
            "causal_attention": "causal_by_positions",
            "self_attention": "layer_by_einsum",
            "shuffle_test": "shuffle_by_assignment",
            "attention_backward": "backward_by_jacobian",
        },
    ),
    Submission(
        "chiara",
        "right in a third style: loops, one row after another",
        {
            "softmax": "with_moved_axis",
            "decoder_step": "decoder_by_recursion",
            "scaled_scores": "scores_by_broadcasting",
            "masked_softmax": "row_by_row",
            "scaled_dot_product_attention": "attention_one_by_one",
            "causal_attention": "causal_by_last_rows",
            "self_attention": "layer_token_by_token",
            "shuffle_test": "shuffle_by_search",
            "attention_backward": "backward_query_by_query",
        },
    ),
    Submission(
        "dmitri",
        "mistakes: no maximum subtracted, a decoder without batch",
        {"softmax": "no_maximum_subtracted", "decoder_step": "only_without_batch"},
    ),
    Submission(
        "eun-ji",
        "mistakes: divides by d_k, empty rows are NaN, softmax over queries",
        {
            "scaled_scores": "divided_by_d_k",
            "masked_softmax": "empty_row_is_nan",
            "scaled_dot_product_attention": "softmax_over_queries",
        },
    ),
    Submission(
        "farid",
        "mistakes: sees the next token, values not projected, order undone with itself",
        {
            "causal_attention": "sees_the_next_token",
            "self_attention": "values_not_projected",
            "shuffle_test": "undone_with_order",
            "attention_backward": "scale_forgotten",
        },
    ),
    Submission(
        "grace",
        "half-finished: the first three exercises",
        {name: "solution" for name in ("softmax", "decoder_step", "scaled_scores")},
        rest=STUB,
    ),
    Submission("hiro", "untouched", rest=STUB),
    Submission("ines", "a syntax error in one answer", {"decoder_step": Code(BROKEN)}),
    Submission("jonas", "an endless loop in one answer", {"causal_attention": Code(ENDLESS)}),
    Submission("kemal", "one answer ends Python", {"shuffle_test": Code(DEADLY)}),
    Submission(
        "lena",
        "an answer pasted twice, the first copy wrong",
        edits=(paste_twice("scaled_scores", "def scaled_scores(queries, keys):\n    return keys"),),
    ),
    Submission("mateo", "a check cell deleted", edits=(delete_check("masked_softmax"),)),
    Submission("nadia", "all nbgrader metadata lost", edits=(lose_metadata,)),
    Submission("Zoë d'Été (2)", "everything right, an unusual student id"),
    Submission(
        "x-patches",
        "cheats: patches NumPy and the course, forges results",
        {"softmax": attacks.as_answer(attacks.PATCHES)},
        rest=STUB,
    ),
    Submission(
        "x-prints",
        "cheats: prints and raises what looks like success",
        {
            "softmax": attacks.as_answer(attacks.PRINTS_PASSED),
            "scaled_scores": attacks.as_answer(attacks.RAISES_PASSED),
            "masked_softmax": attacks.as_answer(attacks.RETURNS_AN_EQUAL),
        },
        rest=STUB,
        edits=(attacks.end_checks_with_marks,),
    ),
    Submission(
        "x-looks-up",
        "cheats: takes the public cases' results from checks.json",
        {
            "softmax": attacks.as_answer(attacks.PUBLIC_ANSWERS + attacks.LOOKED_UP["softmax"]),
            "scaled_scores": attacks.as_answer(attacks.LOOKED_UP["scaled_scores"]),
            "causal_attention": attacks.as_answer(attacks.LOOKED_UP["causal_attention"]),
        },
        rest=STUB,
    ),
    Submission(
        "x-steals",
        "cheats: reads solutions, writes the gradebook and parent folders",
        {
            "softmax": attacks.as_answer(attacks.THEFT),
            "scaled_scores": attacks.as_answer('scaled_scores = stolen("scaled_scores")'),
        },
        rest=STUB,
        edits=(attacks.plant_links,),
    ),
    Submission(
        "x-skips",
        "cheats: checks tagged not to be run, with a mark of 100 in them",
        rest=STUB,
        edits=(attacks.fake_outputs,),
    ),
    Submission(
        "x-number",
        "cheats: prints a mark and leaves it as last value",
        {"softmax": attacks.as_answer(attacks.LAST_VALUE)},
        rest=STUB,
    ),
)
