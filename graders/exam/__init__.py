"""The sealed examination: plan, candidate, examiner, and the wire between them."""
