"""The names of the course's arguments: what each means, and what it must not be called instead.

From here the page `course/SYMBOLS.md` is drawn. Tests hold the arguments of all answers against it.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Iterable, Iterator
from pathlib import Path

from autograder.exercises import of_chapter
from autograder.masters import grade_id, read_master

FILE_NAME = "SYMBOLS.md"
INTRODUCTION = """\
# Symbols and names

What the arguments of the exercises are called, and what stands for them in formulas. Names with
two meanings say both; where shapes differ, the exercise says so. **True = may be seen** in a mask,
**True = is padding** where the name is `padding`. Names of one chapter only are explained there.

| name | in formulas | shape | meaning | first asked for in |
|---|---|---|---|---|
"""
# name: (symbol in formulas, shape, meaning)
TERMS = {
    "x": ("X", "(..., length, d_model)", "the tokens' vectors, on their way through the layers"),
    "tokens": ("", "(batch, length)", "whole numbers, each a word or a piece of one"),
    "segments": ("", "(batch, length)", "0 in the first sentence, 1 in the second"),
    "positions": ("p", "(length,)", "where tokens stand, from 0; or a vector for each place"),
    "distance": (
        "j − i, i − j",
        "a number, or (queries, keys)",
        "how far a key is from a query: key − query in 08, turned round in 13",
    ),
    "lengths": ("", "(batch,)", "real tokens of each sequence"),
    "length": ("l", "a number", "places in a sequence, padding included"),
    "longest": ("", "a number", "the most places there may be"),
    "queries": ("Q", "(..., q, d_k)", "what each position looks for"),
    "keys": ("K", "(..., k, d_k)", "what each position can be found by"),
    "values": ("V", "(..., k, d_v)", "what each position has to say"),
    "scores": ("S", "(..., q, k)", "how well a query fits a key"),
    "weights": ("A", "(..., q, k)", "scores after the softmax; or all weights of a model, by name"),
    "mask": (
        "M",
        "broadcasts to (..., q, k), or (batch, k)",
        "bool, True = may be seen; or the id of [MASK]",
    ),
    "memory_mask": ("", "(batch, source)", "bool, True = a word of the encoder's sentence"),
    "padding": ("", "(batch, k), or a number", "bool, True = is padding; or the padding's id"),
    "real": ("", "(batch, length)", "bool, True = there is a token; `mask` in 09 and 10"),
    "chosen": ("", "(batch, length), or a list", "places of the text that get corrupted"),
    "causal": ("", "True or False", "whether later places are hidden"),
    "heads": ("h", "a number", "how many heads"),
    "layers": ("N", "a number, or a list", "how many layers, or the layers"),
    "d_model": ("d", "a number", "width of a token's vector"),
    "d_head": ("d / h", "a number", "width of one head"),
    "d_hidden": ("", "a number", "width inside the MLP"),
    "vocabulary": ("", "a number, or a list", "the words or pieces there are, or how many"),
    "w_q": ("W_Q", "(d_model, d_k)", "projection to queries"),
    "w_k": ("W_K", "(d_model, d_k)", "projection to keys"),
    "w_v": ("W_V", "(d_model, d_v)", "projection to values"),
    "w_qkv": ("", "(d_model, 3 · d_model)", "the three projections side by side"),
    "b_qkv": ("", "(3 · d_model,)", "their biases"),
    "w_in": ("W_1", "(d_hidden, d_model)", "first layer of the MLP, as `nn.Linear` keeps it"),
    "b_in": ("b_1", "(d_hidden,)", "its bias"),
    "w_out": ("W_O, W_2", "(width, d_model), or turned", "projection at a sublayer's end"),
    "b_out": ("b_O, b_2", "(d_model,)", "its bias"),
    "gain": ("γ", "(d_model,)", "what a layer norm multiplies by"),
    "bias": ("β", "(d_model,), or True or False", "what is added; or whether there is a bias"),
    "epsilon": ("ε", "a number", "what keeps a layer norm from dividing by 0"),
    "memory": ("", "(batch, source, d_model)", "vectors from elsewhere: encoder, earlier segments"),
    "hidden": ("", "(batch, length, d_model)", "vectors that layers gave"),
    "states": ("", "(batch, length, d_model)", "what comes out of an encoder"),
    "cache": ("", "keys and values", "what earlier steps have computed"),
    "logits": ("", "(..., classes)", "a model's scores of classes or words, before the softmax"),
    "labels": ("", "(batch, length), or (batch,)", "the right classes; −100 = no loss here"),
    "targets": ("", "(batch, length)", "the right tokens; or how many places have a loss"),
    "temperature": ("T", "a number > 0", "what logits are divided by"),
    "base": ("", "a number", "sets how slow the slowest wave of positions is"),
    "table": ("", "(rows, d_model)", "a row for each position, distance or token"),
    "order": ("", "(batch, length)", "a permutation of places"),
    "batch": ("", "a number, or tensors", "sequences that are processed together"),
}
# What other books and libraries call the same thing, and no exercise may.
SYNONYMS = {
    "x": "hidden_states inp embeds",
    "tokens": "ids input_ids token_ids idx",
    "segments": "segment_ids token_type_ids",
    "positions": "pos position_ids",
    "distance": "relative_position rel_pos",
    "lengths": "lens seq_lens",
    "length": "seq_len sequence_length n_tokens",
    "longest": "max_len max_length",
    "queries": "q qs query_states",
    "keys": "key ks key_states",
    "values": "v value vs value_states",
    "scores": "attn_scores attention_scores",
    "weights": "attn attention attn_weights attention_weights probs",
    "mask": "attn_mask attention_mask msk",
    "memory_mask": "src_mask source_mask encoder_mask",
    "padding": "pad pad_id padding_idx key_padding_mask padding_mask",
    "causal": "is_causal",
    "heads": "h num_heads n_heads n_head nhead",
    "layers": "num_layers n_layers n_layer depth",
    "d_model": "d dim hidden_size embed_dim emb_dim n_embd model_dim",
    "d_head": "head_dim head_size d_k d_v",
    "d_hidden": "d_ff dim_feedforward intermediate_size ffn_dim",
    "vocabulary": "vocab vocab_size n_vocab",
    "w_q": "wq q_proj w_query",
    "w_k": "wk k_proj w_key",
    "w_v": "wv v_proj w_value",
    "w_out": "w_o wo out_proj",
    "gain": "gamma",
    "bias": "beta",
    "epsilon": "eps",
    "memory": "mem mems encoder_output enc_out",
    "cache": "past past_key_values kv_cache",
    "logits": "logit",
    "labels": "label gold",
    "targets": "tgt",
    "temperature": "temp tau",
    "order": "perm permutation",
    "batch": "bs batch_size",
}
# Names that a chapter explains itself. A name that means the same in many chapters belongs above.
LOCAL = {
    "01_shapes": "first indices matrix rows second vector",
    "02_attention": "axis encoder_states output_gradient state",
    "03_positions": "cached_keys cached_values k key_positions query_positions start vectors",
    "04_multi_head": "gates head_outputs state target",
    "05_transformer_block": (
        "activation final_norm norm_first p pooler probe residual training uniform weight"
    ),
    "06_gpu": (
        "bandwidth batches block bytes_per_number clock device k largest m model n optimizer "
        "output peak repeats run synchronise to_keys to_queries to_values total visible warm_up"
    ),
    "07_encoder_decoder": (
        "beams end guesses inputs layer links model power smoothing source source_words start "
        "steps target target_words warm_up"
    ),
    "08_language_models": (
        "bidirectional buckets context count counts cut end first_sentinel full_stop history k "
        "key_heads kind mask_token mean_losses merges noise p penalty prefix_lengths prompt start "
        "starts text uniforms"
    ),
    "09_bert": (
        "cls copies documents epoch first mask_token mlm_labels mlm_logits nsp_labels nsp_logits "
        "percent pieces places replacements second sentences separator special text uniforms word "
        "word_embeddings"
    ),
    "10_task_heads": (
        "allowed classes context count decay embeddings end end_logits end_scores ends first "
        "frozen guess guesses last least names offsets patience pooling rate second sentences "
        "start start_logits start_scores starts text threshold truths way words"
    ),
    "11_electra": (
        "baseline copy_logits corrupted counted discriminator discriminator_logits first_word "
        "generator generator_layers generator_logits generator_width given log_probabilities "
        "masked objective replaced samples share state uniform weight word_logits"
    ),
    "12_distillation": (
        "clock exits first_logits layer layer_map loss model optimizer places projection repeats "
        "runs second_logits share shares source space student student_logits student_states "
        "student_weights swap teacher teacher_logits teacher_states teacher_weights warm_up weight"
    ),
    "13_beyond": (
        "content content_mask flops grid languages largest names peak position_keys "
        "position_queries pue query query_mask reach separator small source special target "
        "utilisation watts words"
    ),
    "14_capstone": "classes model",
}


def answer_parameters(path: Path) -> Iterator[tuple[str, str]]:
    """Go through the arguments of a chapter's answers, as (exercise, name).

    Functions, and the public methods and constructors of classes; `self` is left out.
    Raises MasterError.
    """
    exercises = of_chapter(path.stem)
    for cell in read_master(path, exercises).notebook.cells:
        if cell.cell_type == "code" and grade_id(cell) in exercises:
            for name in _parameters(ast.parse(cell.source)):
                yield grade_id(cell), name


def _parameters(tree: ast.Module) -> Iterator[str]:
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    for node in (node for body in bodies for node in body if isinstance(node, ast.FunctionDef)):
        if node.name == "__init__" or not node.name.startswith("_"):
            given = node.args
            for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                if argument.arg != "self":
                    yield argument.arg


def complaint(chapter: str, name: str) -> str | None:
    """Say why a chapter's exercises must not have an argument of this name; None if they may."""
    for term, others in SYNONYMS.items():
        if name.lower() in others.split():
            return f"is called {name!r} but the course says {term!r}"
    if any(letter in string.ascii_uppercase for letter in name):
        return f"{name!r} has a capital: arguments are in small letters"
    if name not in TERMS and name not in LOCAL.get(chapter, "").split():
        return (
            f"{name!r} is neither among TERMS nor among LOCAL[{chapter!r}] in "
            "autograder/notation.py: use a name that is there, or add it"
        )
    return None


def symbols_text(masters: Iterable[Path]) -> str:
    """Return the text of the page of symbols."""
    first: dict[str, str] = {}
    for path in masters:
        for _, name in answer_parameters(path):
            first.setdefault(name, path.stem)
    rows = []
    for name, (symbol, shape, meaning) in TERMS.items():
        chapter = first.get(name)
        place = f"[{chapter[:2]}]({chapter}/{chapter}.ipynb)" if chapter else "—"
        rows.append(f"| `{name}` | {symbol} | {shape} | {meaning} | {place} |\n")
    return INTRODUCTION + "".join(rows)
