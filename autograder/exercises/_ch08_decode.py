"""Chapter 08: byte-pair encoding, back from tokens to text."""

from __future__ import annotations

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch08_bpe import draw_text, expansions, train
from autograder.exercises._ch08_encode import bpe_encode_reference


def bpe_decode_cases(rng):
    """Nested merges; characters split over tokens; broken UTF-8; numbers that no token has."""
    for _ in range(2):
        text = draw_text(rng, 30)
        merges = train(text, 10)
        tokens = bpe_encode_reference(text[:30], merges)
        yield Case("nested", {"tokens": tokens, "merges": merges}, "merges of merges")
    text = draw_text(rng, 6, 8) + "日🦉\0é"
    merges = train(draw_text(rng, 12, 9), 6)
    tokens = bpe_encode_reference(text, merges)
    yield Case("bytes", {"tokens": tokens, "merges": merges}, "characters of several bytes")
    tokens = list("🦉日本語żółw".encode())
    yield Case("bytes", {"tokens": tokens, "merges": []}, "no merges")
    broken = list(draw_text(rng, 4).encode()) + list("🦉".encode())[: int(rng.integers(1, 4))]
    broken += [97, 128 + int(rng.integers(64)), 98]
    yield Case("broken", {"tokens": broken, "merges": merges}, "bytes that are no UTF-8")
    yield Case("broken", {"tokens": [], "merges": merges}, "no tokens")
    unknown = 256 + len(merges)
    yield Case("unknown", {"tokens": [97, unknown, 98], "merges": merges}, "one number too high")
    yield Case("unknown", {"tokens": [98, -1], "merges": merges}, "a negative number")


def bpe_decode_reference(tokens, merges):
    """Expands one token after the other with a stack, down to bytes."""
    found = bytearray()
    stack = list(reversed(tokens))
    while stack:
        token = stack.pop()
        if not 0 <= token < 256 + len(merges):
            raise ValueError(f"no token has the number {token}")
        if token < 256:
            found.append(token)
        else:
            stack += reversed(merges[token - 256])
    return str(found, "utf-8", "replace")


def _pieces(tokens, merges) -> list[bytes]:
    table = expansions(merges)
    if any(token not in table for token in tokens):
        raise ValueError("no token has this number")
    return [table[token] for token in tokens]


def bytes_as_characters(tokens, merges):
    """Each byte becomes a character."""
    return "".join(chr(byte) for byte in b"".join(_pieces(tokens, merges)))


def one_token_at_a_time(tokens, merges):
    """Decodes each token's bytes alone, so that split characters break."""
    return "".join(piece.decode("utf-8", errors="replace") for piece in _pieces(tokens, merges))


def broken_bytes_dropped(tokens, merges):
    """Leaves bad bytes out."""
    return b"".join(_pieces(tokens, merges)).decode("utf-8", errors="ignore")


def broken_bytes_raise(tokens, merges):
    """Bad bytes are an error."""
    return b"".join(_pieces(tokens, merges)).decode("utf-8")


def one_level_only(tokens, merges):
    """Looks each token up once: what merges merge is left out."""
    parts = [[token] if token < 256 else merges[token - 256] for token in tokens]
    if any(not 0 <= token < 256 + len(merges) for token in tokens):
        raise ValueError("no token has this number")
    return bytes(t for part in parts for t in part if t < 256).decode("utf-8", errors="replace")


def pairs_reversed(tokens, merges):
    """Expands the right half first."""
    return b"".join(_pieces(tokens, [pair[::-1] for pair in merges])).decode(errors="replace")


def unknown_tokens_skipped(tokens, merges):
    """Leaves out numbers that no token has."""
    known = [token for token in tokens if 0 <= token < 256 + len(merges)]
    return b"".join(_pieces(known, merges)).decode("utf-8", errors="replace")


def unknown_tokens_raise_key_error(tokens, merges):
    """Lets the table complain in its own words."""
    table = expansions(merges)
    return b"".join([table[token] for token in tokens]).decode("utf-8", errors="replace")


def decoded_by_recursion(tokens, merges):
    """Right: a token is its left half and its right half."""

    def spell(token):
        if 0 <= token < 256:
            return bytes([token])
        if not 256 <= token < 256 + len(merges):
            raise ValueError(f"there is no token {token}")
        left, right = merges[token - 256]
        return spell(left) + spell(right)

    return b"".join(map(spell, tokens)).decode("utf-8", errors="replace")


def decoded_by_table(tokens, merges):
    """Right: a list of all tokens' bytes, made first."""
    table = [bytes([byte]) for byte in range(256)]
    for left, right in merges:
        table.append(table[left] + table[right])
    if not all(0 <= token < len(table) for token in tokens):
        raise ValueError("unknown token")
    return b"".join(table[token] for token in tokens).decode(errors="replace")


def decoded_by_undoing(tokens, merges):
    """Right: undoes the merges from the last to the first."""
    if any(token < 0 or token >= 256 + len(merges) for token in tokens):
        raise ValueError("unknown token")
    for number in reversed(range(len(merges))):
        spelled = []
        for token in tokens:
            spelled += list(merges[number]) if token == 256 + number else [token]
        tokens = spelled
    return bytes(tokens).decode("utf-8", "replace")


BPE_DECODE = Exercise(
    id="bpe_decode",
    title="Byte-pair encoding: tokens to text",
    asks="Spell every token in bytes, and read all bytes together as UTF-8.",
    parameters=("tokens", "merges"),
    outputs=("text",),
    driver="sequence_function",
    groups={
        "nested": Group(1, "merges of merges"),
        "bytes": Group(1, "characters that are spread over tokens"),
        "broken": Group(1, "bytes that are no UTF-8; no tokens"),
        "unknown": Group(1, "numbers that no token has"),
    },
    cases=bpe_decode_cases,
    reference=bpe_decode_reference,
    misconceptions=(
        Misconception(
            bytes_as_characters,
            "Each byte becomes a character of its own.",
            "“é” is two bytes but one character: which method turns bytes into text?",
        ),
        Misconception(
            one_token_at_a_time,
            "Each token is turned into text alone, but a character may be spread over tokens.",
            "Join first, decode afterwards.",
        ),
        Misconception(
            broken_bytes_dropped,
            "Bytes that are no UTF-8 are dropped without a trace.",
            "The contract names what `errors` has to be.",
        ),
        Misconception(
            broken_bytes_raise,
            "Bytes that are no UTF-8 raise an error; a language model may well produce some.",
            "`bytes.decode` takes an argument that says what to do with bad bytes.",
        ),
        Misconception(
            one_level_only,
            "A merge's halves may be merges themselves; they are expanded only once.",
            "Spell the last merge of the first case on paper.",
        ),
        Misconception(
            pairs_reversed,
            "The right half of a pair comes before the left half.",
            "Decode one token made of two different letters.",
        ),
        Misconception(
            unknown_tokens_skipped,
            "Numbers that no token has are skipped.",
            "What does the contract want for them?",
        ),
        Misconception(
            unknown_tokens_raise_key_error,
            "A number that no token has raises, but not the exception that the contract names.",
            "Look at the number before you look it up.",
        ),
    ),
    accepted=(decoded_by_recursion, decoded_by_table, decoded_by_undoing),
)
