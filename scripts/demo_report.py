#!/usr/bin/env python3
"""Reads the trainers' lines as they come ("[...digits-0-x/trainer] epoch ..." or "[worker 0] epoch ..."), shows the first
steps and then the progress, and at the end the batches of each replica, the loss as a curve, and the accuracy.

Exits with 1 if no accuracy was reported.
"""
import re
import sys
from collections import defaultdict

PREFIX = re.compile(r"^\[(?:pod/\w+?-(\d+)-\w+/\S+|worker (\d+))\] (.*)$")
STEP = re.compile(r"epoch +(\d+) step +(\d+) loss (\S+) \| (.*)$")
REPLICA = re.compile(r"replica (\d+): (\d+) rows, labels (.*?) \.\.$")
FIRST_STEPS = 2
WIDTH, HEIGHT = 66, 10


def plot(losses):
    """The curve of the mean loss of WIDTH equal parts of the run."""
    parts = min(WIDTH, len(losses))
    means = []
    for i in range(parts):
        part = losses[i * len(losses) // parts : (i + 1) * len(losses) // parts]
        means.append(sum(part) / len(part))
    top = max(means)
    for row in range(HEIGHT):
        upper, lower = top * (HEIGHT - row) / HEIGHT, top * (HEIGHT - row - 1) / HEIGHT
        marks = "".join("*" if lower < mean <= upper else " " for mean in means)
        print(f"  {upper:6.2f} |{marks}".rstrip())
    print("         +" + "-" * parts)
    print(f"          step 0{'':{max(1, parts - 12)}}{len(losses) - 1:5}")


def main():
    batches = defaultdict(lambda: [0, 0, []])  # (worker, replica) -> batches, rows, first labels
    losses, accuracy = [], None
    seen = defaultdict(int)
    for raw in sys.stdin:
        match = PREFIX.match(raw.rstrip("\n"))
        worker, line = (int(match[1] or match[2]), match[3]) if match else (0, raw.rstrip("\n"))
        step = STEP.search(line)
        if not step:
            if "test accuracy" in line:
                accuracy = line
            else:
                print(f"  worker {worker}: {line}", flush=True)
            continue
        for part in step[4].split(" | "):
            replica = REPLICA.match(part)
            if replica:
                entry = batches[worker, int(replica[1])]
                entry[0] += 1
                entry[1] += int(replica[2])
                if not entry[2]:
                    entry[2] = replica[3].split()
        if worker == 0:
            losses.append(float(step[3]))
        if seen[worker] < FIRST_STEPS:
            print(f"  worker {worker}: {line}", flush=True)
        elif worker == 0 and int(step[2]) == 0:
            print(f"  epoch {step[1]}: loss {step[3]}", flush=True)
        seen[worker] += 1

    print("\nThe batches that each replica got:\n")
    print("  worker  replica  batches   rows  labels of its first batch")
    for (worker, replica), (count, rows, labels) in sorted(batches.items()):
        print(f"  {worker:6}  {replica:7}  {count:7}  {rows:5}  {' '.join(labels)} ..")
    if losses:
        print(f"\nThe loss, {losses[0]:.3f} at the first step and {losses[-1]:.3f} at the last:\n")
        plot(losses)
    print(f"\n{accuracy or 'No accuracy was reported.'}\n")
    sys.exit(0 if accuracy else 1)


if __name__ == "__main__":
    main()
