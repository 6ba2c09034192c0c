# SPDX-License-Identifier: BSD-3-Clause
"""Fits positive constants to measured times by weighted least squares.

The loss is the mean absolute relative error, which least squares approaches by
reweighting. A constant is fitted as its logarithm, and may be pulled to its start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Constants = dict[str, float]
_STEP = 1e-3
_SMALLEST_ERROR = 0.03


def relative_error(predicted: Array, measured: Array) -> float:
    """Returns the mean absolute relative error."""
    return float(np.abs(predicted / measured - 1).mean())


def fit(
    seconds: Callable[[Constants], Array],
    start: Mapping[str, float],
    measured: Array,
    *,
    weights: Array | None = None,
    pull: float = 1e-3,
    fixed: tuple[str, ...] = (),
    rounds: int = 40,
) -> Constants:
    """Fits constants so that ``seconds(constants)`` is close to ``measured``.

    Args:
        seconds: The model.
        start: The constants to start from; each must be positive.
        measured: The measured times.
        weights: The weight of each row; all 1 by default.
        pull: The penalty of the squared logarithm of constant / start.
        fixed: Names of constants to keep.
        rounds: The most rounds of least squares.

    Returns:
        The fitted constants, in the order of ``start``.
    """
    names = list(start)
    free = [i for i, name in enumerate(names) if name not in fixed]
    origin = np.log(np.array([start[n] for n in names], dtype=np.float64))
    weight = np.ones_like(measured) if weights is None else weights / weights.mean()

    def residual(point: Array) -> Array:
        constants = dict(zip(names, np.exp(point).tolist(), strict=True))
        return np.clip(np.log(seconds(constants) / measured), -5.0, 3.0)

    def loss(error: Array, point: Array) -> float:
        penalty = pull * float(((point - origin) ** 2).sum())
        return float((weight * np.abs(np.expm1(error))).mean()) + penalty

    point, damping = origin.copy(), 1e-2
    error = residual(point)
    best = loss(error, point)
    for _ in range(rounds):
        slope = np.empty((len(measured), len(free)))
        for column, i in enumerate(free):
            moved = point.copy()
            moved[i] += _STEP
            slope[:, column] = (residual(moved) - error) / _STEP
        relative = np.abs(np.expm1(error))
        row = weight * np.exp(error) * relative / np.maximum(np.abs(error), 1e-9)
        row /= np.maximum(relative, _SMALLEST_ERROR)
        square = slope.T @ (slope * row[:, None]) / len(measured)
        square += 2 * pull * np.eye(len(free))
        gradient = slope.T @ (row * error) / len(measured)
        gradient += 2 * pull * (point - origin)[free]
        for _ in range(8):
            scale = damping * np.diag(np.diag(square) + 1e-9)
            step = np.clip(np.linalg.solve(square + scale, gradient), -0.7, 0.7)
            trial = point.copy()
            trial[free] -= step
            trial_error = residual(trial)
            trial_loss = loss(trial_error, trial)
            if trial_loss < best - 1e-7:
                break
            damping *= 4
        else:
            break
        gain, best = best - trial_loss, trial_loss
        point, error = trial, trial_error
        damping = max(damping / 5, 1e-6)
        if gain < 1e-5:
            break
    return dict(zip(names, np.exp(point).tolist(), strict=True))
