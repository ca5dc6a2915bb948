"""What grading costs, beside what else could grade the same submissions: `graders bench`."""
