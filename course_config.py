"""One settings file for nbgrader and for graders."""

c = get_config()  # noqa: F821 - traitlets puts it there

c.CourseDirectory.course_id = "numerical-python"
c.ExportApp.plugin_class = "graders.results.exporters.StatusExport"  # nbgrader's own writes a missing score as 0.0
c.Autograde.exporter_class = (
    "graders.nbgrader_plugin.Examination"  # formgrader's button and `nbgrader autograde` grade as we do
)
c.GenerateFeedback.exporter_class = "graders.nbgrader_plugin.Pages"  # nbgrader's own pages show hidden tests
