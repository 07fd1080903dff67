"""Alert rules: Prometheus's own checks and unit tests, a runbook for each."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
RULES = ROOT / "alerts" / "headrace.yaml"
CASES = HERE / "alerts_test.yaml"
ALERTS = [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]
each = pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert["alert"])


def promtool():
    cache = os.environ.get("HEADRACE_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "headrace"
    )
    return shutil.which("promtool") or os.path.join(cache, "prometheus", "usr", "bin", "promtool")


def run(*arguments):
    done = subprocess.run([promtool(), *map(str, arguments)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def test_promtool_accepts_the_rules():
    status, output = run("check", "rules", RULES)
    assert status == 0 and f"{len(ALERTS)} rules found" in output, output


def test_they_fire_when_they_should_and_only_then(tmp_path):
    tests = tmp_path / "tests.yaml"
    tests.write_text(f"rule_files: [{RULES}]\n" + CASES.read_text())
    status, output = run("test", "rules", tests)
    assert status == 0 and "SUCCESS" in output, output


def test_the_unit_tests_can_fail(tmp_path):
    """The same with rules that never fire."""
    rules = tmp_path / "rules.yaml"
    rules.write_text(re.sub(r"for: \d+[mh]", "for: 9h", RULES.read_text()))
    tests = tmp_path / "tests.yaml"
    tests.write_text(f"rule_files: [{rules}]\n" + CASES.read_text())
    status, output = run("test", "rules", tests)
    assert status != 0
    for alert in ALERTS:
        assert "for" not in alert or f"alertname: {alert['alert']}," in output, alert["alert"]


@each
def test_each_has_series_at_which_it_fires_and_series_at_which_it_does_not(alert):
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    expected = [bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert["alert"]]
    assert set(expected) == {True, False}


@each
def test_each_says_what_it_is_and_where_to_read_on(alert):
    assert alert["labels"]["severity"] in ("critical", "warning", "info")
    assert alert["annotations"]["summary"] and alert["annotations"]["description"]
    assert alert["annotations"]["runbook_url"] == f"https://headrace.dev/docs/runbooks#{alert['alert'].lower()}"
    section = re.search(rf"^## {alert['alert']}\n(.*?)(?=^## |\Z)", (ROOT / "docs" / "runbooks.md").read_text(), re.M | re.S)
    assert section, "no section of docs/runbooks.md"
    assert "- Look: " in section[1] and "- Do: " in section[1]


def test_no_runbook_is_of_no_alert():
    sections = re.findall(r"^## (\w+)$", (ROOT / "docs" / "runbooks.md").read_text(), re.M)
    assert sections == [alert["alert"] for alert in ALERTS]
