"""C++ is formatted by .clang-format."""

import os
import subprocess

import tree as lint


def check(tree):
    files = tree.having(*lint.CXX)
    style = os.path.join(lint.ROOT, ".clang-format")
    out = subprocess.run([lint.clang_tool("clang-format"), f"--style=file:{style}", "--dry-run", *files], cwd=tree.root,
                         capture_output=True, text=True).stderr if files else ""
    seen = {}
    for line in out.split("\n"):
        if "-Wclang-format-violations" in line:
            path, number = line.split(":")[:2]
            seen.setdefault(path, number)
    return [f"{path}:{number}: not formatted: clang-format -i {path}" for path, number in seen.items()]


def samples():
    yield {"a.cc": "int a = 1;\n"}, None
    yield {"a.cc": "int   a=1 ;\n"}, r"a.cc:1: not formatted"


if __name__ == "__main__":
    lint.main(check, samples)
