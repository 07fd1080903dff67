"""The lines of the output: one a measured loader, and at the end one a figure."""
import floors
from workloads import FIRST_BATCH_MS, NEXT_C_US, NEXT_P99_OF_MEDIAN, NEXT_PYTHON_US, Goal

WITHIN = Goal(1, at_most=True)


def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def heading():
    return (f"{'loader':28}{'records/s':>13}{'+-%':>5}{'MB/s':>8}{'CPU s/M':>9}{'cores':>7}{'first ms':>10}{'RSS MB':>8}"
            f"{'anon':>7}{'shm':>7}{'p50 us':>9}{'p99 us':>9}")


def line(name, figures, record_bytes):
    rate = figures["records_per_s"]
    return (f"{name:28}{rate:13,.0f}{figures['spread'] * 100:5.0f}{rate * record_bytes / 1e6:8.0f}"
            f"{figures['cpu_s_per_million']:9.3g}{figures['cores']:7.2f}{figures['first_batch_ms']:10.0f}"
            f"{figures['rss_mb']:8.0f}{figures['anon_mb']:7.0f}{figures['shmem_mb']:7.0f}"
            f"{figures['next_p50_us']:9.1f}{figures['next_p99_us']:9.1f}")


def best(workload, peers):
    """(name, figures) of the fastest loader among the peers measured: {name: figures}; None if there is none."""
    loaders = [peer.name for peer in workload.peers if peer.loader and peer.name in peers]
    if workload.pause_ms:
        return min(((name, peers[name]) for name in loaders), key=lambda one: one[1]["next_p50_us"], default=None)
    return max(((name, peers[name]) for name in loaders), key=lambda one: one[1]["records_per_s"], default=None)


class Table:
    """Rows in the order in which they are added."""

    HEAD = ("", "figure", "headrace", "best peer", "", "ratio", "goal", "limit", "", "ratio", "goal")
    RIGHT = (False, False, True, True, False, True, False, True, False, True, False)

    def __init__(self):
        self.rows = [self.HEAD]

    def add(self, name, figure, value, peer=None, of_best=None, limit=None, of_limit=None):
        """`peer`: (name, its value). `limit`: (name, its value, the value to hold to it, a unit)."""
        row = [name, figure, "-" if value is None else number(value)]
        row += [number(peer[1]), peer[0]] if peer else ["-", ""]
        row += [number(value / peer[1]) if peer and value is not None else "-", of_best or ""]
        row += [number(limit[1]), limit[0]] if limit else ["-", ""]
        row += [number(limit[2] / limit[1]) if limit and limit[2] is not None else "-", of_limit or ""]
        self.rows.append(tuple(map(str, row)))

    def lines(self):
        widths = [max(len(row[i]) for row in self.rows) for i in range(len(self.HEAD))]
        for row in self.rows:
            cells = (cell.rjust(width) if right else cell.ljust(width)
                     for cell, width, right in zip(row, widths, self.RIGHT))
            yield "  ".join(cells).rstrip()


def held_to(workload, figures, record_bytes):
    """(name, value, what Headrace does of it): of a rate a core, or of images a second on all cores."""
    if figures is None:
        return None
    unit, rate = floors.unit(workload.limit), figures["records_per_s"]
    ours = rate if unit == "images/s" else rate * record_bytes / 1e9 / figures["cores"]
    return f"{unit} {workload.limit}", figures["limit"], ours


def add_rate(table, name, workload, ours, peer, record_bytes):
    """The rows of one workload; `ours`: Headrace's figures, None where it was refused."""
    def row(figure, key, of_best=None, limit=None, of_limit=None):
        table.add(name, figure, ours and ours[key], peer and (peer[0], peer[1][key]), of_best, limit, of_limit)

    row("records/s", "records_per_s", workload.of_best, held_to(workload, ours, record_bytes),
        workload.of_limit)
    row("CPU s per million", "cpu_s_per_million", workload.cpu_of_best)
    row("resident MB", "rss_mb", workload.memory_of_best)
    row("of it, no file's MB", "own_mb")
    row("first batch ms", "first_batch_ms", None,
        ("ms asked for", FIRST_BATCH_MS, ours and ours["first_batch_ms"]), WITHIN)


def add_one_core(table, name, workload, figures, ours):
    """`figures`: with the loader on one core; `ours`: with all."""
    table.add(name, "records/s, loader on one core", figures and figures["records_per_s"],
              ("headrace on all", ours["records_per_s"]), workload.on_one_core)


def add_next(table, in_c, in_python, peer):
    for language, figures, bound in (("C", in_c, NEXT_C_US), ("Python", in_python, NEXT_PYTHON_US)):
        p50, p99 = (figures and figures[key] for key in ("next_p50_us", "next_p99_us"))
        table.add("next", f"us in {language}, median", p50, peer and (peer[0], peer[1]["next_p50_us"]), None,
                  ("us asked for", bound, p50), WITHIN)
        table.add("next", f"us in {language}, P99", p99, peer and (peer[0], peer[1]["next_p99_us"]), None,
                  p50 and ("us, the median", p50, p99), NEXT_P99_OF_MEDIAN)
