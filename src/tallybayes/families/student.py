"""Student-t: the Gaussian with its uncertain mean and variance averaged over.

    prior      m0 = mean of the whole column, k0 = ¼, a0 = ½, b0 = 1/20 of the column's variance
    estimate   kn = k0 + n,  mn = (k0·m0 + n·m)/kn,  an = a0 + n/2,  bn = b0 + M2/2 + k0·n·(m − m0)²/(2·kn)
    score      log t with 2·an degrees of freedom, location mn, scale² = bn·(kn + 1)/(an·kn)

The prior is worth a fraction of one row: a class of two equal numbers is believed narrow, but not infinitely so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats, Ints
from .base import Table
from .moments import BellBelief, Moments, distance

K0, A0, B0 = 0.25, 0.5, 0.05


def posterior(m: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Location mn, scale √(bn/an), kn and an of the normal-inverse-gamma posterior, positions × classes."""
    unit = np.where(m.all_sd > 0, m.all_sd, 1.0)[:, None]  # in units of the column no square overflows
    mean = np.where(m.n > 0, distance(m.mean, m.all_mean[:, None], unit), 0.0)
    squares = np.where(m.n > 0, m.n * (m.sd / unit) ** 2, 0.0)
    kn, an = K0 + m.n, A0 + m.n / 2
    bn = B0 + squares / 2 + K0 * m.n * mean**2 / (2 * kn)
    return m.all_mean[:, None] + unit * (m.n / kn * mean), unit * np.sqrt(bn / an), kn, an


def student(m: Moments, vector: bool) -> StudentBelief:
    """The posterior predictive density of every position and class."""
    location, scale, kn, an = posterior(m)
    return StudentBelief(m.positions, location, scale * np.sqrt((kn + 1) / kn), m.varies, vector, 2 * an)


_STEPS = 32


def log_gamma_step(a: Floats) -> Floats:
    """log Γ(a + ½) − log Γ(a), to the last digits where the two are large and their difference would lose them.

    Stirling's series of the difference from a ≥ 32 on; below, Γ(a + 1) = a·Γ(a) leads there.
    """
    near = a < _STEPS
    far = np.where(near, a + _STEPS, a)
    r = 1 / far**2
    series = -1 / 8 + r * (1 / 192 - r * (1 / 640 - r * 17 / 14336))
    out = 0.5 * np.log(far) + series / far
    if near.any():
        ratio = (np.where(near, a, 1.0)[..., None] + np.arange(_STEPS)) / (
            np.where(near, a, 1.0)[..., None] + np.arange(_STEPS) + 0.5
        )
        out = np.where(near, out + np.sum(np.log(ratio), axis=-1), out)
    return np.asarray(out)


@dataclass(frozen=True)
class StudentBelief(BellBelief):
    """Student's t per position and class."""

    freedom: Floats  # positions × classes

    def log_density(self, x: Floats, position: int | slice) -> Floats:
        """log t(x)."""
        scale, v = self.scale[position], self.freedom[position]
        z = distance(x, self.location[position], scale)
        shape: Floats = log_gamma_step(v / 2) - 0.5 * np.log(v * np.pi)
        return shape - np.log(scale) - (v + 1) / 2 * np.log1p(z**2 / v)

    def noise(self, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draws from the standard t."""
        return rng.standard_t(self.freedom.T[labels])

    def parameters(self) -> tuple[int, int]:
        """Location, scale and freedom per position and class."""
        return 3 * self.location.size, 3 * self.location.size

    def table(self) -> Table:
        """Location, scale and degrees of freedom."""
        rows = {"location": self.location, "scale": self.scale, "freedom": self.freedom}
        return Table("Student-t density", *self.named(rows))
