"""What no committed text may hold: characters outside ASCII (data excepted), tabs and trailing blanks in code, the
paths of the machine it was written on, and addresses of hosts that are not in the list."""

import os
import re

import tree as lint

TEXT = (*lint.CXX, ".c", ".py", ".sh", ".cmake", ".txt", ".md", ".yaml", ".yml", ".json", ".tpl", ".toml",
        "Makefile", "Dockerfile", ".dockerfile", ".clang-format", ".clang-tidy", ".gitignore")
# Addresses that a reader or a schema needs. Package registries are reached through their clients and not named.
HOSTS = re.compile(r"^(localhost|127\.0\.0\.1|0\.0\.0\.0|\[?::1?\]?|.*\.example(\.com|\.org)?|example\.(com|org)|"
                   r"(.*\.)?headrace\.dev|(.*\.)?kubernetes\.io|(.*\.)?k8s\.io|kubernetes(\.default.*)?|.*\.svc(\..*)?|"
                   r"(.*\.)?tensorflow\.org|(.*\.)?w3\.org|json-schema\.org|github\.com|datatracker\.ietf\.org|"
                   r"docs\.nvidia\.com|docs\.aws\.amazon\.com|(.*\.)?amazonaws\.com|storage\.googleapis\.com|sts|HOST(:PORT)?|"
                   r"prometheus\.io|man7\.org|\d+\.\d+\.\d+\.\d+)$")
ADDRESS = re.compile(r"https?://([A-Za-z0-9.\[\]:-]*[A-Za-z0-9\]])")
# Top folders that any Linux machine has; a checkout elsewhere gives itself away by its own.
COMMON_TOPS = {"bin", "boot", "dev", "etc", "home", "lib", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys",
               "tmp", "usr", "var"}


def machine_paths(root):
    """Patterns for the places of this checkout and of any developer's home."""
    top = root.split("/")[1]
    patterns = [r"/home/[a-z]\w*/", r"/Users/\w+/", r"/tmp/[a-z]/"]
    patterns.append(re.escape(root if top in COMMON_TOPS else f"/{top}/"))
    return re.compile(r"(?<![\w.$}/-])(" + "|".join(patterns) + ")")


def check(tree):
    problems = []
    machine = machine_paths(tree.root)
    for path in tree.files:
        name = os.path.basename(path)
        if not name.endswith(TEXT) and not name.startswith(("Dockerfile", "Makefile")):
            continue
        code = not path.endswith((".md", ".json"))
        for number, line in enumerate(tree.read(path).split("\n"), 1):
            where = f"{path}:{number}:"
            bad = next((c for c in line if ord(c) > 126 or (ord(c) < 32 and c != "\t")), None)
            if bad:
                problems.append(f"{where} {bad!a} is not ASCII")
            if code and line != line.rstrip():
                problems.append(f"{where} blanks at the end of the line")
            if "\t" in line and path.endswith((*lint.CXX, ".py", ".yaml")):
                problems.append(f"{where} a tab")
            match = machine.search(line)
            if match:
                problems.append(f"{where} {match[1]} is a place on one machine")
            problems += [f"{where} the host {host} is not in the list of tests/lint/text.py"
                         for host in ADDRESS.findall(line) if not HOSTS.match(re.sub(r":\d+$", "", host))]
    return problems


def samples():
    yield {"a.cc": '// https://kubernetes.io/docs and "http://127.0.0.1:80/x"\n'}, None
    yield {"a.cc": "// caf\u00e9\n"}, r"a.cc:1: '\\xe9' is not ASCII"
    yield {"a.cc": "int a; \n"}, r"blanks"
    yield {"a.cc": "\tint a;\n"}, r"a tab"
    yield {"a.sh": "cd /home/" + "ann/headrace\n"}, r"a place on one machine"
    yield {"a.md": "fetch https:" + "//packages.invalid/x\n"}, r"the host packages.invalid"


if __name__ == "__main__":
    lint.main(check, samples)
