"""How the parameters of three published encoders are shared out."""

from __future__ import annotations

PARTS = ("word table", "other embeddings", "layers", "pooler")
SHARES = {
    "BERT base": (23_440_896, 396_288, 85_054_464, 590_592),
    "BERT large": (31_254_528, 528_384, 302_309_376, 1_049_600),
    "MiniLM": (11_720_448, 198_144, 10_646_784, 147_840),
}
