"""Derivatives by differences, which those that are computed are held against."""

import numpy as np


def differences(function, at, step=1e-6):
    """Central differences of a function of a vector, one column per coordinate."""
    moves = step * np.eye(len(at))
    return np.stack([(function(at + move) - function(at - move)) / (2 * step) for move in moves], axis=-1)
