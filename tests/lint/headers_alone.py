"""Every header compiles by itself, and the public one also as C11.

A header that its own .cc includes first has shown it in the build; the others are compiled here.
"""

import concurrent.futures
import os
import subprocess

import tree as lint

# Compiled only where CMake has found CUDA.
WITH_CUDA = {"sidecar/device/self_check.h"}


def compile_alone(tree, header, language, flags):
    return subprocess.run(["g++" if language == "c++" else "gcc", "-fsyntax-only", "-Wall", "-Wextra", "-Werror",
                           "-x", language, "-std=" + ("c++20" if language == "c++" else "c11"), "-I", tree.root, *flags,
                           "-"], input=f'#include "{header}"\n', cwd=tree.root, capture_output=True, text=True).stderr


def shown_by_build(tree, header, commands):
    source = header[:-len(".h")] + ".cc"
    return source in commands and [h for _, h, _ in tree.includes(source)][:1] == [header]


def check(tree, commands=None):
    if commands is None:
        _, commands = lint.compile_commands(tree)
    flags = lint.include_flags(commands)
    has_cuda = "sidecar/device/cuda.cc" in commands
    stamps = lint.Stamps("headers_alone")
    jobs = []
    for header in tree.having(".h"):
        if not header.startswith((*lint.SOURCE_FOLDERS, "tests/")) or (header in WITH_CUDA and not has_cuda):
            continue
        if "/include/" in header:
            jobs += [(header, "c"), (header, "c++")]
        elif not shown_by_build(tree, header, commands):
            jobs.append((header, "c++"))

    def run(job):
        key = stamps.key(tree, job[0], job[1], flags)
        if stamps.passed(key):
            return []
        errors = compile_alone(tree, *job, flags)
        if not errors:
            stamps.add(key)
            return []
        first = next((line for line in errors.split("\n") if "error" in line), errors.split("\n")[0])
        return [f"{job[0]}:1: does not compile alone as {job[1]}: {first}"]

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return [problem for problems in pool.map(run, jobs) for problem in problems]


def samples():
    yield {"common/a.h": "#pragma once\n#include <string>\nstd::string A();\n"}, None
    yield {"common/a.h": "#pragma once\nstd::string A();\n"}, r"common/a.h:1: does not compile alone as c\+\+"
    yield {"client/include/a.h": "#pragma once\nstruct A { bool b; };\n"}, r"client/include/a.h:1: .* as c:"


if __name__ == "__main__":
    import sys
    lint.main((lambda tree: check(tree, {})) if "--self-test" in sys.argv else check, samples)
