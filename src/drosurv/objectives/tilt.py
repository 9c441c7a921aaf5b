"""Robust objectives from sums alone: their worst-case weights are a tilt of the masses that a few numbers describe.

Every objective here weighs losses l_i > eta by q_i = p_i level, or by q_i = p_i min(slope (l_i - eta), cap). The
numbers follow from sums over losses above or between thresholds, so nobody ever needs all losses in one place: a
handful of rounds over an accelerator's memory, over files, or over many machines finds them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from drosurv.target import FloatArray

_ROUNDS = 200
# Losses that differ by less have differences without a square.
_ALIKE = 1e-150
# Rounds that narrow down CVaR's threshold at most, and the share of the patients among whom it is then looked for.
_NARROWINGS = 12
_FEW = 1e-3


class Moments(NamedTuple):
    """Mass at or above the upper bound; mass, first and second moment about a base between the bounds."""

    above: float
    mass: float
    first: float
    second: float


class Tilt(NamedTuple):
    """An objective at the current losses: its value, its weights as above, and its second derivative.

    `attained` is sum_i q_i l_i, below the value where leaving the whole population has a price. Either `level` or
    `slope` is zero; `border` takes the place of level where l_i = eta.

    Of losses whose weight moves, `scale` is the second derivative on the diagonal, over p_i; each of the `terms`
    (scale, by_active, by_along) adds scale v v' with v_i = p_i (by_active + by_along (l_i - eta)).
    """

    value: float
    attained: float
    eta: float
    level: float
    slope: float
    cap: float = math.inf
    scale: float = 0.0
    terms: tuple[tuple[float, float, float], ...] = ()
    border: float = 0.0

    def ratio(self, losses: Any) -> Any:
        """q_i / p_i of losses, an array of NumPy or torch."""
        if self.slope > 0.0:
            return (self.slope * (losses - self.eta)).clip(0.0, self.cap)
        ratio = self.level * (losses > self.eta)
        return ratio + self.border * (losses == self.eta) if self.border > 0.0 else ratio


Sums = Callable[[float, float, float], Moments]
"""Lower bound, upper bound and base to the moments of the losses strictly between, and the mass from the upper on."""


Members = Callable[[float, float], tuple[FloatArray, FloatArray]]
"""Two bounds to the losses above the lower and up to the upper, and their masses."""


class Spread(NamedTuple):
    """What a tilt starts from: sums of the losses, single ones, and the smallest and largest of them.

    The search for a threshold begins at ``start``, the last one found, where there is one.
    """

    sums: Sums
    members: Members
    lowest: float
    highest: float
    start: float = math.nan

    @property
    def may_start(self) -> bool:
        """Whether the last threshold still lies among the losses."""
        return self.lowest < self.start < self.highest


def mean(spread: Spread) -> Tilt:
    """The average loss."""
    value = _mean(spread)
    return Tilt(value, value, -math.inf, 1.0, 0.0)


def chi_square(spread: Spread, constant: float, price: float = 0.0) -> Tilt:
    """The chi-square ball with factor C; with a price as in :mod:`drosurv.objectives.tilted`."""
    if constant == 1.0:
        return mean(spread)
    plain = _plain_chi_square(spread, constant)
    if price == 0.0:
        return plain
    over = spread.sums(plain.eta, math.inf, plain.eta)
    if over.first >= price:
        return plain._replace(value=plain.value - 0.5 * price * (constant**2 - 1.0))
    return _priced(spread, price) or plain


def _plain_chi_square(spread: Spread, constant: float) -> Tilt:
    sums, highest = spread.sums, spread.highest
    at_top = sums(math.inf, highest, 0.0).above
    if constant**2 * at_top >= 1.0 - 1e-12 or highest - spread.lowest < _ALIKE:
        # The losses at the maximum alone fill the ball, or all are as good as one.
        return Tilt(highest, highest, highest, 1.0 / at_top, 0.0, border=1.0 / at_top)
    # Jump to the minimiser for the losses now above eta; it may cycle, so the slope's sign keeps a bracket.
    low, high, base = -math.inf, highest, highest
    start = spread.start if spread.may_start else -math.inf
    eta = start
    for _ in range(_ROUNDS):
        m = sums(eta, math.inf, base)
        room = constant**2 * m.mass - 1.0
        centre = m.first / m.mass if m.mass > 0.0 else math.nan
        spare = max(m.second / m.mass - centre**2, 0.0) if m.mass > 0.0 else math.nan
        following = base + centre - math.sqrt(spare / room) if room > 0.0 else math.nan
        if eta > -math.inf:
            # The objective is convex in eta; the sign of its slope tells on which side the minimum lies.
            first = m.first + m.mass * (base - eta)
            second = m.second + 2.0 * (base - eta) * m.first + m.mass * (base - eta) ** 2
            if constant * first > math.sqrt(max(second, 0.0)):
                low = eta
            else:
                high = eta
        if not low < following < high:
            if start > -math.inf and following != eta and not math.isfinite(low):
                # The start was too high: begin with everybody.
                high, start, eta = highest, -math.inf, -math.inf
                continue
            if following == eta or not math.isfinite(low):
                break
            following = 0.5 * (low + high)
        if abs(following - eta) <= 1e-15 * (highest - following) or following in (low, high):
            eta = following
            break
        eta = following
    return chi_square_at(eta, sums(eta, math.inf, eta), constant)


def chi_square_at(eta: float, m: Moments, constant: float) -> Tilt:
    """The chi-square ball from its threshold and the moments of the losses above, about it."""
    # By optimality C / sqrt(second) is 1 / first; the sum leaves less rounding.
    root = math.sqrt(m.second)
    scale, bend = constant / root, m.mass - m.first**2 / m.second
    terms = [(-scale / m.second, 0.0, 1.0)]
    if bend > 1e-12 * m.mass:
        terms.append((-scale / bend, 1.0, -m.first / m.second))
    value = constant * root + eta
    return Tilt(value, eta + m.second / m.first, eta, 0.0, 1.0 / m.first, math.inf, scale, tuple(terms))


def _priced(spread: Spread, price: float) -> Tilt | None:
    """Weights p_i [l_i - eta]_+ / t inside the ball: eta by Newton's method from below, which ends exactly.

    None where the price is below the last digit of the largest losses, so that it changes nothing.
    """
    following = _mean(spread) - price
    for _ in range(_ROUNDS):
        eta = following
        m = spread.sums(eta, math.inf, eta)
        following = eta + (m.first - price) / m.mass if m.mass > 0.0 else eta
        if not following > eta:
            break
    total = m.first / price
    if not total > 0.0:
        return None
    # sum p (ratio - 1)^2 over everybody, ratio = [l - eta]_+ / t.
    paid = m.second / price**2 - 2.0 * total + 1.0
    attained = eta + m.second / price / total
    value, scale = attained - 0.5 * price * paid, 1.0 / price
    return Tilt(
        value, attained, eta, 0.0, 1.0 / (price * total), math.inf, scale, ((-scale / m.mass, 1.0, 0.0),)
    )


def cvar(spread: Spread, alpha: float, price: float = 0.0) -> Tilt:
    """CVaR of the worst-off share alpha; with a price likewise."""
    if alpha == 1.0:
        return mean(spread)._replace(eta=spread.lowest, border=1.0)
    return (_priced_cvar(spread, alpha, price) if price > 0.0 else None) or _plain_cvar(spread, alpha)


def _plain_cvar(spread: Spread, alpha: float) -> Tilt:
    """The threshold is a loss: with a mass of at most alpha above it, and at least alpha with itself."""
    eta = _value_at_risk(spread, alpha)
    m = spread.sums(eta, math.inf, eta)
    value = eta + m.first / alpha
    # Losses equal to the threshold share what those above it leave.
    at_threshold = spread.sums(-math.inf, eta, eta).above - m.mass
    border = (1.0 - m.mass / alpha) / at_threshold if at_threshold > 0.0 else 0.0
    return Tilt(value, value, eta, 1.0 / alpha, 0.0, border=border)


def _value_at_risk(spread: Spread, alpha: float) -> float:
    """Narrowed down from both sides by the mass above, then looked up among the few losses that are left."""
    # A sum that rounding left just short of alpha has reached it.
    reached = alpha * (1.0 - 1e-12)
    low, high, over_low, over_high = spread.lowest, spread.highest, 1.0, 0.0
    eta = spread.start
    for done in range(_NARROWINGS):
        if over_low - over_high <= _FEW:
            break
        if not low < eta < high:
            # As if losses were spread evenly: just beyond alpha, on the side that is farther away.
            ahead = over_low - alpha > alpha - over_high
            aim = alpha + 0.25 * _FEW if ahead else max(alpha - 0.25 * _FEW, 0.5 * (alpha + over_high))
            even = low + (high - low) * (over_low - aim) / (over_low - over_high)
            eta = 0.5 * (low + high) if done % 3 == 2 else even
        if not low < eta < high:
            break
        over = spread.sums(eta, math.inf, eta).mass
        if over >= reached:
            low, over_low = eta, over
        else:
            high, over_high = eta, over
    lowest = low == spread.lowest
    losses, mass = spread.members(-math.inf if lowest else low, high)
    order = np.argsort(-losses)
    short = int((over_high + np.cumsum(mass[order]) < reached).sum())
    return float(losses[order[min(short, len(order) - 1)]])


def _priced_cvar(spread: Spread, alpha: float, price: float) -> Tilt | None:
    """q_i = p_i clip(1 + (l_i - nu)/t, 0, 1/alpha); their sum falls in nu, which is bracketed and found by Newton.

    None as in :func:`_priced`.
    """
    cap = 1.0 / alpha
    low, high = spread.lowest, spread.highest + price
    step = spread.start + price if spread.may_start else _mean(spread)
    for _ in range(_ROUNDS):
        nu = step
        m = spread.sums(nu - price, nu + (cap - 1.0) * price, nu)
        total, slope = cap * m.above + m.mass + m.first / price, m.mass / price
        if abs(total - 1.0) <= 1e-14:
            break
        low, high = (nu, high) if total > 1.0 else (low, nu)
        step = nu + (total - 1.0) / slope if slope > 0.0 else math.inf
        step = step if low < step < high else 0.5 * (low + high)
        if step == nu:
            break
    edge = nu + (cap - 1.0) * price
    capped = spread.sums(edge, math.inf, nu)
    # Losses exactly at the edge have their full weight and lie (cap - 1) t above nu.
    at_edge = m.above - capped.mass
    if not (total > 0.0 and nu - price < edge):
        return None
    over = cap * (capped.first + at_edge * (edge - nu)) + m.first + m.second / price
    # sum p (ratio - 1)^2: one for those without weight, (cap - 1)^2 for those with full weight.
    paid = (1.0 - m.above - m.mass) + m.above * (cap - 1.0) ** 2 + m.second / price**2
    attained = nu + over / total
    value, scale = attained - 0.5 * price * paid, 1.0 / price
    terms = ((-scale / m.mass, 1.0, 0.0),) if m.mass > 0.0 else ()
    return Tilt(
        value,
        attained,
        nu - price,
        0.0,
        1.0 / (price * total),
        cap / total,
        scale if m.mass > 0.0 else 0.0,
        terms,
    )


def _mean(spread: Spread) -> float:
    m = spread.sums(-math.inf, math.inf, spread.lowest)
    return spread.lowest + m.first / m.mass
