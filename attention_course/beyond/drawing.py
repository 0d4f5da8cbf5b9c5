"""How the models of chapter 13 begin: drawn from a generator, so that a seed tells all."""

from __future__ import annotations

import torch
from torch import nn


def draw_start(module: nn.Module, std: float, generator: torch.Generator) -> None:
    """Draw all tables and matrices of a module anew, with this spread; set its biases to 0.

    PyTorch's own start takes biases from the global generator, which no seed of ours reaches.
    """
    for name, parameter in module.named_parameters():
        if parameter.ndim > 1:
            nn.init.normal_(parameter, std=std, generator=generator)
        elif name.endswith("bias"):
            nn.init.zeros_(parameter)
