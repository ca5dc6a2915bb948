"""From what happened to what people read: scores, feedback, gradebook, receipts."""
