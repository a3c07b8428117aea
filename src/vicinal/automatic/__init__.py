"""Choose metrics, votes and a committee by themselves: the automatic estimators."""
