#!/usr/bin/env python3
"""Measures Headrace and its peers on the same data, in one run on this machine: README.md beside tests/bench/run.sh.

    compare.py [--workload a,c] [--peers none] [--size 2GiB] [--runs 3] [--seconds 3] [--cores 2]
"""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import floors
import headrace_run
import measure
import plot
import report
from workloads import WORKLOADS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path.append(str(ROOT / "tests"))
from python_environment import CACHE, environment  # noqa: E402

PEER_ENVIRONMENT = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"}
READ_BYTES = 1 << 24


def peers_python():
    """The interpreter with all peers. TensorFlow is large, and tests/property has it already."""
    tensorflow = environment("tensorflow", ROOT / "tests/property/requirements.txt")
    return environment("loader-peers", HERE / "requirements.txt", base=tensorflow)


class Comparison:
    def __init__(self, options, python, output):
        self.options, self.python, self.output = options, python, output
        self.table = report.Table()
        self.panels = []  # of the workloads whose rate is measured beside peers
        self.about = (f"{datetime.datetime.now():%Y-%m-%d %H:%M}, {len(os.sched_getaffinity(0))} cores for everything, "
                      f"{options.size} of data each, page cache warm")

    def say(self, text=""):
        print(text, flush=True)
        print(text, file=self.output, flush=True)

    def data(self, name):
        return CACHE / "bench-data" / self.options.size / name

    def make_data(self):
        names = sorted({WORKLOADS[name].data for name in self.options.workload})
        made = subprocess.run([self.python, HERE / "data.py", "--size", self.options.size, *names])
        if made.returncode:
            sys.exit(made.returncode)

    def warm(self, folder):
        """Brings the files into the page cache."""
        for path in folder.glob("part-*"):
            with path.open("rb", buffering=0) as file:
                while file.read(READ_BYTES):
                    pass

    def tell_limits(self):
        self.say("\n== limits of this machine")
        data = [WORKLOADS[name].data for name in self.options.workload]
        for line in floors.measure_all(self.python, self.first_file(self.data("b" if "b" in data else data[0]))):
            self.say(line)

    def first_file(self, folder):
        return min(folder.glob("part-0*"))

    def repeated(self, name, record_bytes, once):
        """The median of the runs after one that warms up; None where it failed, which is told."""
        try:
            runs = [once() for _ in range(self.options.runs + 1)][1:]
        except measure.Failed as failed:
            refused = str(failed).startswith(headrace_run.REFUSAL)
            self.say(f"{name:28}{'not offered yet' if refused else 'failed'}: {failed}")
            return None
        figures = measure.median(runs)
        self.say(report.line(name, figures, record_bytes))
        return figures

    def peer(self, peer, workload, data):
        command = [self.python, HERE / "drain.py", peer.function, data, str(workload.batch),
                   "--seconds", str(self.options.seconds), "--pause-ms", str(workload.pause_ms)]
        return measure.run(command, self.options.log, PEER_ENVIRONMENT, data)

    def with_limit(self, name, workload, data):
        """One run of Headrace, and of the limit that it is held to right behind it."""
        figures = headrace_run.in_c(name, workload, data, self.options)
        if workload.limit:
            figures["limit"] = floors.measure(self.python, workload.limit, self.first_file(data))
        return figures

    def workload(self, name):
        workload, data = WORKLOADS[name], self.data(WORKLOADS[name].data)
        files = list(data.glob("part-*"))
        total = sum(path.stat().st_size for path in files)
        records = json.loads((data / "manifest.json").read_text())["records"]
        self.say(f"\n== {name}: {workload.title}\n#  {records:,} records, {total / records:.1f} bytes each, "
                 f"{len(files)} files\n{report.heading()}")
        self.warm(data)
        peers = {}
        for peer in workload.peers if self.options.peers == "all" else ():
            figures = self.repeated(peer.name, total / records, lambda p=peer: self.peer(p, workload, data))
            peers |= {peer.name: figures} if figures else {}
        ours = self.repeated("headrace", total / records, lambda: self.with_limit(name, workload, data))
        peer = report.best(workload, peers)
        if workload.pause_ms:
            in_python = self.repeated("headrace, Python", total / records, lambda: headrace_run.in_python(
                self.python, name, workload, data, self.options))
            report.add_next(self.table, ours, in_python, peer)
        else:
            report.add_rate(self.table, name, workload, ours, peer, total / records)
            if ours and peers:
                self.panels.append(plot.Panel(
                    workload.title, ours["records_per_s"],
                    {one: figures["records_per_s"] for one, figures in peers.items()},
                    frozenset(one.name for one in workload.peers if not one.loader)))
        if workload.on_one_core and ours:
            on_one_core = self.repeated("headrace, loader on one core", total / records,
                                        lambda: headrace_run.in_c_on_one_core(name, workload, data, self.options))
            report.add_one_core(self.table, name, workload, on_one_core, ours)

    def run(self):
        load = os.getloadavg()[0]
        self.say(f"# {self.about}\n# 1 warm-up and the median of "
                 f"{self.options.runs} runs in processes of their own; rates over {self.options.seconds:g} s, 1 s after "
                 f"the first batch\n# load average before: {load:.1f}"
                 + (" -- others compute here: the figures mean little" if load > 0.5 else ""))
        self.make_data()
        self.tell_limits()
        for name in self.options.workload:
            self.workload(name)
        self.say("\n== figures, each beside the best peer and this machine's limit in the same run")
        for line in self.table.lines():
            self.say(line)


def workload_names(text):
    names = text.split(",")
    unknown = [name for name in names if name not in WORKLOADS]
    if unknown:
        raise argparse.ArgumentTypeError(f'"{unknown[0]}" is none of {", ".join(WORKLOADS)}')
    return names


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workload", type=workload_names, default=list(WORKLOADS), help=", ".join(WORKLOADS))
    parser.add_argument("--peers", choices=("all", "none"), default="all")
    parser.add_argument("--size", default="2GiB", help="of each workload's data")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--cores", type=int, default=2, help="for loader and trainer together")
    options = parser.parse_args()
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:options.cores])
    folder = ROOT / "build" / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"loaders-{datetime.datetime.now():%Y-%m-%d-%H%M%S}.txt"
    with tempfile.NamedTemporaryFile() as log, path.open("w") as output:
        options.log = Path(log.name)
        comparison = Comparison(options, peers_python(), output)
        comparison.run()
    if comparison.panels:
        path.with_suffix(".svg").write_text(plot.svg(comparison.panels, f"records a second; pale: makes no batches; {comparison.about}"))
    print(f"written to {path.relative_to(ROOT)}" + (" and .svg" if comparison.panels else ""), file=sys.stderr)


if __name__ == "__main__":
    main()
