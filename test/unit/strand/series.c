/* A series on a strand does as a series of timers does: the same program on either, run by run. */
#include <errno.h>
#include <string.h>

#include "test/support/strand_suite.h"
#include "test/support/current.h"

TestSuite(strand_series, .init = opened, .fini = closed, .timeout = 60);

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

/* ----------------------------------------------------------------- tasks that run once */

static struct tw_strand_task spec_of(struct noted *noted)
{
	return (struct tw_strand_task){.size = sizeof(struct tw_strand_task),
				       .fn = note_run,
				       .arg = noted,
				       .release = note_release};
}

Test(strand_series, a_deadline_in_the_past_is_due_immediately)
{
	struct noted task = NOTED(&rig, 1);
	struct tw_strand_task spec = spec_of(&task);
	spec.flags = TW_TASK_AT;
	spec.delay_ns = RIG_START_NS - SECOND;
	expect_eq(tw_strand_submit_task(rig.strand, &spec, NULL), 0);
	strand_rig_advance(&rig, 2 * rig.rig.tick_ns);
	expect_eq(task.runs, 1);
}

Test(strand_series, a_series_that_begins_in_the_past_may_make_up_for_its_runs)
{
	struct noted series = NOTED(&rig, 1);
	struct tw_strand_task spec = spec_of(&series);
	struct tw_period period = {
	    .size = sizeof period, .period_ns = 600 * SECOND, .missed = TW_MISSED_BURST};
	rig_advance(&rig.rig, 3600 * SECOND);
	spec.flags = TW_TASK_AT;
	spec.delay_ns = rig_now(&rig.rig) - 3600 * SECOND;
	spec.period = &period;
	tw_strand_task_id id;
	expect_eq(tw_strand_submit_task(rig.strand, &spec, &id), 0);
	strand_rig_advance(&rig, 2 * rig.rig.tick_ns);
	expect_eq(series.runs, 7);
	strand_rig_advance(&rig, 600 * SECOND);
	expect_eq(series.runs, 8);
	expect_eq(tw_strand_cancel(rig.strand, id), TW_CANCELLED);
}

static void look_at_context(struct noted *noted)
{
	noted->answer = tw_context_get() == noted;
}

Test(strand_series, a_series_runs_under_the_context_that_its_spec_names)
{
	struct noted series = NOTED(&rig, 1);
	struct tw_period period = period_of(TW_MISSED_SKIP, TW_FIXED_RATE, 3);
	struct tw_strand_task spec = spec_of(&series);
	spec.period = &period;
	spec.flags = TW_TASK_CONTEXT;
	spec.context = &series;
	series.act = series.act_in_release = look_at_context;
	expect_eq(tw_strand_submit_task(rig.strand, &spec, NULL), 0);
	for (int i = 0; i < 3; i++) {
		series.answer = 0;
		strand_rig_advance(&rig, 10 * MS);
		expect_eq(series.answer, 1);
		expect_eq(series.runs, i + 1);
	}
	expect_eq(series.releases, 1);
	expect_eq(series.fate, TW_FATE_FIRED);
	cr_assert_null(tw_context_get());
}
