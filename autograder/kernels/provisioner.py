"""Kernels for `nbgrader autograde`: warm, and locked up in the sandbox.

The warm process (`warm.py`) forks a kernel for every submission; the host talks to a kernel over
Unix sockets in a folder that only the two share.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import json
import queue
import signal
import time
from pathlib import Path
from typing import Any

from jupyter_client.asynchronous import AsyncKernelClient
from jupyter_client.manager import AsyncKernelManager
from jupyter_client.provisioning import KernelProvisionerBase, LocalProvisioner

from autograder.kernels.locked_kernel import SOCKETS
from autograder.kernels.sandbox import use_sandbox
from autograder.kernels.warm import Connection, Shared, make_folder, remove

PROVISIONER = "autograder-sandbox"


class SandboxProvisioner(KernelProvisionerBase):
    """Life of one kernel inside the warm process, as jupyter_client sees it."""

    _warm: Connection | None = None
    _name = ""
    _folder: Path | None = None

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
        self._warm = await asyncio.to_thread(Shared.get)
        self._name, folder = make_folder(self._warm, Path(kwargs.get("cwd") or "."))
        self._folder, run = folder, folder / "run"
        manager = self.parent
        manager.transport = "ipc"
        manager.ip = str(run / "s")
        manager.connection_file = str(folder / "kernel.json")
        manager.write_connection_file()
        self.connection_info = manager.get_connection_info()
        # The kernel sees the same sockets at another place.
        inside = {**json.loads((folder / "kernel.json").read_text()), "ip": f"{SOCKETS}/s"}
        (run / "kernel.json").write_text(json.dumps(inside))
        argv = ["-f", f"{SOCKETS}/kernel.json", "--IPKernelApp.ignore_cwd=True"]
        return await super().pre_launch(cmd=[*argv, *kwargs.pop("extra_arguments", [])], **kwargs)

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> dict[str, Any]:
        """Ask the warm process for a kernel."""
        self._warm.start(self._name, cmd)
        return self.connection_info

    async def cleanup(self, restart: bool = False) -> None:
        """Remove the private folder: nothing that the student's code wrote is kept."""
        if self._folder is not None:
            remove(self._folder)


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
