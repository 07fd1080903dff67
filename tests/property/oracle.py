#!/usr/bin/env python3
"""What TensorFlow gives for conformance cases: reads cases, one JSON object a line, and writes them with `expect`,
`element_spec`, `warning_contains` and `oracle` as TensorFlow has them. Runs in the environment of requirements.txt.

    oracle.py CASES.jsonl OUT.jsonl
"""
import faulthandler
import json
import os
import sys
import tempfile

os.environ.update(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="0", TF_CPP_VMODULE="auto_shard=2",
                  TF_ENABLE_ONEDNN_OPTS="0")

import tensorflow as tf
from tensorflow.python.distribute import input_lib

import datasets
import host_iterator

MOST_REPLICAS = 5
MOST_SECONDS = 300  # for one case
MOST_STEPS = 1000  # no case is longer: a case that forgot max_steps must not run for ever
FALL_BACK = ("AUTO sharding policy will apply DATA sharding policy as it failed to apply FILE sharding policy because "
             "of the following reason: ")
strategies = {}


class StandardError:
    """What TensorFlow logged since this was made: its C++ side writes to file descriptor 2."""

    def __init__(self):
        self._kept = os.dup(2)
        self._file = tempfile.TemporaryFile()
        os.dup2(self._file.fileno(), 2)

    def end(self):
        os.dup2(self._kept, 2)
        os.close(self._kept)
        self._file.seek(0)
        return self._file.read().decode(errors="replace")


def strategy_of(replicas, multi_worker):
    """A MirroredStrategy over logical CPU devices. With `multi_worker` it says that it is one worker of several, as
    MultiWorkerMirroredStrategy does; its reduction stays within the worker, so that its own iterator ends it."""
    key = (replicas, multi_worker)
    if key not in strategies:
        strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
        if multi_worker:
            strategy.extended._in_multi_worker_mode = lambda: True
            strategy.reduce = lambda op, value, axis: value
        strategies[key] = strategy
    return strategies[key]


class Worker:
    """One worker's distributed data set: made at once, iterated as often as asked. `dataset` is None
    for from_function, whose function builds its own."""

    def __init__(self, case, paths, index, dataset):
        workers, replicas = case["workers"], case["replicas_per_worker"]
        self._most = case.get("max_steps", MOST_STEPS)
        self._strategy = strategy_of(replicas, workers > 1)
        self.context = tf.distribute.InputContext(workers, index, workers * replicas)
        self.seen_context = None
        self.steps_before_error = 0
        if dataset is None:
            self._dataset = self._from_function(case, paths)
        else:
            self._dataset = self._distribute(dataset)
        self.element_spec = self._one_replica(self._dataset.element_spec)

    def _distribute(self, dataset):
        if self.context.num_input_pipelines == 1:
            return self._strategy.experimental_distribute_dataset(dataset)
        # As CollectiveAllReduceExtended._experimental_distribute_dataset does on this worker.
        return input_lib.DistributedDataset(self._input_workers(), self._strategy, dataset=dataset,
                                            num_replicas_in_sync=self.context.num_replicas_in_sync,
                                            input_context=self.context)

    def _from_function(self, case, paths):
        def dataset_fn(context):
            self.seen_context = {name: getattr(context, name)
                                 for name in ("num_input_pipelines", "input_pipeline_id", "num_replicas_in_sync")}
            size = context.get_per_replica_batch_size(case["global_batch"])
            self.seen_context["per_replica_batch_size"] = size
            return datasets.PipelineBuilder(case, paths, context).build()

        if self.context.num_input_pipelines == 1:
            return self._strategy.distribute_datasets_from_function(dataset_fn)
        return input_lib.DistributedDatasetsFromFunction(self._input_workers(), self._strategy,
                                                         input_contexts=[self.context], dataset_fn=dataset_fn)

    def _input_workers(self):
        return self._strategy.extended._input_workers_with_options(None)

    def _one_replica(self, spec):
        """The first replica's part of a per-replica spec: all replicas have the same."""
        first = lambda part: part._value_specs[0] if hasattr(part, "_value_specs") else part
        return tuple(first(part) for part in spec) if isinstance(spec, tuple) else first(spec)

    def _records(self, value):
        local = self._strategy.experimental_local_results
        replicas = zip(*map(local, value)) if isinstance(value, tuple) else local(value)
        lists = [[tensor.numpy().tolist() for tensor in tf.nest.flatten(tensors)] for tensors in replicas]
        return [one[0] if len(one) == 1 else [list(record) for record in zip(*one)] for one in lists]

    def steps(self, as_optional):
        """What next(), or get_next_as_optional(), gives until the end: [step][replica] is a list of records."""
        iterator, steps = iter(self._dataset), []
        while len(steps) < self._most:
            try:
                if as_optional:
                    optional = iterator.get_next_as_optional()
                    if not optional.has_value():
                        return steps
                    value = optional.get_value()
                else:
                    value = next(iterator)
            except (tf.errors.OutOfRangeError, StopIteration):
                return steps
            except tf.errors.OpError:
                self.steps_before_error = len(steps)
                raise
            steps.append(self._records(value))
        if self._most == MOST_STEPS:
            raise RuntimeError(f"{MOST_STEPS} steps and no end: the case lacks max_steps")
        return steps


def needs_forgetting(case, dataset):
    """Whether TensorFlow would join the batches, though the case says that each is cut on its own. Where the replicas
    divide a static batch dimension both cuts are one, and the element_spec is the plain data set's."""
    replicas = case["workers"] * case["replicas_per_worker"]
    static = {spec.shape[0] if spec.shape.rank else None for spec in tf.nest.flatten(dataset.element_spec)}
    batched = any(step["op"] == "batch" for step in case["transforms"])
    return batched and case["policy"] != "DATA" and (len(static) > 1 or None in static or static.pop() % replicas != 0)


def kind_of(error):
    name = type(error).__name__
    return name.removesuffix("Error") if isinstance(error, tf.errors.OpError) else name


def spec_text(spec):
    plain = lambda part: str(tf.TensorSpec(part.shape, part.dtype))
    return "(" + ", ".join(map(plain, spec)) + ")" if isinstance(spec, tuple) else plain(spec)


class Answer:
    """Collects what TensorFlow does with one case."""

    def __init__(self, case, paths):
        self._case = case
        self._paths = paths
        self._errors = {}  # worker -> (when, kind, message)
        self.expect = {}
        self.element_spec = None
        self.cardinality = None  # TensorFlow's, of the whole pipeline
        self.steps_before_error = None
        self._run()

    def _run(self):
        dataset = None
        if self._case["api"] == "distribute_dataset":
            dataset = datasets.PipelineBuilder(self._case, self._paths).build()
            self.cardinality = int(dataset.cardinality())
            if self._case["rebatch"] == "PerBatch" and needs_forgetting(self._case, dataset):
                dataset = datasets.forget_batch_size(dataset)
        make = lambda w: Worker(self._case, self._paths, w, dataset)
        workers = self._attempt("create", make, range(self._case["workers"]))
        if workers and None not in workers:
            self.element_spec = spec_text(workers[0].element_spec)
        one = self._case["workers"] == 1
        # MultiWorkerMirroredStrategy's next() ends in a collective, get_next_as_optional() is the same without an error.
        steps = self._attempt("iterate", lambda worker: worker and worker.steps(as_optional=not one), workers)
        if self._errors:
            self._fail(workers, steps)
            return
        self.expect["steps"] = steps
        self.expect["global_steps"] = None if "max_steps" in self._case else max(map(len, steps))
        if one:
            optional = [workers[0].steps(as_optional=True)]
            if optional != steps:
                self.expect["optional_steps"] = optional
        if self._case["api"] == "from_function":
            self.expect["contexts"] = [worker.seen_context for worker in workers]

    def _attempt(self, when, call, items):
        results = []
        for w, item in enumerate(items):
            try:
                results.append(call(item))
            except (tf.errors.OpError, ValueError, IndexError, TypeError) as error:
                self._errors[w] = (when, kind_of(error), str(error))
                results.append(None)
        return results

    def _fail(self, workers, steps):
        when, kind, message = next(iter(self._errors.values()))
        self.expect.update(error=kind, error_when=when, error_workers=sorted(self._errors), message_contains=message)
        if when == "iterate":
            self.steps_before_error = [worker.steps_before_error for worker in workers]
            if len(self._errors) < self._case["workers"]:
                self.expect["steps"] = steps


def answer(case):
    """The case with TensorFlow's answer in place of any that it had."""
    out = {key: value for key, value in case.items()
           if key not in ("expect", "element_spec", "warning_contains", "oracle")}
    if case["api"] == "values_from_function":
        value_fn = lambda context: 1.0 if case["value"] == "constant" else context.replica_id_in_sync_group
        strategy = strategy_of(case["replicas_per_worker"], False)
        values = strategy.experimental_distribute_values_from_function(value_fn)
        return out | {"expect": {"values": list(strategy.experimental_local_results(values))}, "oracle": "mirrored"}
    log = StandardError()
    with tempfile.TemporaryDirectory() as folder:
        try:
            paths = datasets.write_files(case, folder) if case["source"]["kind"] == "files" else []
            result = Answer(case, paths)
        finally:
            logged = log.end()
    policy = case.get("policy")
    if case["api"] == "distribute_dataset" and result.expect.get("error_when") != "create":
        fell_back = policy == "AUTO" and FALL_BACK in logged
        result.expect["policy_applied"] = "DATA" if fell_back else "FILE" if policy == "AUTO" else policy
        if fell_back:
            out["warning_contains"] = FALL_BACK + logged.split(FALL_BACK)[1].split(":")[0].split("\n")[0]
    if result.element_spec:
        out["element_spec"] = result.element_spec
    if result.cardinality is not None:
        out["cardinality"] = result.cardinality
    out["expect"] = result.expect
    if result.steps_before_error is not None:
        out["steps_before_error"] = result.steps_before_error
    out["oracle"] = "mirrored" if case["workers"] == 1 else "ops"
    return out


def main():
    source, target = sys.argv[1:]
    host_iterator.install()
    cpus = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * MOST_REPLICAS)
    trace = os.fdopen(os.dup(2), "w")  # descriptor 2 itself leads elsewhere while a case runs
    with open(source, encoding="utf-8") as cases, open(target, "w", encoding="utf-8") as out:
        for line in cases:
            faulthandler.dump_traceback_later(MOST_SECONDS, exit=True, file=trace)
            out.write(json.dumps(answer(json.loads(line)), separators=(",", ":")) + "\n")
            out.flush()


if __name__ == "__main__":
    main()
