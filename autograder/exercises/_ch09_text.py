"""Chapter 09: from raw text to words, as BERT's uncased tokenizer cuts it."""

from __future__ import annotations

import re
import string
import unicodedata

from tokenizers import normalizers, pre_tokenizers

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception

LETTERS = "abdefghiklmnoprstuvw"
ACCENTED = "ÀÉÎÕÜçñøåèÖÂ"
CHINESE = "注意力機制語言模型中文"
FOREIGN_PUNCTUATION = "«»“”…—¿。"
CHINESE_BLOCK = ("\u4e00", "\u9fff")


def draw_word(rng, length: int, accents: int = 0) -> str:
    """Draw a word with capital letters and so many accented ones."""
    letters = list(rng.choice(list(LETTERS), size=length))
    letters[0] = letters[0].upper()
    for place in rng.permutation(length)[:accents]:
        letters[place] = str(rng.choice(list(ACCENTED)))
    return "".join(letters)


def normalise_text_cases(rng):
    """Case, accents in both spellings; punctuation of both kinds; Chinese; invisible characters."""

    def words(*lengths, accents=0):
        return [draw_word(rng, length, accents) for length in lengths]

    def pick(characters):
        return str(rng.choice(list(characters)))

    a, b, c = words(4, 6, 3)
    text = f"  {a}\t{b}\n{c.upper()} {a.lower()} "
    yield Case("plain", {"text": text}, "capitals, several kinds of white space")
    a, b, c = words(5, 7, 4, accents=2)
    text = f"{a} {b}, {c}!"
    yield Case("plain", {"text": text}, "accents, one character each")
    text = unicodedata.normalize("NFD", f"{b}e\u0301 {c}n\u0303o")
    yield Case("plain", {"text": text}, "accents as characters of their own")
    a, b, c, d = words(3, 4, 5, 6)
    marks = [pick(FOREIGN_PUNCTUATION) for _ in range(2)]
    text = f"{a}{marks[0]}{b}'s {c}-{d}{marks[1]} ({a})..."
    yield Case("signs", {"text": text}, "punctuation, also of other scripts")
    signs = [pick("$+<=>^`|~") for _ in range(3)]
    text = f"{a}{signs[0]}{b}{signs[1]}{signs[2]}5 _{c}_ @{d}"
    yield Case("signs", {"text": text}, "ASCII signs that are no punctuation to Unicode")
    text = f"{a}{pick(CHINESE)}{pick(CHINESE)}{b} {pick(CHINESE)}7一{c}"
    yield Case("signs", {"text": text}, "Chinese characters among letters")
    text = f"{a}\u200b{b}\x00 \ufffd{c}\u00ad{d[:2]}\u3000{d}\xa0{a}\r{b}\x07"
    yield Case("invisible", {"text": text}, "invisible characters and rare white space")
    yield Case("invisible", {"text": " \n\u200b "}, "nothing that can be seen")


def normalise_text_reference(text):
    """The library `tokenizers`."""
    normal = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=True, lowercase=True
    )
    words = pre_tokenizers.BertPreTokenizer().pre_tokenize_str(normal.normalize_str(text))
    return " ".join(word for word, _ in words)


def _is_sign(character):
    return character in string.punctuation or unicodedata.category(character)[0] == "P"


def _is_chinese(character):
    return CHINESE_BLOCK[0] <= character <= CHINESE_BLOCK[1]


def _is_invisible(character):
    category = unicodedata.category(character)[0]
    return character == "\ufffd" or (category == "C" and character not in "\t\n\r")


def _without_accents(text):
    decomposed = unicodedata.normalize("NFD", text)
    return "".join(c for c in decomposed if unicodedata.category(c) != "Mn")


def _normalise(
    text,
    lower=str.lower,
    accents=_without_accents,
    alone=lambda c: _is_sign(c) or _is_chinese(c),
    invisible="",
    spaced=" {} ",
    split=str.split,
):
    text = "".join(invisible if _is_invisible(c) else c for c in text)
    text = accents(lower(text))
    return " ".join(split("".join(spaced.format(c) if alone(c) else c for c in text)))


def capitals_kept(text):
    """Forgets lower case."""
    return _normalise(text, lower=str)


def accents_kept(text):
    """Leaves accents on."""
    return _normalise(text, accents=str)


def accented_letters_dropped(text):
    """Throws away every letter with an accent."""
    kept = "".join(c for c in text if len(unicodedata.normalize("NFD", c)) == 1)
    return _normalise(kept)


def only_ascii_kept(text):
    """Encodes as ASCII and drops the rest."""
    return _normalise(_without_accents(text).encode("ascii", "ignore").decode())


def composed_only(text):
    """Strips accents by a composed form: those that stand alone stay."""

    def strip(text):
        return "".join(unicodedata.normalize("NFD", c)[0] for c in text)

    return _normalise(text, accents=strip)


def ascii_punctuation_only(text):
    """Knows `string.punctuation` and nothing else."""
    return _normalise(text, alone=lambda c: c in string.punctuation or _is_chinese(c))


def unicode_punctuation_only(text):
    """Asks for the category P and nothing else: $ and + stay attached."""
    return _normalise(text, alone=lambda c: unicodedata.category(c)[0] == "P" or _is_chinese(c))


def signs_removed(text):
    """Deletes punctuation."""
    return _normalise("".join(" " if _is_sign(c) else c for c in text))


def signs_left_attached(text):
    """Splits at white space only."""
    return _normalise(text, alone=_is_chinese)


def chinese_in_one_piece(text):
    """Treats Chinese characters as letters."""
    return _normalise(text, alone=_is_sign)


def invisible_kept(text):
    """Leaves invisible characters in."""
    text = _without_accents(text.lower())
    return " ".join("".join(f" {c} " if _is_sign(c) or _is_chinese(c) else c for c in text).split())


def invisible_become_spaces(text):
    """Splits a word at an invisible character."""
    return _normalise(text, invisible=" ")


def split_at_single_spaces(text):
    """Splits at the character " " only."""
    return _normalise(text, split=lambda text: text.split(" "))


def control_characters_with_white_space(text):
    """Drops tabs and line breaks as well: the words around them grow together."""
    return _normalise("".join(c for c in text if c not in "\t\n\r"))


def by_regular_expression(text):
    """Right: one pattern finds all words."""
    text = "".join(c for c in text if not _is_invisible(c))
    text = _without_accents(text).lower()
    marks = re.escape("".join({c for c in text if _is_sign(c)}))
    single = f"[{marks}\u4e00-\u9fff]" if marks else "[\u4e00-\u9fff]"
    other = f"[^\\s{marks}\u4e00-\u9fff]+"
    return " ".join(re.findall(f"{single}|{other}", text))


def character_by_character(text):
    """Right: builds a list of words."""
    words, word = [], ""
    for character in unicodedata.normalize("NFD", text):
        category = unicodedata.category(character)
        if category == "Mn" or _is_invisible(character):
            continue
        alone = _is_sign(character) or _is_chinese(character)
        if (character.isspace() or alone) and word:
            words.append(word)
            word = ""
        if alone:
            words.append(character)
        elif not character.isspace():
            word += character.lower()
    return " ".join([*words, word] if word else words)


def by_translation(text):
    """Right: a table for `str.translate`."""
    text = unicodedata.normalize("NFD", text.casefold() if text.isascii() else text.lower())
    table = {}
    for character in set(text):
        if _is_invisible(character) or unicodedata.combining(character):
            table[ord(character)] = None
        elif _is_sign(character) or _is_chinese(character):
            table[ord(character)] = f" {character} "
    return " ".join(text.translate(table).split())


NORMALISE_TEXT = Exercise(
    id="normalise_text",
    title="From text to words",
    asks="Lower-case a text, strip accents, and set punctuation and Chinese characters apart.",
    parameters=("text",),
    outputs=("text",),
    driver="sequence_function",
    groups={
        "plain": Group(1, "case, white space and accents"),
        "signs": Group(1, "punctuation and Chinese"),
        "invisible": Group(1, "what cannot be seen"),
    },
    cases=normalise_text_cases,
    reference=normalise_text_reference,
    misconceptions=(
        Misconception(
            capitals_kept,
            "Capital letters are still there.",
            "Which method of a string makes letters small?",
        ),
        Misconception(
            accents_kept,
            "Accents are still on.",
            "What does `unicodedata.normalize` with NFD do to an é, and which part has to go?",
        ),
        Misconception(
            accented_letters_dropped,
            "A letter with an accent is lost as a whole.",
            "After NFD, the letter and its accent are two characters: which of them has the "
            "category Mn?",
        ),
        Misconception(
            only_ascii_kept,
            "Everything beyond ASCII is thrown away.",
            "What is left of a Chinese word, or of a letter like ø, which has no decomposition?",
        ),
        Misconception(
            composed_only,
            "An accent that is a character of its own stays.",
            "Decompose the whole text first; then look at every character.",
        ),
        Misconception(
            ascii_punctuation_only,
            "Only the punctuation of ASCII is set apart.",
            "What is the Unicode category of «, and of 。?",
        ),
        Misconception(
            unicode_punctuation_only,
            "Signs like $ and + stay attached: to Unicode they are symbols.",
            "The exercise names two kinds of signs.",
        ),
        Misconception(
            signs_removed,
            "Punctuation is gone; it should be words of its own.",
            "Look at the example: what became of the comma?",
        ),
        Misconception(
            signs_left_attached,
            "Punctuation is still attached to words.",
            "What stands around a comma in the result of the example?",
        ),
        Misconception(
            chinese_in_one_piece,
            "Chinese characters are taken together as if they were letters of one word.",
            "Read point 3 of the exercise again.",
        ),
        Misconception(
            invisible_kept,
            "Invisible characters are still in the text.",
            "Print `unicodedata.category` for each character of the case.",
        ),
        Misconception(
            invisible_become_spaces,
            "A word was cut where an invisible character stood.",
            "Dropped, or replaced by a space?",
        ),
        Misconception(
            split_at_single_spaces,
            "Only the space character separates words, and several give empty words.",
            "What does `split()` do without an argument?",
        ),
        Misconception(
            control_characters_with_white_space,
            "Tabs and line breaks were dropped, so words ran together.",
            "Their category begins with C, too: read the end of point 1.",
        ),
    ),
    accepted=(by_regular_expression, character_by_character, by_translation),
)
