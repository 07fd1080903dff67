"""Dashboards show metrics that exist, and what the loader counts is shown: every metric in an expression of
dashboards/*.json is registered by a .cc file, and every metric that sidecar/ registers is in a dashboard. Every
metric at all is described in docs/ or shown in a dashboard."""

import json
import re

import tree as lint

# The names that we may register: ours and, for the operator, those that controller-runtime made customary.
NAME = re.compile(r"\b(?:headrace|controller_runtime|workqueue|rest_client)_[a-z0-9_]+\b")
REGISTERED = re.compile(r'"((?:headrace_(?:loader|operator|webhook)|controller_runtime|workqueue|rest_client)_[a-z0-9_]+)"')
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def expressions(value):
    """Every "expr" (a panel's target) and "query" (a variable) in a dashboard."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("expr", "query", "definition") and isinstance(inner, str):
                yield inner
            else:
                yield from expressions(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from expressions(inner)


def check(tree):
    registered = {}
    for path in tree.having(".cc"):
        if path.startswith(lint.SOURCE_FOLDERS):
            for number, line in enumerate(tree.read(path).split("\n"), 1):
                for name in REGISTERED.findall(line):
                    registered.setdefault(name, f"{path}:{number}")

    problems, shown = [], set()
    for path in tree.having(".json", under="dashboards/"):
        text = tree.read(path)
        for expression in expressions(json.loads(text)):
            for name in NAME.findall(expression):
                base = name if name in registered else SUFFIX.sub("", name)
                shown.add(base)
                if base not in registered:
                    line = text[:text.find(name)].count("\n") + 1
                    problems.append(f"{path}:{line}: {name}: no .cc file registers a metric of this name")
    described = set(NAME.findall("\n".join(tree.read(p) for p in tree.having(".md"))))
    for name, where in sorted(registered.items()):
        if name in shown:
            continue
        if where.startswith("sidecar/"):
            problems.append(f"{where}: {name} is in no dashboard: show it or do not count it")
        elif name not in described:
            problems.append(f"{where}: {name} is in no dashboard and on no page of docs/")
    return problems


def samples():
    probe = {"sidecar/probe.cc": 'Add("headrace_loader_batches_total");\n'}

    def dashboard(expr):
        return {"dashboards/l.json": json.dumps({"panels": [{"targets": [{"expr": expr}]}]})}
    yield {**probe, **dashboard("rate(headrace_loader_batches_total[1m])")}, None
    yield {**probe, **dashboard("rate(headrace_loader_batch_total[1m])")}, r"dashboards/l.json:1: headrace_loader_batch_t"
    yield {**probe, **dashboard("up")}, r"sidecar/probe.cc:1: headrace_loader_batches_total is in no dashboard"
    yield {"operator/probe.cc": 'Add("workqueue_depth");\n'}, r"workqueue_depth is in no dashboard and on no page"


if __name__ == "__main__":
    lint.main(check, samples)
