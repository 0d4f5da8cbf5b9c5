"""Kernels for `nbgrader autograde`: warm, and locked up in the sandbox.

One warm process per grading process starts inside bubblewrap and forks a kernel for every
submission; the host talks to a kernel over Unix sockets in a folder that only the two share.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import copy
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase, LocalProvisioner

from attention_course.checking import HIDDEN_CASES_FILE
from autograder.kernels.sandbox import (
    bwrap_command,
    copy_submission_folder,
    possibility,
    use_sandbox,
)
from autograder.kernels.warm_kernel import SOCKETS

PROVISIONER = "autograder-sandbox"
WARM_UP_SECONDS = 120


class WarmProcessError(Exception):
    """The warm process did not start or has ended."""


def remove(folder: Path) -> None:
    """Remove a folder that a student's code may have filled, with thousands of nested ones too."""
    subprocess.run(["rm", "-rf", "--", str(folder)], check=False, capture_output=True)


class WarmProcess:
    """The process inside the sandbox that forks kernels. See `warm_kernel.py` for the protocol."""

    def __init__(self) -> None:
        self.scratch = Path(tempfile.mkdtemp(prefix="grade-"))
        self.scratch.chmod(0o711)
        self._ended: dict[str, int] = {}
        self._changed = threading.Condition()
        self._ready = False
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            bwrap_command(self.scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # bwrap's own environment can be read inside, as that of process 1: it gets none.
            env={"PATH": os.environ.get("PATH", os.defpath)},
            cwd="/",
        )
        threading.Thread(target=self._listen, daemon=True).start()
        with self._changed:
            self._changed.wait_for(lambda: self._ready or not self.alive, WARM_UP_SECONDS)
        if not self._ready:
            self.close()
            raise WarmProcessError(f"The sandbox did not start: {self._last_words()}")

    @property
    def alive(self) -> bool:
        """Tell whether the process can still take requests."""
        return self._process.poll() is None

    def _last_words(self) -> str:
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip()[-2000:] or "no message"

    def _listen(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            with self._changed:
                if "ready" in message:
                    self._ready = True
                elif "ended" in message:
                    self._ended[message["ended"]] = message["status"]
                self._changed.notify_all()
        self._process.wait()
        with self._changed:
            self._changed.notify_all()

    def _send(self, **request: Any) -> None:
        try:
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except OSError as error:
            raise WarmProcessError(f"The sandbox has ended: {self._last_words()}") from error

    def start(self, name: str, argv: list[str]) -> None:
        """Fork a kernel in the folder `scratch/name`."""
        self._send(start=name, argv=argv)

    def kill(self, name: str) -> None:
        """End a kernel and everything that it started."""
        with contextlib.suppress(WarmProcessError):
            self._send(kill=name)

    def status(self, name: str) -> int | None:
        """Return a kernel's exit status, or None while it runs."""
        if name in self._ended:
            return self._ended[name]
        return None if self.alive else -signal.SIGKILL

    def close(self) -> None:
        """End the process, all kernels and the private folders."""
        if self.alive:
            self._process.kill()
        self._process.wait()
        remove(self.scratch)


class _Shared:
    """The warm process of this grading process, started when first asked for."""

    process: WarmProcess | None = None
    names = itertools.count(1)

    @classmethod
    def get(cls) -> WarmProcess:
        if cls.process is None or not cls.process.alive:
            if cls.process is None:
                atexit.register(cls.close)
            else:
                cls.process.close()
            cls.process = WarmProcess()
        return cls.process

    @classmethod
    def close(cls) -> None:
        if cls.process is not None:
            cls.process.close()
            cls.process = None


class SandboxProvisioner(KernelProvisionerBase):
    """Life of one kernel inside the warm process, as jupyter_client sees it."""

    _warm: WarmProcess | None = None
    _name = ""

    @property
    def has_process(self) -> bool:
        """Whether there is a kernel to ask about."""
        return self._warm is not None

    async def poll(self) -> int | None:
        """Return the exit status, or None while the kernel runs."""
        return self._warm.status(self._name) if self._warm else 0

    async def wait(self) -> int | None:
        """Wait until the kernel has ended."""
        while self._warm and (status := await self.poll()) is None:
            await asyncio.sleep(0.02)
        status = await self.poll()
        self._warm = None
        return status

    async def send_signal(self, signum: int) -> None:
        """Only SIGKILL crosses the border; interrupts go as messages (see the kernelspec)."""
        if self._warm and signum == signal.SIGKILL:
            self._warm.kill(self._name)

    async def kill(self, restart: bool = False) -> None:
        """End the kernel at once."""
        await self.send_signal(signal.SIGKILL)

    async def terminate(self, restart: bool = False) -> None:
        """End the kernel at once: there is nothing of a student's that needs saving."""
        await self.kill(restart)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Make the kernel's private folder and point the connection at sockets in it."""
        self._warm = await asyncio.to_thread(_Shared.get)
        self._name = f"k{next(_Shared.names)}"
        folder = self._warm.scratch / self._name
        run = folder / "run"
        (folder / "home").mkdir(parents=True)
        run.mkdir()
        cwd = Path(kwargs.get("cwd") or ".")
        copy_submission_folder(cwd, folder / "home")
        if (cwd / HIDDEN_CASES_FILE).is_file():
            shutil.copyfile(cwd / HIDDEN_CASES_FILE, run / HIDDEN_CASES_FILE)
        manager = self.parent
        manager.transport = "ipc"
        manager.ip = str(run / "s")
        manager.connection_file = str(folder / "kernel.json")
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        # The kernel sees the same sockets at another place.
        inside = {**json.loads((folder / "kernel.json").read_text()), "ip": f"{SOCKETS}/s"}
        (run / "kernel.json").write_text(json.dumps(inside))
        self._hand_over(folder)
        argv = ["-f", f"{SOCKETS}/kernel.json", "--IPKernelApp.ignore_cwd=True"]
        return await super().pre_launch(cmd=[*argv, *kwargs.pop("extra_arguments", [])], **kwargs)

    @staticmethod
    def _hand_over(folder: Path) -> None:
        """Give the private folder to the user id that the kernel will have."""
        uid = possibility().uid
        if uid is None:
            return
        for current, _, files in os.walk(folder):
            for path in (current, *(os.path.join(current, file) for file in files)):
                os.chown(path, uid, uid)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Ask the warm process for a kernel."""
        self._warm.start(self._name, cmd)
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the private folder: nothing that the student's code wrote is kept."""
        if _Shared.process is not None and self._name:
            remove(_Shared.process.scratch / self._name)


class UnsandboxedProvisioner(LocalProvisioner):
    """jupyter_client's own provisioner, for an instructor who has knowingly allowed it."""

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Say loudly what is going on."""
        self.log.warning("NOT sandboxed: students' code runs with your own rights.")
        return await super().pre_launch(**kwargs)


class ReadyClient(AsyncKernelClient):
    """A client that is ready as soon as the kernel is.

    jupyter_client's own then waits a fifth of a second for further messages, only to drop them;
    nbclient tells by their parent which messages are a cell's.
    """

    async def wait_for_ready(self, timeout: float | None = None) -> None:
        """Wait until the kernel answers and its output arrives; raise RuntimeError if it dies."""
        deadline = time.monotonic() + (timeout or 60)
        while time.monotonic() < deadline:
            self.kernel_info()
            with contextlib.suppress(queue.Empty):
                await self.get_shell_msg(timeout=1)
                await self.get_iopub_msg(timeout=0.2)  # else its output is not connected yet
                return
            if not await self.is_alive():
                raise RuntimeError("The kernel died while it started.")
        raise RuntimeError("The kernel did not start in time.")


class SandboxKernelManager(AsyncKernelManager):
    """Starts every kernel in the sandbox, whatever the notebook's kernelspec says."""

    client_factory = ReadyClient

    @property
    def kernel_spec(self) -> Any:
        """The kernelspec with the sandbox put in; raises SandboxUnavailable where there is none."""
        spec = copy.copy(super().kernel_spec)
        name = PROVISIONER if use_sandbox() else f"{PROVISIONER}-off"
        spec.metadata = {"kernel_provisioner": {"provisioner_name": name}}
        if name == PROVISIONER:
            spec.interrupt_mode = "message"  # signals do not cross into the process namespace
        return spec
