#!/usr/bin/env python3
"""Writes dashboards/*.json from the panels described here; --check only says which file differs from what would be written.

    python3 scripts/dashboards [--check]
"""
import json
import sys
from pathlib import Path

import controller
import loaders

FOLDER = Path(__file__).resolve().parents[2] / "dashboards"


def main():
    different = []
    for name, module in (("loaders", loaders), ("operator", controller)):
        path, text = FOLDER / f"{name}.json", json.dumps(module.make(), indent=2) + "\n"
        if not path.exists() or path.read_text() != text:
            different.append(path.name)
            if "--check" not in sys.argv:
                path.write_text(text)
    if different and "--check" in sys.argv:
        sys.exit(f"dashboards/{', '.join(different)}: not what scripts/dashboards writes: run python3 scripts/dashboards")


main()
