"""How often one sender is answered."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from grove.dashboard.access.rate_limiter import Rate, RateLimiter


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_burst_is_answered_then_one_at_a_time() -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(3, 2.0), clock)
    assert [limiter.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert limiter.take("b") == 0.0, "others are not affected"
    clock.now += 0.5
    assert limiter.take("a") == 0.0
    assert limiter.take("a") == 0.5


def test_refused_request_costs_nothing() -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(1, 1.0), clock)
    assert limiter.take("a") == 0.0
    for _ in range(100):
        assert limiter.take("a") == 1.0
    clock.now += 1.0
    assert limiter.take("a") == 0.0


def test_expensive_request_counts_as_several() -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(5, 1.0), clock)
    assert [limiter.take("a", 3), limiter.take("a", 3), limiter.take("a", 2)] == [0.0, 1.0, 0.0]


def test_number_of_senders_is_bounded() -> None:
    limiter = RateLimiter(Rate(1, 1.0), Clock(), kept=2)
    assert limiter.take("a") == 0.0
    for number in range(10):
        assert limiter.take(f"other-{number}") == 0.0
    assert limiter.take("a") == 0.0, "it was dropped"
    assert len(limiter._buckets) == 2


@given(st.lists(st.floats(0, 10), max_size=60), st.integers(1, 5), st.floats(0.1, 5))
def test_long_run_never_exceeds_burst_and_rate(pauses: list[float], burst: int, rate: float) -> None:
    clock, answered = Clock(), 0
    limiter = RateLimiter(Rate(burst, rate), clock)
    for pause in pauses:
        clock.now += pause
        answered += limiter.take("a") == 0.0
    assert answered <= burst + clock.now * rate + 1e-6


@given(st.integers(1, 5), st.floats(0.1, 5))
def test_given_wait_is_enough(burst: int, rate: float) -> None:
    clock = Clock()
    limiter = RateLimiter(Rate(burst, rate), clock)
    while not (seconds := limiter.take("a")):
        pass
    clock.now += seconds * 1.000001
    assert limiter.take("a") == 0.0
