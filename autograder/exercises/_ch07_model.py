"""Exercise of chapter 07: the whole encoder-decoder, from PyTorch's layers."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception
from autograder.exercises._ch07_parts import draw_weights, shapes_of

PADDING = 0


def _sinusoids(length, d_model):
    """Sines in even, cosines in odd features, (length, d_model)."""
    angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, d_model, 2) / d_model)
    return torch.from_numpy(np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, d_model))


class _Parts(nn.Module):
    """Embeddings, layers and norms under the names of the contract."""

    def __init__(self, source_words, target_words, d_model, heads, d_hidden, layers):
        super().__init__()
        options = {"dropout": 0.0, "batch_first": True, "norm_first": True}
        self.source_embedding = nn.Embedding(source_words, d_model)
        self.target_embedding = nn.Embedding(target_words, d_model)
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(d_model, heads, d_hidden, **options) for _ in range(layers)
        )
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(d_model, heads, d_hidden, **options) for _ in range(layers)
        )
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)


class EncoderDecoderReference(_Parts):
    """The same weights in PyTorch's `nn.Transformer`."""

    def forward(self, source, target):
        """Give logits."""
        d_model = self.source_embedding.embedding_dim
        layer = self.encoder[0]
        whole = nn.Transformer(
            d_model,
            layer.self_attn.num_heads,
            len(self.encoder),
            len(self.decoder),
            layer.linear1.out_features,
            dropout=0.0,
            batch_first=True,
            norm_first=True,
        )
        names = {"encoder_norm": "encoder.norm", "decoder_norm": "decoder.norm"}
        weights = {}
        for name, value in self.named_parameters():
            first, _, rest = name.partition(".")
            weights[f"{names.get(first, first + '.layers')}.{rest}"] = value
        weights = {name: w for name, w in weights.items() if "embedding" not in name}
        x, y = (
            embedding.weight[words] * d_model**0.5 + _sinusoids(words.shape[1], d_model)
            for embedding, words in (
                (self.source_embedding, source),
                (self.target_embedding, target),
            )
        )
        hidden = source == PADDING
        masks = {
            "tgt_mask": torch.ones(2 * target.shape[1:], dtype=torch.bool).triu(1),
            "src_key_padding_mask": hidden,
            "memory_key_padding_mask": hidden,
        }
        states = torch.func.functional_call(whole.train(), weights, (x, y), masks)
        return torch.einsum("btd,vd->btv", states, self.target_embedding.weight)


def encoder_decoder_cases(rng):
    """One and two layers; padded sources; one word."""
    for group, batch, source, target, heads, layers, about in (
        ("values", 2, 4, 3, 3, 2, "two layers, no padding"),
        ("padding", 2, 5, 4, 2, 2, "two layers, padded sources"),
        ("edges", 2, 3, 1, 3, 1, "the start token only"),
    ):
        build = {
            "source_words": 9,
            "target_words": 7,
            "d_model": 6,
            "heads": heads,
            "d_hidden": 8,
            "layers": layers,
        }
        words = rng.integers(1, 9, size=(batch, source))
        if group == "padding":
            lengths = rng.permutation([source, *rng.integers(1, source, batch - 1)])
            words[np.arange(source) >= lengths[:, None]] = PADDING
        targets = rng.integers(1, 7, size=(batch, target))
        yield Case(
            group,
            {
                "build": build,
                "weights": draw_weights(rng, shapes_of(EncoderDecoderReference(**build))),
                "inputs": {"source": words, "target": targets},
                "upstream": rng.normal(size=(batch, target, 7)),
            },
            about,
        )


class _Model(_Parts):
    """Right unless something is overridden; the wrong versions are made of it."""

    scaled, source_places, target_places, tied_to = True, 0, 0, "target_embedding"

    def embed(self, embedding, words, start):
        """Vectors of words with their positions; no positions if `start` is None."""
        d_model = embedding.embedding_dim
        x = embedding(words) * (d_model**0.5 if self.scaled else 1.0)
        if start is None:
            return x
        return x + _sinusoids(words.shape[1] + start, d_model)[start:]

    def hidden(self, source):
        """What must not be seen of the source, for encoder and cross-attention."""
        return source == PADDING, source == PADDING

    def future(self, length):
        """What must not be seen of the target."""
        return torch.ones(length, length, dtype=torch.bool).triu(1)

    def memories(self, source):
        """What each decoder layer looks at."""
        x = self.embed(self.source_embedding, source, self.source_places)
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=self.hidden(source)[0])
        return [self.encoder_norm(x)] * len(self.decoder)

    def finish(self, y):
        """Logits."""
        return self.decoder_norm(y) @ getattr(self, self.tied_to).weight.T

    def forward(self, source, target):
        """Give logits."""
        y = self.embed(self.target_embedding, target, self.target_places)
        for layer, memory in zip(self.decoder, self.memories(source), strict=True):
            y = layer(
                y,
                memory,
                tgt_mask=self.future(target.shape[1]),
                memory_key_padding_mask=self.hidden(source)[1],
            )
        return self.finish(y)


class embeddings_unscaled(_Model):
    """Without √d_model."""

    scaled = False


class no_positions(_Model):
    """No positions anywhere."""

    source_places = target_places = None


class positions_on_one_side(_Model):
    """Positions in the encoder only."""

    target_places = None


class positions_from_one(_Model):
    """The first place is 1."""

    source_places = target_places = 1


class positions_scaled_too(_Model):
    """Scales the sum of word and position."""

    def embed(self, embedding, words, start):
        places = _sinusoids(words.shape[1], embedding.embedding_dim)
        return (embedding(words) + places) * embedding.embedding_dim**0.5


class padding_seen_everywhere(_Model):
    """No padding mask."""

    def hidden(self, source):
        return None, None


class padding_seen_by_the_decoder(_Model):
    """The mask of the encoder only."""

    def hidden(self, source):
        return source == PADDING, None


class padding_seen_by_the_encoder(_Model):
    """The mask of cross-attention only."""

    def hidden(self, source):
        return None, source == PADDING


class words_hidden(_Model):
    """The padding mask the wrong way round: NaN where there is no padding."""

    def hidden(self, source):
        return source != PADDING, source != PADDING


class future_seen(_Model):
    """No causal mask."""

    def future(self, length):
        return None


class layer_by_layer(_Model):
    """Decoder layer i looks at the output of encoder layer i."""

    def memories(self, source):
        x = self.embed(self.source_embedding, source, self.source_places)
        found = []
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=self.hidden(source)[0])
            found.append(self.encoder_norm(x))
        return found


class encoder_not_normalised(_Model):
    """Forgets the encoder's last norm."""

    def memories(self, source):
        x = self.embed(self.source_embedding, source, self.source_places)
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=self.hidden(source)[0])
        return [x] * len(self.decoder)


class decoder_not_normalised(_Model):
    """Forgets the decoder's last norm."""

    def finish(self, y):
        return y @ self.target_embedding.weight.T


class probabilities_given(_Model):
    """Ends in a softmax."""

    def finish(self, y):
        return super().finish(y).softmax(-1)


class embedding_cut_off(_Model):
    """The output uses a copy of the embedding that does not learn."""

    def finish(self, y):
        return self.decoder_norm(y) @ self.target_embedding.weight.detach().T


class first_layer_repeated(_Model):
    """Runs the first layer of each stack again and again."""

    def __init__(self, **build):
        super().__init__(**build)
        for stack in (self.encoder, self.decoder):
            for place in range(1, len(stack)):
                stack[place] = stack[0]


class through_nn_transformer(_Parts):
    """Right: PyTorch's stacks around the same layers."""

    def forward(self, source, target):
        scale, hidden = self.source_embedding.embedding_dim**0.5, source == PADDING
        x = self.source_embedding(source) * scale
        x = x + _sinusoids(x.shape[1], x.shape[2])
        for layer in self.encoder:
            x = layer(x, src_mask=None, src_key_padding_mask=hidden)
        memory = nn.functional.layer_norm(
            x, x.shape[-1:], self.encoder_norm.weight, self.encoder_norm.bias
        )
        y = self.target_embedding(target) * scale
        y = y + _sinusoids(y.shape[1], y.shape[2])
        future = nn.Transformer.generate_square_subsequent_mask(y.shape[1], dtype=y.dtype)
        for layer in self.decoder:
            y = layer(
                y, memory, tgt_mask=future, memory_key_padding_mask=torch.where(hidden, -1e9, 0.0)
            )
        return nn.functional.linear(self.decoder_norm(y), self.target_embedding.weight)


class with_two_methods(_Parts):
    """Right: a method for each half, positions as a buffer."""

    def __init__(self, source_words, target_words, d_model, heads, d_hidden, layers):
        super().__init__(source_words, target_words, d_model, heads, d_hidden, layers)
        self.register_buffer("places", _sinusoids(50, d_model), persistent=False)

    def encode(self, source):
        x = self.source_embedding(source) * self.places.shape[1] ** 0.5
        x = x + self.places[: source.shape[1]]
        for layer in self.encoder:
            x = layer(x, src_key_padding_mask=source.eq(PADDING))
        return self.encoder_norm(x)

    def decode(self, target, memory, source):
        y = self.target_embedding(target) * self.places.shape[1] ** 0.5
        y = y + self.places[: target.shape[1]]
        future = ~torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).tril()
        for layer in self.decoder:
            y = layer(y, memory, future, None, None, source.eq(PADDING), tgt_is_causal=True)
        return self.decoder_norm(y) @ self.target_embedding.weight.mT

    def forward(self, source, target):
        return self.decode(target, self.encode(source), source)


class padding_cut_off(_Parts):
    """Right: one sentence at a time, its padding cut off."""

    def one(self, source, target):
        x, y = (
            embedding(words) * embedding.embedding_dim**0.5
            + _sinusoids(words.shape[1], embedding.embedding_dim)
            for embedding, words in (
                (self.source_embedding, source),
                (self.target_embedding, target),
            )
        )
        for layer in self.encoder:
            x = layer(x)
        x = self.encoder_norm(x)
        for layer in self.decoder:
            y = layer(y, x, tgt_mask=torch.ones(2 * target.shape[1:]).triu(1) > 0)
        return self.decoder_norm(y) @ self.target_embedding.weight.T

    def forward(self, source, target):
        pairs = zip(source, target, strict=True)
        return torch.cat([self.one(s[s != PADDING][None], t[None]) for s, t in pairs])


ENCODER_DECODER = Exercise(
    id="encoder_decoder",
    title="The whole encoder-decoder",
    asks="Assemble embeddings, positions, both stacks and a tied output from PyTorch's layers.",
    parameters=("build", "weights", "inputs", "upstream"),
    outputs=(
        "logits",
        "number of parameters",
        "gradient of target_embedding.weight",
    ),
    driver="module",
    seconds=30.0,  # with a padding mask, PyTorch first imports SymPy
    groups={
        "values": Group(2, "without padding"),
        "padding": Group(1, "padded sources"),
        "edges": Group(1, "the start token only"),
    },
    cases=encoder_decoder_cases,
    reference=EncoderDecoderReference,
    misconceptions=(
        Misconception(
            embeddings_unscaled,
            "The embeddings are not multiplied by √d_model.",
            "Read point 2 of the contract again.",
        ),
        Misconception(
            no_positions,
            "No positions are added: both sides see bags of words.",
            "Where does `sinusoids` enter your model?",
        ),
        Misconception(
            positions_on_one_side,
            "The target's words get no positions.",
            "How many times does your code add `sinusoids`?",
        ),
        Misconception(
            positions_from_one,
            "The positions start at 1; `sinusoids` has the first place in row 0.",
            "Which row of `sinusoids` belongs to the first word?",
        ),
        Misconception(
            positions_scaled_too,
            "The positions are multiplied by √d_model as well.",
            "Scale the embedding, then add.",
        ),
        Misconception(
            padding_seen_everywhere,
            "Padding of the source can be seen in the encoder and in cross-attention.",
            "Which argument of each layer hides words of the source?",
        ),
        Misconception(
            padding_seen_by_the_decoder,
            "Cross-attention sees padding of the source.",
            "The encoder's layers hide padding. And the decoder's?",
        ),
        Misconception(
            padding_seen_by_the_encoder,
            "The encoder's self-attention sees padding.",
            "The decoder's layers hide padding of the source. And the encoder's?",
        ),
        Misconception(
            words_hidden,
            "The padding mask is the wrong way round: words are hidden, and where there is no "
            "padding nothing is left to see (NaN).",
            "PyTorch's layers say True = hidden. For which ids is your mask True?",
        ),
        Misconception(
            future_seen,
            "The decoder sees the future.",
            "Which argument of a decoder layer takes the causal mask?",
        ),
        Misconception(
            layer_by_layer,
            "Decoder layer i looks at encoder layer i; every one should look at the last.",
            "How many times does the encoder's output exist?",
        ),
        Misconception(
            encoder_not_normalised,
            "The last norm of the encoder is missing.",
            "Where do you use `encoder_norm`?",
        ),
        Misconception(
            decoder_not_normalised,
            "The last norm of the decoder is missing.",
            "Where do you use `decoder_norm`?",
        ),
        Misconception(
            probabilities_given,
            "The result went through a softmax; the contract asks for logits.",
            "Who takes the softmax, the model or the loss?",
        ),
        Misconception(
            embedding_cut_off,
            "The output layer sends no gradient to the embedding that it shares.",
            "Look for `detach`, `data` or a copy.",
        ),
        Misconception(
            first_layer_repeated,
            "One layer is used several times: layers of a stack have weights of their own.",
            "`[layer] * n` is n times the same object.",
        ),
    ),
    accepted=(through_nn_transformer, with_two_methods, padding_cut_off),
)
