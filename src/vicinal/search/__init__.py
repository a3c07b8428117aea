"""Search for the exponents, the margin and K of ANN by cross-validation."""
