"""dashboards/loaders.json: do trainers wait for data, for which stage, at which rank."""
from panels import SHARES, bars, dashboard, lines, row, stat, table, variable

ALL = 'namespace=~"$namespace", pod=~"$pod"'
WORKER = "namespace, pod"
READ, DECODE = 'stage="read"', 'stage="decode"'


def metric(name, more=""):
    return f"headrace_loader_{name}{{{ALL}{', ' + more if more else ''}}}"


def rate(name, more=""):
    return f"rate({metric(name, more)}[$__rate_interval])"


def stage(name, state):
    """Seconds a second of one worker: a share of the time for `read`, which is one thread."""
    return f"sum by ({WORKER}) (" + rate("stage_seconds_total", f'stage="{name}", state="{state}"') + ")"


WAIT = f"max by ({WORKER}) ({rate('trainer_wait_seconds_total')})"


def limits():
    """The wait of each worker's trainers, labelled with what limits that worker, as cli/verdict.cc judges in the main."""
    label = lambda expr, limit: f'label_replace({expr}, "limit", "{limit}", "", "")'
    waits = lambda condition: f"{WAIT} and on ({WORKER}) ({condition})"
    return f" or on ({WORKER}) ".join([
        label(f"{WAIT} < 0.05", "nothing: the data keeps up"),
        label(waits(stage("read", "blocked_on_output") + " > " + stage("decode", "blocked_on_input")), "decoding"),
        label(waits(stage("read", "blocked_on_input") + " > " + stage("read", "busy")), "what is read from"),
        label(WAIT, "reading"),
    ])


def by_worker(name, **more):
    return f"sum by ({WORKER}) ({rate(name)})"


def per_replica(name):
    return f"sum by ({WORKER}, replica) ({rate(name)})", "{{pod}} replica {{replica}}"


PANELS = [
    stat("Do trainers wait?", "Share of its time for which the replica that waits most is blocked in next(). Green: the data "
         "keeps up.", f"max({rate('trainer_wait_seconds_total')})", "percentunit", 4, 6, thresholds=SHARES),
    stat("For what?", "Workers by what limits them: storage or a dataset function, from which is read; the thread that "
         "reads; the threads that decode; or nothing of the loader, since its trainers do not wait. `headrace top` judges a "
         "single worker more finely.", f"count by (limit) ({limits()})", "none", 8, 6, "{{limit}}"),
    bars("Which ranks? The ten that wait most", "Share of its time for which next() of this worker's replica was blocked by an "
         "empty ring.", f"topk(10, {per_replica('trainer_wait_seconds_total')[0]})", "{{pod}} replica {{replica}}",
         width=12, height=6, thresholds=SHARES, min=0, max=1),
    table("Workers, those first whose trainers wait longest", "What limits each worker, and the share of its time for which "
          "the replica that waits most is blocked. The fifty worst.", f"sort_desc(topk(50, {limits()}))",
          ["namespace", "pod", "limit"], value="trainers wait", unit="percentunit", width=12, thresholds=SHARES),
    lines("Trainers wait for data", "Share of the time that replicas' next() is blocked by an empty ring: the one that waits "
          "most, and the middle one. Both high: all are short of data. The first alone: look at that worker.",
          (f"max({rate('trainer_wait_seconds_total')})", "most"),
          (f"quantile(0.5, {rate('trainer_wait_seconds_total')})", "median"), unit="percentunit", max=1),

    row("What is delivered"),
    stat("Loaders", "Loaders that Prometheus scrapes.", f"count({metric('info')})", width=4),
    stat("Batches", "Batches handed over, all replicas together.", f"sum({rate('batches_total')})", "ops", 5),
    stat("Records", "Records handed over, all replicas together.", f"sum({rate('records_total')})", "rowsps", 5),
    stat("Bytes", "Bytes of tensors handed over, all replicas together.", f"sum({rate('bytes_total')})", "Bps", 5),
    stat("Bad records left out", "Records that spec.onError left out of their batches, since the loaders began.",
         f"sum({metric('skipped_records_total')})", "short", 5),
    lines("Batches per second, by worker", "Batches handed to the replicas of each worker, those without records among them.",
          (by_worker("batches_total"), "{{pod}}"), unit="ops"),
    lines("Bytes per second, by worker", "Bytes of tensors handed to the replicas of each worker.",
          (by_worker("bytes_total"), "{{pod}}"), unit="Bps"),
    lines("Records per second, by worker", "Records handed to the replicas of each worker.",
          (by_worker("records_total"), "{{pod}}"), unit="rowsps"),
    lines("Epoch, by worker", "The epoch that each loader is producing, from 0.", (metric("epoch"), "{{pod}}"), unit="none"),

    row("Each replica"),
    lines("Trainers wait for data, by replica", "Share of time that each replica's next() is blocked by an empty ring. High: the "
          "loader or its storage is too slow.", per_replica("trainer_wait_seconds_total"), unit="percentunit"),
    lines("Loaders wait for trainers, by replica", "Share of time that each loader is blocked by a replica's full ring. High: the "
          "trainer is the bottleneck, and the data keeps up.", per_replica("ring_full_seconds_total"), unit="percentunit"),
    lines("Ring occupancy", "Batches ready for each replica, as a share of what its ring can hold. Near 0: trainers are about to "
          "wait.", (f"{metric('ring_batches')} / {metric('ring_slots')}", "{{pod}} replica {{replica}}"),
          unit="percentunit", width=24, max=1),

    row("Each stage: storage -> read -> decode -> ring"),
    lines("Where the time goes: reading", "The thread that reads, shuffles and batches, as a share of the time, on the average of "
          "the workers: at work; waiting for storage or a dataset function; waiting for those who decode.",
          (f"avg by (state) ({rate('stage_seconds_total', READ)})", "{{state}}"),
          unit="percentunit"),
    lines("Where the time goes: decoding", "The threads that decode and fill the rings, in threads, summed over the workers: at "
          "work; nothing in work since reading has nothing more; waiting for room in a full ring.",
          (f"sum by (state) ({rate('stage_seconds_total', DECODE)})", "{{state}}"),
          (f"sum({metric('decode_threads')})", "threads")),
    lines("Threads that decode, by worker", "As many as the loader's CPU limit gives while a trainer waits; given back when none "
          "does.", (metric("decode_threads"), "{{pod}}")),
    lines("Bytes read from the source, by worker", "Bytes that each loader reads from its files. 0 for inputs without files.",
          (by_worker("bytes_read_total"), "{{pod}}"), unit="Bps"),
    lines("Bad records left out, by worker", "Records that spec.onError left out of their batches; the loader lists them in "
          "quarantine.jsonl.", (f"sum by ({WORKER}) ({metric('skipped_records_total')})", "{{pod}}")),
    table("Loaders", "Input, effective sharding policy and version of each loader.", metric("info"),
          ["namespace", "input", "pod", "policy", "plan", "version"], width=12),
]


def make():
    return dashboard(
        "headrace-loaders", "Headrace loaders", "Whether trainers wait for data, for which stage of their loaders, and at "
        "which rank. What to do about it: docs/observability.md.",
        [variable("namespace", "Namespace", "label_values(headrace_loader_info, namespace)"),
         variable("input", "Input", 'label_values(headrace_loader_info{namespace=~"$namespace"}, input)'),
         variable("pod", "Worker (pod)", 'label_values(headrace_loader_info{namespace=~"$namespace", input=~"$input"}, pod)')],
        PANELS)
