"""An autograder that examines from outside: the notebook runs in one process, the tests in another."""

__version__ = "0.1.0"
