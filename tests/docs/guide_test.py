#!/usr/bin/env python3
"""Runs what the documentation shows. Ends with "N passed, N failed".

    tests/docs/guide_test.py [WORD...]     only commands of docs/guide.md under a heading, or with a text, that has a WORD

docs/guide.md: a block whose first line is `# NAME.yaml` or `# NAME.py` is that file, in a folder of this test's own. In a
```console block, each line with `$` is run there by bash, must end with status 0, and the lines up to the next `$` are
what it must print to standard output. Each command is a test, and so is that each section without sections of its own has one.

README.md and every other page of docs/: a ```yaml block that is a DistributedInput must be accepted by `headrace
explain`, and a ```python block must compile. (tests/client/python_test.py runs those of docs/client.md.)
"""

import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = ROOT / "build" / "release" / "bin"
TIMEOUT_S = 60
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
HEADING = re.compile(r"^(#+) (.*)$", re.M)
WITHOUT_EXAMPLE = {"From TensorFlow"}  # a table of names


def environment():
    # This interpreter's python3 first: the module of the build tree is made for it.
    path = os.pathsep.join([str(BIN), str(pathlib.Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT / "build" / "release" / "python"), "PYTHONDONTWRITEBYTECODE": "1"}


def fences(text):
    """(language, body, line of the first fence) of each fenced block."""
    return [(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


class Tests:
    def __init__(self, words):
        self.words = words
        self.passed = 0
        self.failed = 0

    def wants(self, *texts):
        return not self.words or any(word in text for word in self.words for text in texts)

    def result(self, name, problem):
        if problem:
            self.failed += 1
            print(f"FAIL  {name}\n{problem}", flush=True)
        else:
            self.passed += 1
            print(f"ok    {name}", flush=True)


def difference(shown, printed):
    return "\n".join(difflib.unified_diff(shown.splitlines(), printed.splitlines(), "shown", "printed", lineterm="", n=1))


def run(command, folder):
    """None and what it printed, or what is wrong."""
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment(), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, timeout=TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as late:
        return f"not done after {TIMEOUT_S} s; it had printed: {late.stdout}", ""
    problem = f"exit status {done.returncode}\n{done.stdout}{done.stderr}" if done.returncode else None
    return problem, done.stdout


def check_console(body, heading, folder, tests):
    for shown in re.split(r"^(?=\$ )", body, flags=re.M):
        if not shown.strip():
            continue
        first, _, output = shown.partition("\n")
        if not first.startswith("$ "):
            tests.result(f"{heading}: {first}", "a console block begins with a command, `$ ...`")
            continue
        # What writes files is run even where it was not asked for: others read them.
        if tests.wants(heading, first) or "write_records.py" in first:
            problem, printed = run(first[2:], folder)
            tests.result(f"{heading}: {first}", problem or difference(output, printed))


def check_guide(tests):
    """Every block in order, in one folder."""
    text = (ROOT / "docs" / "guide.md").read_text()
    outside = FENCE.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)  # a comment of a file is no heading
    headings = [(m.start(), len(m[1]), m[2]) for m in HEADING.finditer(outside)]
    ends = [start for start, _, _ in headings[1:]] + [len(text)]
    with tempfile.TemporaryDirectory(prefix="headrace-guide-") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "examples").symlink_to(ROOT / "examples")
        for i, (start, level, heading) in enumerate(headings):
            blocks = fences(text[start : ends[i]])
            for language, body, _ in blocks:
                name = re.match(r"# ([\w-]+\.(?:yaml|py))\n", body)
                if name:
                    (folder / name[1]).write_text(body)
                elif language == "console":
                    check_console(body, heading, folder, tests)
                else:
                    tests.result(heading, f"a {language or 'bare'} block that is neither a file nor commands:\n{body}")
            leaf = i + 1 == len(headings) or headings[i + 1][1] <= level
            if leaf and not tests.words and heading not in WITHOUT_EXAMPLE:
                shown = any(language == "console" for language, _, _ in blocks)
                tests.result(f"{heading}: has an example", None if shown else "no command shows what this section says")


def check_page(page, tests):
    name = page.relative_to(ROOT)
    for language, body, line in fences(page.read_text()):
        if language == "python":
            try:
                compile(body, str(name), "exec")
                problem = None
            except SyntaxError as error:
                problem = f"{error}"
            tests.result(f"{name}:{line}: python", problem)
        elif language == "yaml" and "kind: DistributedInput" in body:
            tests.result(f"{name}:{line}: DistributedInput", explain(body))


def explain(text):
    """What `headrace explain` has against it; files that are not here are a warning only."""
    done = subprocess.run(
        ["headrace", "explain", "-f", "-"], input=text, env=environment(), capture_output=True, text=True, timeout=TIMEOUT_S
    )
    return done.stderr if done.returncode else None


def main():
    tests = Tests(sys.argv[1:])
    check_guide(tests)
    if not tests.words:
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
            if page.name != "guide.md":
                check_page(page, tests)
    print(f"{tests.passed} passed, {tests.failed} failed")
    sys.exit(1 if tests.failed or not tests.passed else 0)


if __name__ == "__main__":
    main()
