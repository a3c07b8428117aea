"""Maps from the features as given to the features that a metric is learned in."""
