"""The paper's experiments: what was published, what we measure, and the comparison."""
