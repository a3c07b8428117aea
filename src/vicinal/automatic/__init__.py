"""Automatic estimators, which choose metrics, votes and a committee by themselves."""
