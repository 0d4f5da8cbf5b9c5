"""Text to word pieces as BERT's uncased models cut it, by the library `tokenizers`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

UNKNOWN, PADDING, BLANK = "[UNK]", "[PAD]", "[MASK]"
ENDS = ("[SEP]", "[CLS]")
LONGEST_WORD = 100  # characters


def piece_tokenizer(pieces: Sequence[str]) -> Any:
    """Return a tokenizer of the library for these word pieces, which are numbered from 0.

    It puts [CLS] and [SEP] around, pads to the longest of a batch and knows [MASK] in a text.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    numbers = {piece: number for number, piece in enumerate(pieces)}
    model = models.WordPiece(numbers, unk_token=UNKNOWN, max_input_chars_per_word=LONGEST_WORD)
    made = Tokenizer(model)
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.BertProcessing(*[(name, numbers[name]) for name in ENDS])
    made.enable_padding(pad_id=numbers[PADDING], pad_token=PADDING)
    made.add_special_tokens([BLANK])
    return made
