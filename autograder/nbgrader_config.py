"""nbgrader's configuration for this course; `nbgrader_config.py` at the root loads it."""

c = get_config()  # noqa: F821 - nbgrader provides it

import warnings  # noqa: E402

from sqlalchemy.exc import SAWarning  # noqa: E402

from autograder.build import STUB, WRITTEN_STUB, put_tools_on_path  # noqa: E402
from autograder.grading.feedback import TEMPLATES  # noqa: E402

put_tools_on_path()
# nbgrader's own use of its database library warns dozens of times for each submission.
warnings.filterwarnings("ignore", category=SAWarning)

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
    "autograder.grading.gradebooks.OverwriteKernelspec",
    "autograder.grading.gradebooks.OverwriteCells",
    "autograder.grading.gradebooks.CheckCellMetadata",
]
# Hidden inputs go in before the notebook is executed, verdicts replace the outputs after it.
c.Autograde.autograde_preprocessors = [
    "autograder.grading.preprocessors.HiddenCases",
    "autograder.grading.execution.SandboxedExecute",
    "autograder.grading.preprocessors.Verdicts",
    "nbgrader.preprocessors.LimitOutput",
    "autograder.grading.gradebooks.SaveAutoGrades",
    "autograder.grading.status.RecordStatus",
    "nbgrader.preprocessors.AssignLatePenalties",
    "autograder.grading.sanitise.Sanitise",
    "autograder.grading.gradebooks.CheckCellMetadata",
]
# A notebook is checked when it is read and when it is written: not after every preprocessor too.
c.Exporter.optimistic_validation = True
c.AssignLatePenalties.plugin_class = "autograder.late_policy.LatePolicyPlugin"
c.Execute.timeout = 30  # seconds for one cell; experiments are not run in grading
c.ExecutePreprocessor.store_widget_state = False

# What feedback and formgrader show: readable without a network, panels first, widgets never.
c.HTMLExporter.preprocessors = [
    "autograder.grading.feedback.MathToMathML",
    "autograder.grading.feedback.OfflinePage",
]
c.HTMLExporter.extra_template_basedirs = TEMPLATES
c.GenerateFeedback.preprocessors = [
    "nbgrader.preprocessors.GetGrades",
    "autograder.grading.sanitise.SafeComments",
    "autograder.grading.status.StatusNote",
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
