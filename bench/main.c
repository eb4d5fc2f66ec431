/*
 * The bench: timers made with this library against those that one would use instead, measured side
 * by side. See --help. Every run is checked: a candidate that loses a timer, runs one early or runs
 * a cancelled one fails the bench.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/compare.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/page.h"
#include "bench/plan.h"
#include "bench/progress.h"
#include "bench/replace.h"
#include "bench/report.h"
#include "bench/results.h"
#include "bench/results_file.h"
#include "bench/rivals/rival.h"
#include "bench/round_trip.h"
#include "bench/run.h"

struct moment {
	uint64_t at_ns, family_ms;
	struct cpu_use use;
};

/* CPU time that others had meanwhile: other processes here, and other guests of the hypervisor. */
struct disturbance {
	uint64_t others_cpu_ms, stolen_ms;
};

struct bench {
	struct options options;
	struct plan plan;
	struct machine machine;
	struct results results;
	struct moment start;
};

static struct moment moment_now(void)
{
	return (struct moment){
	    .at_ns = now_ns(), .family_ms = family_cpu_ms(), .use = machine_cpu_use()};
}

static struct disturbance disturbance_since(const struct moment *start)
{
	struct moment end = moment_now();
	uint64_t busy = end.use.busy_ms - start->use.busy_ms,
		 ours = end.family_ms - start->family_ms;
	return (struct disturbance){.others_cpu_ms = busy > ours ? busy - ours : 0,
				    .stolen_ms = end.use.stolen_ms - start->use.stolen_ms};
}

/* False: interrupted. */
static bool run_once(struct bench *bench, const struct group *group,
		     const struct candidate *candidate, struct cell *cell, struct cell *baseline)
{
	struct order order = {
	    .candidate = candidate,
	    .n = group->n,
	    .threads = group->threads,
	    .quick = bench->options.quick,
	    .ops = cell->ops,
	};
	struct outcome outcome;
	uint64_t limit_ns = (uint64_t)(180 + 20 * group->run_s) * SECOND_NS;
	double rtt_before_ns = line_round_trip_ns();
	struct moment start = moment_now();
	if (!run_apart(group->workload, &order, limit_ns, &outcome))
		return false;
	if (outcome.count) {
		outcome_set(&outcome, "rtt_ns", fmax(rtt_before_ns, line_round_trip_ns()));
		struct disturbance disturbance = disturbance_since(&start);
		outcome_set(&outcome, "others_cpu_ms", (double)disturbance.others_cpu_ms);
		outcome_set(&outcome, "stolen_ms", (double)disturbance.stolen_ms);
	}
	cell_add_outcome(cell, baseline, &outcome);
	if (outcome.trouble[0]) {
		progress_clear();
		fprintf(stderr, "bench: %s %s n=%u threads=%u: %s\n", group->workload->name,
			candidate->name, group->n, group->threads, outcome.trouble);
	}
	return true;
}

/* False: interrupted. */
static bool run_group(struct bench *bench, const struct group *group)
{
	struct cell *cells[MAX_CANDIDATES], *baseline = NULL;
	for (unsigned i = 0; i < group->candidate_count; i++)
		cells[i] = results_add(&bench->results, group->workload, group->candidates[i]->name,
				       group->n, group->threads);
	if (group->workload->bit & (ON_FIRE | ON_STORM | ON_SERVER | ON_PERIODIC))
		baseline = results_add(&bench->results, group->workload, "baseline", group->n,
				       group->threads);
	for (unsigned rep = 0; rep < group->reps; rep++)
		for (unsigned i = 0; i < group->candidate_count; i++) {
			if (rep >= plan_reps(group, group->candidates[i], &bench->options))
				continue;
			progress_run(group, group->candidates[i], rep);
			if (!cells[i]->lost &&
			    !run_once(bench, group, group->candidates[i], cells[i], baseline))
				return false;
			progress_ran(group);
		}
	for (unsigned i = 0; i < group->candidate_count; i++)
		cells[i]->finished = !cells[i]->lost;
	if (baseline)
		baseline->finished = baseline->figure_count > 0;
	return true;
}

static bool is_tried(const struct bench *bench, const struct candidate *candidate)
{
	return (candidate->workloads & workload_trial.bit) && plan_has(&bench->plan, candidate);
}

static double trials_s(const struct bench *bench)
{
	double sum = 0;
	for (const struct candidate *const *s = all_candidates; *s; s++)
		sum += is_tried(bench, *s) ? workload_trial.s : 0;
	return sum;
}

/* Each candidate's trial; only a failed one shows in the results. False: interrupted. */
static bool run_trials(struct bench *bench)
{
	for (const struct candidate *const *s = all_candidates; *s; s++) {
		if (!is_tried(bench, *s))
			continue;
		struct group group = {.workload = &workload_trial,
				      .threads = 1,
				      .reps = 1,
				      .run_s = workload_trial.s};
		struct cell *cell = results_add(&bench->results, &workload_trial, (*s)->name, 0, 1);
		progress_run(&group, *s, 0);
		if (!run_once(bench, &group, *s, cell, NULL))
			return false;
		progress_ran(&group);
	}
	progress_clear();
	report_trials(stdout, &bench->results);
	return true;
}

static void note_occasion(struct bench *bench, bool complete)
{
	struct occasion *occasion = &bench->results.occasion;
	struct disturbance disturbance = disturbance_since(&bench->start);
	snprintf(occasion->mode, sizeof occasion->mode, "%s", options_mode(&bench->options));
	occasion->complete = complete;
	occasion->took_s = (double)(now_ns() - bench->start.at_ns) / 1e9;
	occasion->others_cpu_s = (double)disturbance.others_cpu_ms / 1e3;
	occasion->stolen_s = (double)disturbance.stolen_ms / 1e3;
}

static bool could_not(const char *what, const char *path)
{
	fprintf(stderr, "bench: %s could not be %s: %s\n", path, what, strerror(errno));
	return false;
}

/* After each group: a bench that is killed leaves what it has. */
static bool save(struct bench *bench, bool complete)
{
	const char *path = bench->options.out;
	note_occasion(bench, complete);
	return !path || results_write(path, &bench->machine, &bench->results) == 0 ||
	       could_not("written", path);
}

static bool last_of_workload(const struct plan *plan, size_t i)
{
	return i + 1 == plan->count || plan->groups[i + 1].workload != plan->groups[i].workload;
}

/* False: interrupted, or the results could not be written. */
static bool run_plan(struct bench *bench)
{
	for (size_t i = 0; i < bench->plan.count; i++) {
		const struct group *group = &bench->plan.groups[i];
		progress_group(group);
		bool whole = run_group(bench, group);
		bool saved = save(bench, whole && i + 1 == bench->plan.count);
		if (!whole || last_of_workload(&bench->plan, i)) {
			progress_clear();
			report_workload(stdout, &bench->results, group->workload);
		}
		if (!whole || !saved)
			return false;
	}
	return true;
}

static size_t failures(const struct results *results)
{
	size_t count = 0;
	for (size_t i = 0; i < results->count; i++)
		count += results->cells[i]->trouble[0] != 0;
	return count;
}

/* Threads that share one core would measure its scheduler. */
static void leave_out_threads(struct plan *plan, unsigned cores)
{
	size_t kept = 0;
	if (cores > 1)
		return;
	for (size_t i = 0; i < plan->count; i++)
		if (plan->groups[i].threads == 1)
			plan->groups[kept++] = plan->groups[i];
	fprintf(stderr,
		"bench: this machine, or what this process may use of it, has one core: %zu groups "
		"of cells with more "
		"threads are skipped; tick thread and caller take turns in the rest\n",
		plan->count - kept);
	plan->count = kept;
}

/*
 * Writes the page into the folder of the results file. If the results go to a device, there is no
 * such folder and no page. Returns false if the page could not be written.
 */
static bool make_page(const struct options *options, const char *results_path,
		      const struct machine *machine, const struct results *results)
{
	char beside[4096];
	const char *slash = strrchr(results_path, '/'), *path = options->page;
	if (!path && is_special_file(results_path))
		return true;
	if (!path) {
		snprintf(beside, sizeof beside, "%.*sreport.html",
			 slash ? (int)(slash + 1 - results_path) : 0, results_path);
		path = beside;
	}
	if (page_write(path, machine, results) < 0)
		return could_not("written", path);
	printf("page         %s\n", path);
	return true;
}

static int page_of_file(const struct options *options)
{
	struct machine machine;
	struct results results;
	if (!results_read(options->report, &machine, &results))
		return 2;
	return make_page(options, options->report, &machine, &results) ? EXIT_SUCCESS
								       : EXIT_FAILURE;
}

struct old_results {
	struct machine machine;
	struct results results;
};

static int compare_files(const struct old_results *old, const char *path)
{
	struct machine machine;
	struct results results;
	if (!results_read(path, &machine, &results))
		return 2;
	compare_results(stdout, &old->machine, &old->results, &machine, &results);
	return EXIT_SUCCESS;
}

/* Whatever would only be found out at the end. False: stderr knows why. */
static bool prepare(struct bench *bench)
{
	const struct options *options = &bench->options;
	plan_make(&bench->plan, options);
	leave_out_threads(&bench->plan, machine_cores());
	if (bench->plan.count == 0) {
		fputs(
		    "bench: nothing to run: none of these candidates does any of these workloads\n",
		    stderr);
		return false;
	}
	if (options->out && replace_try(options->out) < 0)
		return could_not("written", options->out);
	return !options->page || replace_try(options->page) == 0 ||
	       could_not("written", options->page);
}

static void begin(struct bench *bench)
{
	time_t now = time(NULL);
	strftime(bench->results.occasion.when, sizeof bench->results.occasion.when,
		 "%Y-%m-%d %H:%M UTC", gmtime(&now));
	machine_look(&bench->machine);
	report_machine(stdout, &bench->machine);
	rivals_print_skipped(stdout);
	run_catch_interrupts();
	progress_begin(&bench->plan, trials_s(bench));
	bench->start = moment_now();
}

/*
 * Reports and writes the finished workloads also if others failed. False: a file could not be
 * written.
 */
static bool finish(struct bench *bench, const struct old_results *old)
{
	bool written = true;
	const struct options *options = &bench->options;
	report_notes(stdout, &bench->results);
	if (old)
		compare_results(stdout, &old->machine, &old->results, &bench->machine,
				&bench->results);
	if (options->out || options->page)
		written = make_page(options, options->out ? options->out : options->page,
				    &bench->machine, &bench->results);
	return written;
}

static int run(struct bench *bench, const struct old_results *old)
{
	if (!prepare(bench))
		return 2;
	begin(bench);
	bool whole = run_trials(bench) && run_plan(bench);
	note_occasion(bench, whole);
	progress_clear();
	bool written = finish(bench, old);
	if (run_interrupted())
		return 130;
	return whole && written && failures(&bench->results) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
	static struct bench bench;
	static struct old_results old;
	int status;
	signal(SIGXFSZ, SIG_IGN); /* beyond the limit of a file's size, the write fails */
	options_parse(&bench.options, argc, argv);
	const char *compared = bench.options.compare_old;
	if (compared && !results_read(compared, &old.machine, &old.results))
		return 2;
	if (bench.options.report)
		status = page_of_file(&bench.options);
	else if (bench.options.compare_new)
		status = compare_files(&old, bench.options.compare_new);
	else
		status = run(&bench, compared ? &old : NULL);
	if (ferror(stdout) || fflush(stdout) != 0) {
		could_not("written", "standard output");
		return EXIT_FAILURE;
	}
	return status;
}
