#!/usr/bin/env python3
"""Runs the parts of `make test`, all or those named, and closes with one line: N passed, N failed.

A part that cannot be built or that runs no test counts as one failure; the parts after it still run.
"""
import json
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ROOT / "build" / "reports"
JOBS = str(os.cpu_count() or 2)
CLOSING_LINE = re.compile(r"^(\d+) passed, (\d+) failed$")


class Failed(Exception):
    """A step that the tests of a part need did not work; its output says why."""


def run(*command, check=True):
    status = subprocess.run(command, cwd=ROOT).returncode
    if check and status:
        raise Failed(f"{' '.join(map(str, command))}: exit status {status}")
    return status


def run_counted(*command):
    """Runs a command that closes with "N passed, N failed" and returns the two numbers."""
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    counts = None
    for line in process.stdout:
        match = CLOSING_LINE.match(line.strip())
        if not match:
            print(line, end="", flush=True)
        counts = (int(match[1]), int(match[2])) if match else counts
    status = process.wait()
    if counts is None:
        raise Failed(f"{' '.join(map(str, command))}: no closing line, exit status {status}")
    passed, failed = counts
    if status and not failed:
        raise Failed(f"{' '.join(map(str, command))}: exit status {status}, yet no failure was counted")
    return passed, failed


def junit_counts(path):
    """Passed and failed tests of a JUnit report; an error is a failure, and so is a report without a test."""
    if not path.exists():
        raise Failed(f"{path.name} was not written")
    root = ElementTree.parse(path).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    number = lambda name: sum(int(suite.get(name, 0)) for suite in suites)
    # CTest says "skipped" of a test whose program is not there, too.
    missing = sum(1 for suite in suites for skip in suite.iterfind("testcase/skipped")
                  if "Unable to find executable" in skip.get("message", ""))
    failed = number("failures") + number("errors") + missing
    passed = number("tests") - number("failures") - number("errors") - number("skipped") - number("disabled")
    if passed + failed == 0:
        raise Failed(f"{path.name}: no test ran")
    return passed, failed


def configure(preset):
    if not (ROOT / "build" / preset / "build.ninja").exists():
        run("cmake", "--preset", preset)
    else:  # as the project is now: ctest lists what was configured last
        run("ninja", "-C", f"build/{preset}", "build.ninja")


def ctest(preset, *selection):
    report = REPORTS / f"{preset}.xml"
    report.unlink(missing_ok=True)
    run("ctest", "--preset", preset, "-j", JOBS, "--output-junit", report, *selection, check=False)
    return junit_counts(report)


def lint():
    return run_counted("tests/lint/run.sh")


def unit():
    configure("dev")
    run("cmake", "--build", "--preset", "dev", "-j", JOBS)
    return ctest("dev", "-LE", "gpu|slow")


def tsan():
    configure("tsan")
    listing = subprocess.run(["ctest", "--preset", "tsan", "-L", "tsan", "--show-only=json-v1"], cwd=ROOT, capture_output=True, text=True)
    tests = json.loads(listing.stdout)["tests"]
    if not tests:
        raise Failed("no test has the label tsan")
    # Only the labelled tests: a whole further build would cost minutes and show nothing.
    # ctest names no program for a test that is not built yet; headrace_test() derives the target's name from the test's.
    run("ninja", "-C", "build/tsan", "-j", JOBS, *(test["name"].replace("/", "_") + "_test" for test in tests))
    return ctest("tsan", "-L", "tsan")


def conformance():
    run("make", "-s", "build")
    verify = ("build/release/bin/headrace", "verify", "tests/conformance/cases.jsonl")
    whole, separate = run_counted(*verify), run_counted(*verify, "--separate")
    return whole[0] + separate[0], whole[1] + separate[1]


def python():
    """The Python package, which no sanitizer's build has."""
    configure("release")
    run("cmake", "--build", "--preset", "release", "-j", JOBS, "--target", "headrace_python_native", "headrace_shared",
        "headrace", "headrace-loader", "ring_loader", "make_plan", "fake_cuda", "wheel")
    return ctest("release", "-L", "python")


def docs():
    run("make", "-s", "build")
    run("cmake", "--build", "--preset", "release", "-j", JOBS, "--target", "headrace_python_native")
    return run_counted(sys.executable, "tests/docs/guide_test.py")


def pytest(name, *folders):
    report = REPORTS / f"{name}.xml"
    report.unlink(missing_ok=True)
    run(sys.executable, "-m", "pytest", *folders, f"--junitxml={report}", "--color=no", check=False)
    return junit_counts(report)


def chart():
    run("make", "-s", "cluster-build")
    return pytest("chart", "tests/helm", "tests/monitoring")


def e2e():
    run("make", "-s", "cluster-build", "images")
    return pytest("e2e", "tests/e2e")


def property_test():
    run("make", "-s", "build")
    return run_counted(sys.executable, "tests/property/run.py")


PARTS = {part.__name__: part for part in (lint, unit, tsan, python, conformance, docs, chart, e2e)}
# Not of `make test`: it downloads TensorFlow.
ON_REQUEST = {"property": property_test}


def main():
    names = sys.argv[1:] or list(PARTS)
    parts = PARTS | ON_REQUEST
    unknown = [name for name in names if name not in parts]
    if unknown:
        sys.exit(f"unknown part {unknown[0]}: one of {', '.join(parts)}")
    REPORTS.mkdir(parents=True, exist_ok=True)
    table = []
    for name in names:
        print(f"== {name}", flush=True)
        began = time.monotonic()
        try:
            passed, failed = parts[name]()
            note = ""
        except Failed as failure:
            passed, failed, note = 0, 1, str(failure)
            print(f"{name}: {failure}", flush=True)
        table.append((name, passed, failed, time.monotonic() - began, note))
    print()
    for name, passed, failed, seconds, note in table:
        print(f"{name:12} {passed:5} passed {failed:5} failed {seconds:7.0f} s  {note}")
    failed = sum(row[2] for row in table)
    print(f"{sum(row[1] for row in table)} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
