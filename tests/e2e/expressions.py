"""The expressions of dashboards and alerts, as Prometheus is asked for them."""
import json
import re

import yaml

from cluster import ROOT


def dashboards():
    """{expression: where}, each dashboard's variables replaced as Grafana would for "all"."""
    found = {}
    for path in sorted((ROOT / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                expression = re.sub(r"\$\{?__(rate_)?interval\}?|\$\{?__range\}?", "15s", target["expr"])
                found[re.sub(r"\$\{\w+(:\w+)?\}|\$\w+", ".*", expression)] = f"{path.name}: {panel['title']}"
    assert found, "the dashboards have no expressions"
    return found


def rules():
    groups = yaml.safe_load((ROOT / "alerts" / "headrace.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts():
    """{expression: alert}: what each alert compares with its limits. Of a healthy cluster the whole returns nothing."""
    found = {}
    for rule in rules():
        for part in re.split(r"\s+and\s+", rule["expr"]):
            absent = re.fullmatch(r"absent\((.*)\)", part)
            compared = absent[1] if absent else re.sub(r"\s*(>|<|==)\s*[\d.]+$", "", part)
            assert compared != part, f"{rule['alert']}: {part} is not compared with a number"
            found[compared] = rule["alert"]
    return found


def metrics(text):
    """Names of metrics in an expression, without what a histogram appends."""
    names = re.findall(r"\b(?:headrace|controller_runtime|workqueue|rest_client|leader_election|process)_[a-z0-9_]+", text)
    return {re.sub(r"_(bucket|sum|count)$", "", name) for name in names}
