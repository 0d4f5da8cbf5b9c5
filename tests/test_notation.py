import pytest

from autograder import notation
from autograder.masters import ROOT, SOLUTIONS, master_names

ASKED = {
    chapter: list(notation.answer_parameters(SOLUTIONS / f"{chapter}.py"))
    for chapter in master_names()
}


@pytest.mark.parametrize("chapter", master_names())
def test_arguments_are_called_what_the_course_calls_them(chapter):
    found = [(name, notation.complaint(chapter, argument)) for name, argument in ASKED[chapter]]
    assert [f"{chapter}, {name}: {why}" for name, why in found if why] == []


def test_the_tables_hold_no_name_that_nobody_uses():
    assert set(notation.TERMS) <= {argument for asked in ASKED.values() for _, argument in asked}
    for chapter, names in notation.LOCAL.items():
        used = {argument for _, argument in ASKED[chapter]}
        assert set(names.split()) <= used - set(notation.TERMS), chapter
    assert set(notation.SYNONYMS) <= set(notation.TERMS)


def test_no_synonym_is_a_name_of_the_course():
    ours = set(notation.TERMS).union(*(names.split() for names in notation.LOCAL.values()))
    assert not ours & {other for names in notation.SYNONYMS.values() for other in names.split()}


@pytest.mark.parametrize("name", ["Q", "num_heads", "attn_mask", "d_ff"])
def test_a_synonym_is_refused_with_the_right_name(name):
    right = {"Q": "queries", "num_heads": "heads", "attn_mask": "mask", "d_ff": "d_hidden"}
    assert f"the course says '{right[name]}'" in notation.complaint("02_attention", name)


def test_a_name_of_another_chapter_has_to_be_entered():
    assert notation.complaint("12_distillation", "teacher") is None
    assert "use a name that is there" in notation.complaint("02_attention", "teacher")
    assert "has a capital" in notation.complaint("02_attention", "Rows")


def test_constructors_and_public_methods_count():
    answer = """\
class Part:
    def __init__(self, num_heads): ...
    def forward(self, x, *, causal): ...
    def _private(self, anything): ...
"""
    tree = notation.ast.parse(answer)
    assert list(notation._parameters(tree)) == ["num_heads", "x", "causal"]


def test_the_page_names_the_chapter_that_asks_first():
    page = (ROOT / "course" / notation.FILE_NAME).read_text("utf-8")
    for name in notation.TERMS:
        assert f"| `{name}` |" in page
    assert "after the softmax" in page
    row = next(line for line in page.splitlines() if line.startswith("| `d_head` |"))
    assert row.endswith("| [04](04_multi_head/04_multi_head.ipynb) |")
