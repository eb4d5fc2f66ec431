/*
 * W10: n series with periods of 10 ms to 1 s, whole milliseconds: those of pollers, heartbeats and
 * statistics. Each candidate repeats by its own means. Run k of a series is due at its start plus k
 * periods; what is later is lateness, and what the lateness of a series has grown by over the
 * measured time is its drift: 0 on average if it counts from nominal times. Runs that a candidate
 * skips, and says so, are not counted as drift. A candidate that promises exact series fails if it
 * drifts.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>

#include "bench/baseline.h"
#include "bench/load.h"
#include "bench/workload.h"

enum { SHORTEST_MS = 10, LONGEST_MS = 1000 };

/* Each has run once by then. */
#define SETTLE_NS (1200 * MILLISECOND_NS)

struct series {
	uint64_t start_ns, period_ns;
	uint64_t due;          /* runs that have come due, the missed ones included */
	uint64_t runs, missed; /* since the measurement began, as all below */
	int64_t first_late_ns, before_last_late_ns, last_late_ns;
};

static const struct candidate *candidate;
static uint64_t measured_from_ns, measured_to_ns;

/* Runs of one series do not overlap, and each sees what the one before wrote. */
static void run_once(void *one)
{
	uint64_t at = now_ns();
	struct series *series = one;
	uint64_t missed = candidate->missed ? candidate->missed() : 0;
	series->due += 1 + missed;
	uint64_t nominal = series->start_ns + series->due * series->period_ns;
	bool measured = at >= measured_from_ns && at < measured_to_ns;
	if (measured || at < nominal)
		recorder_note(recorder_mine(), nominal, at);
	if (!measured)
		return;
	series->missed += missed;
	series->before_last_late_ns = series->last_late_ns;
	series->last_late_ns = (int64_t)(at - nominal);
	if (series->runs++ == 0)
		series->first_late_ns = series->before_last_late_ns = series->last_late_ns;
}

static void begin_all(const struct order *order, void *self, struct series *all,
		      struct outcome *outcome)
{
	struct random random = {.state = 1};
	uint64_t loop_ns = 0;
	for (uint32_t slot = 0; slot < order->n;) {
		if (slot % OPS_PER_TURN == 0) {
			loop_ns = now_ns();
			if (candidate->turn)
				candidate->turn(self, 0, loop_ns);
		}
		struct series *series = &all[slot];
		if (!series->period_ns)
			series->period_ns =
			    (SHORTEST_MS +
			     random_slot(random_next(&random), LONGEST_MS - SHORTEST_MS + 1)) *
			    MILLISECOND_NS;
		series->start_ns = loop_ns;
		int answer = candidate->every(self, slot, series->period_ns, run_once, series);
		if (answer == 0)
			slot++;
		else if (answer == -EAGAIN)
			sched_yield();
		else
			outcome_fail(outcome, "refused: %s", strerror(-answer));
	}
}

/*
 * A machine that stands still just before the end makes many series late once; drift makes every
 * run later than the one before. So the lesser lateness of the last two runs counts.
 */
static void check_drift(const struct order *order, const struct series *all,
			struct outcome *outcome)
{
	double sum = 0;
	for (const struct series *s = all; s < all + order->n; s++) {
		int64_t late = s->last_late_ns < s->before_last_late_ns ? s->last_late_ns
									: s->before_last_late_ns;
		sum += (double)(late - s->first_late_ns);
	}
	if (sum / order->n > TICK_NS)
		outcome_violation(outcome, "series drift: by %.0f us on average",
				  sum / order->n / 1e3);
}

static void set_series(const struct order *order, const struct series *all, uint64_t cpu_ns,
		       struct outcome *outcome)
{
	double sum = 0, most = 0;
	uint64_t runs = 0, missed = 0, silent = 0;
	for (uint32_t slot = 0; slot < order->n; slot++) {
		double drift = (double)(all[slot].last_late_ns - all[slot].first_late_ns);
		sum += drift;
		most = drift > most ? drift : most;
		runs += all[slot].runs;
		missed += all[slot].missed;
		silent += all[slot].runs == 0;
	}
	if (silent)
		outcome_violation(outcome, "%llu series did not run", (unsigned long long)silent);
	outcome_set(outcome, "cpu_ns_per_op", runs ? (double)cpu_ns / (double)runs : 0);
	outcome_set(outcome, "drift_mean_ns", sum / order->n);
	outcome_set(outcome, "drift_max_ns", most);
	outcome_set(outcome, "missed_runs", (double)missed);
	outcome_set(outcome, "runs_per_s",
		    (double)runs * (double)SECOND_NS / (double)(measured_to_ns - measured_from_ns));
}

static void end_all(const struct order *order, void *self)
{
	for (uint32_t slot = 0; slot < order->n; slot++)
		(void)candidate->cancel(self, slot);
	drive_until(candidate, self, now_ns() + 20 * MILLISECOND_NS);
	candidate->destroy(self);
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct baseline baseline;
	static struct records records;
	candidate = order->candidate;
	struct series *all = touched_array(order->n, sizeof *all);
	void *self = make_candidate(order, order->n, outcome);
	if (!all)
		outcome_fail(outcome, "no memory for the series");
	measured_from_ns = now_ns() + SETTLE_NS;
	measured_to_ns = measured_from_ns + (order->quick ? 1 : 10) * SECOND_NS;
	begin_all(order, self, all, outcome);
	drive_until(candidate, self, measured_from_ns);
	uint64_t cpu = process_cpu_ns();
	baseline_start(&baseline, measured_from_ns, measured_to_ns, outcome);
	drive_until(candidate, self, measured_to_ns);
	baseline_join(&baseline);
	cpu = process_cpu_ns() - cpu - baseline.cpu_ns;
	end_all(order, self);
	recorded(&records);
	set_series(order, all, cpu, outcome);
	if (candidate->exact_series)
		check_drift(order, all, outcome);
	set_lateness(outcome, &records.lateness, &baseline.lateness);
	check_records(&records, outcome);
}

const struct workload workload_periodic = {
    .name = "W10",
    .bit = ON_PERIODIC,
    .run = run,
};
