"""Metric learners: one file per method, each a scikit-learn transformer."""
