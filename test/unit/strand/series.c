/* A series on a strand does as a series of timers does: the same program on either, run by run. */
#include <errno.h>
#include <string.h>

#include "test/support/current.h"
#include "test/support/strands.h"

TestSuite(strand_series, .timeout = 60);

enum { RUNS = 200 };

/* What one run has seen. */
struct seen {
	uint64_t at_ns, overruns;
};

struct trace {
	struct strand_rig rig;
	uint64_t random, longest_ns;
	int runs, releases;
	enum tw_fate fate;
	struct seen seen[RUNS];
};

static void run(void *arg)
{
	struct trace *trace = arg;
	if (trace->runs < RUNS)
		trace->seen[trace->runs] =
		    (struct seen){rig_now(&trace->rig.rig), current_run().overruns};
	trace->runs++;
	uint64_t took_ns = random_below(&trace->random, trace->longest_ns + 1);
	tw_clock_manual_set(trace->rig.rig.clock, rig_now(&trace->rig.rig) + took_ns);
}

static void released(void *arg, enum tw_fate fate)
{
	struct trace *trace = arg;
	trace->fate = fate;
	trace->releases++;
}

/* What the series is like. */
struct shape {
	const char *name;
	struct tw_period period;
	uint64_t longest_ns, deadline_ns;
	uint64_t stall_ns; /* the clock leaps by up to this much now and then */
};

static void open_trace(struct trace *trace, const struct shape *shape, uint64_t seed)
{
	memset(trace, 0, sizeof *trace);
	trace->random = seed;
	trace->longest_ns = shape->longest_ns;
	strand_rig_open(&trace->rig);
}

/*
 * Runs all that is due at this instant: the driver brings a timer's missed run, and a strand's
 * queue brings its own.
 */
static void run_due(struct trace *trace)
{
	do
		tw_service_advance(trace->rig.rig.service, TW_NO_LIMIT);
	while (queue_executor_run_all(&trace->rig.queue) > 0);
}

static void go_on(struct trace *trace, uint64_t stall_ns, uint64_t seed)
{
	uint64_t random = ~seed, to_ns = rig_now(&trace->rig.rig) + SECOND;
	for (uint64_t now_ns; (now_ns = rig_now(&trace->rig.rig)) < to_ns;) {
		if (stall_ns && random_percent(&random, 5))
			tw_clock_manual_set(trace->rig.rig.clock,
					    now_ns + random_below(&random, stall_ns));
		rig_advance(&trace->rig.rig, 1 + random_below(&random, trace->rig.rig.tick_ns));
		run_due(trace);
	}
}

static void trace_timer(struct trace *trace, const struct shape *shape, uint64_t seed)
{
	tw_timer timer;
	open_trace(trace, shape, seed);
	struct tw_task task = {.size = sizeof task,
			       .fn = run,
			       .arg = trace,
			       .when_ns = shape->deadline_ns,
			       .flags = shape->deadline_ns ? TW_TASK_AT : 0,
			       .period = &shape->period,
			       .release = released,
			       .executor = &trace->rig.queue.base};
	expect_eq(tw_schedule_task(trace->rig.rig.service, &task, &timer), 0);
	go_on(trace, shape->stall_ns, seed);
	tw_cancel(trace->rig.rig.service, timer);
	strand_rig_close(&trace->rig);
}

static void trace_strand(struct trace *trace, const struct shape *shape, uint64_t seed)
{
	tw_strand_task_id handle;
	open_trace(trace, shape, seed);
	struct tw_strand_task spec = {.size = sizeof spec,
				      .fn = run,
				      .arg = trace,
				      .delay_ns = shape->deadline_ns,
				      .flags = shape->deadline_ns ? TW_TASK_AT : 0,
				      .period = &shape->period,
				      .release = released};
	expect_eq(tw_strand_submit_task(trace->rig.strand, &spec, &handle), 0);
	go_on(trace, shape->stall_ns, seed);
	tw_strand_cancel(trace->rig.strand, handle);
	strand_rig_close(&trace->rig);
}

static struct tw_period period_of(enum tw_missed_policy missed, enum tw_period_mode mode,
				  uint64_t count)
{
	return (struct tw_period){.size = sizeof(struct tw_period),
				  .first_ns = 7 * MS,
				  .period_ns = 10 * MS,
				  .mode = mode,
				  .count = count,
				  .missed = missed};
}

static void expect_same(const struct shape *shape)
{
	static struct trace timer, strand;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		trace_timer(&timer, shape, seed);
		trace_strand(&strand, shape, seed);
		expect_gt(timer.runs, 2);
		cr_assert(strand.runs == timer.runs, "%s: %d runs, not %d", shape->name,
			  strand.runs, timer.runs);
		expect_eq(strand.releases, 1);
		expect_eq(strand.fate, timer.fate);
		for (int i = 0; i < timer.runs && i < RUNS; i++) {
			expect_eq(strand.seen[i].at_ns, timer.seen[i].at_ns);
			expect_eq(strand.seen[i].overruns, timer.seen[i].overruns);
		}
	}
}

Test(strand_series, does_as_timers_do)
{
	const enum tw_period_mode rate = TW_FIXED_RATE, delay = TW_FIXED_DELAY;
	struct shape shapes[] = {
	    {"skips", period_of(TW_MISSED_SKIP, rate, 0), 35 * MS, 0, 0},
	    {"coalesces", period_of(TW_MISSED_COALESCE, rate, 0), 18 * MS, 0, 0},
	    {"bursts", period_of(TW_MISSED_BURST, rate, 0), 15 * MS, 0, 0},
	    {"keeps a fixed delay", period_of(TW_MISSED_SKIP, delay, 0), 35 * MS, 0, 0},
	    {"ends after its count", period_of(TW_MISSED_COALESCE, rate, 5), 15 * MS, 0, 0},
	    {"begins at a deadline", period_of(TW_MISSED_SKIP, rate, 0), 15 * MS,
	     RIG_START_NS + 33 * MS, 0},
	    {"skips after stalls", period_of(TW_MISSED_SKIP, rate, 0), 5 * MS, 0, 105 * MS},
	    {"coalesces after stalls", period_of(TW_MISSED_COALESCE, rate, 0), 5 * MS, 0, 105 * MS},
	    {"bursts after stalls", period_of(TW_MISSED_BURST, rate, 0), 5 * MS, 0, 105 * MS},
	    {"skips after stalls, at a delay", period_of(TW_MISSED_SKIP, delay, 0), 5 * MS, 0,
	     105 * MS},
	    {"coalesces after stalls, at a delay", period_of(TW_MISSED_COALESCE, delay, 0), 5 * MS,
	     0, 105 * MS},
	    {"bursts after stalls, at a delay", period_of(TW_MISSED_BURST, delay, 0), 5 * MS, 0,
	     105 * MS},
	};
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		if (shapes[i].deadline_ns)
			shapes[i].period.first_ns = 0;
		expect_same(&shapes[i]);
	}
}
