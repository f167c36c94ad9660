"""What one test sets up of the log is gone in the next: these two run in this order, in one process."""

from __future__ import annotations

import logging

import structlog


def test_a_test_may_set_up_a_log_that_says_nothing() -> None:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    with structlog.testing.capture_logs() as log:
        structlog.get_logger().warning("unheard")
    assert log == []


def test_the_next_one_hears_everything() -> None:
    with structlog.testing.capture_logs() as log:
        structlog.get_logger().warning("heard")
    assert [line["event"] for line in log] == ["heard"]
