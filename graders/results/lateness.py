"""What a late hand-in costs: nbgrader's own plugin, or the one that a course names.

Comes in: nbgrader's row of a submission whose scores are stored, and the course's folder. Goes out: the penalty of each notebook, in nbgrader's
own column. Must not: decide what is late (nbgrader's due date and extension do), or take off more than was earned.

As nbgrader's AssignLatePenalties does: https://nbgrader.readthedocs.io/en/stable/plugins/late-plugin.html
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from traitlets.utils.importstring import import_item

from graders.config import read_config
from graders.errors import CourseError

DEFAULT = "nbgrader.plugins.latesubmission.LateSubmissionPlugin"


def charge(submission: Any, course: Path) -> None:
    """Compute the penalty of every notebook anew and put it into its row.

    Raises:
        CourseError: the course's plugin cannot be loaded, or does not give a number.
    """
    for notebook in submission.notebooks:
        notebook.late_submission_penalty = None
    # nbgrader adds an extension to a due date that is not there
    late_s = submission.total_seconds_late if submission.assignment.duedate is not None else 0
    if late_s <= 0:
        return
    plugin = _plugin(course)
    for notebook in submission.notebooks:
        try:
            asked = plugin.late_submission_penalty(submission.student_id, notebook.score, late_s)
            notebook.late_submission_penalty = (
                None if asked is None else min(max(float(asked), 0.0), float(notebook.score))
            )
        except Exception as error:  # the plugin is the instructor's Python
            raise CourseError(
                f"The plugin for late submissions, {type(plugin).__name__}, failed for {submission.student_id!r}: "
                f"{type(error).__name__}: {error}. It must return a number of points or None; see "
                f"c.AssignLatePenalties.plugin_class in {course / 'course_config.py'}."
            ) from error


def _plugin(course: Path) -> Any:
    config = read_config(course)
    named = config.get("AssignLatePenalties", {}).get("plugin_class", DEFAULT)
    try:
        return (import_item(named) if isinstance(named, str) else named)(config=config)
    except Exception as error:
        raise CourseError(
            f"{course / 'course_config.py'}: the plugin for late submissions, {named!r}, cannot be loaded: {error}. "
            f"c.AssignLatePenalties.plugin_class names a class of yours or is left out."
        ) from error
