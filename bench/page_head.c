#include <string.h>

#include "bench/html.h"
#include "bench/page_head.h"
#include "bench/page_style.h"
#include "bench/plot.h"
#include "bench/summary.h"
#include "bench/targets.h"

static void write_tint(FILE *out, unsigned tint, const char *variable, unsigned number)
{
	fprintf(out,
		"[stroke=\"rgb(  0,   0, %3u)\"]{stroke:var(--%s%u)}[fill=\"rgb(  0,   0, "
		"%3u)\"]{fill:var(--%s%u)}"
		"[color=\"rgb(  0,   0, %3u)\"]{color:var(--%s%u)}\n",
		tint, variable, number, tint, variable, number, tint, variable, number);
}

static void write_style(FILE *out)
{
	fputs("<style>\n", out);
	fputs(page_colors, out);
	fputs(page_layout, out);
	fputs(page_plots, out);
	for (unsigned tint = TINT_OURS; tint <= TINT_LINE; tint++)
		write_tint(out, tint, "t", tint);
	for (unsigned i = 0; i < MAX_FAMILIES; i++)
		write_tint(out, TINT_SERIES + i, "s", i);
	fputs("</style>\n", out);
}

static void write_term(FILE *out, const char *term, const char *text)
{
	fprintf(out, "<dt>%s<dd>", term);
	write_text(out, text);
	fputc('\n', out);
}

static void write_machine(FILE *out, const struct machine *machine, const struct occasion *occasion)
{
	fputs("<dl>\n", out);
	write_term(out, "processor", machine->cpu);
	fprintf(out, "<dt>cores<dd>%u\n", machine->cores);
	write_term(out, "compiler", machine->compiler);
	fprintf(out, "<dt>commit<dd>%.12s", machine->commit);
	write_text(out, strstr(machine->commit, "-dirty") ? " with changes\n" : "\n");
	fprintf(out,
		"<dt>clock reading<dd>%.1f ns <small class=\"soft\">(%.0f where the aims come "
		"from)</small>\n",
		machine->clock_ns, REFERENCE_CLOCK_NS);
	fprintf(out,
		"<dt>compare-and-swap<dd>%.1f ns <small class=\"soft\">(%.1f there), "
		"uncontended</small>\n",
		machine->cas_ns, REFERENCE_CAS_NS);
	if (machine->first_touch_ns > 0)
		fprintf(out,
			"<dt>first touch<dd>%.0f ns a page of 4 KiB; in no figure but memory\n",
			machine->first_touch_ns);
	if (occasion->when[0]) {
		write_term(out, "when", occasion->when);
		write_term(out, "run", occasion->mode);
		fprintf(
		    out,
		    "(%.0f s%s); meanwhile others used %.1f s of CPU time, the hypervisor %.1f s\n",
		    occasion->took_s,
		    occasion->complete ? "" : ", <b class=\"bad\">interrupted</b>",
		    occasion->others_cpu_s, occasion->stolen_s);
	}
	fputs("</dl>\n", out);
}

static void write_failures(FILE *out, const struct results *results)
{
	for (size_t i = 0; i < results->count; i++) {
		const struct cell *cell = results->cells[i];
		if (!cell->trouble[0])
			continue;
		fprintf(out,
			"<p class=\"bad\">FAILED: %s %s n=%u threads=%u: ", cell->workload->name,
			cell->candidate, cell->n, cell->threads);
		write_text(out, cell->trouble);
		fputs("</p>\n", out);
	}
}

void page_head_write(FILE *out, const struct machine *machine, const struct results *results,
		     bool drawn)
{
	fputs("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n"
	      "<title>tickwheel: timers compared</title>\n",
	      out);
	write_style(out);
	fputs("</head><body>\n<h1>Timers compared on this machine</h1>\n<p "
	      "class=\"soft\">tickwheel's bench: the same "
	      "work "
	      "on each candidate, side by side in one run, every candidate checked: all timers "
	      "ran, none early, "
	      "cancelled "
	      "ones "
	      "never.</p>\n",
	      out);
	write_machine(out, machine, &results->occasion);
	if (occasion_was_busy(&results->occasion))
		fputs("<p class=\"bad\">The machine was busy: wall times and lateness are "
		      "inflated, CPU times less "
		      "so.</p>\n",
		      out);
	write_failures(out, results);
	if (!drawn)
		fputs("<p class=\"bad\">There are no plots: gnuplot was missing or failed.</p>\n",
		      out);
	summary_write(out, results);
	fputs(page_how_to_read, out);
}
