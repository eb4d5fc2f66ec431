"""What is made of results.json: tables for people, the comparison of two runs, the page."""
import html
import json
import math
import os
import stat
import subprocess
import sys
import tempfile
from statistics import median

from workloads import WORKLOADS, aim_of, size_label

NEAR_NS = 120  # a cache line's round trip between the first two processors: below it they are near
CIRCUMSTANCES = {"rtt_ns", "others_cpu_ms", "stolen_ms", "ops"}
NOTES = """\
Medians. near, far: a cache line took less than 120 ns, or more, from one processor to the other and
back, before and after the run (rtt_ns in the results). ratio: the first figure to ours, the first
row of the group, pair by pair; above 1: slower, or more. ns/op: wall time of each thread; cpu: of
the whole process. safe: may be used by several threads; bare: no lock and one thread, which reads
the clock once for 64 operations; floor: does no more than touch the memory that must be touched.
aim: the design's, as a ratio to another candidate in the same run."""


class BadResults(Exception):
    pass


# ---- files


def special(path):
    return os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode)


def write_file(path, text):
    """As a whole or not at all: what is there stays until its successor is complete."""
    try:
        if special(path):
            with open(path, "w", encoding="utf-8") as out:
                out.write(text)
            return
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=os.path.dirname(path) or ".",
                                         delete=False) as out:
            try:
                out.write(text)
                out.close()
                os.chmod(out.name, 0o644)
                os.replace(out.name, path)
            except OSError:
                os.unlink(out.name)
                raise
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def try_file(path):
    """Finds out before a long run what would only be found out at its end."""
    if special(path):
        return
    folder = os.path.dirname(path) or "."
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None


def is_name(value):
    return isinstance(value, str) and value and all(c.isalnum() or c in "-_" for c in value)


def check(results):
    """What is read may have been edited by hand or come from another version."""
    if not isinstance(results.get("machine"), dict) or not isinstance(results.get("cells"), list):
        raise BadResults("no machine, or no list of cells")
    for cell in results["cells"]:
        if not isinstance(cell, dict) or not all(
                is_name(cell.get(key)) for key in ("workload", "candidate")):
            raise BadResults("a cell without workload or candidate")
        if not all(type(cell.get(key)) is int and cell[key] >= 0 for key in ("n", "threads")):
            raise BadResults("a cell without n or threads")
        for name, value in cell.items():
            if not isinstance(value, dict):
                continue
            runs = value.get("runs")
            if not is_name(name) or not isinstance(runs, list) or not all(
                    r is None or type(r) in (int, float) and math.isfinite(r) for r in runs):
                raise BadResults(f"no runs in figure {name[:40]}")


def read(path):
    try:
        with open(path, encoding="utf-8") as file:
            results = json.load(file)
        if not isinstance(results, dict):
            raise BadResults("no object")
        check(results)
    except OSError as error:
        raise BadResults(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise BadResults(f"{path} is not JSON: {error}") from None
    except BadResults as error:
        raise BadResults(f"{path} is not a results file of the bench: {error}") from None
    results.setdefault("occasion", {})
    return results


# ---- figures


def runs_of(cell, figure):
    value = cell.get(figure)
    return value["runs"] if isinstance(value, dict) else []


def known(runs):
    return [r for r in runs if r is not None]


def middle(cell, figure):
    """The median of its runs; None: there are none."""
    runs = known(runs_of(cell, figure))
    return median(runs) if runs else None


def add_summaries(results):
    for cell in results["cells"]:
        for value in cell.values():
            if isinstance(value, dict) and known(value["runs"]):
                runs = known(value["runs"])
                value.update(min=min(runs), median=median(runs), max=max(runs))


def ratio_of_pairs(cell, base, figure):
    """The median of the ratios of runs that were made next to each other; None: there is none."""
    ratios = [a / b for a, b in zip(runs_of(cell, figure), runs_of(base, figure))
              if a is not None and b is not None and b > 0]
    return median(ratios) if ratios else None


def distances(cell):
    return [None if r is None else "near" if r < NEAR_NS else "far"
            for r in runs_of(cell, "rtt_ns")]


def by_distance(cells):
    """Each cell as up to two, of near and of far runs: the other runs become None, so that pairs
    stay pairs."""
    parts = []
    for cell in cells:
        each = distances(cell)
        for distance in [d for d in ("near", "far") if d in each]:
            part = dict(cell, distance=distance)
            for name, value in cell.items():
                if isinstance(value, dict):
                    part[name] = {"runs": [r if d == distance else None
                                           for r, d in zip(value["runs"], each)]}
            parts.append(part)
        if not any(each):
            parts.append(cell)
    return parts


def meets(cell):
    return cell["workload"], cell["n"], cell["threads"], cell.get("distance")


def is_ours(cell):
    return cell["candidate"].startswith("tickwheel")


# ---- the table of a workload


def cell_label(cell):
    size = size_label(cell["workload"], cell["n"])
    many = cell["workload"] in WORKLOADS and WORKLOADS[cell["workload"]].many_threads
    threads = f" x {cell['threads']}" if many or cell["workload"] not in WORKLOADS else ""
    return size + threads + (" " + cell["distance"] if "distance" in cell else "")


def rows_of(results, workload):
    """The heading, then a row for each cell: lists of texts. Equal groups follow each other."""
    columns = WORKLOADS[workload].columns
    first, decimals, unit = columns[0][0], columns[0][3], columns[0][2]
    many = WORKLOADS[workload].many_threads
    rows = [["n x threads" if many else "n", "candidate", "kind"] + [c[1] for c in columns] +
            ["span", "ratio", "aim"]]
    cells = by_distance([c for c in results["cells"] if c["workload"] == workload])
    groups = {}
    for cell in cells:
        groups.setdefault(meets(cell), []).append(cell)
    for members in groups.values():
        base = next((c for c in members if is_ours(c) and "failure" not in c), None)
        for i, cell in enumerate(members):
            row = [cell_label(cell) if i == 0 else "", cell["candidate"],
                   "FAILED" if "failure" in cell else cell.get("kind", "")]
            for figure, _, scale, digits in columns:
                value = middle(cell, figure)
                row.append("" if value is None else f"{value / scale:.{digits}f}")
            runs = known(runs_of(cell, first))
            row.append(f"{min(runs) / unit:.{decimals}f}..{max(runs) / unit:.{decimals}f}"
                       if len(runs) > 1 else "")
            ratio = ratio_of_pairs(cell, base, first) if base else None
            row.append(f"{ratio:.2f}" if ratio else "")
            aim = aim_of(workload, cell["candidate"], cell["n"], cell["threads"])
            row.append(f"{aim[1]} x {aim[0]}" if aim else "")
            rows.append(row)
    kept = [i for i in range(len(rows[0])) if i < 3 or any(row[i] for row in rows[1:])]
    return [[row[i] for i in kept] for row in rows]


def print_workload(results, workload):
    rows = rows_of(results, workload)
    if len(rows) == 1:
        return
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    print(f"\n{workload} {WORKLOADS[workload].title}")
    for row in rows:
        print("  ".join(t.ljust(w) if i < 3 else t.rjust(w)
                        for i, (t, w) in enumerate(zip(row, widths))).rstrip())
    sys.stdout.flush()


def print_machine(machine):
    print(f"cpu          {machine['cpu']}, {machine['cores']} cores\n"
          f"compiler     {machine['compiler']}\ncommit       {machine['commit']}\n"
          f"clock        {machine['clock_ns']:.1f} ns a reading\n"
          f"cas          {machine['cas_ns']:.1f} ns, uncontended\n"
          f"first touch  {machine['first_touch_ns']:.0f} ns a page of 4 KiB; no part of any figure "
          "below but memory", flush=True)


def notes_of(results):
    occasion, lines = results["occasion"], []
    if "took_s" in occasion:
        lines.append("It took {took_s:.0f} s. Meanwhile other processes used {others_cpu_s:.1f} s "
                     "of CPU time, and the hypervisor took {stolen_s:.1f} s.".format(**occasion))
        if occasion["others_cpu_s"] + occasion["stolen_s"] > 0.1 * occasion["took_s"]:
            lines.append("The machine was busy: wall times and lateness are inflated, CPU times "
                         "less so.")
    if not occasion.get("complete", True):
        lines.append("It was interrupted: cells that were not finished are left out.")
    for c in results["cells"]:
        if "failure" in c:
            lines.append(f"FAILED: {c['workload']} {c['candidate']} n={c['n']} "
                         f"threads={c['threads']}: {c['failure']}")
    return lines


def print_notes(results):
    print("\n" + NOTES + "\n" + "\n".join(notes_of(results)), flush=True)


# ---- two runs


def has_moved(old, now):
    """The runs do not overlap, and the medians are 2.5 % apart; of single runs, a factor of 1.5."""
    least, most = sorted((abs(median(old)), abs(median(now))))
    if len(old) == 1 or len(now) == 1:
        return most > 1.5 * least
    return (max(old) < min(now) or max(now) < min(old)) and most > 1.025 * least


def compare(old, now):
    cells = old["cells"], now["cells"]
    if all(any(distances(c)) for side in cells for c in side[:1]):
        cells = tuple(map(by_distance, cells))
    before, after = ({meets(c) + (c["candidate"],): c for c in side} for side in cells)
    print(f"\nWhat has moved beyond noise since {old['occasion'].get('when', 'the old results')}, "
          f"commit {str(old['machine'].get('commit'))[:12]}:")
    for key, what in (("cpu", "machine"), ("cores", "number of cores"), ("compiler", "compiler")):
        if old["machine"].get(key) != now["machine"].get(key):
            print(f"Another {what}: {old['machine'].get(key)}; {now['machine'].get(key)}.")
    if old["occasion"].get("mode") != now["occasion"].get("mode"):
        print("Another length of run.")
    moved = compared = failed = 0
    for key, cell in after.items():
        twin = before.get(key)
        failed += twin is not None and ("failure" in cell or "failure" in twin)
        if twin is None or "failure" in cell or "failure" in twin:
            continue
        for name in [n for n in cell if n not in CIRCUMSTANCES]:
            a, b = known(runs_of(twin, name)), known(runs_of(cell, name))
            if not a or not b:
                continue
            compared += 1
            if has_moved(a, b):
                moved += 1
                ratio = f"{median(b) / median(a):.2f}" if median(a) > 0 else "-"
                print(f"{cell['workload']:<5} {cell_label(cell):<14} {cell['candidate']:<21} "
                      f"{name:<22} {median(a):10.4g} {median(b):10.4g} {ratio:>7}")
    print(f"{moved} of {compared} figures have moved.", end="")
    for count, what in ((failed, "left out: failed in one of the runs"),
                        (len(before.keys() - after.keys()), "only in the old results"),
                        (len(after.keys() - before.keys()), "only in the new ones")):
        if count:
            print(f" {count} {'cell' if count == 1 else 'cells'} {what}.", end="")
    print(flush=True)


# ---- the page


def gnuplot(script):
    """An SVG; None: gnuplot is not there, or failed, and stderr knows why."""
    try:
        made = subprocess.run(["gnuplot", "--default-settings", "-"], input=script, text=True,
                              capture_output=True, timeout=30, check=False)
    except FileNotFoundError:
        print("bench: no plots: gnuplot is not installed (Debian's package gnuplot-nox)",
              file=sys.stderr)
        return None
    except subprocess.TimeoutExpired:
        print("bench: no plots: gnuplot was stopped after 30 s", file=sys.stderr)
        return None
    if made.returncode == 0 and "<svg" in made.stdout:
        return made.stdout[made.stdout.index("<svg"):]
    print(f"bench: no plots: gnuplot failed: {made.stderr.strip() or 'it said nothing'}",
          file=sys.stderr)
    return None


TERMINAL = "set terminal svg size {},{} font 'sans-serif,12' background rgb 'white'\n"
STYLE = "set border 3\nset tics nomirror\nset grid y\nset key outside right\n"


def lines_plot(title, axis, curves):
    """Curves of (x, y) points by name, on logarithmic axes."""
    curves = {name: points for name, points in curves.items() if len(points) > 1}
    script = TERMINAL.format(820, max(360, 60 + 20 * len(curves))) + STYLE
    script += f"set logscale xy\nset title '{title}'\n"
    script += f"set xlabel '{axis} (logarithmic axes)'\nset format x '%.0s%c'\n"
    blocks, parts = "", []
    for i, (name, points) in enumerate(curves.items()):
        blocks += f"$d{i} << EOD\n" + "".join(f"{x} {y}\n" for x, y in sorted(points)) + "EOD\n"
        parts.append(f"$d{i} using 1:2 with linespoints lw 2 title '{name}'")
    return gnuplot(script + blocks + "plot " + ", ".join(parts) + "\n")


def bars_plot(title, bars):
    """Bars of (name, value)."""
    script = TERMINAL.format(820, 140 + 22 * len(bars)) + STYLE
    script += f"set title '{title}'\nunset key\nset style fill solid 0.8\nset xrange [0:*]\n"
    script += f"set yrange [{len(bars)}:-1]\nset grid x\nunset grid\nset offsets 0,0,0,0\n"
    script += "set ytics ({})\n".format(", ".join(f"'{b[0]}' {i}" for i, b in enumerate(bars)))
    script += "$d << EOD\n" + "".join(f"{b[1]} {i}\n" for i, b in enumerate(bars)) + "EOD\n"
    script += "plot $d using (0):2:(0):1:($2-0.35):($2+0.35) with boxxyerror lc rgb '#1f6fd6', "
    number = "sprintf($1 < 100 ? ' %.3g' : ' %.0f', $1)"
    return gnuplot(script + f"$d using 1:2:({number}) with labels left\n")


def plots_of(results, workload):
    """Bars for each n and number of threads; from three sizes on, curves instead; lateness."""
    figure, heading, unit, _ = WORKLOADS[workload].columns[0]
    cells = [c for c in results["cells"] if c["workload"] == workload and "failure" not in c]
    shown = [c for c in cells if middle(c, figure) is not None]
    svgs = []
    for threads in sorted({c["threads"] for c in shown}):
        here = [c for c in shown if c["threads"] == threads]
        sizes = sorted({c["n"] for c in here})
        title = f"{workload}, {threads} thread{'s' if threads > 1 else ''}: {heading}"
        if len(sizes) > 2 and not WORKLOADS[workload].labels:
            curves = {}
            for c in here:
                curves.setdefault(c["candidate"], []).append((c["n"], middle(c, figure) / unit))
            if any(len(points) > 1 for points in curves.values()):
                svgs.append(lines_plot(title, "timers", curves))
                continue
        for n in sizes:
            bars = [(c["candidate"], middle(c, figure) / unit) for c in here if c["n"] == n]
            svgs.append(bars_plot(f"{title}, {size_label(workload, n)}", bars))
    for n in sorted({c["n"] for c in cells}):
        curves = {}
        for c in [c for c in cells if c["n"] == n]:
            for part, one_in in (("p50", 2), ("p99", 100), ("p999", 1000)):
                value = middle(c, f"lateness_{part}_ns")
                if value is not None:
                    curves.setdefault(c["candidate"], []).append((one_in, max(value, 1) / 1e3))
        if any(len(points) > 1 for points in curves.values()):
            svgs.append(lines_plot(f"{workload}, {size_label(workload, n)}: microseconds late",
                                   "one in ... is later than", curves))
    return svgs


CSS = """body { font: 15px sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse; font-size: 13px } th, td { text-align: right; padding: 1px 8px }
th:nth-child(-n+3), td:nth-child(-n+3) { text-align: left }
tr.group td { border-top: 1px solid #ccc }
div { overflow-x: auto } svg { max-width: 100%; height: auto }"""


def page_of(results):
    text = html.escape
    machine, occasion = results["machine"], results["occasion"]
    out = ['<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>tickwheel bench</title>',
           f"<style>{CSS}</style>\n<h1>tickwheel bench</h1>\n<p>"]
    out += [text(f"{key}: {value}") + "<br>\n" for key, value in
            list(machine.items()) + [("run", occasion.get("mode", "")),
                                     ("when", occasion.get("when", ""))]]
    out += [f"<p>{text(line)}\n" for line in [NOTES] + notes_of(results)]
    drawn = True
    for workload, w in WORKLOADS.items():
        rows = rows_of(results, workload)
        if len(rows) == 1:
            continue
        out.append(f"<h2>{text(workload)}</h2>\n<p>{text(w.title)}\n")
        plots = plots_of(results, workload) if drawn else []
        if None in plots:
            drawn = False
        out += [f"<div>{plot}</div>\n" for plot in plots if plot]
        out.append("<div><table>\n")
        for i, row in enumerate(rows):
            tag = "th" if i == 0 else "td"
            group = ' class="group"' if row[0] and i else ""
            out.append(f"<tr{group}>" + "".join(f"<{tag}>{text(t)}" for t in row) + "</tr>\n")
        out.append("</table></div>\n")
    if not drawn:
        out.append("<p>There are no plots: gnuplot was not there, or failed.\n")
    return "".join(out)


def make_page(results_path, results):
    """Beside the results. If these went to a device there is no page."""
    if special(results_path):
        return
    path = os.path.join(os.path.dirname(results_path), "report.html")
    write_file(path, page_of(results))
    print(f"page         {path}", flush=True)
