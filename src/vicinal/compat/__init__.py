"""Other libraries' interfaces to vicinal's learners."""
