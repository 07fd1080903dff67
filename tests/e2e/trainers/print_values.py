"""A trainer that prints what its replicas get, one JSON line a step; the last line says that the data ended.

STEP_SECONDS (0): work between two steps. MAX_STEPS (none): stops there. An error of the data is printed and ends it with 3.
"""
import json
import os
import sys
import time

import headrace


def records(batch):
    """The batch's records: a value, or the list of a record's components."""
    components = [batch[name].numpy().tolist() for name in batch]
    return components[0] if len(components) == 1 else [list(record) for record in zip(*components)]


def main():
    pause = float(os.environ.get("STEP_SECONDS", "0"))
    limit = int(os.environ.get("MAX_STEPS", "-1"))
    began = time.monotonic()
    try:
        dataset = headrace.connect()
        for step, per_replica in enumerate(dataset):
            if step == limit:
                break
            print(json.dumps({"step": step, "replicas": [records(batch) for batch in per_replica]}), flush=True)
            time.sleep(pause)
    except headrace.Error as error:
        print(json.dumps({"error": str(error), "seconds": time.monotonic() - began}), flush=True)
        sys.exit(3)
    print(json.dumps({"end": True}), flush=True)


main()
