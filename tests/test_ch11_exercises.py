"""What is special about the exercises of chapter 11; the rest is asked by the audit."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attention_course.electra import Pretraining
from autograder.exercises._ch11_flops import STEP_FLOPS
from autograder.exercises._ch11_head import DiscriminatorHeadReference
from autograder.exercises._ch11_labels import DISCRIMINATOR_LOSS
from autograder.exercises._ch11_sampling import SAMPLE_TOKENS


@pytest.mark.slow
def test_head_and_loss_are_those_of_the_published_models():
    transformers = pytest.importorskip("transformers")

    torch.manual_seed(0)
    config = transformers.ElectraConfig(
        vocab_size=11,
        embedding_size=4,
        hidden_size=6,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        attn_implementation="eager",
    )
    theirs = transformers.ElectraForPreTraining(config).double().eval()
    ours = DiscriminatorHeadReference(6).double()
    ours.load_state_dict(theirs.discriminator_predictions.state_dict())
    rng = np.random.default_rng(0)
    ids = torch.from_numpy(rng.integers(1, 11, size=(3, 5)))
    replaced = torch.from_numpy(rng.random((3, 5)) < 0.4)
    counted = torch.arange(5) < torch.tensor([[5], [3], [2]])
    with torch.no_grad():
        expected = theirs(ids, attention_mask=counted.long(), labels=replaced.long())
        states = theirs.electra(ids, attention_mask=counted.long()).last_hidden_state
        scores = ours(states)
    assert torch.allclose(scores, expected.logits, atol=1e-12)
    loss = DISCRIMINATOR_LOSS.reference(logits=scores, replaced=replaced, counted=counted)
    assert float(loss) == pytest.approx(float(expected.loss), abs=1e-6), "theirs is in float32"


def test_samples_have_the_probabilities_of_the_softmax():
    rng = np.random.default_rng(1)
    logits, temperature, draws = rng.normal(size=4), 1.7, 40_000
    uniform = torch.from_numpy(rng.random((draws, 4)))
    rows = torch.from_numpy(logits).expand(draws, 4)
    samples = SAMPLE_TOKENS.reference(logits=rows, uniform=uniform, temperature=temperature)
    shares = np.bincount(samples.numpy(), minlength=4) / draws
    expected = torch.from_numpy(logits / temperature).softmax(-1).numpy()
    assert np.abs(shares - expected).max() < 5 * (0.25 / draws) ** 0.5


def test_the_count_of_operations_agrees_with_the_models_own():
    tokens = torch.full((3, 8), 5)
    model = Pretraining("ELECTRA", words=20, d_model=16, generator_share=0.5)
    flops = model(tokens)[2]
    model.random.manual_seed(0)
    chosen = int(model.choose(tokens > 0).sum())
    expected = STEP_FLOPS.reference(
        batch=3,
        length=8,
        chosen=chosen,
        vocabulary=20,
        d_model=16,
        layers=2,
        generator_width=8,
        generator_layers=2,
    )
    assert flops == expected
