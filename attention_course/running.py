"""Run a candidate on one case and write down what happened, whatever happens.

A candidate is a student's function. It may raise, return nothing, return the wrong thing, change
its inputs, print without end or never return; each of these is an `Outcome`, none is an accident.
"""

from __future__ import annotations

import _thread
import contextlib
import copy
import io
import math
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from attention_course.outcomes import LONGEST_TEXT, Outcome, Terms, Unusable
from attention_course.recording import record_calls


class OutOfTime(Exception):
    """The candidate was interrupted because its time was up."""


def _interrupt_main_thread() -> None:
    """Raise KeyboardInterrupt in the main thread, as Ctrl+C does."""
    if hasattr(signal, "pthread_kill"):  # also wakes a sleeping system call
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    else:
        _thread.interrupt_main()


AGAIN_SECONDS = 0.5  # between interrupts of a call that goes on
IDLE_FACTOR = 5  # how many times its limit a call may last that computes nothing or waits its turn


class _Limit:
    """The time limit of one call that is under way: seconds of computing, not of the clock.

    So a busy machine costs nobody marks. Waiting without end is stopped too, but later.
    """

    def __init__(self, seconds: float):
        self._computed = time.process_time() + seconds
        self._last = time.monotonic() + IDLE_FACTOR * seconds
        self.deadline = time.monotonic() + seconds
        self.done = self.fired = False

    def is_up(self, now: float) -> bool:
        """Tell whether the call has to stop; if not, look again when that can be so."""
        left = self._computed - time.process_time()
        if left <= 0 or now >= self._last:
            return True
        self.deadline = min(now + left, self._last)
        return False


class _Watch(threading.Thread):
    """Interrupts the main thread when a limit is up.

    One thread for all calls: starting one for each would take longer than most calls do. It is
    only woken for a limit that ends before the time that it wakes at anyway.
    """

    def __init__(self) -> None:
        super().__init__(name="time limits", daemon=True)
        self._changed = threading.Condition()
        self._limits: list[_Limit] = []
        self._wakes = math.inf

    def add(self, limit: _Limit) -> None:
        """Watch over one more limit."""
        with self._changed:
            self._limits = [other for other in self._limits if not other.done]
            self._limits.append(limit)
            if limit.deadline < self._wakes:
                self._changed.notify()

    def run(self) -> None:
        """Wait for the next limit, for ever."""
        with self._changed:
            while True:
                now = time.monotonic()
                for limit in self._limits:
                    if limit.done or limit.deadline > now:
                        continue
                    if limit.fired or limit.is_up(now):
                        limit.fired, limit.deadline = True, now + AGAIN_SECONDS
                        _interrupt_main_thread()
                self._wakes = min(
                    (x.deadline for x in self._limits if not x.done), default=math.inf
                )
                self._changed.wait(None if self._wakes == math.inf else self._wakes - now)


_watch: _Watch | None = None


def _the_watch() -> _Watch:
    """Return this process's watch; a forked process has inherited one whose thread is not there."""
    global _watch
    if _watch is None or not _watch.is_alive():
        _watch = _Watch()
        _watch.start()
    return _watch


@contextlib.contextmanager
def _interrupts_heard() -> Iterator[None]:
    """Let interrupts raise KeyboardInterrupt where they are ignored: in programs started with &."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or callable(before):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def call_with_limit(function: Callable[[], Any], seconds: float) -> Any:
    """Call `function` in this (main) thread and interrupt it after `seconds` of computing.

    Works on every system, since it interrupts as Ctrl+C does, again and again: an interrupt gets
    lost where Python cannot raise it. Code that swallows every KeyboardInterrupt or sits in one
    long C call is only stopped by the notebook's own time limit.
    Raises OutOfTime. Outside the main thread there is nothing to interrupt: no limit applies.
    """
    if threading.current_thread() is not threading.main_thread():
        return function()
    watch, limit = _the_watch(), _Limit(seconds)
    with _interrupts_heard():
        try:
            watch.add(limit)
            try:
                return function()
            finally:
                limit.done = True
                if limit.fired:
                    time.sleep(0.2)  # the interrupt may still be on its way: meet it here
        except KeyboardInterrupt:
            limit.done = True  # if it came just before the line above
            if not limit.fired:
                raise  # the reader pressed Stop
    waited = IDLE_FACTOR * seconds
    raise OutOfTime(f"no answer within {seconds:g} s of computing, or {waited:g} s of waiting")


class _BoundedText(io.StringIO):
    """Keeps the first characters written to it and drops the rest."""

    def write(self, text: str) -> int:
        room = LONGEST_TEXT - self.tell()
        if room > 0:
            super().write(text[:room])
        return len(text)


def _tensor_as_array(tensor: Any, torch: Any) -> tuple[str, np.ndarray] | str:
    if tensor.is_complex() or tensor.layout != torch.strided:
        return f"it returned a tensor of dtype {tensor.dtype}; plain numbers are expected."
    tensor = tensor.detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):  # NumPy lacks the first of them
        tensor = tensor.float()
    return "tensor", np.array(tensor.numpy())


def _kind_and_array(value: Any) -> tuple[str, np.ndarray] | str:
    """Give (kind, copied array) of a returned value, or a sentence that says why it is unusable."""
    if value is None:
        return "it returned None. Is a `return` missing?"
    if value is NotImplemented or value is Ellipsis:
        return f"it returned {value!r}, the placeholder."
    torch = sys.modules.get("torch")  # not imported for NumPy exercises
    if torch is not None and isinstance(value, torch.Tensor):
        return _tensor_as_array(value, torch)
    if isinstance(value, np.ndarray | np.generic):
        array = np.array(value)
        if array.dtype.kind not in "biuf":
            return f"it returned an array of dtype {array.dtype}; numbers or bools are expected."
        return ("number" if array.ndim == 0 else "array"), array
    if isinstance(value, bool | int | float):
        return "number", np.array(value)
    if isinstance(value, list | tuple):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                array = np.array(value)
        except (ValueError, Warning, OverflowError):
            return f"it returned a {type(value).__name__} whose parts have different shapes."
        if array.dtype.kind not in "biuf":
            return f"it returned a {type(value).__name__} of things that are not numbers."
        return "sequence", array
    return f"it returned a {type(value).__name__}; an array or a number is expected."


def _read_result(result: Any, names: Sequence[str]) -> Outcome:
    """Turn a returned value into an outcome with one array for each output name."""
    parts = (result,)
    if len(names) > 1:
        if not isinstance(result, tuple | list) or len(result) != len(names):
            what = (
                f"{len(result)} values"
                if isinstance(result, tuple | list)
                else f"one {type(result).__name__}"
            )
            return Outcome(
                "unusable",
                message=f"it returned {what}; {len(names)} are expected: {', '.join(names)}.",
            )
        parts = tuple(result)
    outputs, kinds = {}, {}
    for name, part in zip(names, parts, strict=True):
        read = _kind_and_array(part)
        if isinstance(read, str):
            where = "" if len(names) == 1 else f" (for `{name}`)"
            return Outcome("unusable", message=read + where)
        kinds[name], outputs[name] = read
    return Outcome("returned", outputs, kinds)


def _changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(name for name in before if _differs(before[name], after[name]))


def _differs(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.shape != b.shape or a.dtype != b.dtype or a.tobytes() != b.tobytes()
    if type(a) is not type(b):
        return True
    if isinstance(a, dict):
        return a.keys() != b.keys() or any(_differs(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple):
        return len(a) != len(b) or any(map(_differs, a, b))
    return repr(a) != repr(b)  # NaN is like NaN


def students_traceback(error: BaseException) -> str:
    """Cut a traceback down to the lines that the student wrote: no course and library frames."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if "ipykernel" in frame.filename
        or frame.filename.startswith("<")
        or "site-packages" not in frame.filename
    ]
    frames = [frame for frame in frames if not frame.filename.startswith(_OWN_FOLDER)]
    lines = [f"  line {frame.lineno} in {frame.name}: {frame.line}" for frame in frames[-3:]]
    return "\n".join(lines)[:LONGEST_TEXT]


_OWN_FOLDER = __file__.rsplit("running.py", 1)[0]


def run_case(call: Callable[..., Any], inputs: Mapping[str, Any], terms: Terms) -> Outcome:
    """Run `call(**inputs)` on private copies of `inputs` and report the outcome.

    Whatever the candidate prints is kept aside (bounded), so that nothing reaches stderr; RNG
    state, warning filters and NumPy's error state are put back afterwards.
    """
    given = copy.deepcopy(dict(inputs))
    printed = _BoundedText()
    details: dict[str, str] = {}
    random_state = np.random.get_state()
    with (
        warnings.catch_warnings(record=True) as caught,
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        np.errstate(),
        record_calls(terms.forbidden) as forbidden_calls,
    ):
        warnings.simplefilter("always")
        try:
            result = call_with_limit(lambda: call(**given), terms.seconds)
            outcome = _read_result(result, terms.outputs)
        except Unusable as error:
            outcome = Outcome("unusable", message=str(error))
        except OutOfTime as error:
            outcome = Outcome("timed out", message=str(error))
        except (Exception, SystemExit) as error:
            details["traceback"] = students_traceback(error)
            message = f"{error}"[:LONGEST_TEXT]
            outcome = Outcome("raised", error=type(error).__name__, message=message)
    np.random.set_state(random_state)
    if printed.tell():
        details["printed"] = printed.getvalue()
    if caught:
        details["warning"] = f"{caught[0].category.__name__}: {caught[0].message}"[:300]
    return replace(
        outcome,
        changed_inputs=_changed(inputs, given),
        forbidden_calls=tuple(forbidden_calls),
        details=details,
    )
