"""Where Headrace differs from TensorFlow 2.21 on purpose, as rules over cases and TensorFlow's answers. README.md has the
reasons at length. A rule never looks at a case's name."""
from draw import HINT

ERRORS_EARLY = "Headrace refuses before a step what TensorFlow finds only when an element is asked for"
HINT_CARDINALITY = "TensorFlow counts shard(SHARD_HINT) as shard(-1, -1) and takes a finite data set for endless or empty"
UNEVEN_BATCHES = "joining batches of different sizes is an error where the data shows it, on the workers that have it"
SECOND_HINT = "a second shard(SHARD_HINT) shards what is one worker's already, and Headrace wants an element for each"


def steps_of(case):
    return case.get("file_transforms", []) + case["transforms"]


def listed_files(case):
    """How many names the list of files holds after its own transforms, up to the number of workers."""
    count = len(case["source"]["files"])
    for step in case.get("file_transforms", []):
        if step["op"] == "repeat":
            count = count * step["count"] if step["count"] >= 0 else (case["workers"] if count else 0)
        elif step["op"] == "take":
            count = min(count, step["count"])
        elif step["op"] == "skip":
            count = max(0, count - step["count"])
        elif step["op"] == "shard" and step != HINT:
            count = len(range(step["index"], count, step["num_shards"]))
    return count


def refused_early(case):
    """Whether Headrace must refuse the case by its spec and the list of its files, whatever is read."""
    if case["api"] != "distribute_dataset":
        return False
    if case["policy"] != "HINT" and HINT in steps_of(case):
        return True
    by_file = case["expect"].get("policy_applied") == "FILE" and case["workers"] > 1
    return by_file and case["source"]["kind"] == "files" and listed_files(case) < case["workers"]


def counted_wrong(case):
    """`cardinality` is what TensorFlow believes: -1 is endless, 0 is empty. It knows when it counts no files."""
    if HINT not in steps_of(case) or "error" in case["expect"]:
        return False
    believed, endless = case["cardinality"], any(s.get("count") == -1 and s["op"] == "repeat" for s in steps_of(case))
    return (believed == -1 and not endless) or (believed == 0 and any(case["expect"]["steps"]))


def stopped_by_data(case):
    """Whether an uneven inner batch is the error, and not on every worker's first step, or in what is passed over."""
    ops = [step["op"] for step in case["transforms"]]
    expect = case["expect"]
    if ops.count("batch") < 2 or expect.get("error_when") != "iterate":
        return False
    joined = len(ops) - ops[::-1].index("batch")
    # What comes before the first element that is delivered: a shard of index 0 passes over nothing there.
    passed_over = any(s["op"] == "skip" and s["count"] != 0 or s["op"] == "shard" and s["index"] != 0
                      for s in case["transforms"][joined:])
    return passed_over or len(expect["error_workers"]) < case["workers"] or any(case["steps_before_error"])


def difference(case):
    """(reason, the case as Headrace must answer it or None where that cannot be said); None where both must agree."""
    expect = case["expect"]
    everywhere = list(range(case["workers"]))
    if refused_early(case) and expect.get("error_workers") != everywhere:
        return ERRORS_EARLY, {**case, "expect": {"error": "InvalidArgument", "error_when": "create",
                                                 "error_workers": everywhere}}
    if steps_of(case).count(HINT) > 1:
        return SECOND_HINT, None
    if counted_wrong(case):
        return HINT_CARDINALITY, None
    if stopped_by_data(case):
        return UNEVEN_BATCHES, None
    return None
