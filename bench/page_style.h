/* The page's fixed parts. page_head.c writes the rules for the colors of tints (bench/plot.h). */
#ifndef BENCH_PAGE_STYLE_H
#define BENCH_PAGE_STYLE_H

/*
 * From the palettes of Paul Tol and of Okabe and Ito, which color-blind readers can distinguish;
 * lighter colors for the dark.
 */
static const char page_colors[] =
    ":root{color-scheme:light "
    "dark;--paper:#fff;--ink:#1c2330;--soft:#5b6675;--line:#dde2e9;--card:#f7f9fb;--mine:#eaf2fd;"
    "--t1:#1f6fd6;--t2:#8793a5;--t3:#e0a34a;--t4:#cdd4dd;--t5:#1c2330;--t6:#c3cad4;--bad:#b3261e;"
    "--s0:#1f6fd6;--s1:#d1495b;--s2:#9a6bd0;--s3:#d98324;--s4:#6b7280;--s5:#2a9d6f;--s6:#0f8ea3;--"
    "s7:#b5499a;"
    "--s8:#7a5c3e;--s9:#8aa02b;--s10:#444e9b;--s11:#e0708a;--s12:#4d8f8b;--s13:#a88b1f;--s14:#777;-"
    "-s15:#333}\n"
    "@media(prefers-color-scheme:dark){:root{--paper:#12161c;--ink:#e4e9f0;--soft:#9aa6b5;--line:#"
    "2b333e;--card:#"
    "181e26;"
    "--mine:#15263d;--t1:#5b9df5;--t2:#76839a;--t3:#d39a45;--t4:#47515f;--t5:#e4e9f0;--t6:#4a5566;-"
    "-bad:#ff8a80;"
    "--s0:#5b9df5;--s1:#f2808f;--s2:#bd97ee;--s3:#f0a950;--s4:#a3adba;--s5:#5fcf9f;--s6:#4cc3d6;--"
    "s7:#e08aca;"
    "--s8:#c2a07c;--s9:#bdd260;--s10:#8f9af0;--s11:#f5a3b5;--s12:#86c7c3;--s13:#d9bf5a;--s14:#aaa;-"
    "-s15:#ccc}}\n";

static const char page_layout[] =
    "*{box-sizing:border-box}"
    "body{margin:0 auto;max-width:1240px;padding:1.2rem 1rem "
    "4rem;background:var(--paper);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif}\n"
    "h1{font-size:1.7rem;line-height:1.2;margin:.4rem 0 .2rem}h2{font-size:1.2rem;margin:2.6rem 0 "
    ".2rem;"
    "padding-top:.8rem;border-top:1px solid var(--line)}h2 "
    "b{color:var(--t1);margin-right:.4em}h3{font-size:1rem;"
    "margin:1.4rem 0 .4rem}p{margin:.3rem 0 "
    ".8rem;max-width:75ch}.soft,figcaption,caption{color:var(--soft)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem 1rem;margin:.8rem "
    "0;padding:.8rem 1rem;"
    "background:var(--card);border:1px solid var(--line);border-radius:8px}dt{color:var(--soft)}"
    "dd{margin:0;overflow-wrap:anywhere;min-width:0}\n"
    ".plots{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,340px),1fr));gap:"
    "1rem;margin:.8rem 0}"
    "figure{margin:0;padding:.6rem .6rem .2rem;background:var(--card);border:1px solid "
    "var(--line);border-radius:8px;"
    "min-width:0}figcaption{font-size:.85rem;margin:0 .2rem .2rem}figcaption b{color:var(--ink)}"
    "figure svg{display:block;width:100%;height:auto;max-width:460px;margin:0 auto}\n"
    ".wide{overflow-x:auto;margin:.6rem 0}table{border-collapse:collapse;font-size:.85rem;"
    "font-variant-numeric:tabular-nums;white-space:nowrap}th,td{padding:.18rem "
    ".6rem;text-align:right;"
    "vertical-align:top}th{color:var(--soft);font-weight:600;border-bottom:1px solid var(--line)}"
    "td.word,th.word{text-align:left}tr.group td{border-top:1px solid var(--line)}tr.ours "
    "td{background:var(--mine)}"
    "td small{color:var(--soft)}td.mine{background:var(--mine)}.close "
    "td.word:not(:first-child){padding-left:0;color:var(--soft)}"
    ".close td:not(.word){padding-right:.35rem}.words th{text-align:left}"
    "@media(max-width:600px){th,td{padding:.18rem "
    ".35rem}.close{font-size:.78rem}}details{margin:.6rem 0}"
    "summary{cursor:pointer;color:var(--soft)}.bad{color:var(--bad)}\n"
    "ul.key{list-style:none;display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;padding:0;margin:.5rem "
    "0;font-size:.85rem}"
    "ul.key svg{width:34px;height:12px;vertical-align:-1px;margin-right:.4em}"
    "ul.key "
    "i{display:inline-block;width:12px;height:12px;border-radius:2px;margin-right:.45em;vertical-"
    "align:-1px}\n";

/* What gnuplot takes for black and grey. */
static const char page_plots[] =
    "figure svg text{fill:var(--ink);font-family:inherit}[stroke=\"black\"]{stroke:var(--soft)}"
    "[stroke=\"gray\"]{stroke:var(--line)}[color=\"gray\"],[color=\"black\"]{color:var(--line)}"
    ".gridline{stroke:var(--line);stroke-dasharray:none}\n";

static const char page_how_to_read[] =
    "<h3>How to read it</h3>\n"
    "<p>Compare within this page only: all candidates took turns on this machine, one repetition "
    "each, again and "
    "again. A bar or point is the median of the repetitions, its error bar reaches from min to "
    "max. A ratio is "
    "the median of the ratios to ours, round by round; above 1 is slower, or more. ns/op is the "
    "wall time of "
    "each thread; cpu, the &#9671; beside bars of wall time, is the CPU time of the whole process, "
    "the tick "
    "thread included. An axis whose steps are powers of ten is logarithmic: there bars have no "
    "zero, only their "
    "ends compare. The plots of one workload share one axis. Curves "
    "of bare candidates and of the floor are dashed.</p>\n"
    "<ul class=\"key\"><li><i style=\"background:var(--t1)\"></i>tickwheel: thread-safe, manual "
    "ones bare<li><i "
    "style=\"background:var(--t2)\"></i>safe: others that several threads may use<li><i "
    "style=\"background:var(--t3)\"></i>bare: no lock, one thread, its best case: time "
    "cached<li><i "
    "style=\"background:var(--t4)\"></i>floor: only the memory work nobody can avoid; baseline: a "
    "thread that "
    "only sleeps</ul>\n"
    "<p>Lateness is from a callback's deadline to its start, of every timer: &#9675; p50, &#9679; "
    "p99, &#9650; "
    "p99.9, &#9670; max. The baseline sleeps from tick to tick beside the candidates: what it "
    "shows is the "
    "machine's. A wheel adds its tick of 1 ms.</p>\n";

#endif
