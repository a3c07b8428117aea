"""From a table on disk to a fitted model and back: columns of any kind, rows with names."""
