"""No test that nothing runs: each *_test.cc is named by a headrace_test() in tests/*.cmake, and each script under
tests/ is named by another script, by the Makefile or by CMake."""

import os
import re

import tree as lint


# A value of the variable of each foreach() around the line, in every combination.
def expansions(text, loops):
    results = [text]
    for variable, values in loops:
        results = [r.replace("${" + variable + "}", v) for r in results for v in values]
    return results


def registrations(tree):
    """{test source: "file:line" of the headrace_test() that names it}"""
    registered = {}
    for path in tree.having(".cmake", "CMakeLists.txt", under="tests/"):
        loops = []
        for number, line in enumerate(tree.read(path).split("\n"), 1):
            if match := re.match(r"\s*foreach\(\s*(\S+)\s+(?:IN ITEMS\s+)?([^)]*)\)", line):
                loops.append((match[1], match[2].split()))
            elif re.match(r"\s*endforeach\(", line):
                loops.pop()
            elif match := re.match(r"\s*headrace_test\(\s*([^\s)]+)", line):
                for test in expansions(match[1], loops):
                    registered[f"tests/{test}_test.cc"] = f"{path}:{number}"
    return registered


def check(tree):
    problems = []
    registered = registrations(tree)
    tests = tree.having("_test.cc", under="tests/")
    problems += [f"{t}:1: no headrace_test({t[len('tests/'):-len('_test.cc')]} ...) in tests/*.cmake"
                 for t in tests if t not in registered]
    problems += [f"{where}: {test} does not exist" for test, where in registered.items() if test not in tests]
    problems += [f"{f}:1: a test beside its source: tests live under tests/, at the same path"
                 for f in tree.having("_test.cc") if not f.startswith("tests/")]

    callers = {f: tree.read(f) for f in tree.having(".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile", ".ci/run")}
    for script in tree.having(".py", ".sh", under="tests/"):
        name = os.path.basename(script)
        if name in ("__init__.py", "conftest.py"):
            continue
        # By file name; a Python module also by its name, as an import has it.
        names = re.escape(name) + (rf"|\b{re.escape(name[:-3])}\b" if name.endswith(".py") else "")
        # `unittest discover` and pytest find test_*.py by themselves where a folder is handed to them.
        folder = os.path.dirname(script)
        if name.startswith("test_"):
            names += rf"|(discover|pytest)\b[^\n]*{re.escape(folder)}"
        if not any(re.search(names, text) for caller, text in callers.items() if caller != script):
            problems.append(f"{script}:1: no script, Makefile or CMake file names it: it never runs")
    return problems


def samples():
    good = {"tests/a.cmake": "headrace_test(common/a DEPS x)\n", "tests/common/a_test.cc": ""}
    yield good, None
    yield {"tests/common/b_test.cc": "", **good}, r"tests/common/b_test.cc:1: no headrace_test\(common/b"
    yield {"tests/a.cmake": "headrace_test(common/a DEPS x)\n"}, r"tests/a.cmake:1: tests/common/a_test.cc does not"
    yield {"common/a_test.cc": ""}, r"common/a_test.cc:1: a test beside"
    yield {"tests/e2e/lost.py": ""}, r"tests/e2e/lost.py:1: no script"
    yield {"tests/e2e/lost.sh": "", "Makefile": "test:\n\ttests/e2e/run.sh\n"}, r"tests/e2e/lost.sh:1: no script"
    yield {"tests/a.cmake": "foreach(n a b)\n  headrace_test(common/${n} DEPS x)\nendforeach()\n",
           "tests/common/a_test.cc": ""}, r"tests/a.cmake:2: tests/common/b_test.cc does not"
    yield {"tests/e2e/test_a.py": "", "scripts/t.py": 'run("-m", "pytest", "tests/e2e")\n'}, None
    yield {"tests/e2e/found.py": "", "Makefile": "test:\n\tpython3 tests/e2e/found.py\n"}, None


if __name__ == "__main__":
    lint.main(check, samples)
