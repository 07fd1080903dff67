#!/usr/bin/env python3
"""Draws cases, asks TensorFlow for its answers, and holds `headrace verify` to them; see README.md beside this file.
Closes with one line: N passed, N failed."""
import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import documented
import draw

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.append(str(HERE.parent))
from python_environment import environment  # noqa: E402

CONFORMANCE = ROOT / "tests" / "conformance" / "cases.jsonl"
OUT = ROOT / "build" / "property"
HEADRACE = ROOT / "build" / "release" / "bin" / "headrace"
FAILURE = re.compile(r"^FAIL (\S+): (.*)$")
TEXTS = ("message_contains", "messages")  # TensorFlow's words need not be matched


def write_lines(path, cases):
    path.write_text("".join(json.dumps(case, separators=(",", ":")) + "\n" for case in cases))


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def answers(cases, jobs):
    """{name: the case as TensorFlow answers it}, from `jobs` processes."""
    python, running, found = environment("tensorflow", HERE / "requirements.txt"), [], {}
    for old in OUT.glob("told-*"):
        old.unlink()
    for job in range(jobs):
        asked, told, log = (OUT / f"{kind}-{job}" for kind in ("asked", "told", "log"))
        write_lines(asked, cases[job::jobs])
        process = subprocess.Popen(["nice", python, HERE / "oracle.py", asked, told], stderr=log.open("w"))
        running.append((process, asked, told, log))
    for process, asked, told, log in running:
        status = wait(process, [told for _, _, told, _ in running], len(cases))
        done = read_lines(told)
        found.update((case["name"], case) for case in done)
        if status:
            stopped = read_lines(asked)[len(done)]
            sys.exit(f"{log.read_text()[-4000:]}\nTensorFlow stopped with status {status} at {json.dumps(stopped)}")
    return found


def wait(process, told, total):
    """The exit status; tells of the progress meanwhile."""
    while True:
        try:
            return process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            done = sum(path.read_bytes().count(b"\n") for path in told if path.exists())
            print(f"oracle: {done} of {total} cases", file=sys.stderr, flush=True)


def same(expected, got):
    """Whether two answers are one, but for texts and for how they were computed."""
    def plain(case):
        expect = {key: value for key, value in case["expect"].items() if key not in TEXTS}
        return expect, case.get("element_spec"), case.get("warning_contains")
    return plain(expected) == plain(got)


def check_oracle(conformance, told):
    """The cases of tests/conformance that the oracle answers otherwise: it is believed only if there are none."""
    wrong = [case["name"] for case in conformance if not same(case, told[case["name"]])]
    print(f"oracle: {len(conformance) - len(wrong)} of {len(conformance)} conformance cases reproduced")
    for name in wrong:
        print(f"FAIL oracle {name}: computed {json.dumps(told[name])}")
    return wrong


def verify(cases):
    """{name: differences} of the cases in which Headrace does not do as the case expects."""
    path = OUT / "cases.jsonl"
    for case in cases:
        case["expect"].pop("message_contains", None)
    write_lines(path, cases)
    result = subprocess.run([HEADRACE, "verify", path], stdout=subprocess.PIPE, text=True)
    if not re.search(r"^\d+ passed, \d+ failed$", result.stdout, re.MULTILINE):
        sys.exit(f"headrace verify ended with status {result.returncode}: {result.stdout[-2000:]}")
    return dict(match.groups() for match in map(FAILURE.match, result.stdout.splitlines()) if match)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--draws", type=int, default=2000, help="default 2000")
    parser.add_argument("--only", metavar="NAME", help="one draw, draw-SEED-NUMBER, printed whole")
    parser.add_argument("--jobs", type=int, default=2, help="TensorFlow processes, default 2")
    parser.add_argument("--no-functions", action="store_true", help="leave from_function out")
    options = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    if options.only:
        _, seed, number = options.only.split("-")
        drawn, conformance = [draw.draw_case(int(seed), int(number))], []
    else:
        drawn = [draw.draw_case(options.seed, number) for number in range(options.draws)]
        conformance = read_lines(CONFORMANCE)
    if options.no_functions:
        drawn = [case for case in drawn if case["api"] != "from_function"]
    told = answers(conformance + drawn, 1 if options.only else options.jobs)
    wrong = check_oracle(conformance, told) if conformance else []
    compared, known = [], {}
    for case in (told[case["name"]] for case in drawn):
        reason, case_of_ours = documented.difference(case) or (None, case)
        if reason:
            known.setdefault(reason, []).append(case["name"])
        if case_of_ours:
            compared.append(case_of_ours)
    failures = verify(compared)
    cases = {case["name"]: case for case in compared}
    for name, differences in sorted(failures.items()):
        print(f"FAIL {name}: {differences}\n  {json.dumps(cases[name])}")
    for reason, names in sorted(known.items()):
        print(f"documented difference, {len(names)} draws (as {names[0]}): {reason}")
    if options.only and compared:
        print(json.dumps(compared[0]))
    failed = len(wrong) + len(failures)
    print(f"{len(conformance) + len(compared) - failed} passed, {failed} failed")
    sys.exit(1 if failed or not compared + conformance else 0)


if __name__ == "__main__":
    main()
