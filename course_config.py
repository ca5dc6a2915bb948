"""One settings file for nbgrader and for graders."""

c = get_config()  # noqa: F821 - traitlets puts it there

c.CourseDirectory.course_id = "numerical-python"
c.ExportApp.plugin_class = "graders.results.exporters.StatusExport"  # nbgrader's own writes a missing score as 0.0

# formgrader's buttons and nbgrader's commands of the same names do as graders does
c.Autograde.exporter_class = "graders.nbgrader_plugin.Examination"
c.GenerateFeedback.exporter_class = "graders.nbgrader_plugin.Pages"
c.ExchangeFactory.collect = "graders.nbgrader_plugin.Collect"
c.ExchangeFactory.release_feedback = "graders.nbgrader_plugin.Return"
