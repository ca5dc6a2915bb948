"""How a process is born, walled in, limited and killed. Knows nothing of courses or scores."""
