"""The error tree. A student's mistake is a value in a record; only our own and the instructor's mistakes are raised.

    GradersError             what happened, where, what was wanted, the next step
    ├── SettingsError        course_config.py asks for something that does not exist
    ├── CourseError          a folder, assignment or notebook of the instructor is not as it must be
    ├── SubmissionError      what a student handed in cannot be read (becomes `not_graded`, with this text as reason)
    ├── IsolationError       the walls that the course demands do not hold here
    ├── InfrastructureError  a process of ours did not start, answer or stop (retried, then `not_graded`)
    │   └── AcceleratorError the accelerator of a target is not there or not free (waited for, then the same)
    ├── FullError            a disk, or somebody's share of it, has no room for what is written
    ├── BusyError            another process of ours has the assignment in its hands; the text says which, and since when
    └── VerifyError          a report, receipt or submission is not what was signed

Every class takes one positional message, so that it survives pickling between processes.
Must not: import anything but the standard library.
"""

from __future__ import annotations


class GradersError(Exception):
    """What this package raises on purpose. The message is complete sentences for the person who can act."""


class SettingsError(GradersError):
    """A setting has an unknown name or an impossible value."""


class CourseError(GradersError):
    """Something in the instructor's course is missing or contradicts itself."""


class SubmissionError(GradersError):
    """A submission cannot be read; the text is the reason that student and staff see."""


class IsolationError(GradersError):
    """The walls that grading demands cannot be put up on this machine."""


class InfrastructureError(GradersError):
    """A process of ours failed; never a student's fault and never a score."""


class AcceleratorError(InfrastructureError):
    """The accelerator that a target asks for is not there, not free, or not what was asked for."""


class FullError(GradersError):
    """There is no room to write; what stood there stands."""


class BusyError(GradersError):
    """Another process has the assignment in its hands."""


class VerifyError(GradersError):
    """A signed record, or something that it covers, was changed."""
