"""Runs the benchmarks that need a GPU and prints one table: each figure beside its goal. `make bench-gpu` builds what it needs.

    table.py BUILD_FOLDER [OPTION...]       options are those of train_step.py

Nothing is written anywhere, and nothing asserted; what was skipped, and why, is below the table.
"""

import operator
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINE = re.compile(r"^(\w+)\s+([\d.]+) (\S+)(?:\s+([\d.]+) of (\w+))?$")
SKIPPED = re.compile(r"^(skipped: .*|\[  SKIPPED \] \w+\.\w+)$")

# What a figure is to be: of its value, or of its ratio to the figure beside.
AT_LEAST, AT_MOST = operator.ge, operator.le
GOALS = {
    "pinned_batches_to_gpu": ("ratio", AT_LEAST, 0.97),
    "device_batches_to_gpu": ("ratio", AT_LEAST, 0.97),
    "pinned_c_next_ready": ("value", AT_MOST, 10000),
    "device_c_next_ready": ("value", AT_MOST, 10000),
    "pinned_python_next_ready": ("value", AT_MOST, 20),
    "device_python_next_ready": ("value", AT_MOST, 20),
    "image_kernel_float16": ("ratio", AT_LEAST, 0.8),
    "image_kernel_float32": ("ratio", AT_LEAST, 0.8),
    "convnet_step_pinned": ("ratio", AT_MOST, 1.02),
    "convnet_step_device": ("ratio", AT_MOST, 1.02),
    "transformer_step_pinned": ("ratio", AT_MOST, 1.02),
    "transformer_step_device": ("ratio", AT_MOST, 1.02),
}


def row(match):
    name, value, unit, ratio, beside = match.groups()
    measured = f"{value} {unit}" + (f", {ratio} of {beside}" if ratio else "")
    if name not in GOALS:
        return name, measured, "", ""
    of, compare, goal = GOALS[name]
    wanted = f"{'>=' if compare is AT_LEAST else '<='} {goal} {'' if of == 'ratio' else unit}".strip()
    met = compare(float(ratio if of == "ratio" else value), goal)
    return name, measured, wanted, "met" if met else "MISSED"


def run(command, environment):
    print(f"== {' '.join(map(str, command))}", file=sys.stderr, flush=True)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    lines = done.stdout.splitlines()
    rows = [row(match) for match in map(LINE.match, lines) if match]
    missing = [line.strip() for line in lines if SKIPPED.match(line)]
    if done.returncode:
        missing.append(f"{Path(command[-1]).name}: exit status {done.returncode}")
    return rows, missing, done.returncode == 0


def main():
    build, options = Path(sys.argv[1]).resolve(), sys.argv[2:]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(build / "python"), os.environ.get("PYTHONPATH")])),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HEADRACE_LOADER": str(build / "bin" / "headrace-loader"),
        "HEADRACE_MAKE_PLAN": str(build / "tests" / "make_plan"),
    }
    commands = (
        [build / "bench" / "device_copy_bench"],
        [build / "tests" / "sidecar_device_image_kernel_test", "--gtest_filter=*.Bandwidth"],
        [sys.executable, HERE / "next_ready.py"],
        [sys.executable, HERE / "train_step.py", *options],
    )
    done = [run(command, environment) for command in commands]
    rows = [("figure", "measured", "goal", "")] + [row for rows, _, _ in done for row in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for row_ in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row_, (*widths, 0))).rstrip())
    unmeasured = [name for name in GOALS if name not in {row[0] for row in rows}]
    if unmeasured:
        print(f"not measured: {', '.join(unmeasured)}")
    for line in dict.fromkeys(line for _, missing, _ in done for line in missing):
        print(line)
    sys.exit(0 if all(ran for _, _, ran in done) else 1)


if __name__ == "__main__":
    main()
