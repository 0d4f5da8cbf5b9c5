# %% [markdown]
# # 09 BERT
#
# A GPT (chapter 08) reads from left to right, since it shall write. But who only wants to
# *understand* a sentence may read it as a whole: the word before a blank and the word behind it.
# BERT is the encoder half of a transformer, trained to fill blanks. You build it from the text up
# to the two losses, run the weights of trained ones in your own code, and find out what filling
# blanks cannot do.
#
# **You will be able to**
#
# - cut any text into word pieces, and pack one or two sentences as BERT wants them;
# - build BERT's embeddings and layers under the names that published weights use, and load some;
# - say where 110 million parameters are;
# - corrupt text for masked language modelling, and compute the losses of pre-training;
# - score a sentence with a model that cannot write, and fill several blanks that fit together;
# - say what a trained model knows beyond the frequencies of words and of neighbours.
#
# | section | minutes | points |
# |---|---|---|
# | 1 Both directions | 10 | |
# | 2 From text to tokens | 70 | 10 |
# | 3 The encoder | 100 | 14 |
# | 4 Learning from blanks | 95 | 12 |
# | 5 Asking a BERT | 65 | 8 |
# | 6 Two sentences, and what RoBERTa changed | 55 | 6 |
# | Recap | 5 | |
# | **in all** | **400** | **50** |
#
# Good places to stop are after sections 2, 3, 4 and 5: no section needs answers from another one.

# %% [markdown]
# **To read**, before or after. BERT: J. Devlin et al. (2019), *BERT: Pre-training of Deep
# Bidirectional Transformers for Language Understanding*, Section 3. RoBERTa: Y. Liu et al. (2019),
# *RoBERTa: A Robustly Optimized BERT Pretraining Approach*, Sections 3 and 4. WordPiece: M.
# Schuster and K. Nakajima (2012), *Japanese and Korean Voice Search*, and Y. Wu et al. (2016),
# *Google's Neural Machine Translation System*, Section 4.1. Scores: J. Salazar et al. (2020),
# *Masked Language Model Scoring*, Section 2. One by one: M. Ghazvininejad et al. (2019),
# *Mask-Predict*, Section 3.

# %% [markdown]
# **Symbols.** Long words for things; single letters for axes.
#
# | name | shape | meaning |
# |---|---|---|
# | `tokens` | (batch, length) | whole numbers, each a word piece |
# | `segments` | (batch, length) | 0 in the first sentence, 1 in the second |
# | `mask` | (batch, length) | bool, **True = may be seen**, False = padding; chapter 05's `real` |
# | `states` | (batch, length, d_model) | what comes out of the encoder |
# | `labels` | (batch, length) | the word to find, or −100: does not count |
# | `logits` | (batch, length, vocabulary) | scores of all words, before the softmax |
# | [CLS], [SEP], [PAD], [MASK], [UNK] | tokens | begin, end, padding, blank, unknown |
#
# Careful: a *mask* says what attention may see; the token *[MASK]* is a blank in the text.
#
# Checks run on the CPU in float64 and hand everything over by name. In section 2, and wherever it
# says so, texts are plain Python strings and lists.

# %%
import math
import string
import unicodedata

import torch
import torch.nn.functional as F
from torch import nn

from attention_course import check, example

torch.set_num_threads(1)

# %% [markdown]
# ## 1 Both directions
#
# Who stands at the blank may look where the row has an X:
#
# ```
#                the   cat   ____   the   dog
# GPT             X     X      .     .     .
# BERT            X     X      .     X     X
# ```
#
# Predict: why can a model that reads in both directions not be trained like a GPT, by asking each
# place for the *next* word?

# %% [markdown]
# Because it has read the next word already: with two layers even its own word comes back to it
# through its neighbours. So BERT gets a text with **blanks** and is asked for what is missing. The
# price: it does not give the probability of a whole text, and it cannot simply write on. What it
# gives is a vector for each token in which the *whole* sentence has been taken into account;
# chapter 10 puts small heads on these vectors.

# %% [markdown]
# ## 2 From text to tokens
#
# BERT's vocabulary has 30,522 entries. Many are words; the others are pieces: `play`, `##ing`. A
# text takes two steps: first into *words*, then each word into *pieces*.
#
# ### Exercise 1: from text to words
# *15 minutes, medium, 3 points*
#
# The "uncased" BERT forgets capitals and accents. Python's `unicodedata` knows what a character is:
# `category(c)` gives two letters ("Lu": a capital letter, "Mn": a mark that sits on a letter, "Po":
# punctuation), and `normalize("NFD", text)` writes "é" as two characters, an e and its accent.
#
# 1. Drop characters that nobody sees: those whose category begins with **C**, and "\ufffd". But
#    tab, line feed and carriage return are white space.
# 2. Small letters; no accents: decompose, then drop the category **Mn**.
# 3. These characters are words of their own: every Chinese character (here: from "\u4e00" to
#    "\u9fff"); every punctuation mark, that is, category beginning with **P**; every sign in
#    `string.punctuation` (it has some, like $ and +, that Unicode calls symbols).
# 4. Otherwise words end at white space, whatever kind and however much.
# 5. Return the words in one string, with one space between them; "" if there are none.
#
# Example: `"Ça va, Zoë?"` gives `"ca va , zoe ?"`.


# %% nbgrader={"grade_id": "normalise_text", "solution": true}
def normalise_text(text):
    """Cut a text into lower-case words without accents.

    text: str. Returns the words, separated by single spaces, in a str.
    """
    ### BEGIN SOLUTION
    written = ""
    for character in unicodedata.normalize("NFD", text.lower()):
        category = unicodedata.category(character)
        invisible = category[0] == "C" and character not in "\t\n\r"
        if invisible or category == "Mn" or character == "\ufffd":
            continue
        chinese = "\u4e00" <= character <= "\u9fff"
        if category[0] == "P" or character in string.punctuation or chinese:
            character = f" {character} "
        written += character
    return " ".join(written.split())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-normalise_text", "grade": true, "points": 3}
check("normalise_text", normalise_text)

# %% [markdown]
# Any public case can be taken in hand: `example` gives its inputs.

# %%
print(example("normalise_text", 3))

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Go through the decomposed text character by character. There are three fates: dropped, kept, kept
# with spaces around it.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Build a string, with spaces around whatever is a word of its own; split it at white space at the
# end and join again.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `split()` is not `split(" ")`. Dropping is not replacing by a space. Which category has a tab?
# </details>

# %% [markdown]
# ### Exercise 2: WordPiece
# *20 minutes, medium, 3 points*
#
# Training picked the pieces (by a rule akin to chapter 08's byte-pair encoding); *using* them is
# simpler: from the left, always the longest piece that fits. A piece that does not begin the word
# is spelled with `##` in front.
#
# 1. `vocabulary` maps each piece to its number; it holds `"[UNK]"`.
# 2. At the beginning of the word look for the longest piece without `##`; at every later place for
#    the longest one that, with `##` in front of it, is in the vocabulary.
# 3. If no piece fits somewhere, the **whole word** is one `[UNK]`. There is no second try with
#    shorter pieces.
# 4. A word of more than `longest` characters is `[UNK]`, too.
# 5. Return the numbers of the pieces, a list of ints. The word has at least one character.
#
# Example: pieces `un`, `##able`, `##a`, `##ff` and the word `unaffable`: `un`, `##a`, `##ff`,
# `##able`.


# %% nbgrader={"grade_id": "wordpiece", "solution": true}
def wordpiece(word, vocabulary, longest):
    """Cut a word into pieces, the longest first.

    word: str. vocabulary: dict from piece to number. longest: int.
    Returns a list of ints.
    """
    ### BEGIN SOLUTION
    unknown = [vocabulary["[UNK]"]]
    if len(word) > longest:
        return unknown
    pieces, start = [], 0
    while start < len(word):
        mark = "##" if start else ""
        end = len(word)
        while end > start and mark + word[start:end] not in vocabulary:
            end -= 1
        if end == start:
            return unknown
        pieces.append(vocabulary[mark + word[start:end]])
        start = end
    return pieces
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-wordpiece", "grade": true, "points": 3}
check("wordpiece", wordpiece)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two loops: the outer one moves the start, the inner one tries ends from far to near.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `mark + word[start:end]` with `mark` = "" or "##". If the inner loop finds nothing, return at
# once.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The pieces found before a failure are worth nothing. `##` counts in the spelling of a piece, not
# in the length of a word.
# </details>

# %% [markdown]
# Step through it: type a word, and watch which pieces are tried. Predict first: what becomes of
# *unplayable*, and of *playz*?

# %% tags=["explorer"]
from attention_course.explorers import wordpiece_steps

wordpiece_steps("unplayable")

# %% [markdown]
# Now with the real vocabulary, if the optional package is installed. Predict: how many pieces has
# *tokenization*, and how many *zoë*? Which ones would you rather not have?

# %% tags=["experiment"]
from attention_course.pretrained import ModelMissing, minilm_vocabulary

try:
    pieces = minilm_vocabulary()
    numbers = {piece: number for number, piece in enumerate(pieces)}
    print(f"{len(pieces):,} pieces, {sum(p.startswith('##') for p in pieces):,} of them with ##")
    for text in ("Tokenization isn't unaffordable.", "Zoë's Überraschung: 3.14 €", "ἐν ἀρχῇ 注意"):
        words = normalise_text(text).split()
        cut = [[pieces[number] for number in wordpiece(word, numbers, 100)] for word in words]
        print(text, "→", " | ".join(" ".join(word) for word in cut))
except ModelMissing as missing:
    print(missing)
except NotImplementedError:
    print("This cell uses your answers to exercises 1 and 2.")

# %% [markdown]
# Frequent words are one piece; rare and foreign ones fall into syllables or letters. The pieces are
# not syllables in a linguist's sense: they are what made a training text short.
#
# ### Exercise 3: one or two sentences in one sequence
# *20 minutes, medium, 4 points*
#
# ```
# tokens     [CLS]  my  dog  [SEP]  it  barks  [SEP]  [PAD]  [PAD]
# segments     0    0    0     0    1     1      1      0      0
# mask         T    T    T     T    T     T      T      F      F
# ```
#
# 1. One sentence (`second` is None): `cls`, the sentence, `separator`. All of it is segment 0.
# 2. Two: `cls`, `first`, `separator`, `second`, `separator`. What comes behind the first separator
#    is segment 1; the first separator itself still belongs to the first sentence.
# 3. What is too long is cut **before**: as long as the whole would have more than `longest` tokens,
#    the longer sentence loses its last token; of two equally long ones `second` does. (There is
#    always room for the special tokens and one token of each sentence.)
# 4. Up to `longest`: `padding`, with segment 0.
# 5. `mask` is True for everything but padding.
# 6. Return `(tokens, segments, mask)`, three lists of length `longest`: ints, ints, bools.
#    `first` and `second` are left unchanged.
#
# Example: first `[7, 8]`, second `[9]`, longest 7, cls 1, separator 2, padding 0 give tokens
# `[1, 7, 8, 2, 9, 2, 0]` and segments `[0, 0, 0, 0, 1, 1, 0]`.


# %% nbgrader={"grade_id": "pack_sentences", "solution": true}
def pack_sentences(first, second, longest, cls, separator, padding):
    """Pack one or two sentences into a sequence of fixed length.

    first: list of ints. second: list of ints, or None. longest, cls, separator, padding: ints.
    Returns (tokens, segments, mask), lists of length `longest`.
    """
    ### BEGIN SOLUTION
    a, b = list(first), list(second or [])
    room = longest - (2 if second is None else 3)
    while len(a) + len(b) > room:
        (a if len(a) > len(b) else b).pop()
    tokens = [cls, *a, separator]
    segments = [0] * len(tokens)
    if second is not None:
        tokens += [*b, separator]
        segments += [1] * (len(b) + 1)
    missing = longest - len(tokens)
    mask = [True] * len(tokens) + [False] * missing
    return tokens + [padding] * missing, segments + [0] * missing, mask
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pack_sentences", "grade": true, "points": 4}
check("pack_sentences", pack_sentences)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# First cut copies of the sentences, then put the parts together, then fill up.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `while len(a) + len(b) > room:` one of the two pops. For one sentence let the other be empty; the
# room differs.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Cutting the packed list loses the last separator. `first.pop()` changes the caller's list.
# </details>

# %% [markdown]
# ## 3 The encoder
#
# ### Exercise 4: what goes into BERT
# *15 minutes, easy, 3 points*
#
# Three tables: one row for each token, one for each place, one for each segment. The three rows are
# added, then normalised. Where an attribute's name looks odd (`LayerNorm`): it is the name in all
# published checkpoints, and here they matter.
#
# 1. `BertEmbeddings(vocabulary, positions, segments, d_model)` has `word_embeddings`,
#    `position_embeddings`, `token_type_embeddings` (each an `nn.Embedding`) and `LayerNorm`, an
#    `nn.LayerNorm` with **eps = 1e-12**. No other parameters.
# 2. `forward(tokens, segments)`: for each token the sum of the rows of its word, its place in the
#    sentence (0, 1, 2, …) and its segment; unscaled; then `LayerNorm`.
# 3. All tables learn.
#
# Example: `BertEmbeddings(100, 50, 2, 8)` maps tokens and segments (3, 7) to (3, 7, 8).


# %% nbgrader={"grade_id": "bert_embeddings", "solution": true}
class BertEmbeddings(nn.Module):
    """Token, position and segment embeddings, added and normalised."""

    def __init__(self, vocabulary, positions, segments, d_model):
        ### BEGIN SOLUTION
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, d_model)
        self.position_embeddings = nn.Embedding(positions, d_model)
        self.token_type_embeddings = nn.Embedding(segments, d_model)
        self.LayerNorm = nn.LayerNorm(d_model, eps=1e-12)
        ### END SOLUTION

    def forward(self, tokens, segments):
        """Look up, add, normalise.

        tokens, segments: int tensors (batch, length). Returns (batch, length, d_model).
        """
        ### BEGIN SOLUTION
        places = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word_embeddings(tokens) + self.position_embeddings(places)
        return self.LayerNorm(x + self.token_type_embeddings(segments))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-bert_embeddings", "grade": true, "points": 3}
check("bert_embeddings", BertEmbeddings)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Three look-ups, two sums, one norm.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The places are `torch.arange(length)`; their rows, (length, d_model), broadcast over the batch.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `nn.LayerNorm`'s default eps is another one. Which axis of `tokens` is the length?
# </details>

# %% [markdown]
# ### Exercise 5: one layer
# *30 minutes, hard, 4 points*
#
# A layer of BERT is the encoder layer of 2017, post-LN, with GELU. The parameters are set up for
# you, under the names of the checkpoints: the names need a tree of modules, and `nn.ModuleDict`
# makes one (`self.attention["self"]["query"]` is called `attention.self.query`).
#
# 1. Queries, keys and values: `query(x)`, `key(x)`, `value(x)`, split into `heads` heads; head 0
#    has the first d_model / heads features, and so on.
# 2. In each head: softmax of scores / √(d_model / heads), over keys that may be seen: `mask`
#    (batch, length) is True for tokens and False for padding. At least one key of a sentence may be
#    seen. Queries are not masked: padding gets some vector, which nobody uses.
# 3. Heads side by side, then `attention.output.dense`.
# 4. Add x; then `attention.output.LayerNorm`. This is the input of the MLP:
# 5. `intermediate.dense`, exact GELU, `output.dense`; add the MLP's input; then `output.LayerNorm`.
#
# Example: `BertLayer(6, 2, 24)` maps (3, 5, 6) to (3, 5, 6).


# %% nbgrader={"grade_id": "bert_layer", "solution": true}
class BertLayer(nn.Module):
    """One encoder layer with the parameter names of Hugging Face's BERT."""

    def __init__(self, d_model, heads, d_hidden):
        super().__init__()
        self.heads = heads
        projections = {name: nn.Linear(d_model, d_model) for name in ("query", "key", "value")}
        self.attention = nn.ModuleDict(
            {"self": nn.ModuleDict(projections), "output": self._closing(d_model, d_model)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(d_model, d_hidden)})
        self.output = self._closing(d_hidden, d_model)

    @staticmethod
    def _closing(width, d_model):
        """The linear map and the LayerNorm that close a sublayer."""
        dense, norm = nn.Linear(width, d_model), nn.LayerNorm(d_model, eps=1e-12)
        return nn.ModuleDict({"dense": dense, "LayerNorm": norm})

    def forward(self, x, mask):
        """Let the tokens look at each other, then apply the MLP to each.

        x: float tensor (batch, length, d_model). mask: bool tensor (batch, length).
        Returns a float tensor (batch, length, d_model).
        """
        ### BEGIN SOLUTION
        projections = self.attention["self"]
        queries, keys, values = (
            projections[name](x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for name in ("query", "key", "value")
        )
        scores = queries @ keys.mT / math.sqrt(queries.shape[-1])
        scores = scores.masked_fill(~mask[:, None, None, :], -torch.inf)
        attended = (scores.softmax(dim=-1) @ values).transpose(1, 2).flatten(2)
        closing = self.attention["output"]
        x = closing["LayerNorm"](x + closing["dense"](attended))
        inner = F.gelu(self.intermediate["dense"](x))
        return self.output["LayerNorm"](x + self.output["dense"](inner))
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-bert_layer", "grade": true, "points": 4}
check("bert_layer", BertLayer)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Nothing new: chapter 05's post-LN block with chapter 04's heads and a padding mask. Only the names
# are long.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `unflatten(-1, (heads, -1))`, then move the heads in front of the length. The mask needs two new
# axes to fit (batch, heads, queries, keys). Or let `F.scaled_dot_product_attention` do the middle.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The width of a head, not d_model, is under the root. What is added in point 5 is the output of the
# *first* LayerNorm.
# </details>

# %% [markdown]
# ### Exercise 6: BERT from a checkpoint
# *30 minutes, hard, 4 points*
#
# A checkpoint is nothing but a dict from names to tensors. So a whole BERT can be a function of
# such a dict: no class is needed to *use* a model.
#
# 1. `weights` holds, as in exercise 4, `embeddings.word_embeddings.weight`,
#    `embeddings.position_embeddings.weight`, `embeddings.token_type_embeddings.weight`,
#    `embeddings.LayerNorm.weight` and `.bias`; and for each layer i the names of exercise 5 behind
#    `encoder.layer.i.`, for example `encoder.layer.0.attention.self.query.weight`.
# 2. The layers are numbered 0, 1, 2, …; how many there are, only the names tell. The dict is in no
#    order, and may hold other entries, such as `pooler.dense.weight`: leave them alone.
# 3. `embeddings`, then all layers. Return the last layer's output, (batch, length, d_model).
# 4. `mask` and all LayerNorms (eps = 1e-12) as before. Tensors in the dict are left unchanged.
#
# You may write it with functions (`F.linear(x, weight, bias)`, `F.layer_norm`), or build modules
# and load weights into them, your own or PyTorch's. Modules are born in float32; `weights` may be
# float64.
#
# Example: with the weights of MiniLM below, tokens (1, 9) give (1, 9, 384).


# %% nbgrader={"grade_id": "bert_states", "solution": true}
def bert_states(weights, heads, tokens, segments, mask):
    """Run a whole BERT.

    weights: dict from name to tensor. heads: int. tokens, segments: int tensors (batch, length).
    mask: bool tensor (batch, length). Returns a float tensor (batch, length, d_model).
    """
    ### BEGIN SOLUTION

    def linear(name, x):
        return F.linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])

    def norm(name, x):
        gain, bias = weights[f"{name}.weight"], weights[f"{name}.bias"]
        return F.layer_norm(x, gain.shape, gain, bias, eps=1e-12)

    def split(x):
        return x.unflatten(-1, (heads, -1)).transpose(1, 2)

    places = torch.arange(tokens.shape[1])
    x = weights["embeddings.word_embeddings.weight"][tokens]
    x = x + weights["embeddings.position_embeddings.weight"][places]
    x = x + weights["embeddings.token_type_embeddings.weight"][segments]
    x = norm("embeddings.LayerNorm", x)
    layers = {name.split(".")[2] for name in weights if name.startswith("encoder.")}
    for layer in range(len(layers)):
        start = f"encoder.layer.{layer}"
        roles = [split(linear(f"{start}.attention.self.{r}", x)) for r in ("query", "key", "value")]
        y = F.scaled_dot_product_attention(*roles, attn_mask=mask[:, None, None, :])
        y = linear(f"{start}.attention.output.dense", y.transpose(1, 2).flatten(2))
        x = norm(f"{start}.attention.output.LayerNorm", x + y)
        y = F.gelu(linear(f"{start}.intermediate.dense", x))
        x = norm(f"{start}.output.LayerNorm", x + linear(f"{start}.output.dense", y))
    return x
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bert_states", "grade": true, "points": 4}
check("bert_states", bert_states)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Exercises 4 and 5 once more, but every weight comes out of the dict by its name.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Two tiny helpers, `linear(name, x)` and `norm(name, x)`, make a layer eight lines. Count up as
# long as the next layer's name is in the dict.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Sorted as text, layer 10 stands before layer 2. `x @ weight` is not `F.linear`. A new module is
# float32: `.double()`, or take the weights' own dtype.
# </details>

# %% [markdown]
# Now the real thing: MiniLM (W. Wang et al. 2020), a BERT of six layers. The cell runs **your**
# function on its weights and compares with the library `transformers`, which reads the same file
# with its own code. Predict: how far apart can two right programs be in float32?

# %% tags=["experiment"]
from attention_course.bert import minilm
from attention_course.pretrained import ModelMissing

SENTENCES = ["The bank raised its rates.", "They sat on the bank of the river, fishing."]

try:
    batch = minilm.read(SENTENCES)
    weights, library = minilm.weights(), minilm.library_states(batch)
    with torch.no_grad():
        own = bert_states(weights, minilm.HEADS, batch.tokens, batch.segments, batch.mask)
except ModelMissing as missing:
    print(missing)
except NotImplementedError:
    print("This cell uses your answer to exercise 6.")
else:
    apart = float((own - library)[batch.mask].abs().max())
    print(f"{len(weights)} tensors; states {tuple(own.shape)}; largest difference {apart:.1e}")
    verdict = "supported" if apart < 1e-5 else "NOT supported"
    print(f"'Both compute the same': {verdict} by this run.")
    places = [words.index("bank") for words in batch.pieces]
    banks = torch.stack([own[row, place] for row, place in enumerate(places)])
    table = weights["embeddings.word_embeddings.weight"][batch.tokens[0, places[0]]]
    print(f"'bank' in the table: one row, {tuple(table.shape)}, the same in both sentences")
    print(f"cosine of the two 'bank' at the end: {F.cosine_similarity(*banks, dim=0):.2f}")

# %% [markdown]
# Some 1e-6: both add the same numbers in another order. And the point of it all is in the last
# line: one row in the table became two different vectors, since each took its sentence in.
#
# What do the heads look at? Here is every head of every layer (a click enlarges one), then one head
# with its queries and keys (J. Vig 2019, *A Multiscale Visualization of Attention*). Predict: will
# you find heads that look mostly at [SEP], at the next token, at the same word elsewhere?

# %% tags=["experiment"]
from attention_course.bertviz_views import model_view, neuron_view

PAIR = ("The cat chased the mouse.", "It was hungry.")
view = None
try:
    seen = minilm.look(*PAIR)
    view = model_view(seen.weights, seen.pieces)
except ModelMissing as missing:
    print(missing)
view

# %% tags=["experiment"]
view = None
try:
    queries, keys = minilm.queries_and_keys(*PAIR, layer=2)
    view = neuron_view(queries, keys, seen.pieces)
except ModelMissing as missing:
    print(missing)
view

# %% [markdown]
# The first picture has a field for each head, the second shows one head of layer 2 (its menu counts
# from what it was given). Head 2 of layer 0 looks one token back, nearly always. In layers 1 to 4
# half of the heads or more rest on [CLS]. In BERT base it is [SEP], as Clark et al. (2019, *What
# Does BERT Look At?*, Section 3) counted, as if to say "nothing for me here"; others there look one
# token back or ahead, a few follow a grammatical relation. A picture of weights is not an
# explanation, though: what a head *moves* depends on its values, too.
#
# ### Exercise 7: where the parameters are
# *15 minutes, medium, 3 points*
#
# Chapter 05 counted the encoder's parameters. Now count those of a whole BERT, with both heads of
# pre-training, in five parts:
#
# 1. `embeddings`: exercise 4.
# 2. `layers`: `layers` times exercise 5. Every linear map has a bias, every LayerNorm a gain and a
#    bias, each of d_model numbers.
# 3. `pooler`: a linear map from d_model to d_model (for [CLS]).
# 4. Masked-LM head: a linear map from d_model to d_model, a LayerNorm, and a bias for each word of
#    the vocabulary. Its output matrix *is* the word table and is counted there.
# 5. Next-sentence head: a linear map from d_model to 2.
#
# Return the five counts, ints, in this order.
#
# Example: vocabulary 10, positions 4, segments 2, d_model 3, layers 1, d_hidden 5: the
# embeddings have 16 · 3 + 6 = 54.


# %% nbgrader={"grade_id": "bert_parts", "solution": true}
def bert_parts(vocabulary, positions, segments, d_model, layers, d_hidden):
    """Count the parameters of a BERT, part by part.

    All arguments are ints. Returns the counts of embeddings, layers, pooler, masked-LM head and
    next-sentence head.
    """
    ### BEGIN SOLUTION
    norm = 2 * d_model
    square = d_model * d_model + d_model
    mlp = d_model * d_hidden + d_hidden + d_hidden * d_model + d_model
    embeddings = (vocabulary + positions + segments) * d_model + norm
    layer = 4 * square + norm + mlp + norm
    return embeddings, layers * layer, square, square + norm + vocabulary, d_model * 2 + 2
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-bert_parts", "grade": true, "points": 3}
check("bert_parts", bert_parts)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A linear map from a to b has a·b + b numbers, a LayerNorm 2·d_model. The rest is a list.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A layer: four square maps (query, key, value, output), two LayerNorms, one map up, one down.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The head's output matrix is not counted again, but its bias is. `d_hidden` need not be
# 4 · d_model.
# </details>

# %% [markdown]
# In BERT base every fifth parameter lies in the word table. Predict: which share is it in BERT
# large, and which in MiniLM, which has the same words, but only 6 layers and d_model 384?

# %% tags=["experiment"]
import matplotlib.pyplot as plt

from attention_course.bert.sizes import PARTS, SHARES

fig, ax = plt.subplots(figsize=(7, 2.2), layout="constrained")
left = [0.0] * len(SHARES)
for part, name in enumerate(PARTS):
    widths = [sizes[part] / 1e6 for sizes in SHARES.values()]
    ax.barh(list(SHARES), widths, left=left, label=name)
    left = [a + b for a, b in zip(left, widths, strict=True)]
ax.invert_yaxis()
ax.set_xlabel("million parameters")
ax.legend(fontsize=8, loc="lower right")
plt.show()
for name, sizes in SHARES.items():
    print(f"{name}: {sum(sizes):,} parameters, {sizes[0] / sum(sizes):.0%} in the word table")

# %% [markdown]
# The picture shows three bars, one for each published model, cut into word table, other embeddings
# and layers: the smaller the model, the larger the share of its word table. In MiniLM more than
# half of all parameters are a look-up. The papers say 110 and 340 million; the first is the encoder
# with its pooler, rounded, the second a generous rounding of 335.

# %% [markdown]
# ## 4 Learning from blanks
#
# ```
# text      the   old    king   does   not   eat   apples
# selected         X       X                  X
# input     the  [MASK]  king   does   not  blue   apples
# label      -    old    king    -      -    eat     -
# ```
#
# ### Exercise 8: corrupt a text
# *25 minutes, hard, 4 points*
#
# Of every sentence 15 % of the words are **selected** (more in the picture, to show every fate).
# The model is asked for all of these, and only these. If they all became [MASK], the model would
# learn that it is never asked for a word that it can see, and would meet no [MASK] at all once it
# is used. So of the selected words about 80 % become [MASK], 10 % another word, and 10 % stay as
# they are.
#
# All random numbers are handed over, one for each place, so that everybody gets the same.
#
# 1. Words are all tokens that are not in `special`, a tensor of numbers ([CLS], [SEP], [PAD], …).
# 2. In each row with n words, ⌊percent · n / 100⌋ words are selected, but at least one; none if the
#    row has no word. (`percent` is a whole number: use `//`.)
# 3. Selected are the words with the **smallest** `scores` of their row. No two scores are equal.
# 4. What happens to a selected word, its own uniform u says: u < 0.8: `mask_token`; 0.8 ≤ u < 0.9:
#    the word in `replacements` at this place; u ≥ 0.9: nothing.
# 5. `labels`: the **original** token at every selected place, −100 elsewhere.
# 6. Return `(inputs, labels)`, int tensors (batch, length). `tokens` is left unchanged.
#
# Example: tokens `[[1, 7, 8, 9, 2]]`, special `[1, 2]`, percent 70, scores
# `[[.1, .5, .2, .3, .4]]`: two words are selected, 8 and 9. With uniforms `[[.5, .5, .5, .95, .5]]`
# and mask_token 3 the inputs are `[[1, 7, 3, 9, 2]]` and the labels `[[-100, -100, 8, 9, -100]]`.


# %% nbgrader={"grade_id": "mlm_corrupt", "solution": true}
def mlm_corrupt(tokens, special, percent, scores, uniforms, replacements, mask_token):
    """Select words, corrupt them, and keep what they were.

    tokens, replacements: int tensors (batch, length). special: int tensor (count,). percent: int.
    scores, uniforms: float tensors (batch, length), from 0 to below 1. mask_token: int.
    Returns (inputs, labels), int tensors (batch, length).
    """
    ### BEGIN SOLUTION
    words = ~torch.isin(tokens, special)
    wanted = (percent * words.sum(dim=1, keepdim=True) // 100).clamp(min=1)
    rank = scores.masked_fill(~words, torch.inf).argsort(dim=1).argsort(dim=1)
    selected = words & (rank < wanted)
    labels = torch.where(selected, tokens, -100)
    inputs = torch.where(selected & (uniforms < 0.9), replacements, tokens)
    return torch.where(selected & (uniforms < 0.8), mask_token, inputs), labels
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-mlm_corrupt", "grade": true, "points": 4}
check("mlm_corrupt", mlm_corrupt)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Make one bool tensor, `selected`. The rest is `torch.where`.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Give everything that is no word an infinite score. A place is selected if its *rank* in the row is
# below the wanted number; sorting the order gives ranks. A loop over rows does as well.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# A row of padding has no smallest word. Labels come from `tokens`, not from `inputs`. A word that
# is selected and stays has a label.
# </details>

# %% [markdown]
# ### Exercise 9: the masked-LM head
# *12 minutes, easy, 3 points*
#
# From a vector to scores of 30,522 words: the head turns the vector once more, then multiplies it
# by the word table, the same one that the words came in by.
#
# 1. `MlmHead(d_model, vocabulary)` has `dense` (`nn.Linear`, d_model to d_model), `LayerNorm`
#    (eps = 1e-12) and `bias`, an `nn.Parameter` of shape (vocabulary,), at first 0. Nothing else.
# 2. `forward(states, word_embeddings)`: `dense`, exact GELU, `LayerNorm`; then the product with
#    each row of `word_embeddings`, plus `bias`.
# 3. `states` is (..., d_model), with any leading axes; the logits are (..., vocabulary).
# 4. Gradients reach `word_embeddings`, (vocabulary, d_model), also from here.
#
# Example: `MlmHead(8, 100)` maps states (3, 7, 8) and a table (100, 8) to (3, 7, 100).


# %% nbgrader={"grade_id": "mlm_head", "solution": true}
class MlmHead(nn.Module):
    """Scores of all words from vectors, through a table of word embeddings."""

    def __init__(self, d_model, vocabulary):
        ### BEGIN SOLUTION
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)
        self.LayerNorm = nn.LayerNorm(d_model, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocabulary))
        ### END SOLUTION

    def forward(self, states, word_embeddings):
        """Give logits.

        states: float tensor (..., d_model). word_embeddings: float tensor (vocabulary, d_model).
        Returns a float tensor (..., vocabulary).
        """
        ### BEGIN SOLUTION
        x = self.LayerNorm(F.gelu(self.dense(states)))
        return x @ word_embeddings.T + self.bias
        ### END SOLUTION


# %% nbgrader={"grade_id": "check-mlm_head", "grade": true, "points": 3}
check("mlm_head", MlmHead)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Four steps in the order in which the exercise names them.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The table transposed on the right of `@`, or the table as the weight of `F.linear`.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# GELU comes before the norm. No softmax: the loss wants logits.
# </details>

# %% [markdown]
# ### Exercise 10: the loss
# *10 minutes, easy, 2 points*
#
# 1. `labels` (batch, length) holds the word to find, or −100: does not count. Word 0 counts like
#    any other. Place i is asked for the word **at** place i: nothing is shifted.
# 2. The loss is the mean of $-\log p$ over all places of the batch that count.
# 3. If none counts the loss is 0 (with a gradient of 0), not NaN.
# 4. Logits of some hundred must not give infinities.
#
# Example: vocabulary 4, all logits 0, three places that count: log 4 = 1.386.


# %% nbgrader={"grade_id": "mlm_loss", "solution": true}
def mlm_loss(logits, labels):
    """Mean cross-entropy of the selected places.

    logits: float tensor (batch, length, vocabulary). labels: int tensor (batch, length).
    Returns a float tensor of shape ().
    """
    ### BEGIN SOLUTION
    losses = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum")
    return losses / (labels != -100).sum().clamp(min=1)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-mlm_loss", "grade": true, "points": 2}
check("mlm_loss", mlm_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# −100 is what `F.cross_entropy` leaves out anyway.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A sum, divided by a count that is at least 1.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `float(...)` and `torch.tensor(...)` cut the gradient off.
# </details>

# %% [markdown]
# ### A BERT in ten seconds
#
# Now a small one learns: two layers, d_model 64, 172 English words, 8,000 generated sentences
# (chapter 07's fragment of grammar, its English side: "a happy girl does not see these old houses
# ."). The course's network is PyTorch's pre-LN encoder. A quarter of the words is blanked, since 15
# % of eight words is a single one; and *all* selected words become [MASK], since nobody will
# fine-tune it. Three runs, from three seeds.
#
# Predict: who knows nothing pays log 175 = 5.2 nats for a blank (three of the 175 are special).
# After a thousand steps, will the right word be the first guess in 10, 30 or 80 % of the blanks?
# Which words will it never find?

# %% tags=["experiment"]
from attention_course.bert import tiny

STEPS, EVERY = 1000, 100
corpus = tiny.Corpus(seed=5)


def train_run(seed):
    """Train one tiny BERT; give it and its losses on blanks in new sentences."""
    model = tiny.TinyBert(len(corpus.words), seed)
    curve = [tiny.blank_loss(model, corpus)]
    for step in tiny.train(model, corpus, seed, STEPS):
        if step % EVERY == 0:
            curve.append(tiny.blank_loss(model, corpus))
    print(f"run {seed}: {curve[0]:.2f} → {curve[-1]:.2f} nats")
    return model, curve


models, curves = zip(*[train_run(seed) for seed in range(3)], strict=True)

# %% tags=["experiment"]
import matplotlib.pyplot as plt

from attention_course.plots import spread

right = [tiny.share_found(model, corpus) for model in models]
by_frequency = tiny.share_of_the_most_frequent(corpus)
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
spread(ax, range(0, STEPS + 1, EVERY), curves, "loss on blanks in new sentences")
ax.axhline(corpus.frequency_loss, color="0.5", ls=":", label="knows frequencies only")
ax.set_xlabel("steps of 32 sentences")
ax.set_ylabel("nats per blank")
ax.legend(fontsize=8)
plt.show()
print("first guess right: " + ", ".join(f"{share:.0%}" for share in right))
print(f"always the most frequent word: {by_frequency:.0%}")
verdict = "supported" if min(right) > 2 * by_frequency else "NOT supported"
print(f"'It uses the words around the blank': {verdict} by this run.")
for sentence in ("the old cat [MASK] not see the dogs .", "these [MASK] eat some red apples ."):
    print(
        sentence, "→", ", ".join(f"{word} {p:.2f}" for word, p in corpus.fill(models[0], sentence))
    )

# %% [markdown]
# The figure: the loss falls from more than 5 nats, the three runs close together, and flattens
# above two nats. (It starts a little above log 175, since random logits are not all equal.) It does
# not go to 0 and should not: which animal is red, nobody can know. What the rest decides is found:
# the blank in "does ____ eat" is "not" with probability 0.99 in the figure below. Free choices are
# found as often as chance allows, and they are most of the words here; so the share of right first
# guesses stays low.
#
# Blank words of your own, and see where a recorded run of this model looks. Predict: which word do
# you have to blank together with "does", so that "do" becomes a real possibility?

# %% tags=["explorer"]
from attention_course.explorers import blank_filler

blank_filler()

# %% [markdown]
# ### Exercise 11: whole-word masking
# *20 minutes, medium, 3 points*
#
# `un ##aff [MASK]` is easily filled: the pieces of a word betray each other. Later checkpoints of
# BERT therefore select whole words.
#
# 1. `pieces` is a list of strings. A piece that begins with `##` belongs to the word of the piece
#    before it. `"[CLS]"`, `"[SEP]"` and `"[PAD]"` are no words and are never selected.
# 2. The budget: ⌊percent · n / 100⌋ *pieces*, but at least 1, where n is the number of pieces that
#    belong to words.
# 3. Go through the words in the order of their score, the smallest first. A word's score is the one
#    in `scores` (a list like `pieces`) of its **first** piece.
# 4. A word whose pieces still fit into the budget is selected whole. One that does not fit is
#    skipped, and the next one is tried. So it may be that none is selected.
# 5. Return the places of all selected pieces, in rising order, a list of ints.
#
# Example: pieces `["[CLS]", "un", "##do", "it", "[SEP]"]`, scores `[0, .1, .9, .5, 0]`, percent 40:
# the budget is 1, "undo" has 2 pieces and is skipped: `[3]`.


# %% nbgrader={"grade_id": "whole_word_mask", "solution": true}
def whole_word_mask(pieces, scores, percent):
    """Select whole words until the budget is used up.

    pieces: list of strings. scores: list of floats of the same length, no two equal. percent: int.
    Returns a list of places, ints.
    """
    ### BEGIN SOLUTION
    words = []
    for place, piece in enumerate(pieces):
        if piece.startswith("##"):
            words[-1].append(place)
        elif piece not in ("[CLS]", "[SEP]", "[PAD]"):
            words.append([place])
    budget = max(1, percent * sum(len(word) for word in words) // 100)
    selected = []
    for word in sorted(words, key=lambda word: scores[word[0]]):
        if len(selected) + len(word) <= budget:
            selected += word
    return sorted(selected)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-whole_word_mask", "grade": true, "points": 3}
check("whole_word_mask", whole_word_mask)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# First a list of words, each a list of places; then sort the words.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `sorted(words, key=…)` with the score of the first place; take a word if its length still fits.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# `break` at a word that is too long loses shorter ones behind it. The budget counts pieces.
# </details>

# %% [markdown]
# ## 5 Asking a BERT
#
# ### Your own code, from text to words
#
# MiniLM comes without its head, so it can fill no blanks. With the course comes a small BERT that
# can (`experiments/bert_filler.py`): three layers, d_model 64, trained on 20,000 sentences of the
# same fragment of grammar, for two minutes. It has BERT's layers and BERT's names: what you built
# in exercises 6 and 9 runs it, and needs nothing but its checkpoint.
#
# Predict: which words can stand at each of these four blanks, and which of them will it prefer?

# %% tags=["experiment"]
from attention_course.bert.filler import load_filler

filler = load_filler()
TEXTS = (
    "the birds that slept [MASK] not see this king .",
    "[MASK] the old king like his knives ?",
    "the old king does not [MASK] the cakes .",
    "the kings took the boys behind [MASK] house .",
)
try:
    head = MlmHead(filler.d_model, len(filler.pieces))
    head.load_state_dict(filler.head)
    table, apart = filler.weights["embeddings.word_embeddings.weight"], []
    for text in TEXTS:
        tokens = filler.tokens(text)
        segments, mask = torch.zeros_like(tokens), torch.ones_like(tokens, dtype=torch.bool)
        with torch.no_grad():
            logits = head(bert_states(filler.weights, filler.heads, tokens, segments, mask), table)
        apart.append(float((logits - filler.logits(tokens)).abs().max()))
        best = filler.best(logits[tokens == filler.blank].softmax(-1), 4)
        print(text, "→", ", ".join(f"{word} {p:.2f}" for word, p in best))
    verdict = "supported" if max(apart) < 1e-4 else "NOT supported"
    print(f"'Your code computes what transformers does': {verdict} ({max(apart):.0e} apart).")
except NotImplementedError:
    print("This cell uses your answers to exercises 6 and 9.")

# %% [markdown]
# What is that worth? One word was blanked in each of 2,000 new sentences. Four answer: one that
# knows how frequent each word is; one that has counted in the training text which word follows
# which; one that uses these counts on both sides of the blank; and this BERT. Predict: by how much
# does it beat the one that sees both neighbours?

# %% tags=["experiment"]
known = filler.about["new_text"]
fig, axes = plt.subplots(1, 2, figsize=(8, 2), sharey=True, layout="constrained")
labels = {"nats": "nats per blank (less is better)", "found": "share of blanks found"}
for ax, (measure, label) in zip(axes, labels.items(), strict=True):
    bars = ax.barh(list(known), [scores[measure] for scores in known.values()], color="0.6")
    bars[-1].set_color("C0")
    ax.bar_label(bars, fmt="{:.2f}", padding=3, fontsize=8)
    ax.margins(x=0.15)
    ax.set_xlabel(label, fontsize=9)
axes[0].invert_yaxis()
plt.show()
gain = known["both neighbours"]["nats"] - known["this BERT"]["nats"]
verdict = "supported" if gain > 0 else "NOT supported"
print(f"'It uses more than the two neighbours': {verdict} ({gain:+.2f} nats per blank, one model).")

# %% [markdown]
# The figure has two panels, with a bar for each of the four; the blue one is the BERT. The two
# neighbours tell most of what can be told: a word's place in the grammar. The rest is small in
# nats, but it is what one reads a sentence for: behind "the birds that slept" both neighbours of
# the blank fit "does" as well as "do". Free choices stay guesses, so no bar on the right is long.
# The counts were given an advantage, too: how far they trust rare pairs was chosen on the test
# itself.
#
# Now one sentence in the hand, and others of your own in this cell (words that the fragment lacks
# are named). Predict: what becomes of the guesses for "her" if the queen becomes a king, and what
# if there are several kings?

# %% tags=["experiment"]
blank_filler(*filler.every_blank("the queen took the boys behind her house ."), blanks=(7,))

# %% tags=["experiment"]
for owner in ("queen", "king", "kings"):
    text = f"the {owner} took the boys behind [MASK] house ."
    chances = dict(filler.fill(text, most=len(filler.pieces))[0])
    print(
        f"{owner:<6}", ", ".join(f"{word} {chances[word]:.2f}" for word in ("his", "her", "their"))
    )

# %% [markdown]
# Several owners change the guess: that is learned. A queen and a king do not, although the fragment
# always gives a queen *her* house and a king *his*: this model has not found that out.

# %% [markdown]
# ### Exercise 12: pseudo-perplexity
# *15 minutes, medium, 3 points*
#
# A GPT gives the probability of a sentence, a product over words. BERT does not. But it can be
# asked for each word in turn, with all others in sight; from these answers comes a number like a
# perplexity, which is e to the mean loss (Salazar et al. 2020, Section 2.3).
#
# So that nothing has to be trained, the model is a table: `blank_model` gives each place's logits
# from the words up to two places away, and from the word at the place itself.
#
# 1. `tokens` is (length,). Words are the tokens that are not in `special`, (count,).
# 2. For each word: replace **it alone** by `mask_token`, call the model, and take $\log p$ of the
#    original word at its place (a softmax over the whole vocabulary).
# 3. Return $e^{-\text{mean of all these } \log p}$, one number. There is at least one word.
# 4. Special tokens are seen but not asked for. `tokens` is left unchanged.
#
# Example: a model that gives all words of a vocabulary of 9 the same logit: 9.


# %%
def blank_model(table, tokens):
    """Logits of every place, from the words up to two places away and the one at the place.

    table: (5, vocabulary, vocabulary), one for each distance from −2 to 2. tokens: (batch, length).
    Returns (batch, length, vocabulary).
    """
    if tokens.dim() != 2:
        raise ValueError(f"tokens must have axes (batch, length); got {tuple(tokens.shape)}.")
    reach, length = len(table) // 2, tokens.shape[1]
    words = F.one_hot(tokens, table.shape[1]).to(table.dtype)
    words = F.pad(words, (0, 0, reach, reach))  # nothing stands beyond the ends
    return sum(words[:, k : k + length] @ table[k] for k in range(len(table)))


# %% nbgrader={"grade_id": "pseudo_perplexity", "solution": true}
def pseudo_perplexity(table, tokens, special, mask_token):
    """Score a sentence with `blank_model(table, ...)`, one blank at a time.

    table: float tensor (5, vocabulary, vocabulary). tokens: int tensor (length,).
    special: int tensor (count,). mask_token: int. Returns a float tensor of shape (), or a float.
    """
    ### BEGIN SOLUTION
    places = (~torch.isin(tokens, special)).nonzero()[:, 0]
    rows = torch.arange(len(places))
    blanked = tokens.repeat(len(places), 1)
    blanked[rows, places] = mask_token
    logs = blank_model(table, blanked).log_softmax(dim=-1)
    return torch.exp(-logs[rows, places, tokens[places]].mean())
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pseudo_perplexity", "grade": true, "points": 3}
check("pseudo_perplexity", pseudo_perplexity)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# As many copies of the sentence as it has words, each with one blank.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# A loop with `clone()` is fine; or `repeat` and one assignment with two index tensors, and the
# model is called once.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Without the blank the model reads the answer. The model takes a batch: `tokens[None]`.
# </details>

# %% [markdown]
# ### Exercise 13: blanks, one by one
# *15 minutes, medium, 3 points*
#
# With several blanks each is filled as if the others stayed empty. The cure: fill one, look again.
# (Ghazvininejad et al. 2019 fill the surest blanks first, several in a step.)
#
# 1. `tokens`, (length,), holds `mask_token` wherever a word is missing.
# 2. At every blank, the model's logit of `mask_token` itself counts as −∞: it is never written.
# 3. Take the blank whose best word has the largest **probability** (after point 2), and write this
#    word there. No two blanks are equally sure.
# 4. Call the model again, with that word in its place; and so on until no blank is left.
# 5. Return all tokens, (length,). `tokens` is left unchanged.
#
# Example: without a blank the result equals `tokens`.


# %% nbgrader={"grade_id": "fill_one_by_one", "solution": true}
def fill_one_by_one(table, tokens, mask_token):
    """Fill all blanks with `blank_model(table, ...)`, the surest first.

    table: float tensor (5, vocabulary, vocabulary). tokens: int tensor (length,). mask_token: int.
    Returns an int tensor (length,).
    """
    ### BEGIN SOLUTION
    tokens = tokens.clone()
    for _ in range((tokens == mask_token).sum()):
        logits = blank_model(table, tokens[None])[0]
        logits[:, mask_token] = -torch.inf
        probabilities = logits.softmax(dim=-1)
        probabilities[tokens != mask_token] = 0.0
        place = probabilities.amax(dim=-1).argmax()
        tokens[place] = probabilities[place].argmax()
    return tokens
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-fill_one_by_one", "grade": true, "points": 3}
check("fill_one_by_one", fill_one_by_one)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# A loop that makes one blank fewer each time.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Logits, −∞ for the mask, softmax, the largest probability of each place; places that are no blanks
# get 0; argmax.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Logits of different places cannot be compared. Work on a copy.
# </details>

# %% [markdown]
# ### Two blanks that do not know of each other
#
# "I fly to [MASK] [MASK] tomorrow." *New York* would fit, and *Los Angeles*. Filled independently,
# *Los York* comes out as well: each blank only knows what is likely *by itself*. This is one of the
# reasons that Yang et al. (2019, *XLNet*) give for another way of training; chapter 13 tries it on
# the same sentences.
#
# In our fragment the same happens with number: "the [MASK] [MASK] the apples ." could be *girl
# takes* or *girls take*. We blank noun and verb in new sentences, let the tiny BERT draw both at
# once, and then one after the other, and count how often both agree in number.
#
# Predict: if singular is drawn with probability p for the noun and for the verb, how often do they
# agree by chance? Say p = 0.7.

# %% tags=["experiment"]
from attention_course.bert import agreement
from attention_course.claims import report

at_once, in_turn = zip(
    *[agreement.shares(model, corpus, seed) for seed, model in enumerate(models)], strict=True
)
fig, ax = plt.subplots(figsize=(6, 1.8), layout="constrained")
for place, shares in enumerate((at_once, in_turn)):
    ax.plot(shares, [place] * len(shares), "o", alpha=0.6)
    ax.plot(sum(shares) / len(shares), place, "k|", ms=14)
ax.set_yticks([0, 1], ["both at once", "one by one"])
ax.set_ylim(1.5, -0.5)
ax.set_xlim(0, 1)
ax.set_xlabel("share of draws in which noun and verb agree (dots: runs, bar: mean)")
plt.show()
for name, shares in (("both at once", at_once), ("one by one", in_turn)):
    print(f"{name:<13}", ", ".join(f"{share:.2f}" for share in shares))
apart = min(in_turn) > max(at_once)
means = [sum(shares) / len(shares) for shares in (at_once, in_turn)]
report("C13", apart, f"agree: {means[0]:.0%} at once, {means[1]:.0%} one by one (3 runs)")
for line in agreement.examples(models[0], corpus):
    print("  ", line)

# %% [markdown]
# The figure has two rows with a dot for each run: the upper one near the middle, the lower one far
# to the right. By chance p² + (1 − p)² agree, 0.58 for p = 0.7: compare with the upper row. A
# better model would not change it, since both distributions are right, each by itself. Drawn one
# after the other, noun and verb agree as often as the model knows grammar.
#
# ### In words: what are 15 % good for?
# *10 minutes, 2 points, marked by hand*
#
# A GPT of the same size gets a loss at every token, BERT at 15 %. (a) Why can BERT not simply be
# asked for all tokens, with nothing blanked? (b) What gets worse if 60 % of the words are blanked
# to learn faster, and how would you find out whether it pays?

# %% [markdown] nbgrader={"grade_id": "why-blanks", "grade": true, "solution": true, "points": 2}
# (a) A token that is not blanked can be read at its own place (and comes back through neighbours):
# copying it is trivial, so its loss teaches next to nothing about the language. In a GPT the mask
# of attention hides what is asked for; in an encoder only a blank can.
#
# (b) Every blank takes context away from the others: each is asked with less to go by, farther from
# how the model is used later (hardly any blanks), and blanks next to each other are predicted
# independently. To find out: train with several shares for the same number of steps (or of FLOPs)
# and compare on *one* measure that does not depend on the share, such as single blanks in new
# sentences or a task after fine-tuning, over several seeds.
#
# *Mark scheme.* 1 point for each part: (a) reading one's own word ½, nothing learned ½; (b) less
# context ½, a fair comparison on a common measure ½. Not accepted for (b): comparing the training
# losses of different shares, which are losses of different questions.

# %% [markdown]
# ## 6 Two sentences, and what RoBERTa changed
#
# ### Exercise 14: pairs of sentences
# *15 minutes, medium, 2 points*
#
# BERT was also asked: does the second sentence follow the first in the text? Half of the pairs do;
# in the others the second sentence comes from somewhere else.
#
# 1. `documents` is a list of documents, each a list of sentences; a sentence is a number here, and
#    no number occurs twice.
# 2. Every two neighbours in a document are a pair: go through the documents in order, and through
#    each from its beginning. A document of one sentence gives none.
# 3. Pair k (over all documents, from 0) uses `uniforms[k]`: below 0.5 the second sentence is the
#    true neighbour, label **0**. Otherwise it is random, label **1**:
# 4. random means: of the sentences of all *other* documents, in order, the one at place
#    ⌊`places[k]` · how many there are⌋. (`places[k]` is from 0 to below 1.)
# 5. Return `(firsts, seconds, labels)`, three lists of ints; empty if there is no pair.
#
# Example: documents `[[1, 2, 3], [4, 5]]`, uniforms `[.2, .7, .9]`, places `[.1, .6, .4]` give the
# pairs (1, 2), (2, 5), (4, 2) with labels 0, 1, 1.


# %% nbgrader={"grade_id": "nsp_pairs", "solution": true}
def nsp_pairs(documents, uniforms, places):
    """Make pairs for next-sentence prediction.

    documents: list of lists of ints. uniforms, places: lists of floats, one for each pair.
    Returns (firsts, seconds, labels), lists of ints.
    """
    ### BEGIN SOLUTION
    firsts, seconds, labels = [], [], []
    for document in documents:
        others = [sentence for other in documents if other is not document for sentence in other]
        for i in range(len(document) - 1):
            pair = len(labels)
            is_random = uniforms[pair] >= 0.5
            random_sentence = others[int(places[pair] * len(others))]
            firsts.append(document[i])
            seconds.append(random_sentence if is_random else document[i + 1])
            labels.append(int(is_random))
    return firsts, seconds, labels
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-nsp_pairs", "grade": true, "points": 2}
check("nsp_pairs", nsp_pairs)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two loops: documents, and places in a document. For each document, first collect the sentences of
# all others.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# The number of the pair is how many pairs there are already. `int(x)` rounds down.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# The last sentence of a document has no neighbour. Label 0 is the true neighbour.
# </details>

# %% [markdown]
# ### Exercise 15: both losses
# *10 minutes, easy, 2 points*
#
# 1. Words: the mean of $-\log p$ over places whose `mlm_labels` are not −100; there is at least
#    one.
# 2. Sentences: the mean of $-\log p$ over all pairs, label 0 as well as 1; column c of `nsp_logits`
#    belongs to label c.
# 3. The loss is their **sum**.
#
# Example: logits all 0, vocabulary 8: log 8 + log 2 = log 16 = 2.77.


# %% nbgrader={"grade_id": "pretraining_loss", "solution": true}
def pretraining_loss(mlm_logits, mlm_labels, nsp_logits, nsp_labels):
    """The loss of BERT's pre-training.

    mlm_logits: float tensor (batch, length, vocabulary). mlm_labels: int tensor (batch, length).
    nsp_logits: float tensor (batch, 2). nsp_labels: int tensor (batch,).
    Returns a float tensor of shape ().
    """
    ### BEGIN SOLUTION
    words = F.cross_entropy(mlm_logits.flatten(0, 1), mlm_labels.flatten())
    return words + F.cross_entropy(nsp_logits, nsp_labels)
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-pretraining_loss", "grade": true, "points": 2}
check("pretraining_loss", pretraining_loss)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# Two cross-entropies.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# Flatten the first two axes of the words' logits, or move the vocabulary to axis 1.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# One criterion with `ignore_index=0` for both has been written before: it never sees a true
# neighbour.
# </details>

# %% [markdown]
# RoBERTa kept the network and changed the training: no sentence pairs, more text, larger batches,
# and **dynamic masking**. BERT's text had been masked once, in ten copies, and 40 epochs went
# through these ten. RoBERTa masks anew every time.
#
# ### Exercise 16: static and dynamic masking
# *10 minutes, easy, 2 points*
#
# `scores` (rounds, sentences, length) holds random numbers, as exercise 8 needs them, for so many
# rounds through a corpus. Which ones does a batch get?
#
# 1. `sentences` (batch,) says which sentences of the corpus the batch holds; `epoch` counts from 0.
# 2. Static, `copies` is a number: epoch e uses round 0, 1, …, `copies` − 1 and then 0 again.
# 3. Dynamic, `copies` is None: epoch e uses round e.
# 4. If there are fewer rounds than copies, or (dynamic) no round for this epoch: `raise
#    ValueError`.
# 5. Return the numbers of the batch, (batch, length).
#
# Example: with 2 copies, epochs 0 to 4 use the rounds 0, 1, 0, 1, 0.


# %% nbgrader={"grade_id": "epoch_scores", "solution": true}
def epoch_scores(scores, sentences, epoch, copies):
    """Pick the random numbers for a batch in an epoch.

    scores: float tensor (rounds, sentences, length). sentences: int tensor (batch,). epoch: int.
    copies: int, or None for dynamic masking. Returns a float tensor (batch, length).
    """
    ### BEGIN SOLUTION
    needed = epoch + 1 if copies is None else copies
    if needed > len(scores):
        raise ValueError(f"{needed} rounds of random numbers needed, there are {len(scores)}")
    return scores[epoch % needed, sentences]
    ### END SOLUTION


# %% nbgrader={"grade_id": "check-epoch_scores", "grade": true, "points": 2}
check("epoch_scores", epoch_scores)

# %% [markdown]
# <details><summary>Hint 1: idea</summary>
#
# First find the number of the round; the rest is one indexing.
# </details>
# <details><summary>Hint 2: sketch</summary>
#
# `%` for copies. A tensor can be indexed by an int and a tensor at once.
# </details>
# <details><summary>Hint 3: pitfall</summary>
#
# Too few rounds for the copies are an error even if the present epoch has one.
# </details>

# %% [markdown]
# ### What the changes are worth, in miniature
#
# More runs than a notebook has time for were recorded once, by `experiments/bert_pretraining.py`:
# tiny BERTs as above, 400 steps each (pairs 800), five seeds for each condition. All are measured
# on single blanks in 1,000 new sentences (in (c): in pairs of them).
#
# Predict three results. (a) 15, 30, 50 or 80 % of the words blanked: which share learns the most in
# 400 steps? And what counts, the number of *losses* or of *blanks*? (Last row: 30 % are blanked,
# and one of them has a loss.) (b) 400 sentences, some 25 times over, with the same blanks each
# time, with ten sets of blanks, or with new ones. (c) Pairs of sentences, with and without the
# second loss.

# %% tags=["experiment"]
from attention_course.data.pretraining_records import pretraining_records

QUESTIONS = {
    "share": "(a) share of blanks",
    "masking": "(b) masking",
    "pairs": "(c) sentence pairs",
}
records = {compared: pretraining_records(compared) for compared in QUESTIONS}
heights = [len(conditions) for conditions in records.values()]
fig, axes = plt.subplots(
    3, 1, figsize=(7, 5), height_ratios=heights, sharex=True, layout="constrained"
)
for ax, (compared, conditions) in zip(axes, records.items(), strict=True):
    for place, runs in enumerate(conditions.values()):
        losses = [run["loss"] for run in runs]
        ax.plot(losses, [place] * len(losses), "o", alpha=0.6)
        ax.plot(sum(losses) / len(losses), place, "k|", ms=12)
    ax.set_yticks(range(len(conditions)), list(conditions))
    ax.set_ylim(len(conditions) - 0.5, -0.5)
    ax.set_title(QUESTIONS[compared], fontsize=10, loc="left")
axes[-1].set_xlabel("nats per blank in new sentences (dots: seeds, bar: mean; left is better)")
plt.show()

# %% tags=["experiment"]


def losses_of(compared, condition):
    """The recorded losses of a condition, one for each seed."""
    return [run["loss"] for run in records[compared][condition]]


def verdict(claim, smaller, larger):
    """Say whether all losses of one condition lie below all of another, and how far the means."""
    gap = sum(larger) / len(larger) - sum(smaller) / len(smaller)
    clear = max(smaller) < min(larger)
    word = "supported" if clear else "NOT supported"
    print(f"{claim}: {word} by these runs (means differ by {gap:+.2f} nats).")


def mean_loss(compared, condition):
    """Mean over seeds."""
    losses = losses_of(compared, condition)
    return sum(losses) / len(losses)


best = min(records["share"], key=lambda condition: mean_loss("share", condition))
print(f"(a) lowest mean: {best}")
third = losses_of("share", "30 %")
verdict("'30 % learns more than 15 %'", third, losses_of("share", "15 %"))
verdict("'30 % learns more than 80 %'", third, losses_of("share", "80 %"))
one = losses_of("share", "30 %, loss on one blank")
verdict("'Same blanks, more losses: better'", third, one)
print("(b)")
dynamic, static = losses_of("masking", "dynamic"), losses_of("masking", "static, 10 copies")
verdict("'Dynamic beats ten copies'", dynamic, static)
verdict("'Ten copies beat one'", static, losses_of("masking", "static, 1 copy"))
print("(c)")
without, paired = losses_of("pairs", "without"), losses_of("pairs", "with sentence pairs' loss")
verdict("'Without the second loss is better'", without, paired)
verdict("'With the second loss is better'", paired, without)
fresh = max(dynamic) < min(static) and not max(paired) < min(without)
stale = max(static) < min(dynamic) or max(paired) < min(without)
gaps = [
    mean_loss("masking", "static, 10 copies") - mean_loss("masking", "dynamic"),
    mean_loss("pairs", "with sentence pairs' loss") - mean_loss("pairs", "without"),
]
report(
    "C14",
    True if fresh else False if stale else None,
    f"fresh masks gain {gaps[0]:.2f} nats over ten copies, dropping the pairs' loss {gaps[1]:.2f} "
    f"({len(dynamic)} seeds each, recorded)",
    recorded_seconds=sum(
        run["seconds"]
        for compared in ("masking", "pairs")
        for runs in records[compared].values()
        for run in runs
    ),
)

# %% [markdown]
# The figure has three panels, a row of five dots for each condition. How to read it:
#
# - (a) More blanks give more losses per sentence and leave less to read. Where the best share lies
#   depends on model, text and budget: A. Wettig et al. (2023, *Should You Mask 15 % in Masked
#   Language Modeling?*) find 40 % better than 15 % for large models. The two rows with 30 % have
#   the *same* blanks; only the number of losses differs. This is the 15 % problem that ELECTRA
#   (chapter 11) sets out to solve.
# - (b) One fixed set of blanks can be learned by heart: such a model knows its blanks and little
#   else. Liu et al. (2019, Section 4.1) compared ten copies with dynamic masking at full scale and
#   report about equal results, a little better with dynamic masking.
# - (c) Liu et al. (2019, Section 4.2) find that dropping the sentences' loss does not hurt. Our
#   pairs are made (a true neighbour shares the first noun), so this shows no more than whether the
#   second loss disturbs or helps the first one *here*.
#
# Where a line above says NOT supported, the dots overlap: five seeds of this size cannot tell.

# %% [markdown]
# ## Common mistakes
#
# | symptom | cause |
# |---|---|
# | a word comes out as half a word and [UNK] | pieces before the failure were kept |
# | the pair "does not end" | cut after packing: the last [SEP] is gone |
# | close to `transformers`, off by 1e-3 | the tanh GELU, or an epsilon of 1e-5 |
# | right for one sentence, wrong in a batch | padding seen, or the mask along the queries |
# | right up to ten layers | names sorted as text |
# | loss near 0 after a minute | labels on words that were not blanked |
# | the model predicts [MASK] | labels read from the corrupted tokens |
# | NaN now and then | a short row without a selected word |
# | next-sentence accuracy stays at one half, its loss at 0 | `ignore_index=0` for labels 0 and 1 |
# | pseudo-perplexity of 1 | nothing was blanked |

# %% [markdown]
# ## Recap
#
# - An encoder sees both sides, so it learns from blanks: it understands, and cannot write.
# - WordPiece: the longest piece from the left, no looking back; `##` inside a word.
# - Input = word + position + segment, normalised; layers are post-LN with GELU. A checkpoint is a
#   dict of names and tensors.
# - 15 % selected; 80 / 10 / 10; loss on the selected only. Whole words make the blanks honest.
# - Blanks filled at once do not know of each other: fill one, look again.
# - RoBERTa: new blanks every time, no sentence pairs. In miniature, some of it shows.
#
# Next: small heads on these vectors, for classes, pairs, spans and tags.
