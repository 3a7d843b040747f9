"""Drawn times: the right distributions, and the same draws on every machine."""

from __future__ import annotations

import math
from random import Random
from statistics import fmean, median, pstdev

import pytest

from causewire.sim import Constant, Exponential, LogNormal, Normal, Time, Uniform
from causewire.sim.times import exp, log

N = 4000


def draws(time: Time, n: int = N) -> list[int]:
    draw = time.sampler(Random(7).random)
    return [draw() for _ in range(n)]


def test_exp_and_log_are_exact_to_the_last_bits() -> None:
    random = Random(1).random
    for _ in range(2000):
        x = (random() - 0.5) * 60
        assert exp(x) == pytest.approx(math.exp(x), rel=1e-14)
        y = math.exp(x)
        assert log(y) == pytest.approx(math.log(y), rel=1e-13, abs=1e-15)
    assert exp(0.0) == 1.0
    assert log(1.0) == 0.0


def test_constant() -> None:
    assert set(draws(Constant(5), 10)) == {5}
    assert Constant(5).fixed() == 5
    assert Uniform(5, 6).fixed() is None


def test_uniform_takes_in_both_ends() -> None:
    seen = draws(Uniform(3, 6))
    assert set(seen) == {3, 4, 5, 6}
    assert fmean(seen) == pytest.approx(4.5, abs=0.1)


def test_exponential() -> None:
    seen = draws(Exponential(10**6))
    assert fmean(seen) == pytest.approx(10**6, rel=0.06)
    assert median(seen) == pytest.approx(10**6 * math.log(2), rel=0.06)
    assert min(seen) >= 0


def test_normal_is_cut_off_at_zero() -> None:
    seen = draws(Normal(10**6, 10**5))
    assert fmean(seen) == pytest.approx(10**6, rel=0.02)
    assert pstdev(seen) == pytest.approx(10**5, rel=0.06)
    assert min(draws(Normal(10, 100))) == 0


def test_lognormal() -> None:
    seen = draws(LogNormal(10**6, 0.5))
    assert median(seen) == pytest.approx(10**6, rel=0.05)
    assert fmean(seen) == pytest.approx(10**6 * math.exp(0.125), rel=0.05)


@pytest.mark.parametrize(
    "time",
    [Constant(9), Uniform(1, 9), Exponential(900), Normal(900, 90), LogNormal(900, 0.5)],
    ids=lambda time: time.kind,
)
def test_what_a_time_out_allows_for_is_seldom_exceeded(time: Time) -> None:
    seen = draws(time)
    assert sum(value > time.longest() for value in seen) <= len(seen) / 200


def test_the_same_seed_draws_the_same_everywhere() -> None:
    assert draws(LogNormal(10**9, 1.5), 4) == [264804268, 474883987, 1020520108, 837444097]
    assert draws(Exponential(10**9), 4) == [391314844, 163518457, 1052495618, 75193793]
