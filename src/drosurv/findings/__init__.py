"""One home for what is found about a model: tests of residuals, their adjustment, the verdict, and the words."""
