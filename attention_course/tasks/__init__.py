"""Small encoders and their heads: the data, models and recorded runs of chapter 10."""
