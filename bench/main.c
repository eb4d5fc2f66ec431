/*
 * The bench: timers made with this library against those that one would use instead, measured side by side. See --help.
 * Every run is checked: a subject that loses a timer, runs one early or runs a cancelled one fails the bench.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/json.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "bench/options.h"
#include "bench/plan.h"
#include "bench/progress.h"
#include "bench/report.h"
#include "bench/results.h"
#include "bench/run.h"

struct bench {
	struct options options;
	struct plan plan;
	struct machine machine;
	struct results results;
};

struct moment {
	uint64_t at_ns, family_ms;
	struct cpu_use use;
};

static struct moment moment_now(void)
{
	return (struct moment){.at_ns = now_ns(), .family_ms = family_cpu_ms(), .use = machine_cpu_use()};
}

static struct disturbance disturbance_since(const struct moment *start)
{
	struct moment end = moment_now();
	uint64_t busy = end.use.busy_ms - start->use.busy_ms, ours = end.family_ms - start->family_ms;
	return (struct disturbance){.others_cpu_ms = busy > ours ? busy - ours : 0,
				    .stolen_ms = end.use.stolen_ms - start->use.stolen_ms};
}

/* False: interrupted. */
static bool run_once(struct bench *bench, const struct group *group, const struct subject *subject, struct cell *cell,
		     struct cell *control)
{
	struct order order = {
	    .subject = subject,
	    .n = group->n,
	    .threads = group->threads,
	    .quick = bench->options.quick,
	    .ops = cell->ops,
	};
	struct outcome outcome;
	uint64_t limit_ns = (uint64_t)(60 + 20 * group->run_s) * SECOND_NS;
	struct moment start = moment_now();
	if (!run_apart(group->workload, &order, limit_ns, &outcome))
		return false;
	if (outcome.count) {
		struct disturbance disturbance = disturbance_since(&start);
		outcome_set(&outcome, "others_cpu_ms", (double)disturbance.others_cpu_ms);
		outcome_set(&outcome, "stolen_ms", (double)disturbance.stolen_ms);
	}
	cell_add_outcome(cell, control, &outcome);
	if (outcome.trouble[0]) {
		progress_clear();
		fprintf(stderr, "bench: %s %s n=%u threads=%u: %s\n", group->workload->name, subject->name, group->n,
			group->threads, outcome.trouble);
	}
	return true;
}

/* False: interrupted. */
static bool run_group(struct bench *bench, const struct group *group)
{
	struct cell *cells[MAX_SUBJECTS], *control = NULL;
	for (unsigned i = 0; i < group->subject_count; i++)
		cells[i] =
		    results_add(&bench->results, group->workload, group->subjects[i]->name, group->n, group->threads);
	if (group->workload->bit & (ON_FIRE | ON_STORM | ON_SERVER | ON_PERIODIC))
		control = results_add(&bench->results, group->workload, "control", group->n, group->threads);
	for (unsigned rep = 0; rep < group->reps; rep++)
		for (unsigned i = 0; i < group->subject_count; i++) {
			progress_run(group, group->subjects[i], rep);
			if (!cells[i]->lost && !run_once(bench, group, group->subjects[i], cells[i], control))
				return false;
			progress_ran(group);
		}
	for (unsigned i = 0; i < group->subject_count; i++)
		cells[i]->finished = !cells[i]->lost;
	if (control)
		control->finished = control->figure_count > 0;
	return true;
}

/* Each subject's trial; only a failed one shows in the results. False: interrupted. */
static bool run_trials(struct bench *bench)
{
	for (const struct subject *const *s = all_subjects; *s; s++) {
		if (!((*s)->workloads & workload_trial.bit) || !options_want_subject(&bench->options, (*s)->name))
			continue;
		struct group group = {.workload = &workload_trial, .threads = 1, .reps = 1, .run_s = workload_trial.s};
		struct cell *cell = results_add(&bench->results, &workload_trial, (*s)->name, 0, 1);
		if (!run_once(bench, &group, *s, cell, NULL))
			return false;
	}
	report_trials(stdout, &bench->results);
	return true;
}

/* After each group: a bench that is killed leaves what it has. */
static bool save(struct bench *bench)
{
	if (!bench->options.out || json_write(bench->options.out, &bench->machine, &bench->results) == 0)
		return true;
	fprintf(stderr, "bench: %s could not be written: %s\n", bench->options.out, strerror(errno));
	return false;
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
		bool saved = save(bench);
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

int main(int argc, char **argv)
{
	static struct bench bench;
	options_parse(&bench.options, argc, argv);
	plan_make(&bench.plan, &bench.options);
	if (bench.plan.count == 0) {
		fputs("bench: nothing to run: none of these subjects does any of these workloads\n", stderr);
		return 2;
	}
	machine_look(&bench.machine);
	report_machine(stdout, &bench.machine);
	run_catch_interrupts();
	progress_begin(&bench.plan);
	struct moment start = moment_now();
	bool whole = run_trials(&bench) && run_plan(&bench);
	struct disturbance disturbance = disturbance_since(&start);
	report_notes(stdout, &bench.results, &disturbance, (double)(now_ns() - start.at_ns) / 1e9);
	if (run_interrupted())
		return 130;
	return whole && failures(&bench.results) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
