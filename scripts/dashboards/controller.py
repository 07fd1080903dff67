"""dashboards/operator.json: are inputs served, are pods injected, does the operator keep up."""
from panels import GREEN, RED, YELLOW, bars, dashboard, lines, row, stat, variable

POD = 'namespace=~"$namespace", pod=~"$pod"'
CONTROLLER = 'controller="distributedinput"'
NONE_IS_GOOD = [(GREEN, None), (RED, 1)]


def metric(name, more=""):
    return f"{name}{{{POD}{', ' + more if more else ''}}}"


def rate(name, more="", by=""):
    return f"sum{f' by ({by})' if by else ''} (rate({metric(name, more)}[$__rate_interval]))"


def seldom(expr):
    """Of a series that begins with the first event: 0 before."""
    return f"{expr} or vector(0)"


def quantiles(name, more="", by=""):
    """The median and the 99th percentile of a histogram, over all replicas."""
    group = f"le, {by}" if by else "le"
    each = f"{{{{{by}}}}} " if by else ""
    buckets = f"sum by ({group}) (rate({metric(name + '_bucket', more)}[$__rate_interval]))"
    return [(f"histogram_quantile({q}, {buckets})", f"{each}{text}") for q, text in ((0.5, "P50"), (0.99, "P99"))]


def inputs(condition, status):
    """Every replica counts the inputs of its cache; the standby's count is the leader's."""
    which = f'condition="{condition}", status="{status}"'
    return f"max({metric('headrace_operator_inputs', which)})"


REFUSED = metric("headrace_webhook_injections_total", 'result=~"denied|error"')
PANELS = [
    stat("Inputs ready", "Inputs whose plan and Service are there, and whose loaders, if a run has some, are ready.",
         inputs("Ready", "True")),
    stat("Inputs refused", "Inputs whose spec is not valid: kubectl describe distributedinput says why.",
         inputs("Accepted", "False"), thresholds=NONE_IS_GOOD),
    stat("Inputs degraded", "Inputs of which a loader ended with an error.", inputs("Degraded", "True"),
         thresholds=NONE_IS_GOOD),
    stat("Pods refused", "Pods that the webhook refused within the last hour; their controllers try again.",
         seldom(f"sum(increase({REFUSED}[1h]))"),
         thresholds=[(GREEN, None), (YELLOW, 1), (RED, 100)]),
    stat("Replicas", "Operator pods that Prometheus scrapes; each answers the webhook.",
         f"count(count by (namespace, pod) ({metric('workqueue_depth', CONTROLLER)}))",
         thresholds=[(RED, None), (YELLOW, 1), (GREEN, 2)]),
    stat("Leaders", "Replicas that reconcile: one, but for the seconds of an election.",
         f"sum({metric('leader_election_master_status')})", thresholds=[(RED, None), (GREEN, 1), (RED, 2)]),

    row("Injection"),
    lines("Pods by outcome", "Pods and Job templates that the webhook reviewed a second: injected, skipped, denied or error, and "
          "why. The reasons: docs/operator_metrics.md.",
          (rate("headrace_webhook_injections_total", by="result, reason"), "{{result}} {{reason}}"), unit="reqps"),
    bars("Why pods were refused", "Pods refused within the last hour, by reason.",
         f"sum by (reason) (increase({REFUSED}[1h]))", "{{reason}}", unit="short", width=12, height=8, min=0),
    lines("Admission latency", "From the request's last byte to the answer. The API server waits for it as long as "
          "webhook.timeoutSeconds says.", *quantiles("controller_runtime_webhook_latency_seconds", by="webhook"), unit="s"),
    lines("Admission requests", "Requests a second by HTTP status, and those being answered. All but 200 are faults.",
          (rate("controller_runtime_webhook_requests_total", by="code"), "{{code}}"),
          (f"sum({metric('controller_runtime_webhook_requests_in_flight')})", "in flight"), unit="short"),

    row("Reconciliation"),
    lines("Inputs by condition", "Conditions of all inputs, as kubectl get distributedinputs shows them.",
          (f"max by (condition, status) ({metric('headrace_operator_inputs')})", "{{condition}} {{status}}"), unit="short"),
    lines("Reconciliations", "A second, by result.",
          (rate("controller_runtime_reconcile_total", CONTROLLER, "result"), "{{result}}"), unit="ops"),
    lines("Failures", "Reconciliations that failed; those of them that are not tried again before the object changes; and "
          "exceptions, which are bugs.",
          (rate("controller_runtime_reconcile_errors_total", CONTROLLER), "errors"),
          (rate("controller_runtime_terminal_reconcile_errors_total", CONTROLLER), "terminal"),
          (rate("controller_runtime_reconcile_panics_total", CONTROLLER), "exceptions"), unit="ops"),
    lines("Length of a reconciliation", "Most of it is the API server's answers.",
          *quantiles("controller_runtime_reconcile_time_seconds", CONTROLLER), unit="s"),
    lines("Queue", "Inputs that wait for a worker, by priority: 0 has changed, -100 was there before its replica led; standbys "
          "keep all inputs so; -200 has its status, and what no pod uses yet is put off. One of 0 that only grows: too few "
          "workers, or a slow API server.",
          (f"sum by (priority) ({metric('workqueue_depth', CONTROLLER)})", "waiting, {{priority}}"),
          (rate("workqueue_adds_total", CONTROLLER), "added per second"),
          (rate("workqueue_retries_total", CONTROLLER), "tried again per second")),
    lines("Time in the queue", "How long inputs wait for a worker, and how long it has them.",
          *[(expr, f"waits {legend}") for expr, legend in quantiles("workqueue_queue_duration_seconds", CONTROLLER)],
          *[(expr, f"worked on {legend}") for expr, legend in quantiles("workqueue_work_duration_seconds", CONTROLLER)],
          unit="s"),
    lines("Work in progress", "Age of the oldest, and the sum of the ages. A growing one hangs.",
          (f"max({metric('workqueue_longest_running_processor_seconds', CONTROLLER)})", "oldest"),
          (f"sum({metric('workqueue_unfinished_work_seconds', CONTROLLER)})", "all"), unit="s"),
    lines("Workers", "At work, and how many there are (operator.workers).",
          (f"sum({metric('controller_runtime_active_workers', CONTROLLER)})", "at work"),
          (f"sum({metric('controller_runtime_max_concurrent_reconciles', CONTROLLER)})", "there are")),
    lines("Objects written", "What reconciliations wanted to be, a second: written, or found as it should be.",
          (rate("headrace_operator_writes_total", by="resource, result"), "{{resource}} {{result}}"), width=24, unit="ops"),

    row("API server"),
    lines("Requests", "Requests a second by method and status; <error> where no reply came.",
          (rate("rest_client_requests_total", by="method, code"), "{{method}} {{code}}"), unit="reqps"),
    lines("Length of requests", "The 99th percentile, by verb. Watches count until they end.",
          quantiles("rest_client_request_duration_seconds", by="verb")[1], unit="s"),
    lines("Sent again", "Requests a second that the API server put off (429 or 503 with Retry-After), and Events given up since "
          "too many were waiting.", (seldom(rate("rest_client_request_retries_total")), "requests sent again"),
          (seldom(rate("headrace_operator_events_dropped_total")), "events dropped"), unit="ops"),
    lines("Lists and watches that ended", "A watch ends every few minutes; many a minute mean that the API server is not well, or "
          "closes connections.",
          (rate("headrace_operator_informer_calls_total", by="resource, verb, result"), "{{resource}} {{verb}} {{result}}"),
          unit="ops"),

    row("The process"),
    lines("Memory", "Resident, of each replica. Follows the number of inputs and of pods that use them.",
          (metric("process_resident_memory_bytes"), "{{pod}}"), unit="bytes"),
    lines("CPU", "Of each replica, in CPUs.", (f"rate({metric('process_cpu_seconds_total')}[$__rate_interval])", "{{pod}}")),
    lines("Objects in the cache", "By resource.",
          (f"max by (resource) ({metric('headrace_operator_cached_objects')})", "{{resource}}")),
    lines("Leadership", "1 where a replica leads.", (metric("leader_election_master_status"), "{{pod}}"), unit="none", max=1),
]


def make():
    known = f"workqueue_depth{{{CONTROLLER}"
    return dashboard(
        "headrace-operator", "Headrace operator", "Whether inputs are served, pods injected, and the operator keeps up. What "
        "the metrics are: docs/operator_metrics.md; alerts and what to do: docs/runbooks.md.",
        [variable("namespace", "Namespace", f"label_values({known}}}, namespace)"),
         variable("pod", "Replica (pod)", f"label_values({known}, namespace=~\"$namespace\"}}, pod)")],
        PANELS)
