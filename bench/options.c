/* getopt_long; lists are separated by commas; names that do not exist are errors. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/options.h"
#include "bench/rivals/rival.h"
#include "bench/candidate.h"
#include "bench/workload.h"

static const char usage[] =
    "usage: bench [options]\n"
    "       bench --compare OLD NEW\n"
    "       bench --report RESULTS\n"
    "How do timers made with this library compare, on this machine, with others? Figures are "
    "compared within one run.\n"
    "Without options it takes about 15 minutes.\n\n"
    "  --out FILE           write results as JSON, finished cells only, also when interrupted; and "
    "the page\n"
    "  --page FILE          the page; otherwise report.html in the folder of the results\n"
    "  --quick              a first look, under two minutes: fewer sizes, shorter cells, fewer "
    "repetitions\n"
    "  --full               all repetitions, and curves over n and threads\n"
    "  --growth             only these curves, of W1, W3 and W4\n"
    "  --only W1,W2         these workloads\n"
    "  --candidate NAME,...   these candidates\n"
    "  --n N,...            these numbers of timers, where a workload has a choice\n"
    "  --threads T,...      these numbers of threads, where a workload has a choice\n"
    "  --reps R             repetitions of each cell\n"
    "  --compare OLD        then print the figures that differ from these results by more than "
    "the noise; with NEW after it, without a run\n"
    "  --report RESULTS     only make the page of these results\n"
    "  --help               this\n";

static _Noreturn void refuse(const char *what, const char *which)
{
	fprintf(stderr, "bench: %s '%s'; see --help\n", what, which);
	exit(2);
}

static void print_help(void)
{
	fputs(usage, stdout);
	puts("\nWorkloads:");
	for (const struct workload *const *w = all_workloads; *w; w++)
		printf("  %-5s %s\n", (*w)->name, (*w)->title);
	puts("\nCandidates:");
	for (const struct candidate *const *s = all_candidates; *s; s++)
		printf("  %-19s %s\n", (*s)->name, (*s)->what);
	puts("\nStatus: 0; 1: a candidate broke a promise, crashed or hung, or results or page "
	     "could not be written;\n"
	     "2: bad usage, or results that cannot be read; 130: interrupted.");
}

static uint32_t parse_number(const char *text, uint32_t most)
{
	char *end;
	unsigned long long number = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || number == 0 || number > most)
		refuse("not a number in range:", text);
	return (uint32_t)number;
}

static unsigned split(char *text, const char **parts)
{
	unsigned count = 0;
	char *rest;
	for (char *part = strtok_r(text, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		if (count == MAX_LIST)
			refuse("too many in a list, from", part);
		parts[count++] = part;
	}
	if (count == 0)
		refuse("empty list", "");
	return count;
}

static unsigned parse_numbers(char *text, uint32_t *numbers, uint32_t most)
{
	const char *parts[MAX_LIST];
	unsigned count = split(text, parts);
	for (unsigned i = 0; i < count; i++)
		numbers[i] = parse_number(parts[i], most);
	return count;
}

static void parse_workloads(struct options *options, char *text)
{
	options->workload_count = split(text, options->workloads);
	for (unsigned i = 0; i < options->workload_count; i++)
		if (!workload_find(options->workloads[i]))
			refuse("no such workload:", options->workloads[i]);
}

static void parse_candidates(struct options *options, char *text)
{
	options->candidate_count = split(text, options->candidates);
	for (unsigned i = 0; i < options->candidate_count; i++) {
		const char *name = options->candidates[i];
		if (rival_lacks(name))
			refuse("this candidate needs", rival_lacks(name));
		if (!candidate_find(name))
			refuse("no such candidate:", name);
	}
}

enum { MOST_TIMERS = 1 << 28, MOST_THREADS = 1024, MOST_REPS = 100 };

static void parse_option(struct options *options, int letter)
{
	switch (letter) {
	case 'o':
		options->out = optarg;
		break;
	case 'q':
		options->quick = true;
		break;
	case 'f':
		options->full = true;
		break;
	case 'g':
		options->growth = true;
		break;
	case 'w':
		parse_workloads(options, optarg);
		break;
	case 's':
		parse_candidates(options, optarg);
		break;
	case 'n':
		options->size_count = parse_numbers(optarg, options->sizes, MOST_TIMERS);
		break;
	case 't':
		options->thread_count = parse_numbers(optarg, options->threads, MOST_THREADS);
		break;
	case 'r':
		options->reps = parse_number(optarg, MOST_REPS);
		break;
	case 'c':
		options->compare_old = optarg;
		break;
	case 'p':
		options->page = optarg;
		break;
	case 'm':
		options->report = optarg;
		break;
	case 'h':
		print_help();
		exit(fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
	default:
		fputs("bench: see --help\n", stderr);
		exit(2);
	}
}

void options_parse(struct options *options, int argc, char **argv)
{
	static const struct option known[] = {
	    {"out", required_argument, NULL, 'o'},  {"quick", no_argument, NULL, 'q'},
	    {"full", no_argument, NULL, 'f'},       {"growth", no_argument, NULL, 'g'},
	    {"only", required_argument, NULL, 'w'}, {"candidate", required_argument, NULL, 's'},
	    {"n", required_argument, NULL, 'n'},    {"threads", required_argument, NULL, 't'},
	    {"reps", required_argument, NULL, 'r'}, {"compare", required_argument, NULL, 'c'},
	    {"page", required_argument, NULL, 'p'}, {"report", required_argument, NULL, 'm'},
	    {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
	};
	*options = (struct options){0};
	for (int letter; (letter = getopt_long(argc, argv, "", known, NULL)) != -1;)
		parse_option(options, letter);
	if (options->compare_old && optind < argc)
		options->compare_new = argv[optind++];
	if (options->quick && options->full)
		refuse("not together:", "--quick, --full");
	if (options->report && options->compare_old)
		refuse("not together:", "--report, --compare");
	if (optind < argc)
		refuse("what is", argv[optind]);
}

static bool listed(const char *const *list, unsigned count, const char *name)
{
	for (unsigned i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return count == 0;
}

bool options_want_workload(const struct options *options, const char *name)
{
	return listed(options->workloads, options->workload_count, name);
}

bool options_want_candidate(const struct options *options, const char *name)
{
	return listed(options->candidates, options->candidate_count, name);
}

const char *options_mode(const struct options *options)
{
	if (options->growth)
		return options->quick ? "quick growth" : "growth";
	return options->quick ? "quick" : options->full ? "full" : "default";
}
