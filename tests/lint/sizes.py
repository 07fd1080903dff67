"""No hand-written source file above 500 lines; 300 is the aim."""

import tree as lint

LIMIT = 500


def check(tree):
    problems = []
    for path in tree.having(*lint.CXX, ".c", ".py", ".sh", ".cmake", "CMakeLists.txt", "Makefile"):
        lines = tree.read(path).count("\n")
        if lines > LIMIT:
            problems.append(f"{path}:{LIMIT + 1}: {lines} lines: at most {LIMIT}; split it by role")
    return problems


def samples():
    yield {"common/a.cc": "\n" * LIMIT}, None
    yield {"common/a.cc": "\n" * (LIMIT + 1)}, r"common/a.cc:501: 501 lines"


if __name__ == "__main__":
    lint.main(check, samples)
