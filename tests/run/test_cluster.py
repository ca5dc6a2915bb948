"""Laws of grading on a Dask cluster: real schedulers and workers as processes, which are killed and added meanwhile."""

from __future__ import annotations

import itertools
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dask
import msgspec
import one_exercise
import processes
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from dask_processes import Cluster
from one_exercise import SLEEP, job

from graders.errors import GradersError
from graders.records import Report, Status
from graders.run import cluster
from graders.run.pipeline import Graded, Job
from graders.targets import Target

pytestmark = pytest.mark.system

CLASS = 12


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters, and ends them."""
    made: list[Cluster] = []

    def begin(**environment: str) -> Cluster:
        home = tmp_path / f"cluster-{len(made)}"
        home.mkdir()
        made.append(Cluster(home, environment))
        return made[-1]

    yield begin
    for one in made:
        one.close()


def handed_in(count: int = CLASS) -> list[Job]:
    """A class of which every third is wrong, and which takes a second each."""
    return [job(f"student-{n:02d}", SLEEP + "0" * (n % 3 == 2)) for n in range(count)]


def grade(jobs: list[Job], address: str) -> Iterator[Graded]:
    """Grade on a cluster."""
    with cluster.Cluster(one_exercise.course(), address) as workers:
        yield from workers.grade(jobs)


RIGHT = {f"student-{n:02d}": 0 if n % 3 == 2 else 3 for n in range(CLASS)}


def scores(graded: Iterator[Graded]) -> dict[str, object]:
    """The score of each student; every one is there once."""
    found = [one.report for one in graded]
    assert len(found) == len({one.student for one in found})
    return {one.student: one.score for one in found}


def test_the_class_gets_its_scores_whatever_happens_to_workers(clusters: Callable[..., Cluster]) -> None:
    """One worker of three is killed with work in hand and another joins: nobody loses a grade, nobody is graded twice."""
    here = clusters()
    victim, *_ = [here.add() for _ in range(3)]
    graded = grade(handed_in(), here.address)
    first = next(graded)
    victim.send_signal(signal.SIGKILL)
    here.add()
    assert scores(itertools.chain([first], graded)) == RIGHT


def test_what_all_tasks_need_outlives_every_worker(clusters: Callable[..., Cluster]) -> None:
    """The only worker is killed with work in hand, and another joins only then: it has all it needs to go on."""
    here = clusters()
    only = here.add()
    graded = grade(handed_in(3), here.address)
    first = next(graded)
    only.send_signal(signal.SIGKILL)
    here.add()
    assert scores(itertools.chain([first], graded)) == dict(list(RIGHT.items())[:3])


def test_a_scheduler_that_is_lost_is_told(clusters: Callable[..., Cluster]) -> None:
    """Whoever grades learns that the scheduler has gone, and what to do; what was done until then is theirs."""
    here = clusters()
    here.add()
    graded = grade(handed_in(3), here.address)
    next(graded)
    here.processes[0].kill()
    with pytest.raises(GradersError, match=r"The scheduler at .* was lost"):
        list(graded)


def test_a_submission_that_loses_every_worker_is_not_graded(clusters: Callable[..., Cluster]) -> None:
    """What ends each worker that takes it, as often as Dask allows, has no score and a reason."""
    here = clusters(DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    victim = here.add()
    killer = threading.Thread(target=kill_when_busy, args=[victim])
    killer.start()
    [only] = grade(handed_in(1), here.address)
    killer.join()
    assert (only.report.status, only.report.score) == (Status.not_graded, None)
    assert "lost" in (only.report.reason or "")


def kill_when_busy(victim: subprocess.Popen[bytes]) -> None:
    """End a worker once a candidate lives below it."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and len(processes.below(victim.pid)) < 3:
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)


def test_a_worker_that_declares_slots_runs_so_many_at_once(clusters: Callable[..., Cluster]) -> None:
    """Two slots on one worker take two examinations, and never a third."""
    here = clusters()
    here.add("--nthreads", "4", "--resources", f"{cluster.SLOT}=2")
    graded = [one.report for one in grade(handed_in(6), here.address)]
    assert 1 < max(at_once(graded)) <= 2


def test_a_target_is_examined_where_it_can_be_had(clusters: Callable[..., Cluster]) -> None:
    """A task asks for what its target asks for: one at a time where one is declared, none where none is, and no worker is told so."""
    target = Target("stand-in", "candidate", environment={"MARK": "1"}, slots=1, resource="CHIP")
    course = one_exercise.course()
    course = msgspec.structs.replace(course, conditions=msgspec.structs.replace(course.conditions, target=target))
    here = clusters()
    here.add()
    with (
        pytest.raises(GradersError, match=r"declares CHIP.*--resources"),
        cluster.Cluster(course, here.address) as workers,
    ):
        next(workers.grade(handed_in(1)))
    here.add("--nthreads", "4", "--resources", "CHIP=1")
    with cluster.Cluster(course, here.address) as workers:
        graded = [one.report for one in workers.grade(handed_in(3))]
    assert {one.student: one.score for one in graded} == dict(list(RIGHT.items())[:3])
    assert {one.receipt.target for one in graded if one.receipt} == {"stand-in"}
    assert max(at_once(graded)) == 1


def at_once(reports: list[Report]) -> list[int]:
    """How many examinations ran when each of them began."""
    spans = []
    for one in reports:
        assert one.receipt is not None
        begun = datetime.fromisoformat(one.receipt.started).timestamp()
        spans.append((begun, begun + one.receipt.wall_s))
    return [sum(begun <= moment < ended for begun, ended in spans) for moment, _ in spans]


def test_no_scheduler_no_worker_and_another_environment_are_told(clusters: Callable[..., Cluster]) -> None:
    """An address where nobody listens, a cluster without workers and a worker with other packages end with a sentence."""
    with pytest.raises(GradersError, match="No Dask scheduler answers at"):
        next(grade(handed_in(1), "tcp://127.0.0.1:1"))
    here = clusters()
    with pytest.raises(GradersError, match="has no worker"):
        next(grade(handed_in(1), here.address))
    with pytest.raises(GradersError, match="other packages"):
        cluster._grade(b"", "0" * 64, b"")


def test_over_tls_when_dask_is_configured_so(
    clusters: Callable[..., Cluster], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With certificates in Dask's own configuration the address is tls://, and who has none is refused."""
    settings = certificates(tmp_path)
    here = clusters(**settings)
    assert here.address.startswith("tls://")
    here.add()
    with pytest.raises(GradersError, match="No Dask scheduler answers"):
        next(grade(handed_in(1), here.address))
    both = next(iter(settings.values()))
    mine = {f"distributed.comm.tls.{name}": both for name in ("ca-file", "client.key", "client.cert")}
    with dask.config.set(mine):
        assert scores(grade(handed_in(3), here.address)) == dict(list(RIGHT.items())[:3])


def certificates(folder: Path) -> dict[str, str]:
    """Dask's settings for TLS, with a certificate that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "graders")])
    now = datetime.now(UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    public = made.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    both = folder / "both.pem"
    both.write_bytes(private + public)
    start = "DASK_DISTRIBUTED__COMM__"
    names = [f"{start}TLS__{role}__{part}" for role in ("SCHEDULER", "WORKER", "CLIENT") for part in ("KEY", "CERT")]
    files = {name: str(both) for name in [*names, f"{start}TLS__CA_FILE"]}
    return files | {f"{start}DEFAULT_SCHEME": "tls", f"{start}REQUIRE_ENCRYPTION": "True"}
