"""Dashboards: what the generator writes, of Grafana's own types, readable at a glance."""
import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from test_alerts import run as promtool

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))
from python_environment import environment  # noqa: E402

DASHBOARDS = sorted((ROOT / "dashboards").glob("*.json"))
named = pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.name)


def load(path):
    return json.loads(path.read_text())


@pytest.fixture(scope="module")
def judge():
    python = environment("grafana-types", HERE / "requirements.txt")

    def run(*paths):
        done = subprocess.run([python, HERE / "grafana_types.py", *paths], capture_output=True, text=True)
        assert not done.stderr, done.stderr
        return done.stdout

    return run


def test_the_committed_files_are_what_the_generator_writes():
    done = subprocess.run([sys.executable, ROOT / "scripts" / "dashboards", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_grafana_knows_all_of_it(judge):
    assert judge(*DASHBOARDS) == ""


@pytest.mark.parametrize("change, message", [
    (lambda d: d["panels"][0].update(colour="red"), "panels[0].colour: no such field"),
    (lambda d: d["panels"][0].update(type="guage"), "'guage' is no kind of panel"),
    (lambda d: d["panels"][0]["options"].update(graphMode="nothing"), "'nothing' is not"),
    (lambda d: d["panels"][0]["gridPos"].update(w="wide"), "'wide' is not"),
    (lambda d: d["panels"][0]["targets"][0].update(expression="up"), "expression: no such field"),
    (lambda d: d["templating"]["list"][1].update(multiple=True), "multiple: no such field"),
])  # fmt: skip
def test_the_judge_finds_mistakes(judge, tmp_path, change, message):
    wrong = copy.deepcopy(load(DASHBOARDS[0]))
    change(wrong)
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    assert message in judge(tmp_path / "wrong.json")


@named
def test_panels_have_their_place(path):
    taken, identities = set(), set()
    for panel in load(path)["panels"]:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24, panel["title"]
        cells = {(x, y) for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])}
        assert not cells & taken, f"{panel['title']} lies over another panel"
        taken |= cells
        identities.add(panel["id"])
        assert panel["type"] == "row" or panel["description"], panel["title"]
    assert len(identities) == len(load(path)["panels"])


@named
def test_every_query_can_be_imported_anywhere(path):
    """No data source of somebody's own, and only variables that the dashboard has."""
    dashboard = load(path)
    known = {variable["name"] for variable in dashboard["templating"]["list"]} | {"__rate_interval"}
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            assert target["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
            used = {part.split("}")[0].split('"')[0].split("]")[0] for part in target["expr"].split("$")[1:]}
            assert used <= known, target["expr"]


def test_the_first_screen_of_the_loaders_says_who_waits_for_what():
    """Within the first six rows of the grid: whether, for which stage, at which rank; coloured, without a legend to read."""
    first = [panel for panel in load(ROOT / "dashboards" / "loaders.json")["panels"] if panel["gridPos"]["y"] == 0]
    assert [panel["title"] for panel in first] == ["Do trainers wait?", "For what?", "Which ranks? The ten that wait most"]
    whether, what, who = (panel["targets"][0]["expr"] for panel in first)
    assert "trainer_wait_seconds_total" in whether and whether.startswith("max(")
    assert what.startswith("count by (limit)") and "stage_seconds_total" in what
    assert who.startswith("topk(10") and "pod, replica" in who
    for panel in (first[0], first[2]):
        colors = [step["color"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
        assert colors == ["green", "orange", "red"]


# Seconds a minute of each state of each stage, and of the trainer's wait; what limits such a worker.
WORKERS = {
    "keeps-up": (dict(wait=1, read=(6, 0, 54), decode=(6, 0, 54)), "nothing: the data keeps up"),
    "slow-decode": (dict(wait=30, read=(6, 0, 54), decode=(60, 0, 0)), "decoding"),
    "slow-disk": (dict(wait=45, read=(6, 54, 0), decode=(6, 54, 0)), "what is read from"),
    "slow-read": (dict(wait=15, read=(54, 6, 0), decode=(12, 48, 0)), "reading"),
}


def test_what_limits_a_worker_is_found(tmp_path):
    """The table's and the second panel's expressions, evaluated by Prometheus over workers of each kind."""
    series = []

    def add(name, labels, per_minute):
        text = ", ".join(f'{key}="{value}"' for key, value in labels.items())
        series.append({"series": f"headrace_loader_{name}{{{text}}}", "values": f"0+{per_minute}x9"})

    for pod, (use, _) in WORKERS.items():
        place = {"namespace": "n", "pod": pod}
        add("trainer_wait_seconds_total", {**place, "replica": 0}, use["wait"])
        add("trainer_wait_seconds_total", {**place, "replica": 1}, 0)
        for stage in ("read", "decode"):
            for state, seconds in zip(("busy", "blocked_on_input", "blocked_on_output"), use[stage]):
                add("stage_seconds_total", {**place, "stage": stage, "state": state}, seconds)

    panels = {panel["title"]: panel for panel in load(ROOT / "dashboards" / "loaders.json")["panels"]}

    def asks(title):
        expression = panels[title]["targets"][0]["expr"].replace("$__rate_interval", "5m")
        return re.sub(r"\$\w+", ".*", expression)

    each = [{"labels": f'{{namespace="n", pod="{pod}", limit="{limit}"}}', "value": use["wait"] / 60}
            for pod, (use, limit) in WORKERS.items()]  # fmt: skip
    counted = [{"labels": f'{{limit="{limit}"}}', "value": 1} for _, limit in WORKERS.values()]
    cases = [{"expr": asks("Workers, those first whose trainers wait longest"), "eval_time": "8m", "exp_samples": each},
             {"expr": asks("For what?"), "eval_time": "8m", "exp_samples": counted}]  # fmt: skip
    test = {"evaluation_interval": "1m", "tests": [{"interval": "1m", "input_series": series, "promql_expr_test": cases}]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(test))
    status, output = promtool("test", "rules", tmp_path / "test.yaml")
    assert status == 0 and "SUCCESS" in output, output
