"""Headrace's own runs: a loader that `headrace run` starts for specs/NAME.yaml in the folder of the data, and a trainer
that drains it, in C (loader_drain_bench.cc) or in Python (drain.py)."""
import os
import shutil
import tempfile
import time
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
RELEASE = HERE.parents[2] / "build" / "release"
LOADER = "headrace-loader"  # the process whose memory is told: the ring included, the trainer not
REFUSAL = "headrace: standard input:"  # how an error begins that says what is wrong with the spec


def in_c(name, workload, data, options, binaries=RELEASE / "bin"):
    trainer = [RELEASE / "bench/loader_drain_bench", "--seconds", str(options.seconds), "--pause-ms",
               str(workload.pause_ms), "--started", str(time.monotonic())]
    return run(name, trainer, data, options, binaries)


def in_c_on_one_core(name, workload, data, options):
    """The loader has one core, as by a container's limit; the trainer has them all."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        binaries = Path(folder)
        shutil.copy(RELEASE / "bin/headrace", binaries)
        (binaries / LOADER).write_text(f'#!/bin/sh\nexec taskset -c {min(os.sched_getaffinity(0))} '
                                       f'{RELEASE}/bin/{LOADER} "$@"\n')
        (binaries / LOADER).chmod(0o755)
        return in_c(name, workload, data, options, binaries)


def in_python(python, name, workload, data, options):
    trainer = [python, HERE / "drain.py", "headrace:next_c", data, str(workload.batch), "--seconds",
               str(options.seconds), "--pause-ms", str(workload.pause_ms)]
    return run(name, trainer, data, options, RELEASE / "bin")


def run(name, trainer, data, options, binaries):
    """As measure.run; Failed with the refusal where Headrace does not offer what the spec asks for."""
    command = [binaries / "headrace", "run", "-f", "-", "--", *trainer]
    return measure.run(command, options.log, {}, data, stdin=HERE / "specs" / f"{name}.yaml", process=LOADER)
