#!/usr/bin/env python3
"""Loads dashboards into Grafana's published types: grafana_types.py FILE.json...

Prints a line for each key that the types do not know, for each value that is not of its field's type, and for each kind
of panel or query that has no type; status 1 if there are any. Needs the packages of requirements.txt.
"""
import enum
import json
import sys
import typing

from grafana_foundation_sdk.cog import runtime
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models import dashboard


def fits(value, hint):
    """Whether a value, with all that is in it, is of a type. What is one of the models is looked at by `misfits`."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return any(fits(value, choice) for choice in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(item, arguments[1]) for item in value.values())
    if hint in (typing.Any, object):
        return True
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in [member.value for member in hint]
    if hint is float:
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if isinstance(hint, type):
        # Some models keep parts as plain maps, which stand for the model.
        return isinstance(value, hint) or (isinstance(value, dict) and hasattr(hint, "from_json"))
    return True


def misfits(model, where):
    """Fields of a model, and of the models in it, whose values are not of their types."""
    if isinstance(model, list):
        for index, item in enumerate(model):
            yield from misfits(item, f"{where}[{index}]")
    elif isinstance(model, runtime.UnknownDataquery):
        yield f"{where}: a query for a data source that Grafana does not know"
    elif hasattr(type(model), "from_json") and not isinstance(model, enum.Enum):
        for name, hint in typing.get_type_hints(type(model)).items():
            value = getattr(model, name)
            if not fits(value, hint):
                yield f"{where}.{name}: {value!r} is not {hint}"
            yield from misfits(value, f"{where}.{name}")


def lost(given, kept, where):
    """Keys that the types did not take over."""
    if isinstance(given, dict) and isinstance(kept, dict):
        for key, value in given.items():
            if key in kept:
                yield from lost(value, kept[key], f"{where}.{key}")
            elif value is not None:
                yield f"{where}.{key}: no such field"
    elif isinstance(given, list) and isinstance(kept, list) and len(given) == len(kept):
        for index, (ours, theirs) in enumerate(zip(given, kept)):
            yield from lost(ours, theirs, f"{where}[{index}]")
    elif given != kept:
        yield f"{where}: {given!r} became {kept!r}"


def problems(given):
    for panel in given["panels"]:
        if panel["type"] != "row" and runtime.panelcfg_config(panel["type"]) is None:
            yield f"panel {panel['title']!r}: {panel['type']!r} is no kind of panel"
    model = dashboard.Dashboard.from_json(given)
    yield from misfits(model, "dashboard")
    yield from lost(given, json.loads(json.dumps(model, cls=JSONEncoder)), "dashboard")


def main():
    register_default_plugins()
    found = 0
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            for problem in problems(json.load(file)):
                print(f"{path}: {problem}")
                found += 1
    sys.exit(1 if found else 0)


main()
