"""What each workload is run with, and which of its figures are shown: the plan of bench.py and the
columns of report.py. What it does is in workload_*.c."""
from dataclasses import dataclass, field

NS, US, MS, MB = 1, 1e3, 1e6, 1e6


@dataclass
class Workload:
    title: str
    columns: list  # (figure, heading, unit, decimals); ratios are made of the first
    sizes: list
    quick: list  # sizes with --quick
    peer: list = field(default_factory=list)  # sizes for candidates that are peers
    quick_peer: list = field(default_factory=list)
    reps: int = 1
    quick_reps: int = 1
    seconds: float = 1  # about how long a run takes, besides what grows with n
    quick_seconds: float = 1
    seconds_per_timer: float = 4e-7
    many_threads: bool = False  # else run with one
    fixed_sizes: bool = False  # --n does not apply
    labels: dict = field(default_factory=dict)  # of sizes that are no numbers of timers
    curve_n: int = 0  # the n of the curve over threads; 0: no curves


PER_OP = [("ns_per_op", "ns/op", NS, 1), ("cpu_ns_per_op", "cpu ns/op", NS, 1)]
LATE = [("lateness_p50_ns", "p50 us", US, 0), ("lateness_p99_ns", "p99 us", US, 0),
        ("lateness_p999_ns", "p99.9 us", US, 0), ("lateness_max_ns", "max us", US, 0)]

WORKLOADS = {
    "W1": Workload(
        "churn: n pending, timeouts 1 .. 60 s; one op cancels a random one and schedules another",
        PER_OP, [1000, 100000, 1000000, 10000000], [1000, 100000, 1000000],
        [1000, 1000000], [1000], 3, 2, 0.4, 0.2, many_threads=True, curve_n=100000),
    "W2": Workload(
        "request: 64 outstanding per thread, timeout 1 s; one op cancels the oldest and schedules "
        "another", PER_OP, [64], [64], [64], [], 3, 2, 0.4, 0.2, many_threads=True,
        fixed_sizes=True),
    "W3": Workload(
        "touch: n connections, one op pushes a random one's deadline to now + 30 s",
        PER_OP, [10000, 1000000], [10000, 1000000], [10000], [], 3, 2, 0.4, 0.2,
        many_threads=True, curve_n=10000),
    "W4": Workload(
        "fire: n timers due over 2 s; CPU per timer, lateness of callbacks, CPU of ticks",
        [("cpu_ns_per_op", "cpu ns", NS, 1)] + LATE +
        [("tick_cpu_mean_ns", "tick us", US, 1), ("tick_cpu_max_ns", "longest", US, 1)],
        [100000, 1000000, 4000000], [1000000], [100000], [], 2, 1, 2.6, 2.6, 15e-7, curve_n=1),
    "W5": Workload(
        "idle: nothing pending, 100 requests a second, 100k timers an hour out; for 5 s (1.2 s "
        "with --quick)",
        [("cpu_ms", "cpu ms", NS, 2), ("wakeups_per_s", "wake-ups/s", NS, 1),
         ("thread_sleeps_per_s", "sleeps/s", NS, 1)],
        [0, 1, 100000], [1], [], [], 1, 1, 6.5, 2, fixed_sizes=True,
        labels={0: "empty", 1: "100 req/s", 100000: "hour out"}),
    "W6": Workload(
        "memory: n pending; bytes per timer, of these kept by the timer's user",
        [("bytes_per_timer", "bytes/timer", NS, 1),
         ("user_bytes_per_timer", "of these user's", NS, 0), ("rss_growth_bytes", "RSS MB", MB, 1)],
        [1000000, 10000000], [1000000], [1000000], [], 3, 1, 0.6, 0.6),
    "W7": Workload(
        "retention: as W2 with timeouts of 60 s, flat out for 10 s (2 s with --quick)",
        PER_OP + [("ops_per_s", "Mops/s", 1e6, 1), ("rss_growth_bytes", "RSS growth MB", MB, 1)],
        [64], [64], [], [], 1, 1, 10.1, 2.1, fixed_sizes=True),
    "W8": Workload(
        "storm: n timers armed flat out and due in one tick; time to the last one's start, CPU per "
        "timer, longest tick",
        [("hand_over_ns", "all ms", MS, 1), ("cpu_ns_per_op", "cpu ns", NS, 1),
         ("arm_ns_per_op", "arming ns", NS, 1), ("tick_cpu_max_ns", "tick ms", MS, 2),
         ("lateness_p50_ns", "p50 ms", MS, 1)],
        [1000000], [1000000], [1000000], [], 3, 1, 0.9, 0.9),
    "W9": Workload(
        "server: 100k requests/s on n connections for 2 s (1 s with --quick), 1 % time out; CPU "
        "per request, lateness",
        [("cpu_ns_per_op", "cpu ns/req", NS, 1)] + LATE +
        [("timed_out", "timed out", NS, 0), ("reopened", "reopened", NS, 0)],
        [20000], [20000], [20000], [], 2, 1, 2.1, 1.1),
    "W10": Workload(
        "periodic: n series of 10 ms .. 1 s; CPU per run, drift after 10 s (1 s with --quick), "
        "lateness",
        [("cpu_ns_per_op", "cpu ns/run", NS, 1), ("drift_mean_ns", "drift us", US, 1),
         ("drift_max_ns", "largest us", US, 0), ("runs_per_s", "runs/s", NS, 0)] + LATE[:2],
        [100000], [100000], [100000], [], 1, 1, 11.4, 2.4),
    "W11": Workload(
        "pool: the cost of an empty callback by number of workers (threads), and the wait of "
        "callbacks while 1 % of them sleep 1 ms",
        [("ns_per_op", "ns/run", NS, 1), ("cpu_ns_per_op", "cpu ns/run", NS, 1),
         ("runs_per_s", "runs/s", NS, 0), ("wait_p50_ns", "wait p50 us", US, 1),
         ("wait_p99_ns", "wait p99 us", US, 1), ("wait_max_ns", "max us", US, 0)],
        [1, 2], [1], [], [], 2, 2, 1, 0.5, many_threads=True, fixed_sizes=True,
        labels={1: "empty", 2: "1 % slow"}),
    "W12": Workload(
        "layers: post + run of an empty task, pipelined, one producer, one worker",
        PER_OP + [("runs_per_s", "ops/s", NS, 0)], [1], [1], [1], [1], 3, 3, 0.5, 0.2,
        fixed_sizes=True, labels={1: "pipelined"}),
    "W13": Workload(
        "paced: n requests a second, timeouts of 5 s, cancelled after 1 .. 20 ms; CPU per request, "
        "of it that of all threads but the caller's",
        [("cpu_ns_per_op", "cpu ns/req", NS, 1),
         ("background_ns_per_op", "background", NS, 1), ("wakeups_per_s", "wake-ups/s", NS, 0)],
        [50000, 200000], [50000], [], [], 1, 1, 7.6, 1.1),
    "trial": Workload("each timer of a small crowd is watched", [("early", "early", NS, 0)],
                      [0], [0], seconds=0.5, quick_seconds=0.5),
}

# Lateness is measured beside a thread that only sleeps from tick to tick: the "baseline".
WITH_BASELINE = {"W4", "W8", "W9", "W10"}

# The design's aims, as ratios in the same run: (workload, candidate, n or None, threads) to
# (the candidate compared with, at most).
AIMS = {
    ("W2", "tickwheel", None, 1): ("limit", 1.6),
    ("W2", "tickwheel", None, 2): ("limit", 2.0),
    ("W2", "tickwheel-persistent", None, 1): ("limit", 1.3),
    ("W2", "tickwheel-persistent", None, 2): ("limit", 1.5),
    ("W2", "tickwheel-group", None, 1): ("tickwheel", 1.3),
    ("W2", "tickwheel-named", None, 1): ("tickwheel", 1.5),
    ("W1", "tickwheel", 1000, 1): ("limit", 1.5),
    ("W1", "tickwheel", 100000, 1): ("limit", 1.5),
    ("W1", "tickwheel", 1000000, 1): ("limit", 1.25),
    ("W1", "tickwheel-persistent", None, 1): ("tickwheel", 1.0),
    ("W3", "tickwheel-at", 10000, 1): ("limit", 1.25),
    ("W3", "tickwheel-at", 1000000, 1): ("limit", 1.4),
    ("W4", "tickwheel", 1000000, 1): ("wheel-bare", 0.8),
    ("W11", "tickwheel-batch", 1, 1): ("ring", 1.5),
    ("W12", "tickwheel-pool", None, 1): ("ring", 1.5),
}


def aim_of(workload, candidate, n, threads):
    return AIMS.get((workload, candidate, n, threads)) or AIMS.get(
        (workload, candidate, None, threads))


def size_label(workload, n):
    """A size in a word: 64, 10k, 1M, or what the workload calls it."""
    labels = WORKLOADS[workload].labels if workload in WORKLOADS else {}
    if n in labels:
        return labels[n]
    for unit, word in ((1 << 20, "Mi"), (1 << 10, "Ki"), (1000000, "M"), (1000, "k")):
        if n and n % unit == 0 and (word in "Mk" or n & (n - 1) == 0):
            return f"{n // unit}{word}"
    return str(n)
