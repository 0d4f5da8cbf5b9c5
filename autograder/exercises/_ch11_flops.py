"""Chapter 11: the floating-point operations of one training step."""

from __future__ import annotations

from attention_course.judging import Case
from autograder.exercise import Exercise, Group, Misconception


def step_flops_cases(rng):
    """Odd sizes; a narrower generator and one of the same width; ELECTRA-small's shape."""
    for group, narrow, about in (
        ("narrow", True, "a narrower generator"),
        ("narrow", True, "another narrower generator"),
        ("equal", False, "equal widths"),
    ):
        width = int(rng.integers(9, 30))
        yield Case(
            group,
            {
                "batch": int(rng.integers(2, 9)),
                "length": int(rng.integers(10, 40)),
                "chosen": int(rng.integers(5, 20)),
                "vocabulary": int(rng.integers(100, 300)),
                "d_model": width,
                "layers": int(rng.integers(2, 6)),
                "generator_width": int(rng.integers(3, width - 1)) if narrow else width,
                "generator_layers": int(rng.integers(2, 6)),
            },
            about,
        )


def step_flops_reference(
    batch, length, chosen, vocabulary, d_model, layers, generator_width, generator_layers
):
    """Lists the shape of every product, (rows, inner, columns), and how often it is computed."""

    def encoder(width, depth):
        tokens = batch * length
        yield from [(tokens, width, width)] * 4 * depth
        yield from [(tokens, width, 4 * width), (tokens, 4 * width, width)] * depth
        yield from [(length, width, length), (length, length, width)] * depth * batch

    products = [*encoder(d_model, layers), *encoder(generator_width, generator_layers)]
    if generator_width != d_model:
        products.append((batch * length, d_model, generator_width))
    products += [(chosen, generator_width, d_model), (chosen, d_model, vocabulary)]
    products += [(batch * length, d_model, d_model), (batch * length, d_model, 1)]
    return 3 * sum(2 * rows * inner * columns for rows, inner, columns in products)


def _count(
    batch,
    length,
    chosen,
    vocabulary,
    d_model,
    layers,
    generator_width,
    generator_layers,
    passes=3,
    each=2,
    products=2,
    hidden=4,
    maps=4,
    generator=1,
    generator_places=None,
    projected=None,
    disc_places=None,
    lookup=0,
    rows=None,
    softmax=0,
):
    tokens = batch * length if rows is None else rows

    def encoder(width, depth):
        layer = (maps + 2 * hidden) * width * width + products * length * width
        layer += softmax * length
        return tokens * depth * layer

    places = chosen if generator_places is None else generator_places
    total = encoder(d_model, layers)
    total += (tokens if disc_places is None else disc_places) * (d_model * d_model + d_model)
    projected = generator_width != d_model if projected is None else projected
    guess = encoder(generator_width, generator_layers) + projected * tokens * (
        d_model * generator_width
    )
    guess += places * (generator_width * d_model + d_model * vocabulary)
    total += generator * guess + lookup * 2 * tokens * vocabulary * d_model
    return passes * each * total


def forward_only(**shape):
    """No backward pass."""
    return _count(**shape, passes=1)


def backward_as_forward(**shape):
    """The backward pass costs as much as the forward pass."""
    return _count(**shape, passes=2)


def multiplications_only(**shape):
    """A multiplication and an addition count as one."""
    return _count(**shape, each=1)


def attention_products_forgotten(**shape):
    """No scores, no sums of values."""
    return _count(**shape, products=0)


def one_attention_product(**shape):
    """Scores only."""
    return _count(**shape, products=1)


def output_projection_forgotten(**shape):
    """Three projections."""
    return _count(**shape, maps=3)


def hidden_as_wide(**shape):
    """MLP of width d."""
    return _count(**shape, hidden=1)


def generator_free(**shape):
    """Counts the discriminator only."""
    return _count(**shape, generator=0)


def words_scored_everywhere(batch, length, **shape):
    """The generator's head on all places."""
    return _count(batch=batch, length=length, **shape, generator_places=batch * length)


def projection_forgotten(**shape):
    """No projection to the generator's width."""
    return _count(**shape, projected=False)


def projection_always(**shape):
    """A projection even for equal widths."""
    return _count(**shape, projected=True)


def discriminator_on_chosen(chosen, **shape):
    """The discriminator's head on chosen places."""
    return _count(chosen=chosen, **shape, disc_places=chosen)


def lookup_counted(**shape):
    """An embedding as a product with one-hot vectors."""
    return _count(**shape, lookup=1)


def chosen_of_each_sentence(batch, chosen, **shape):
    """Takes `chosen` as the number of each sentence."""
    return _count(batch=batch, chosen=chosen, **shape, generator_places=batch * chosen)


def softmax_counted(**shape):
    """Counts attention's softmax as one more product."""
    return _count(**shape, softmax=1)


def one_sentence(length, **shape):
    """Forgets the batch in the encoders."""
    return _count(length=length, **shape, rows=length)


def flops_by_formula(
    batch, length, chosen, vocabulary, d_model, layers, generator_width, generator_layers
):
    """Right: one formula."""
    n, d, g = batch * length, d_model, generator_width
    encoders = layers * (24 * d * d + 4 * length * d) + generator_layers * (
        24 * g * g + 4 * length * g
    )
    bridge = 0 if g == d else 2 * d * g
    heads = n * 2 * d * (d + 1) + chosen * 2 * d * (g + vocabulary)
    return 3 * (n * (encoders + bridge) + heads)


def flops_by_parameters(
    batch, length, chosen, vocabulary, d_model, layers, generator_width, generator_layers
):
    """Right: six operations for each weight and place, and the attention's products."""
    places = batch * length
    total = 0
    for width, depth in ((d_model, layers), (generator_width, generator_layers)):
        total += 6 * places * depth * 12 * width**2
        total += 3 * batch * depth * 2 * (2 * length**2 * width)
    if generator_width < d_model or generator_width > d_model:
        total += 6 * places * d_model * generator_width
    total += 6 * chosen * (generator_width * d_model + d_model * vocabulary)
    return total + 6 * places * (d_model**2 + d_model)


def flops_with_helper(
    batch, length, chosen, vocabulary, d_model, layers, generator_width, generator_layers
):
    """Right: a helper for one product."""

    def product(rows, inner, columns):
        return 2 * rows * inner * columns

    rows, total = batch * length, 0
    for width, depth in [(generator_width, generator_layers), (d_model, layers)]:
        for _ in range(depth):
            total += product(rows, width, 3 * width) + product(rows, width, width)
            total += product(rows, length, width) * 2
            total += product(rows, width, 8 * width)
    total += product(chosen, d_model, generator_width + vocabulary)
    total += product(rows, d_model, d_model + 1)
    total += product(rows, d_model, generator_width) * (generator_width != d_model)
    return total * 3


STEP_FLOPS = Exercise(
    id="step_flops",
    title="What a step costs",
    asks="Count the operations of one training step of generator and discriminator.",
    parameters=(
        *("batch", "length", "chosen", "vocabulary"),
        *("d_model", "layers", "generator_width", "generator_layers"),
    ),
    groups={"narrow": Group(2, "a narrower generator"), "equal": Group(1, "equal widths")},
    cases=step_flops_cases,
    reference=step_flops_reference,
    misconceptions=(
        Misconception(
            forward_only,
            "Only the forward pass is counted.",
            "What does the contract say about the backward pass?",
        ),
        Misconception(
            backward_as_forward,
            "The backward pass is counted like one forward pass.",
            "How many products does the backward pass need for each product?",
        ),
        Misconception(
            multiplications_only,
            "A multiplication with its addition is counted as one operation.",
            "What does a product of two matrices cost, by the contract?",
        ),
        Misconception(
            attention_products_forgotten,
            "The two products inside attention are not counted.",
            "Scores are products; so are weighted sums of values.",
        ),
        Misconception(
            one_attention_product,
            "Of the two products inside attention one is missing.",
            "Scores are products; so are weighted sums of values.",
        ),
        Misconception(
            output_projection_forgotten,
            "Attention's output projection is not counted.",
            "How many d × d maps has attention?",
        ),
        Misconception(
            hidden_as_wide,
            "The MLP's hidden layer is taken to be as wide as the model.",
            "How wide is it, by the contract?",
        ),
        Misconception(
            generator_free,
            "The generator is not counted.",
            "ELECTRA trains two networks.",
        ),
        Misconception(
            words_scored_everywhere,
            "The generator scores all words in every place; it needs the chosen ones only.",
            "Where has the generator a loss?",
        ),
        Misconception(
            projection_forgotten,
            "The projection from the shared embeddings to the generator's width is not counted.",
            "How do wide embeddings get into a narrow generator?",
        ),
        Misconception(
            projection_always,
            "A projection is counted although both widths are equal.",
            "When is there a projection?",
        ),
        Misconception(
            discriminator_on_chosen,
            "The discriminator's head is counted for chosen places only.",
            "For which places does it give a score?",
        ),
        Misconception(
            lookup_counted,
            "The embeddings are counted as products; a lookup costs nothing here.",
            "What costs, by the contract?",
        ),
        Misconception(
            chosen_of_each_sentence,
            "`chosen` is multiplied with the batch; it is the number of the whole batch already.",
            "What does the contract say about `chosen`?",
        ),
        Misconception(
            softmax_counted,
            "Attention's softmax is counted; only products of matrices cost anything here.",
            "What costs, by the contract?",
        ),
        Misconception(
            one_sentence,
            "The batch is missing in the encoders.",
            "How many places has the whole batch?",
        ),
    ),
    accepted=(flops_by_formula, flops_by_parameters, flops_with_helper),
)
