"""What the lints share: the files of the tree, problems, the cache of stamps, and the command line of one lint.

A lint is a module with check(tree), which returns problems as "file:line: what, and the rule", and with samples():
pairs of a small tree that breaks the rule and a pattern that one of the problems must match. `lint.py` prints the
problems and ends with 1 if there are any; `lint.py --self-test` runs check over the samples.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CXX = (".cc", ".h", ".cu")
SOURCE_FOLDERS = ("common/", "client/", "sidecar/", "operator/", "cli/")


class Tree:
    """The files that git tracks or would track under `root`; all files where there is no repository."""

    def __init__(self, root):
        self.root = root
        if os.path.exists(os.path.join(root, ".git")):
            out = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True,
                                 capture_output=True, text=True).stdout.split("\n")
            self.files = sorted(f for f in set(out) if f and os.path.isfile(os.path.join(root, f)))
        else:
            self.files = sorted(os.path.relpath(os.path.join(folder, name), root)
                                for folder, _, names in os.walk(root) for name in names)
        self._includes = {}

    def having(self, *endings, under=""):
        return [f for f in self.files if f.endswith(endings) and f.startswith(under)]

    def read(self, path):
        with open(os.path.join(self.root, path), encoding="utf-8", errors="surrogateescape") as file:
            return file.read()

    def includes(self, path):
        """[(line, header, quoted?)] as written in the file."""
        if path not in self._includes:
            found = []
            for number, line in enumerate(self.read(path).split("\n"), 1):
                match = re.match(r'\s*#\s*include\s*(["<])([^">]+)[">]', line)
                if match:
                    found.append((number, match[2], match[1] == '"'))
            self._includes[path] = found
        return self._includes[path]

    def resolve(self, header):
        """The file that a quoted include means, or None. One public header has an include folder of its own."""
        for candidate in (header, "client/include/" + header):
            if os.path.isfile(os.path.join(self.root, candidate)):
                return candidate
        return None

    def closure(self, path):
        """The file and every header of the tree that it reaches."""
        reached, waiting = set(), [path]
        while waiting:
            current = waiting.pop()
            if current in reached:
                continue
            reached.add(current)
            found = [self.resolve(h) for _, h, quoted in self.includes(current) if quoted]
            waiting += [f for f in found if f]
        return sorted(reached)


def compile_commands(tree):
    """{source relative to the root: [arguments of the compiler]} of the newest build of this checkout."""
    for preset in ("release", "dev", "tsan"):
        path = os.path.join(tree.root, "build", preset, "compile_commands.json")
        if os.path.exists(path):
            break
    else:
        sys.exit("no build/*/compile_commands.json: run `cmake --preset release` first")
    commands = {}
    with open(path, encoding="utf-8") as file:
        for entry in json.load(file):
            commands[os.path.relpath(entry["file"], tree.root)] = shlex.split(entry["command"])
    return os.path.dirname(path), commands


def include_flags(commands):
    """The include folders and definitions that any of the compile commands names, in order, once each."""
    flags = []
    for arguments in commands.values():
        for i, argument in enumerate(arguments):
            if argument in ("-isystem", "-I") and arguments[i + 1] not in flags:
                flags += [argument, arguments[i + 1]]
            elif argument.startswith("-I") and len(argument) > 2 and argument not in flags:
                flags.append(argument)
    return flags


class Stamps:
    """Remembers, outside the checkout, which inputs a slow tool has already passed."""

    def __init__(self, tool):
        cache = os.environ.get("HEADRACE_CACHE") or os.path.join(
            os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headrace")
        self.folder = os.path.join(cache, "lint", tool)
        os.makedirs(self.folder, exist_ok=True)

    def key(self, tree, path, *more):
        digest = hashlib.sha256()
        for file in tree.closure(path):
            digest.update(file.encode() + b"\0" + tree.read(file).encode(errors="surrogateescape") + b"\0")
        # Two checkouts of the same tree share their stamps.
        digest.update(repr(more).replace(tree.root, "").encode())
        return os.path.join(self.folder, digest.hexdigest())

    def passed(self, key):
        return os.path.exists(key)

    def add(self, key):
        with open(key, "w", encoding="ascii"):
            pass


def clang_tool(name):
    """Version 14, which Debian 12 ships and whose opinions the tree follows, where it is there; else any."""
    tool = shutil.which(name + "-14") or shutil.which(name)
    return tool or sys.exit(f"{name} is missing: apt-get install {name}-14")


def self_test(check, samples):
    failures = []
    for files, pattern in samples():
        with tempfile.TemporaryDirectory() as root:
            for path, text in files.items():
                os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
                with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                    file.write(text)
            problems = check(Tree(root))
        if pattern is None and problems:
            failures.append(f"a good tree gave {problems}")
        elif pattern is not None and not any(re.search(pattern, p) for p in problems):
            failures.append(f"no problem matches {pattern!r}; got {problems}")
    return failures


def main(check, samples):
    problems = self_test(check, samples) if "--self-test" in sys.argv[1:] else check(Tree(ROOT))
    for problem in problems:
        print(problem)
    sys.exit(1 if problems else 0)
