"""One submission, many submissions."""
