"""Draws conformance cases without their `expect`: random pipelines, shapes of files, workers and replicas. A draw
depends on the seed and on its number alone, so that each can be drawn again by itself."""
import random

POLICIES = ("AUTO", "FILE", "DATA", "OFF", "HINT")
HINT = {"op": "shard", "num_shards": "SHARD_HINT", "index": "SHARD_HINT"}
BY_WORKER = {"op": "shard", "num_shards": "num_input_pipelines", "index": "input_pipeline_id"}


def draw_case(seed, number):
    return Draw(random.Random(f"{seed}/{number}"), f"draw-{seed}-{number:05}").case


class Draw:
    def __init__(self, rng, name):
        self._rng = rng
        self._endless = False
        function = rng.random() < 0.2
        self.case = {"name": name, "about": "Drawn at random.",
                     "api": "from_function" if function else "distribute_dataset"}
        self._source()
        self.case["workers"] = rng.choice((1, 1, 2, 2, 3, 4, 5))
        self.case["replicas_per_worker"] = rng.choice((1, 1, 2, 2, 3, 4))
        self._replicas = self.case["workers"] * self.case["replicas_per_worker"]
        if function:
            self._policy = None
            self.case["global_batch"] = self._global_batch()
        else:
            self._policy = self.case["policy"] = rng.choice(POLICIES)
        self.case["rebatch"] = self._rebatch()
        if self._files and self._chance(0.35):
            self.case["file_transforms"] = self._some(self._file_step, 2)
        self.case["transforms"] = self._transforms(function)
        if self._policy == "AUTO" and {"op": "enumerate"} in self.case["transforms"] and self._replicas > 1:
            self.case["rebatch"] = "PerBatch"  # numbered records are not sharded by file
        if self._endless:
            self.case["max_steps"] = rng.randint(1, 8)
        if self._chance(0.3):
            self.case["iterate"] = "get_next_as_optional"

    def _chance(self, probability):
        return self._rng.random() < probability

    def _some(self, step, most):
        return [step() for _ in range(self._rng.randint(0, most))]

    def _source(self):
        rng = self._rng
        self._files = self._chance(0.55)
        if not self._files:
            count = rng.choice((0, 1, rng.randint(2, 12), rng.randint(2, 40), rng.randint(2, 40)))
            self.case["source"] = {"kind": "range", "count": count}
            return
        most = rng.choice((0, 1, 4, 9, 9))
        sizes = [rng.randint(0, most) for _ in range(rng.randint(1, 7))]
        self._none_empty = 0 not in sizes
        files, first = [], 0
        for size in sizes:
            files.append(list(range(first, first + size)))
            first += size
        self.case["source"] = {"kind": "files", "files": files}

    def _global_batch(self):
        if self._chance(0.1):
            return self._rng.randint(1, 12)  # seldom whole per replica: an error
        return self._replicas * self._rng.randint(1, 4)

    def _rebatch(self):
        if self._replicas == 1 or self._policy is None:
            return None  # nothing is cut
        if self._policy == "DATA" or (self._policy == "AUTO" and not self._files):
            return "PerBatch"
        return self._rng.choice(("PerBatch", "Continuous"))

    def _transforms(self, function):
        rng, steps = self._rng, []
        if self._files and self._chance(0.35):
            steps.append({"op": "interleave", "cycle_length": rng.randint(1, 5), "block_length": rng.randint(1, 4)})
        steps += self._some(self._step, 3)
        if self._chance(0.12):
            steps.insert(rng.randint(int(bool(steps) and steps[0]["op"] == "interleave"), len(steps)),
                         {"op": "enumerate"})
        if not function and self._chance(0.04) and {"op": "enumerate"} not in steps:
            return steps  # nothing to cut: an error with several replicas
        if self._chance(0.12):
            steps.append({"op": "batch", "size": rng.randint(1, 4), "drop_remainder": self._chance(0.8)})
            steps += self._some(self._step, 1)
        size = "per_replica" if function else self._batch_size()
        steps.append({"op": "batch", "size": size, "drop_remainder": self._chance(0.3)})
        if self.case["rebatch"] == "PerBatch" and self._chance(0.1):
            steps.append({"op": "map_identity"})
        return steps + self._some(self._step, 2)

    def _batch_size(self):
        if self._chance(0.4):
            return self._replicas * self._rng.randint(1, 3)
        return self._rng.randint(1, 20)

    def _repeat(self, may_be_endless=True):
        count = self._rng.choice((-1, 0, 1, 2, 2, 3))
        if count == -1 and not may_be_endless:
            count = 2
        self._endless |= count == -1
        return {"op": "repeat", "count": count}

    def _counted(self, op):
        return {"op": op, "count": self._rng.choice((-1, 0, self._rng.randint(1, 5), self._rng.randint(1, 25)))}

    def _shard(self):
        if self._policy is None and self._chance(0.6):
            return dict(BY_WORKER)
        if self._policy == "HINT" and self._chance(0.7):
            return dict(HINT)
        if self._policy not in (None, "HINT") and self._chance(0.1):
            return dict(HINT)  # an error
        shards = self._rng.randint(1, 4)
        return {"op": "shard", "num_shards": shards, "index": self._rng.randrange(shards)}

    def _step(self):
        kind = self._rng.choice(("repeat", "take", "skip", "shard", "shard", "prefetch"))
        if kind == "repeat":
            return self._repeat()
        if kind == "shard":
            return self._shard()
        if kind == "prefetch":
            return {"op": "prefetch", "buffer_size": self._rng.randint(1, 4)}
        return self._counted(kind)

    def _file_step(self):
        # A list of empty files, repeated without end, has neither a next record nor an end.
        kind = self._rng.choice(("repeat", "repeat", "shard", "shard", "take", "skip"))
        if kind == "repeat":
            return self._repeat(may_be_endless=self._none_empty)
        return self._shard() if kind == "shard" else {"op": kind, "count": self._rng.randint(0, 7)}
