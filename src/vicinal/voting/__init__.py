"""Sources of row weights: neighbor searches, votes, and what follows from them."""
