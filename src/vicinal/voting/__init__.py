"""From points in a learned space to row weights, predictions and explanations."""
