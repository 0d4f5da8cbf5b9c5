"""Exercises of chapter 08: language models, their tokens, their sampling and their relatives."""

from __future__ import annotations

from autograder.exercises._ch08_bart import MASK_AND_DELETE, TEXT_INFILLING
from autograder.exercises._ch08_bpe import BPE_TRAIN
from autograder.exercises._ch08_buckets import RELATIVE_BUCKET
from autograder.exercises._ch08_decode import BPE_DECODE
from autograder.exercises._ch08_draw import DRAW_TOKEN
from autograder.exercises._ch08_encode import BPE_ENCODE
from autograder.exercises._ch08_generate import GENERATE
from autograder.exercises._ch08_gpt import GPT
from autograder.exercises._ch08_llama import LLAMA_LAYER
from autograder.exercises._ch08_loss import NEXT_TOKEN_LOSS, PERPLEXITY
from autograder.exercises._ch08_masks import SEQUENCE_MASK
from autograder.exercises._ch08_penalty import REPETITION_PENALTY
from autograder.exercises._ch08_reorder import BART_DECODER_INPUT, REORDER_DOCUMENT
from autograder.exercises._ch08_t5 import SPAN_CORRUPTION
from autograder.exercises._ch08_top_k import TOP_K_FILTER
from autograder.exercises._ch08_top_p import TOP_P_FILTER
from autograder.exercises._ch08_windows import BATCH_WINDOWS, SPLIT_WINDOWS

EXERCISES = [
    BATCH_WINDOWS,
    SPLIT_WINDOWS,
    GPT,
    NEXT_TOKEN_LOSS,
    PERPLEXITY,
    DRAW_TOKEN,
    TOP_K_FILTER,
    TOP_P_FILTER,
    REPETITION_PENALTY,
    GENERATE,
    BPE_TRAIN,
    BPE_ENCODE,
    BPE_DECODE,
    SEQUENCE_MASK,
    SPAN_CORRUPTION,
    RELATIVE_BUCKET,
    MASK_AND_DELETE,
    TEXT_INFILLING,
    REORDER_DOCUMENT,
    BART_DECODER_INPUT,
    LLAMA_LAYER,
]
