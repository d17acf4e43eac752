"""How good a model is: rank correlations, and which features it relies on."""
