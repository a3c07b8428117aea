"""Who uses the objective: every metric learner, a scikit-learn transformer each."""
