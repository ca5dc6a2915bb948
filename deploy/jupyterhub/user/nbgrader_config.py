"""Everybody's own server: the course of its assignment list, and submissions that none but their owner and the graders read."""

import os
from pathlib import Path

from nbgrader.exchange.default import ExchangeSubmit

c = get_config()  # noqa: F821 - traitlets puts it there


class SubmitToGraders(ExchangeSubmit):
    """nbgrader hides a submission by its name alone; here only its owner and its group, which is the graders', may enter."""

    def copy_files(self):
        """Hand in, then close."""
        super().copy_files()
        Path(self.inbound_path, self.assignment_filename).chmod(0o770)


c.CourseDirectory.course_id = os.environ["GRADERS_COURSE"]
c.ExchangeFactory.submit = SubmitToGraders
