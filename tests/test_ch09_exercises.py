"""What chapter 09's exercises promise: agreement with `tokenizers` and `transformers`."""

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from autograder.audit.answers import read_answer
from autograder.exercises._ch09_corrupt import MLM_CORRUPT
from autograder.exercises._ch09_parts import draw_weights
from autograder.exercises._ch09_pseudo import blank_model
from autograder.exercises._ch09_whole import WHOLE_WORD_MASK

CHAPTER = "09_bert"
SEEDS = range(10)
ODD_TEXTS = [
    *("", " \t\r\n", "ÀÉÎÕÜ", "e\u0301E\u0301", "İstanbul", "ǅ ß ſ", "don't!!", "«Ça» va…¿no?"),
    *(
        "a_b^c`d~e",
        "1,234.5€",
        "中文abc注意",
        "x\u200by\u00adz",
        "\ufffdq\x00w\x07",
        "한국어",
        "½²",
    ),
    *("tokenization", "un" * 60, "naïve café—bar", "🦉 owl", "\u3000wide\xa0space"),
]


def answer(exercise):
    """The notebook's own answer to an exercise."""
    return read_answer(CHAPTER, exercise).candidate()


@pytest.mark.parametrize("text", ODD_TEXTS)
def test_odd_texts_are_cut_as_the_library_cuts_them(text):
    letters = "abcdefghijklmnopqrstuvwxyz0123456789é中文注意!?.,'«»—"
    pieces = ["[UNK]", *letters, *(f"##{x}" for x in letters), "un", "##un", "token", "##ization"]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    library = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    library.normalizer = normalizers.BertNormalizer()
    library.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words = answer("normalise_text")(text).split()
    cut = [number for word in words for number in answer("wordpiece")(word, vocabulary, 100)]
    assert cut == library.encode(text).ids


def test_states_and_counts_agree_with_transformers():
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 13, "hidden_size": 12, "num_hidden_layers": 2, "intermediate_size": 7}
    config = transformers.BertConfig(
        **sizes, num_attention_heads=3, max_position_embeddings=9, attn_implementation="eager"
    )
    model = transformers.BertForPreTraining(config).double().eval()
    shapes = {name: tuple(p.shape) for name, p in model.bert.named_parameters()}
    drawn = draw_weights(np.random.default_rng(4), shapes)
    weights = {name: torch.from_numpy(array) for name, array in drawn.items()}
    model.bert.load_state_dict(weights, strict=False)
    tokens = torch.tensor([[1, 5, 12, 2, 7], [3, 3, 8, 0, 0]])
    segments = torch.tensor([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]])
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    with torch.no_grad():
        library = model.bert(tokens, mask.long(), segments).last_hidden_state
    own = answer("bert_states")(weights, 3, tokens, segments, mask)
    torch.testing.assert_close(own[mask], library[mask], rtol=0, atol=1e-10)
    counted = answer("bert_parts")(13, 9, 2, 12, 2, 7)
    assert sum(counted) == sum(p.numel() for p in model.parameters())


def test_of_10_000_selected_words_80_10_10_per_cent_change():
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(10, 60, (100, 100), generator=generator)
    scores, uniforms = torch.rand(2, 100, 100, generator=generator).double()
    replacements = torch.full_like(tokens, 5)
    inputs, labels = answer("mlm_corrupt")(
        tokens, torch.tensor([0]), 100, scores, uniforms, replacements, 3
    )
    assert torch.equal(labels, tokens)
    shares = [float((inputs == value).double().mean()) for value in (3, 5)]
    shares.append(float((inputs == tokens).double().mean()))
    # Five standard deviations: with a new seed a right answer would fail once in half a million.
    for share, wanted in zip(shares, (0.8, 0.1, 0.1), strict=True):
        assert abs(share - wanted) < 5 * (wanted * (1 - wanted) / 10_000) ** 0.5


def test_special_tokens_never_change_and_have_no_label():
    for seed in SEEDS:
        for case in MLM_CORRUPT.make_cases(seed):
            given = {
                name: torch.from_numpy(value) if isinstance(value, np.ndarray) else value
                for name, value in case.inputs.items()
            }
            inputs, labels = MLM_CORRUPT.reference(**given)
            special = torch.isin(given["tokens"], given["special"])
            assert torch.equal(inputs[special], given["tokens"][special])
            assert (labels[special] == -100).all()
            words = (~special).any(dim=1)
            assert torch.equal((labels != -100).any(dim=1), words)


def test_words_are_masked_whole_and_within_the_budget():
    for seed in SEEDS:
        for case in WHOLE_WORD_MASK.make_cases(seed):
            pieces, chosen = case.inputs["pieces"], WHOLE_WORD_MASK.reference(**case.inputs)
            n = sum(piece not in ("[CLS]", "[SEP]", "[PAD]") for piece in pieces)
            assert len(chosen) <= max(1, case.inputs["percent"] * n // 100)
            for place, piece in enumerate(pieces):
                if piece.startswith("##"):
                    assert (place in chosen) == (place - 1 in chosen)


def test_the_notebooks_model_is_the_one_that_the_answers_use():
    theirs = read_answer(CHAPTER, "fill_one_by_one").before["blank_model"]
    table = torch.randn(5, 6, 6, generator=torch.Generator().manual_seed(2))
    for tokens in ([[1]], [[4, 0, 2], [2, 2, 3]], [[1, 2, 3, 4, 5, 0, 1]]):
        given = torch.tensor(tokens)
        torch.testing.assert_close(theirs(table, given), blank_model(table, given))
    with pytest.raises(ValueError, match="axes"):
        theirs(table, torch.tensor([1, 2]))
