"""nbgrader's configuration for this course; `nbgrader_config.py` at the root loads it."""

c = get_config()  # noqa: F821 - nbgrader provides it

from autograder.build import STUB, WRITTEN_STUB, put_tools_on_path  # noqa: E402

put_tools_on_path()

c.CourseDirectory.course_id = "attention"
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "course"
c.ClearSolutions.code_stub = STUB
c.ClearSolutions.text_stub = WRITTEN_STUB
c.LockCells.lock_readonly_cells = False

# nbgrader reads clean copies of the submissions, whose cells are put in order first.
c.Autograde.exporter_class = "autograder.intake.exporter.IntakeExporter"
c.Autograde.sanitize_preprocessors = [
    "autograder.intake.cells.Intake",
    "nbgrader.preprocessors.ClearOutput",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
# Hidden inputs go in before the notebook is executed, verdicts replace the outputs after it.
c.Autograde.autograde_preprocessors = [
    "autograder.grading.preprocessors.HiddenCases",
    "autograder.grading.execution.SandboxedExecute",
    "autograder.grading.preprocessors.Verdicts",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "autograder.grading.status.RecordStatus",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Execute.timeout = 30  # seconds for one cell; experiments are not run in grading
c.ExecutePreprocessor.store_widget_state = False

# Feedback is plain HTML: pictures and panels first, widgets never.
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.grading.status.StatusNote",
    "autograder.grading.feedback.MathToMathML",
    "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
]
c.DataTypeFilter.display_data_priority = [
    "text/html",
    "text/markdown",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
    "text/latex",
    "text/plain",
]
