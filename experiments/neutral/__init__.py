"""A published comparison of survival learners, continued: our models on the same datasets, folds and scores."""
