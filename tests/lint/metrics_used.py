"""Dashboards and alerts use metrics that exist, and what is counted is shown: every metric in an expression of
dashboards/*.json or alerts/*.yaml is registered by a .cc file, and every metric that is registered is in a dashboard and
in docs/, whose tables of metrics name no others."""

import json
import re

import tree as lint

# The names that we may register: ours and, for the operator, those that controller-runtime made customary.
FAMILIES = r"(?:headrace_(?:loader|operator|webhook)|controller_runtime|workqueue|rest_client|leader_election|process)"
NAME = re.compile(rf"\b{FAMILIES}_[a-z0-9_]+\b")
REGISTERED = re.compile(rf'"({FAMILIES}_[a-z0-9_]+)"')
# A row of a table of metrics: names in backticks in its first cell.
ROW = re.compile(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|", re.M)
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
    problems = []

    def use(path, text, names):
        """The metrics that are meant; those that nobody registers are problems."""
        for name in names:
            base = name if name in registered else SUFFIX.sub("", name)
            if base not in registered:
                line = text[:text.find(name)].count("\n") + 1
                problems.append(f"{path}:{line}: {name}: no .cc file registers a metric of this name")
            yield base

    shown, described = set(), set()
    for path in tree.having(".json", under="dashboards/"):
        text = tree.read(path)
        for expression in expressions(json.loads(text)):
            shown.update(use(path, text, sorted(set(NAME.findall(expression)))))
    for path in tree.having(".yaml", under="alerts/"):
        text = tree.read(path)
        list(use(path, text, sorted(set(NAME.findall(text)))))
    for path in tree.having(".md", under="docs/"):
        text = tree.read(path)
        for row in ROW.findall(text):
            described.update(use(path, text, NAME.findall(row)))
    for name, where in sorted(registered.items()):
        if name not in shown:
            problems.append(f"{where}: {name} is in no dashboard: show it or do not count it")
        if name not in described:
            problems.append(f"{where}: {name} is in no table of docs/")
    return problems


def samples():
    probe = {"sidecar/probe.cc": 'Add("headrace_loader_batches_total");\n',
             "docs/m.md": "| metric |\n|---|\n| `headrace_loader_batches_total` |\n"}

    def dashboard(expr):
        return {"dashboards/l.json": json.dumps({"panels": [{"targets": [{"expr": expr}]}]})}
    good = {**probe, **dashboard("rate(headrace_loader_batches_total[1m])")}
    yield good, None
    yield {**good, "alerts/a.yaml": "expr: headrace_loader_batches_total > 0"}, None
    yield {**probe, **dashboard("rate(headrace_loader_batch_total[1m])")}, r"dashboards/l.json:1: headrace_loader_batch_t"
    yield {**probe, **dashboard("up")}, r"sidecar/probe.cc:1: headrace_loader_batches_total is in no dashboard"
    yield {**good, "alerts/a.yaml": "a: 1\nexpr: headrace_loader_lost_total > 0"}, r"alerts/a.yaml:2: headrace_loader_lost_t"
    yield {**good, "docs/m.md": ""}, r"headrace_loader_batches_total is in no table of docs/"
    yield {**good, "docs/n.md": "| `headrace_loader_lost_total` | lost |\n"}, r"docs/n.md:1: headrace_loader_lost_total: no"
    yield {"operator/probe.cc": 'Add("workqueue_depth");\n'}, r"workqueue_depth is in no dashboard"


if __name__ == "__main__":
    lint.main(check, samples)
