/*
 * The measuring half of the bench: one run of one workload on one candidate, in a process of its
 * own. bench.py decides what runs, and reads what this prints.
 *     bench list | bench machine | bench round-trip
 *     bench run WORKLOAD CANDIDATE N THREADS OPS quick|usual
 */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/round_trip.h"
#include "bench/workload.h"

#ifdef __clang__
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

void outcome_set(struct outcome *outcome, const char *name, double value)
{
	(void)outcome;
	printf("figure %s %.10g\n", name, value);
}

static void print_trouble(struct outcome *outcome, const char *format, va_list arguments)
{
	if (outcome->violations++ > 0)
		return;
	fputs("trouble ", stdout);
	vprintf(format, arguments);
	putchar('\n');
}

void outcome_violation(struct outcome *outcome, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_trouble(outcome, format, arguments);
	va_end(arguments);
}

/* Other threads may be at work: nothing is taken down. */
void outcome_fail(struct outcome *outcome, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	print_trouble(outcome, format, arguments);
	va_end(arguments);
	puts("end");
	fflush(stdout);
	_exit(EXIT_SUCCESS);
}

static void list(void)
{
	for (const struct workload *const *w = all_workloads; *w; w++)
		printf("workload %s\n", (*w)->name);
	for (const struct candidate *const *c = all_candidates; *c; c++) {
		printf("candidate %s %s %s ", (*c)->name, (*c)->bare ? "bare" : "safe",
		       (*c)->peer ? "peer" : "usual");
		for (const struct workload *const *w = all_workloads; *w; w++)
			if ((*c)->workloads & (*w)->bit)
				printf("%s%s,", (*c)->spared & (*w)->bit ? "-" : "", (*w)->name);
		printf(" %s\n", (*c)->what);
	}
}

static void look_at_machine(void)
{
	printf("compiler %s\n", COMPILER);
	printf("clock_ns %.10g\n", clock_cost_ns());
	printf("cas_ns %.10g\n", compare_and_swap_cost_ns());
	printf("first_touch_ns %.10g\n", first_touch_cost_ns());
}

static int run(char **arguments)
{
	struct outcome outcome = {0};
	const struct workload *workload = workload_find(arguments[0]);
	struct order order = {.candidate = candidate_find(arguments[1]),
			      .n = (uint32_t)strtoul(arguments[2], NULL, 10),
			      .threads = (unsigned)strtoul(arguments[3], NULL, 10),
			      .ops = strtoull(arguments[4], NULL, 10),
			      .quick = strcmp(arguments[5], "quick") == 0};
	if (!workload || !order.candidate || !(order.candidate->workloads & workload->bit))
		outcome_fail(&outcome, "there is no such run");
	workload->run(&order, &outcome);
	printf("ops %llu\nend\n", (unsigned long long)outcome.ops);
	return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* not longer than bench.py */
	if (argc == 8 && strcmp(argv[1], "run") == 0)
		return run(argv + 2);
	if (argc == 2 && strcmp(argv[1], "list") == 0)
		return list(), EXIT_SUCCESS;
	if (argc == 2 && strcmp(argv[1], "machine") == 0)
		return look_at_machine(), EXIT_SUCCESS;
	if (argc == 2 && strcmp(argv[1], "round-trip") == 0)
		return printf("%.10g\n", line_round_trip_ns()), EXIT_SUCCESS;
	fputs("bench: see bench.py --help\n", stderr);
	return 2;
}
