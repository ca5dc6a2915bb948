"""The laws of a course on JupyterHub: its day goes through, and nobody reads or changes what is another's."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import lesson
import pytest
from hub import ADDRESS, DEPLOY, hub
from machine import ROOT, Machine, machine
from playwright.sync_api import Browser, Page, sync_playwright

pytestmark = pytest.mark.system
COURSE = "jax-course"
GRADER = f"grader-{COURSE}"
FOLDER = f"/srv/{COURSE}"
EXCHANGE = f"/usr/local/share/nbgrader/exchange/{COURSE}"
SERVICE = f"/services/{COURSE}"
PEOPLE = {
    "student-01": "students",
    "student-02": "students",
    "instructor": "instructors",
    "ta-1": "tas",
    "ta-2": "tas",
    "stranger": "users",
}
RIGHT = {"double": "def double(x):\n    return x + x", "why": "Twice one is two."}
LATER = "2999-01-01 00:00:00.000000 UTC"
FORGED = f"{EXCHANGE}/inbound/student-01+{lesson.NAME}+{LATER}+forged"
FORGE = f"echo forged > {lesson.NAME}.ipynb; echo secret > submission_secret.txt; echo '{LATER}' > timestamp.txt"
BIN = Path(sys.prefix) / "bin"
_LONGEST_MS = 300_000  # where others work too; nothing here waits when there is nothing to wait for


class Day(NamedTuple):
    """What is there when the day is over."""

    where: Machine
    browser: Browser
    submission: str


def done(where: Machine, who: str, script: str, said: str = "", folder: str = "/") -> str:
    """What a line of shell says that must go well."""
    ended = where.run(who, "sh", "-c", script, said=said, folder=folder)
    assert ended.returncode == 0, f"{who}: {script}\n{ended.stdout}{ended.stderr}"
    return ended.stdout.strip()


def install(where: Machine) -> None:
    """What docs/jupyterhub.md does as root, and the instructor's folder."""
    done(where, "root", f"sh {DEPLOY}/prepare {COURSE}")
    for name, group in PEOPLE.items():
        made = f"useradd --create-home --groups {group} {name} && chmod 0755 /home/{name} && chpasswd"
        done(where, "root", made, f"{name}:{password(name)}")
    settings = (ROOT / "course_config.py").read_text().replace("numerical-python", COURSE)
    done(where, GRADER, "cat > course_config.py", settings, FOLDER)
    done(where, GRADER, f"cp {ROOT}/nbgrader_config.py .; mkdir -p source/{lesson.NAME}", folder=FOLDER)
    done(where, GRADER, f"cat > source/{lesson.NAME}/{lesson.NAME}.ipynb", lesson.source(), FOLDER)


def password(name: str) -> str:
    """Of an account of that machine."""
    return f"the password of {name}"


def logged_in(browser: Browser, name: str, then: str = "") -> Page:
    """The page that somebody sees who asked for `then` and had to log in; for nothing, where the hub leads."""
    page = browser.new_context().new_page()
    page.set_default_timeout(_LONGEST_MS)
    page.goto(f"{ADDRESS}/hub/login" + (f"?next={then}" if then else ""))
    page.fill("#username_input", name)
    page.fill("#password_input", password(name))
    page.click("#login_submit")
    page.wait_for_load_state()
    return page


def assignments(page: Page) -> Page:
    """JupyterLab's assignment list, opened by its menu."""
    page.get_by_role("menuitem", name="Nbgrader", exact=True).click()
    page.get_by_role("menuitem", name="Assignment List").click()
    return page


def press(page: Page, place: str) -> None:
    """Press a button of formgrader's list, and wait until it says that this went well."""
    page.locator(f"{place} a").first.click()
    modal = page.locator("#success-modal, #error-modal")
    modal.wait_for()
    assert modal.get_attribute("id") == "success-modal", modal.inner_text()
    page.reload()


def the_day(where: Machine, browser: Browser) -> str:
    """From the release to the page that comes back; returns where the submission lies."""
    teaching = logged_in(browser, "instructor")
    teaching.wait_for_url(f"**{SERVICE}/lab*")
    teaching.goto(f"{ADDRESS}{SERVICE}/formgrader/manage_assignments")
    press(teaching, ".release")

    learning = assignments(logged_in(browser, "student-01"))
    learning.get_by_role("button", name="Fetch", exact=True).click()
    submit = learning.get_by_role("button", name="Submit", exact=True)
    submit.wait_for()
    notebook = f"{lesson.NAME}/{lesson.NAME}.ipynb"
    mine = lesson.answered(done(where, "student-01", f"cat ~/{notebook}"), RIGHT)
    done(where, "student-01", f"cat > ~/{notebook}", mine)
    submit.click()
    learning.locator("#submitted_assignments_list").get_by_text(lesson.NAME).first.wait_for()
    submission = done(where, GRADER, f"ls -d {EXCHANGE}/inbound/student-01+*")
    done(where, "student-02", f"mkdir '{FORGED}'; cd '{FORGED}'; {FORGE}")

    press(teaching, ".collect")
    teaching.goto(f"{ADDRESS}{SERVICE}/formgrader/manage_submissions/{lesson.NAME}")
    press(teaching, "tr:has-text('student-01') .autograde")
    mark(logged_in(browser, "ta-1", f"{SERVICE}/formgrader/gradebook/{lesson.NAME}/{lesson.NAME}"))
    teaching.goto(f"{ADDRESS}{SERVICE}/formgrader/manage_assignments")
    press(teaching, ".generate-feedback")
    press(teaching, ".release-feedback")

    learning.locator("#refresh_assignments_list").click()
    learning.get_by_role("button", name="Fetch Feedback").click()
    learning.get_by_text("(view feedback)").first.wait_for()
    return submission


def mark(marking: Page) -> None:
    """A TA gives the written answer 2 of its 3 points."""
    marking.locator("#main-table a").first.click()
    points = marking.locator("input.score#why.needs_manual_grade")  # so it is when formgrader has filled in its page
    points.fill("2")
    with marking.expect_response(lambda one: "/api/grade/" in one.url and one.request.method == "PUT") as saved:
        marking.keyboard.press("Tab")
    assert saved.value.ok


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Day]:
    """A day of the course, on a hub of its own."""
    folder, program = tmp_path_factory.mktemp("hub"), shutil.which("chromium")
    assert program, "There is no Chromium here. On Debian: apt install chromium"
    with machine(folder) as where:
        install(where)
        release = where.command(GRADER, str(BIN / "graders"), "release", lesson.NAME, folder=FOLDER)
        with (
            subprocess.Popen(release, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as releasing,
            hub(where, COURSE),
        ):
            said, _ = releasing.communicate()
            assert releasing.returncode == 0, said
            with sync_playwright() as play:
                browser = play.chromium.launch(executable_path=where.browser(program, folder), chromium_sandbox=False)
                try:
                    yield Day(where, browser, the_day(where, browser))
                finally:
                    browser.close()


def test_a_student_reads_feedback(day: Day) -> None:
    """The page that came back shows 2 points of the test and 2 of the TA, and no hidden line."""
    page = done(day.where, "student-01", f"cat ~/{lesson.NAME}/feedback/*/{lesson.NAME}.html")
    assert "4 of 5 points" in " ".join(re.sub("<[^>]*>", " ", page).split())
    assert lesson.SECRET not in page


def test_a_submission_is_by_who_handed_it_in(day: Day) -> None:
    """What one student hands in under another's name, and later, replaces nothing of the other's."""
    taken = done(day.where, GRADER, f"cat {FOLDER}/submitted/*/{lesson.NAME}/{lesson.NAME}.ipynb")
    assert "Twice one is two." in taken
    assert "forged" not in taken


# What a student tries, and who may do that. Nothing of it leaves a trace where it succeeds.
FORBIDDEN = {
    f"ls {EXCHANGE}/inbound": GRADER,
    f"ls {EXCHANGE}/feedback": GRADER,
    "cat '{submission}'/*.ipynb": GRADER,
    "cat '{submission}/submission_secret.txt'": "student-01",
    "mv '{submission}' '{submission}.moved' && mv '{submission}.moved' '{submission}'": "student-01",
    f"test -w {EXCHANGE}/outbound": GRADER,
    f"test -w {EXCHANGE}/outbound/{lesson.NAME}/{lesson.NAME}.ipynb": GRADER,
    f"test -w {EXCHANGE}/feedback": GRADER,
    f"mv {EXCHANGE} {EXCHANGE}.moved && mv {EXCHANGE}.moved {EXCHANGE}": GRADER,
    "ls ~student-01": "student-01",
    "cat ~student-01/.local/share/jupyter/nbgrader_cache/*/*/submission_secret.txt": "student-01",
    f"cat ~student-01/{lesson.NAME}/{lesson.NAME}.ipynb": "student-01",
    f"cat {FOLDER}/source/{lesson.NAME}/{lesson.NAME}.ipynb": GRADER,
    f"cat {FOLDER}/gradebook.db": GRADER,
    f"ls {FOLDER}/submitted {FOLDER}/autograded {FOLDER}/feedback": GRADER,
    f"ls ~{GRADER}": GRADER,
    f"cat $(find /proc -maxdepth 1 -name '[1-9]*' -user {GRADER} | head -n 1)/environ": GRADER,
    "cat /srv/jupyterhub/jupyterhub.sqlite /srv/jupyterhub/jupyterhub_cookie_secret": "root",
}


@pytest.mark.parametrize("tried", FORBIDDEN)
def test_nobody_reads_or_changes_what_is_anothers(day: Day, tried: str) -> None:
    """Another student is refused what its owner may do."""
    script = tried.format(submission=day.submission)
    assert day.where.run("student-02", "sh", "-c", script).returncode != 0
    done(day.where, FORBIDDEN[tried], script)


def test_formgrader_is_for_staff(day: Day) -> None:
    """A TA is answered by the course's formgrader, a student who is logged in is refused, and so is the one who wants another's server."""
    formgrader = f"{SERVICE}/formgrader/api/assignments"
    teaching, learning = (logged_in(day.browser, who, formgrader) for who in ("ta-1", "student-02"))
    assert json.loads(teaching.inner_text("body"))[0]["name"] == lesson.NAME
    assert "403 : You do not have permission" in learning.inner_text("body")
    for who in (teaching, learning):
        assert who.goto(f"{ADDRESS}/user/student-01/api/contents/{lesson.NAME}").status == 403


def test_an_instructor_stops_a_students_server(day: Day) -> None:
    """The hub's page for that opens for an instructor, not for a TA."""
    assert logged_in(day.browser, "ta-1", "/hub/home").goto(f"{ADDRESS}/hub/admin").status == 403
    row = logged_in(day.browser, "instructor", "/hub/admin").locator("tr", has_text="student-01")
    row.get_by_role("button", name="Stop Server").click()
    row.get_by_role("button", name="Start Server").wait_for()


def test_whoever_is_in_no_group_is_not_let_in(day: Day) -> None:
    """A right password is not enough, whether somebody never was in a group of the course or was taken out of it."""
    done(day.where, "root", "gpasswd --delete ta-2 tas")
    for who in ("stranger", "ta-2"):
        assert "Invalid username or password" in logged_in(day.browser, who).inner_text("body")


def test_prepare_takes_over_nothing(day: Day) -> None:
    """Where somebody was quicker to make the folder of a new course, its exchange is not built upon that."""
    done(day.where, "student-02", f"mkdir {EXCHANGE}/../other")
    refused = day.where.run("root", "sh", f"{DEPLOY}/prepare", "other")
    assert (refused.returncode, "other is student-02's" in refused.stderr) == (1, True)
