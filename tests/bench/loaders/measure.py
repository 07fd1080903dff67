"""One run of one loader: starts its processes, reads what its trainer says, and what the kernel says of them."""
import os
import selectors
import signal
import statistics
import subprocess
import time
from pathlib import Path

SAMPLE_SECONDS = 0.1
LIMIT_SECONDS = 180
STOP_SECONDS = 2
TICK = os.sysconf("SC_CLK_TCK")
MEMORY = {"VmRSS": "rss_mb", "RssAnon": "anon_mb", "RssShmem": "shmem_mb"}


class Failed(Exception):
    """A loader that did not deliver; its own last words."""


def tree(root):
    """The process ids of `root` and all its descendants that live."""
    found = [root]
    for pid in found:
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += map(int, children.read_text().split())
            except OSError:
                continue  # the thread ended meanwhile
    return found


def cpu_seconds(pids):
    total = 0
    for pid in pids:
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += int(stat[11]) + int(stat[12])  # utime and stime, the fields 14 and 15 of the line
    return total / TICK


def memory(pids, process):
    """Summed over the processes, in MB: RSS and its parts. `process`: only those of that name, if not None."""
    sums = dict.fromkeys(MEMORY.values(), 0.0)
    for pid in pids:
        try:
            fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        except OSError:
            continue
        if process in (None, fields["Name"].strip()):
            for field, name in MEMORY.items():
                sums[name] += int(fields.get(field, "0").split()[0]) * 1024 / 1e6
    return sums


class Run:
    """Reads one run's lines as they come; `figures` holds what was learnt."""

    def __init__(self, child, process):
        self.child, self.process = child, process
        self.figures, self.cpu_at_begin = dict.fromkeys(MEMORY.values(), 0.0), 0.0

    def sample(self):
        for name, value in memory(tree(self.child.pid), self.process).items():
            self.figures[name] = max(self.figures[name], value)

    def line(self, line):
        """True at the end."""
        name, *value = line.split()
        if name == "begin":
            self.cpu_at_begin = cpu_seconds(tree(self.child.pid))
        elif name == "end":
            self.figures["cpu_s"] = cpu_seconds(tree(self.child.pid)) - self.cpu_at_begin
        elif value:
            self.figures[name] = float(value[0])
        return name == "end"

    def read(self):
        """Until the end; samples memory meanwhile. False if the child ended before."""
        deadline, rest = time.monotonic() + LIMIT_SECONDS, ""
        os.set_blocking(self.child.stdout.fileno(), False)
        with selectors.DefaultSelector() as selector:
            selector.register(self.child.stdout, selectors.EVENT_READ)
            while time.monotonic() < deadline:
                self.sample()
                if not selector.select(SAMPLE_SECONDS):
                    continue
                text = os.read(self.child.stdout.fileno(), 1 << 16).decode()
                if not text:
                    return False
                *lines, rest = (rest + text).split("\n")
                if any([self.line(line) for line in lines if line]):
                    return True
        raise Failed(f"it has not delivered what it should within {LIMIT_SECONDS} s")


def reason(text):
    """Of what a loader wrote: Headrace's errors are its first line, those of Python the last one."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or ["it ended without a word"]
    return next((line for line in lines if line.startswith("headrace: ")), lines[-1])


def stop(child):
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    # What a child leaves behind is in its session and has nobody else to end it.
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    child.wait()


def run(command, log, environment, directory, stdin=Path(os.devnull), process=None):
    """One run's figures by name: records_per_s, cpu_s_per_million, cores, first_batch_ms, rss_mb, ...

    `log`: a file for what the loader says. `process`: the name of the processes whose memory is measured; None: all.
    Failed if the loader ended, or was silent, before it had delivered for the time asked for.
    """
    with log.open("w") as errors, stdin.open() as told:
        child = subprocess.Popen(command, cwd=directory, env={**os.environ, **environment}, stdin=told,
                                 stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
        reading = Run(child, process)
        try:
            complete = reading.read()
        finally:
            stop(child)
            child.stdout.close()
    if not complete:
        raise Failed(reason(log.read_text(errors="replace")))
    figures = reading.figures
    figures["records_per_s"] = figures["records"] / figures["seconds"]
    figures["cpu_s_per_million"] = figures["cpu_s"] / figures["records"] * 1e6
    figures["cores"] = figures["cpu_s"] / figures["seconds"]
    figures["own_mb"] = figures["anon_mb"] + figures["shmem_mb"]
    return figures


def median(runs):
    """The median of each figure, and "spread": how far the rates of the runs lie from it at most, as a share."""
    figures = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    middle = figures["records_per_s"]
    figures["spread"] = max(abs(run["records_per_s"] - middle) for run in runs) / middle
    return figures
