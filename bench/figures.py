#!/usr/bin/env python3
"""figures.py RESULTS: fills the tables of docs/figures.md and README.md, between their marks, and
draws docs/bench.svg, all from one run of the bench. The text around the tables is written by hand.
A figure is the median of the near runs ("Method" on the page); of all runs, if none was near."""
import re
import sys
from statistics import median

sys.dont_write_bytecode = True  # the tree stays as it is
import report
from workloads import size_label

LOCKED = ["heap-mutex", "libevent-mt", "libev-mt", "libuv-mt", "timerfd"]


class Figures:
    def __init__(self, results):
        self.cells = {(c["workload"], c["n"], c["threads"], c["candidate"]): c
                      for c in results["cells"] if "failure" not in c}

    def value(self, workload, n, threads, candidate, figure="ns_per_op"):
        cell = self.cells.get((workload, n, threads, candidate))
        runs = report.runs_of(cell, figure) if cell else []
        near = [r for r, d in zip(runs, report.distances(cell)) if d == "near"] if cell else []
        runs = report.known(near) or report.known(runs)
        return median(runs) if runs else None

    def best(self, workload, n, threads, figure="ns_per_op"):
        """The least of those behind a lock, and whose it is."""
        found = [(v, c) for c in LOCKED
                 if (v := self.value(workload, n, threads, c, figure)) is not None]
        return min(found) if found else (None, None)


def short(value, scale=1):
    """Three digits, or the whole number."""
    if value is None:
        return ""
    value /= scale
    return f"{value:.0f}" if value >= 99.5 else f"{value:.1f}" if value >= 9.95 else f"{value:.2f}"


def table(heading, rows):
    lines = ["| " + " | ".join(heading) + " |", "|" + "---|" * len(heading)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def best_text(figures, *cell):
    value, who = figures.best(*cell)
    return f"{short(value)} ({who})" if who else ""


def calls(figures):
    kinds = [("request (W2)", "W2", 64, "tickwheel")]
    kinds += [(f"churn (W1), {size_label('W1', n)}", "W1", n, "tickwheel")
              for n in (1000, 100000, 1000000, 10000000)]
    kinds += [(f"touch (W3), {size_label('W3', n)}, {clock}", "W3", n, ours)
              for n in (10000, 1000000)
              for clock, ours in (("exact clock", "tickwheel"), ("cached time", "tickwheel-at"))]
    rows = []
    for name, workload, n, ours in kinds:
        for threads in (1, 2, 4):
            cell = (workload, n, threads)
            if figures.value(*cell, ours) is not None:
                rows.append([name, str(threads), f"**{short(figures.value(*cell, ours))}**",
                             short(figures.value(*cell, "limit")), best_text(figures, *cell),
                             short(figures.value(*cell, "wheel-mutex")),
                             short(figures.value(*cell, "heap-bare")),
                             short(figures.value(*cell, "wheel-bare"))])
    return table(["work", "threads", "tickwheel", "floor", "best behind a lock",
                  "wheel, a mutex for each producer", "heap, bare", "wheel, bare"], rows)


def kinds_of_timers(figures):
    kinds = ["tickwheel", "tickwheel-at", "tickwheel-persistent", "tickwheel-group",
             "tickwheel-named", "wheel-bare"]
    rows = []
    for name, workload, n in [("request", "W2", 64)] + [
            ("churn", "W1", n) for n in (1000, 100000, 1000000, 10000000)] + [
            ("touch", "W3", n) for n in (10000, 1000000)]:
        for threads in (1, 2):
            if figures.value(workload, n, threads, "tickwheel") is not None:
                rows.append([f"{name} ({workload}), {size_label(workload, n)}", str(threads)] +
                            [short(figures.value(workload, n, threads, k)) for k in kinds])
    return table(["work", "threads", "plain", "plain, cached time", "persistent, cached time",
                  "in a group", "with a name", "wheel, bare"], rows)


def fire(figures):
    rows = [[size_label("W4", n)] + [short(figures.value("W4", n, 1, c, "cpu_ns_per_op"))
                                     for c in ("tickwheel", "tickwheel-at")] +
            [best_text(figures, "W4", n, 1, "cpu_ns_per_op")] +
            [short(figures.value("W4", n, 1, c, "cpu_ns_per_op"))
             for c in ("wheel-mutex", "heap-bare", "wheel-bare")]
            for n in (100000, 1000000, 4000000)
            if figures.value("W4", n, 1, "tickwheel", "cpu_ns_per_op") is not None]
    return table(["timers in 2 s", "tickwheel, delays", "deadlines", "best behind a lock",
                  "wheel, a mutex for each producer", "heap, bare", "wheel, bare"], rows)


def late(figures):
    rows = []
    for name, candidate in (("tickwheel, delays", "tickwheel"),
                            ("tickwheel, deadlines", "tickwheel-at"),
                            ("bare wheel, same tick", "wheel-bare"),
                            ("heap, mutex, no tick", "heap-mutex"),
                            ("a thread that only sleeps from tick to tick", "baseline")):
        values = [figures.value("W4", 1000000, 1, candidate, f"lateness_{p}_ns")
                  for p in ("p50", "p99", "p999", "max")]
        if values[0] is not None:
            rows.append([name] + [f"{v / 1000:.0f}" for v in values])
    return table(["", "p50", "p99", "p99.9", "max"], rows)


def service(figures):
    rows = []
    for name, workload, n, figure, scale in (
            ("W5 wake-ups a second, empty service", "W5", 0, "wakeups_per_s", 1),
            ("W5 wake-ups a second, 100k timers an hour out", "W5", 100000, "wakeups_per_s", 1),
            ("W6 bytes a timer at 1M, with the user's handle or record", "W6", 1000000,
             "bytes_per_timer", 1),
            ("W6 the same at 10M", "W6", 10000000, "bytes_per_timer", 1),
            ("W7 growth in 10 s of requests, MB", "W7", 64, "rss_growth_bytes", 1e6),
            ("W8 storm of 1M in one tick: all handed over, ms", "W8", 1000000, "hand_over_ns", 1e6),
            ("W8 CPU of the longest tick, ms", "W8", 1000000, "tick_cpu_max_ns", 1e6),
            ("W9 server, CPU ns a request", "W9", 20000, "cpu_ns_per_op", 1),
            ("W10 series, CPU ns a run", "W10", 100000, "cpu_ns_per_op", 1),
            ("W10 mean drift after 10 s, µs", "W10", 100000, "drift_mean_ns", 1000),
            ("W13 50k requests a second, CPU ns of the background for each", "W13", 50000,
             "background_ns_per_op", 1),
            ("W13 the same with 200k", "W13", 200000, "background_ns_per_op", 1)):
        values = [short(figures.value(workload, n, 1, c, figure), scale)
                  for c in ("tickwheel", "heap-mutex", "wheel-mutex", "heap-bare", "wheel-bare")]
        if any(values):
            rows.append([name] + values)
    return table(["what", "tickwheel", "heap, mutex", "wheel, a mutex for each producer",
                  "heap, bare", "wheel, bare"], rows)


def layers(figures):
    rows = []
    for candidate, name in (("ring", "a bare ring, polled"),
                            ("pool-mutex", "a mutex and a condition variable"),
                            ("tickwheel-batch", "due timers in batches, one worker"),
                            ("tickwheel-pool", "a pool"), ("tickwheel-strand", "a strand"),
                            ("tickwheel-scheduler", "a scheduler"),
                            ("tickwheel-limiter", "a limiter"),
                            ("tickwheel-semaphore", "a semaphore")):
        for workload in ("W12", "W11"):
            if figures.value(workload, 1, 1, candidate) is not None:
                rows.append([name, short(figures.value(workload, 1, 1, candidate)),
                             short(figures.value(workload, 1, 1, candidate, "cpu_ns_per_op"))])
                break
    return table(["an empty task through", "wall ns", "CPU ns"], rows)


def readme(figures):
    """How many times more it costs elsewhere; figures below 1 are bold."""
    rows = []
    for name, workload, n, threads, figure in (
            ("a request: schedule, then cancel", "W2", 64, 1, "ns_per_op"),
            ("the same on two threads", "W2", 64, 2, "ns_per_op"),
            ("cancel and schedule among 100,000 timers", "W1", 100000, 1, "ns_per_op"),
            ("the same on two threads", "W1", 100000, 2, "ns_per_op"),
            ("push one of 10,000 deadlines back, by delay", "W3", 10000, 1, "ns_per_op"),
            ("1,000,000 timers fire in 2 s (CPU time)", "W4", 1000000, 1, "cpu_ns_per_op"),
            ("100,000 timers fire in 2 s (CPU time)", "W4", 100000, 1, "cpu_ns_per_op"),
            ("memory of a timer", "W6", 1000000, 1, "bytes_per_timer")):
        ours = figures.value(workload, n, threads, "tickwheel", figure)
        if not ours:
            continue
        theirs = [figures.best(workload, n, threads, figure)[0]]
        theirs += [figures.value(workload, n, threads, c, figure)
                   for c in ("wheel-mutex", "heap-bare", "wheel-bare")]
        rows.append([name] + ["" if v is None else f"**{v / ours:.2f}**" if v / ours < 0.95
                              else f"{v / ours:.1f}" if v / ours < 9.95 else f"{v / ours:.0f}"
                              for v in theirs])
    return table(["work", "best of heaps and C libraries with a lock",
                  "wheel with a mutex for each producer", "heap of one thread, no lock",
                  "wheel of one thread, no lock"], rows)


def run(results):
    machine, occasion = results["machine"], results["occasion"]
    each = [d for c in results["cells"] for d in report.distances(c)]
    return (f"Machine: {machine['cpu']}, {machine['cores']} cores, {machine['compiler']}.\n"
            f"One `clock_gettime` takes {machine['clock_ns']:.1f} ns, an uncontended "
            f"compare-and-swap {machine['cas_ns']:.1f} ns.\n"
            f"Run: {occasion['took_s']:.0f} s, mode {occasion['mode']}, {occasion['when']}; other "
            f"processes used {occasion['others_cpu_s']:.0f} s of CPU time.\n"
            f"Commit: {machine['commit'][:7]}. Of the runs, {each.count('near')} of {len(each)} "
            "were near (see [Method](#method)).")


def fill(path, parts):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    for name, text in parts.items():
        page, times = re.subn(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
                              lambda mark: f"{mark[1]}\n{text}\n\n{mark[2]}", page, flags=re.S)
        if times != 1:
            sys.exit(f"figures: {path} has no marks, or two, for {name}")
    report.write_file(path, page)


def picture(figures):
    """Four plots: churn on one and two threads, firing, a request."""
    groups = [("tickwheel", ["tickwheel"], "#1f6fd6"),
              ("heap or C library behind a lock", LOCKED, "#8892a6"),
              ("wheel, a mutex for each producer", ["wheel-mutex"], "#2a9d8f"),
              ("heap of one thread, no lock", ["heap-bare"], "#e0a040"),
              ("wheel of one thread, no lock", ["wheel-bare"], "#c0504d")]
    script = ("set terminal svg size 900,760 font 'sans-serif,12' background rgb 'white'\n"
              "set multiplot layout 2,2 margins 0.08,0.98,0.08,0.84 spacing 0.09,0.16\n"
              "set border 3\nset tics nomirror\nset grid y\nset logscale xy\n"
              "set format x '%.0s%c'\nset xlabel 'pending timers (logarithmic axes)'\n"
              "set key at screen 0.5,0.995 center top maxrows 2\n")

    def least(workload, n, threads, names, figure):
        found = [v for c in names if (v := figures.value(workload, n, threads, c, figure))]
        return min(found) if found else None

    blocks = 0
    for title, workload, threads, figure, scale in (
            ("cancel one, schedule another, 1 thread: ns", "W1", 1, "ns_per_op", 1),
            ("the same on 2 threads: ns for each thread", "W1", 2, "ns_per_op", 1),
            ("all fire within 2 s: CPU µs for each timer", "W4", 1, "cpu_ns_per_op", 1000)):
        parts = []
        for name, members, color in groups:
            sizes = sorted({n for w, n, t, c in figures.cells if (w, t) == (workload, threads)})
            points = [(n, v / scale) for n in sizes
                      if (v := least(workload, n, threads, members, figure))]
            script += f"$d{blocks} << EOD\n" + "".join(f"{n} {v}\n" for n, v in points) + "EOD\n"
            if points:
                parts.append(f"$d{blocks} with linespoints lw 2 pt 7 ps 0.6 lc rgb '{color}' "
                             f"title '{name}'")
            blocks += 1
        script += f"set title '{title}'\nplot {', '.join(parts)}\nunset key\n"
    script += ("set title 'a request: schedule, then cancel: ns'\nunset logscale\nset xrange "
               "[0:12]\nset yrange [0:*]\nset boxwidth 0.8\nset style fill solid\nset xlabel ' '\n"
               "set offsets 0,0,graph 0.1,0\nset xtics ('1 thread' 3, '2 threads' 9) scale 0\n")
    parts = []
    for i, (name, members, color) in enumerate(groups):
        bars = [(i + 1 + 6 * (t - 1), v) for t in (1, 2)
                if (v := least("W2", 64, t, members, "ns_per_op"))]
        script += f"$b{i} << EOD\n" + "".join(f"{x} {v}\n" for x, v in bars) + "EOD\n"
        if bars:
            parts.append(f"$b{i} with boxes lc rgb '{color}', "
                         f"$b{i} using 1:2:(sprintf('%.0f', $2)) with labels offset 0,0.6")
    return report.gnuplot(script + "plot " + ", ".join(parts) + "\n")


def main(path):
    results = report.read(path)
    if not results["occasion"].get("complete"):
        sys.exit("figures: the run was not complete")
    if any(c["workload"] == "trial" for c in results["cells"]):
        sys.exit("figures: the run has failed trials; measure again")
    figures = Figures(results)
    fill("docs/figures.md", {
        "run": run(results), "calls": calls(figures), "kinds": kinds_of_timers(figures),
        "fire": fire(figures), "late": late(figures), "service": service(figures),
        "layers": layers(figures)})
    fill("README.md", {"figures": readme(figures)})
    svg = picture(figures)
    if svg:
        report.write_file("docs/bench.svg", svg)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except report.BadResults as bad:
        sys.exit(f"figures: {bad}")
