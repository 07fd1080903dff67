"""cases.yaml, value by value; and that every value is documented, known to the schema and spelt right."""
import concurrent.futures
import json
import re
from pathlib import Path

import pytest
import yaml

from chart import CHART, attempt, render

CASES = yaml.safe_load((Path(__file__).parent / "cases.yaml").read_text())


@pytest.fixture(scope="module", autouse=True)
def rendered():
    """All cases, on all processors: what the tests then ask for is there."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(lambda case: attempt(case["set"]), CASES["rendered"] + CASES["refused"]))


def name_of(case):
    return re.sub(r"[^\w.=+-]+", " ", json.dumps(case["set"])).strip()[:60] or "default"


def at(value, path):
    """What lies at a path such as spec.ports.0.name; None where there is nothing."""
    for slashed, plain in re.findall(r"/(.*)/|([^.]+)", path):
        if isinstance(value, list):
            value = value[int(plain)] if int(plain) < len(value) else None
        elif value is not None:
            value = value.get(slashed or plain)
    return value


@pytest.mark.parametrize("case", CASES["rendered"], ids=name_of)
def test_rendered(case):
    found = [o for o in render(case["set"]) if o["kind"] == case["kind"]
             and case.get("name", o["metadata"]["name"]) == o["metadata"]["name"]]  # fmt: skip
    if case.get("absent"):
        assert not found
        return
    assert found, f"no {case['kind']}"
    if case["kind"] in ("ClusterRole", "ClusterRoleBinding"):
        found = found[:1]
    (item,) = found
    if "argument" in case:
        arguments = at(item, "spec.template.spec.containers.0.args")
        values = [a.split("=", 1)[1] for a in arguments if a.startswith(f"--{case['argument']}=")]
        assert values == [case["is"]]
    else:
        assert at(item, case["at"]) == case["is"]


@pytest.mark.parametrize("case", CASES["refused"], ids=name_of)
def test_refused(case):
    done = attempt(case["set"])
    assert done.returncode, "not refused"
    for word in case["message"]:
        assert word in done.stderr.replace("'", ""), done.stderr


def leaves(values, path=()):
    """Paths of values as values.yaml documents them: down to what is no map, or an empty one."""
    for key, value in values.items():
        if isinstance(value, dict) and value and (*path, key) != ("resources",):
            yield from leaves(value, (*path, key))
        else:
            yield (*path, key)




def test_every_value_is_in_the_schema_and_the_other_way_round():
    schema = json.loads((CHART / "values.schema.json").read_text())
    definitions = schema["definitions"]
    values = yaml.safe_load((CHART / "values.yaml").read_text())

    def names(schema, path):
        while "$ref" in schema:
            schema = definitions[schema["$ref"].rsplit("/", 1)[1]]
        return set(schema.get("properties", {})), schema

    def compare(schema, values, path):
        known, schema = names(schema, path)
        assert schema.get("additionalProperties") is False, f"{path}: unknown values are not refused"
        assert known - {"global"} == set(values), path
        for key, value in values.items():
            if isinstance(value, dict) and value and key != "resources":
                compare(schema["properties"][key], value, f"{path}.{key}")

    compare(schema, values, "")


def test_every_value_has_its_line():
    lines = (CHART / "values.yaml").read_text().splitlines()
    stack, documented = [], set()
    for before, line in zip(["", *lines], lines):
        match = re.match(r"( *)([A-Za-z]\w*):", line)
        if match:
            depth = len(match[1]) // 2
            stack = [*stack[:depth], match[2]]
            if before.strip().startswith("# "):
                documented.add(tuple(stack))
    missing = set(leaves(yaml.safe_load("\n".join(lines)))) - documented
    assert not missing, sorted(missing)
