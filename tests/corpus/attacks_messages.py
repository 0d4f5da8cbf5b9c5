"""Attacks on the grader's side of the conversation: documents and messages it does not expect."""

from __future__ import annotations

from corpus.attacks_forging import RAW, forger
from corpus.describing import FULL, Entry, code_before
from corpus.forging import FORGE

DOCUMENTS = """
array = {"array": [1, 2], "shape": [2], "dtype": "f8"}
def forged(number, name):
    good = json.loads(document(name))["dict"]
    one = good["outcomes"][0]["dict"]
    def changed(**parts):
        outcomes = [{"dict": {**item["dict"], **parts}} for item in good["outcomes"]]
        return {"dict": {**good, "outcomes": outcomes}}
    deep = []
    for _ in range(900): deep = [deep]
    return [
        array, {"dict": {**good, "exercise": array}}, {"dict": {**good, "outcomes": array}},
        {"dict": {**good, "outcomes": [array] * len(good["outcomes"])}},
        changed(kinds={"dict": {}}), changed(kinds=array), changed(outputs=array),
        changed(outputs={"dict": {"result": "x"}}), changed(status=array, message=array),
        changed(status="x" * 10**6), changed(changed_inputs=["<script>" * 9999] * 99),
        changed(details={"dict": {"traceback": "\\ud83d" * 99, "warning": "\\0"}}, error="\\ud83d"),
        changed(outputs={"dict": {"result": {**array, "dtype": "(9,9)f8"}}}),
        changed(outputs={"dict": {"result": {**array, "dtype": "longdouble", "array": [10**400]}}}),
        changed(outputs={"dict": {"result": {**array, "shape": [-1, 10**30]}}}),
        changed(outputs={"dict": {"result": {**array, "array": ["nan", "x"]}}}),
        changed(outputs={"dict": {"result": deep}}), {"dict": {**good, "exercise": deep}},
        7, None, "text", [], {"dict": {}},
    ][number]
"""
COUNT = 23
SEND_FORGED = f"""
for number in range({COUNT}):
    for name in NAMES: show(json.dumps(forged(number, name)))
"""
CHECK_FORGED = f"""
calls = []
def check(name, candidate):
    for number in range(len(calls) * 2, {COUNT}):
        show(json.dumps(forged(number, name)))
        if number % 2: break
    calls.append(name)
"""

MALFORMED = {
    "m-stream": ("a stream without text", 'send("stream", {})'),
    "m-stream-type": ("text that is a number", 'send("stream", {"name": 5, "text": 7})'),
    "m-data": ("data of the wrong type", 'send("display_data", {"data": [1], "metadata": 5})'),
    "m-data-missing": ("a display without data", 'send("display_data", {})'),
    "m-error": ("an error whose name is a list",
                'send("error", {"ename": ["x"], "evalue": {}, "traceback": 5})'),
    "m-status": ("a state that does not exist, and idle too early",
                 'send("status", {}); send("status", {"execution_state": "idle"})'),
    "m-update": ("updates of displays that do not exist or have lost their place",
                 'send("update_display_data", {}); send("update_display_data", data("as_column"))'),
    "m-clear": ("clears without end",
                'send("clear_output", {}); send("clear_output", {"wait": True})'),
    "m-comm": ("widgets of the wrong form",
               'send("comm_open", {"comm_id": []}); send("comm_msg", {"comm_id": 1, "data": 2})'),
    "m-kind": ("a kind of message that does not exist", 'send("nonsense", {"x": 1})'),
    "m-frames": ("frames that are no message",
                 'kernel.iopub_socket.send_multipart([b"x"]);'
                 ' kernel.iopub_socket.send_multipart([b"x", b"<IDS|MSG>", b"bad"] + [b"{"] * 4)'),
    "m-signature": ("a message with a wrong signature",
                    'kernel.session.key = b"other"; send("stream", {"name": "x", "text": "y"})'),
    "m-parent": ("messages that answer nothing",
                 'send("stream", {"name": "stdout", "text": "y"}, parent={});'
                 ' send("error", {}, parent={"header": 5})'),
    "m-large": ("one message of 200 MB",
                'send("display_data", {"data": {"text/plain": "x" * 200_000_000},'
                ' "metadata": {}})'),
    "m-nested": ("a message nested 900 deep",
                 'deep = []\nfor _ in range(900): deep = [deep]\n'
                 'send("display_data", {"data": {"application/json": deep}, "metadata": {}})'),
}  # fmt: skip


def malformed(student: str, about: str, code: str) -> Entry:
    """Describe a student whose answers are right, and who sends a message like that before."""
    return Entry(
        student,
        about,
        earns=FULL,
        edit=code_before("as_column", FORGE + RAW + code + "\nimport time; time.sleep(0.2)"),
    )


MESSAGE_ATTACKS = (
    forger("m-documents", "forged documents that are not what they should be", DOCUMENTS
           + SEND_FORGED + CHECK_FORGED, parts=COUNT),
    *(malformed(student, about, code) for student, (about, code) in MALFORMED.items()),
    Entry("m-flood", "4 MB displayed in each of 40 cells", earns=FULL,
          edit=code_before("as_column", "from IPython.display import HTML, display",
                           *["display(HTML('x' * 4_000_000))"] * 40)),
)  # fmt: skip
