"""Laws of what is predicted for more hosts, on figures that can be reckoned in one's head."""

from __future__ import annotations

import cluster_model
import pytest

# A worker needs a second for an examination, so a host of eight does eight in a second.
RUN = {"examination_s": 0.5, "register_s": 1.0, "first_s": 11.0, "task_cpu_s": 0.002, "scheduler_cpu_s": 0.004}
MEASURED = {
    "one_worker": RUN | {"examination_s": 1.0, "scheduler_cpu_s": 0.005},
    "two_workers": RUN,
    "read_s": 0.001,
    "store_cpu_s": 0.002,
    "writer_cpu_s": 0.0125,
    "job_bytes": 50_000,
    "result_bytes": 75_000,
    "plan_bytes": 0,
}


def test_each_part_is_full_where_its_seconds_say() -> None:
    """What needs 12.5, 5, 5 and 1 ms for a submission does 80, 200, 200 and 1,000 in a second."""
    assert cluster_model.limits(MEASURED) == pytest.approx(
        dict(zip(cluster_model.PARTS, (80, 200, 200, 1000), strict=True))
    )


def test_hosts_add_up_until_a_part_is_full() -> None:
    """Eight a second from each host, and from ten hosts on no more than the writer's 80."""
    assert [cluster_model.rate(MEASURED, hosts) for hosts in (1, 2, 9, 10, 50)] == pytest.approx([8, 16, 72, 80, 80])
    assert cluster_model.bend(MEASURED) == (pytest.approx(10), "gradebook's writer")


def test_a_class_waits_for_the_start_and_for_the_last() -> None:
    """800 submissions on ten hosts: 10 s until all are warm, 10 s at 80 a second, and a second for the last."""
    assert cluster_model.start_s(MEASURED, 10) == pytest.approx(10)
    assert cluster_model.throughput(MEASURED, 10, 800) == pytest.approx(800 / 21)
