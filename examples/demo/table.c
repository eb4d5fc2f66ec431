/* Rates are differences of two pages over the time between them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/demo/instant.h"
#include "examples/demo/table.h"

#define ROWS_PER_HEADING 20

static const char heading[] =
    "time  connec-  requests    timers                                           lateness ms   "
    "wake-ups  memory\n"
    "   s    tions        /s   pending scheduled cancelled   touched  fired   p50    p99        "
    "/s      MB\n";

static double rate(const struct table *t, const struct page *now, const char *name)
{
	uint64_t from_ns = t->before.read_ns;
	return (double)(page_value(now, name) - page_value(&t->before, name)) * 1e9 /
	       (double)(now->read_ns - from_ns);
}

static void print_row(const struct table *t, const struct page *now, uint64_t started_ns)
{
	printf("%4.1f  %7" PRIu64 " %9.0f  %8" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
	       " %6" PRIu64 " %5.2f %6.2f %9.0f %7.1f\n",
	       (double)(now->read_ns - started_ns) / 1e9, page_value(now, "open"),
	       rate(t, now, "requests"), page_value(now, "pending"), page_value(now, "scheduled"),
	       page_value(now, "cancelled"), page_value(now, "touched"), page_value(now, "fired"),
	       in_ms(page_value(now, "all_p50_ns")), in_ms(page_value(now, "all_p99_ns")),
	       rate(t, now, "wakeups"), (double)page_value(now, "resident_bytes") / 1e6);
}

static void print_clients(const struct clients *clients)
{
	printf("\nthe demo's own clients        came   open  ended\n");
	for (unsigned k = 0; k < CLIENT_KINDS; k++) {
		const struct kind *kind = &clients->kinds[k];
		unsigned came = atomic_load(&kind->came), ended = atomic_load(&kind->ended);
		printf("  %-26s %5u  %5u  %5u\n", kind->does, came, came - ended, ended);
	}
}

static void show_in_place(struct table *t, const struct page *now, const struct clients *clients)
{
	if (t->lines > 0)
		printf("\033[%uA\033[J", t->lines);
	fputs(heading, stdout);
	print_row(t, now, clients->started_ns);
	print_clients(clients);
	t->lines = 2 + 1 + 2 + CLIENT_KINDS;
}

void table_show(struct table *t, const struct page *now, const struct clients *clients)
{
	if (t->in_place) {
		show_in_place(t, now, clients);
	} else {
		if (t->rows++ % ROWS_PER_HEADING == 0)
			fputs(heading, stdout);
		print_row(t, now, clients->started_ns);
	}
	fflush(stdout);
	t->before = *now;
}
