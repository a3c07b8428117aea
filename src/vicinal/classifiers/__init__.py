"""What a metric is for: nearest-neighbor classifiers."""
