"""Authoring: read and repair notebooks, release, simulate a class."""
