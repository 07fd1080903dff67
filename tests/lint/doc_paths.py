"""Documentation names files that exist: relative links in every *.md, and paths in backticks in README.md,
CONTRIBUTING.md and docs/."""

import os
import re

import tree as lint

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# `folder/file.ext`, `folder/{a,b}.ext` (each meant), `folder/file.{h,cc}`; not globs, not placeholders in capitals.
PATH = re.compile(r"`((?:[a-z0-9_.-]+/)+[A-Za-z0-9_.{},/-]*)`")


def spelled_out(path):
    match = re.search(r"\{([^{}]*)\}", path)
    if not match:
        return [path]
    return [p for part in match[1].split(",") for p in spelled_out(path[:match.start()] + part + path[match.end():])]


def check(tree):
    problems = []
    tops = {f.split("/")[0] for f in tree.files if "/" in f}
    for path in tree.having(".md"):
        folder = os.path.dirname(path)
        backticks = path in ("README.md", "CONTRIBUTING.md") or path.startswith("docs/")
        for number, line in enumerate(tree.read(path).split("\n"), 1):
            for target in LINK.findall(line):
                file = os.path.join(tree.root, folder, target.split("#")[0])
                if not re.match(r"[a-z]+:|#", target) and not os.path.exists(file):
                    problems.append(f"{path}:{number}: the link {target} leads nowhere")
            for written in PATH.findall(line) if backticks else []:
                for file in spelled_out(written):
                    if file.split("/")[0] in tops and not os.path.exists(os.path.join(tree.root, file)):
                        problems.append(f"{path}:{number}: {file} does not exist")
    return problems


def samples():
    yield {"README.md": "[a](docs/a.md) `docs/a.md` `docs/{a,b}.md` `build/x`\n", "docs/a.md": "", "docs/b.md": ""}, None
    yield {"README.md": "[a](docs/b.md)\n", "docs/a.md": ""}, r"README.md:1: the link docs/b.md"
    yield {"docs/a.md": "`docs/{a,c}.md`\n"}, r"docs/a.md:1: docs/c.md does not exist"


if __name__ == "__main__":
    lint.main(check, samples)
