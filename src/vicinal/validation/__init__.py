"""Validation of models on rows that they were not fitted to: folds, deadlines, scores."""
