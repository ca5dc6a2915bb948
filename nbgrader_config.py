load_subconfig("course_config.py")  # noqa: F821 - nbgrader hard-codes this file's name
