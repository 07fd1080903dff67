"""clang-tidy with the checks of .clang-tidy over every source file that was compiled, tests left out (they are held
by -Werror and the sanitizers). A file that passed is not checked again until it, a header it reaches, its compile
command or .clang-tidy changes."""

import concurrent.futures
import os
import re
import subprocess
import sys

import tree as lint


def tidy(tree, path, where):
    out = subprocess.run([lint.clang_tool("clang-tidy"), "--quiet", f"--config-file={os.path.join(lint.ROOT, '.clang-tidy')}", *where[0],
                          os.path.join(tree.root, path), *where[1]], capture_output=True, text=True)
    found = re.findall(r"^(?:(.+?):(\d+):\d+: )?(?:error|warning): (.*)$", out.stdout, re.M)
    problems = [f"{os.path.relpath(f, tree.root) if f else path}:{n or 1}: {what}" for f, n, what in found]
    return problems or ([f"{path}:1: clang-tidy ended with {out.returncode}: {out.stderr[-400:]}"]
                        if out.returncode else [])


def check(tree):
    build, commands = lint.compile_commands(tree)
    stamps = lint.Stamps("tidy")
    version = subprocess.run([lint.clang_tool("clang-tidy"), "--version"], capture_output=True, text=True).stdout
    config = tree.read(".clang-tidy")

    def run(path):
        key = stamps.key(tree, path, version, config, commands[path])
        if stamps.passed(key):
            return []
        problems = tidy(tree, path, (["-p", build], []))
        if not problems:
            stamps.add(key)
        return problems

    sources = [f for f in tree.having(".cc") if f in commands and f.startswith(lint.SOURCE_FOLDERS)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [problem for found in pool.map(run, sources) for problem in found]
    # A header's problem shows in each file that includes it.
    return sorted(set(problems))


def check_sample(tree):
    return [p for f in tree.having(".cc") for p in tidy(tree, f, ([], ["--", "-std=c++20"]))]


def samples():
    yield {"common/a.cc": "namespace headrace {\nint Good(int good_name) { return good_name; }\n}  // namespace headrace\n"}, None
    # The naming check is on, for each kind of name that CONTRIBUTING.md rules.
    for text, kind in [("class bad_class {};", "class"), ("void snake_function() {}", "function"),
                       ("int Variable = 0;", "variable"), ("constexpr int limit = 3;", "constexpr variable"),
                       ("enum class E { Wrong };", "enum constant"), ("#define lower 1", "macro definition"),
                       ("class A {\n  int member = 0;\n};", "private member")]:
        yield {"common/a.cc": text + "\n"}, rf"common/a.cc:\d+: invalid case style for {kind}"
    yield {"common/a.cc": "#include <string>\n#include <utility>\nvoid Take(std::string);\n"
                          "std::string F(std::string s) {\n  Take(std::move(s));\n  return s;\n}\n"}, r"common/a.cc:6: .*use-after-move"
    yield {"common/a.cc": "struct A {\n  virtual ~A() = default;\n};\nstruct B : A {\n  virtual ~B() = default;\n};\n"}, r"override"


if __name__ == "__main__":
    lint.main(check_sample if "--self-test" in sys.argv else check, samples)
