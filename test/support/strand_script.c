/* The verbs of strands' scripts. */
#include "strand_script.h"

#include <string.h>

enum { TASKS = 64 };

struct task {
	tw_strand_task_id id;
	tw_timer timer;
	uint64_t stays_ns;
	const char *in_run, *in_release;
	bool has_release; /* and was accepted */
	int releases;
};

static struct {
	struct strand_rig strand;
	tw_strand *other, *upper;
	tw_executor *executor; /* the strand as one, also when it has gone */
	struct task tasks[TASKS];
} rig;

static void open_strand(const struct words *given)
{
	memset(&rig, 0, sizeof rig);
	queue_executor_open(&rig.strand.queue);
	struct tw_service_config service = script_service(given);
	rig_open(&rig.strand.rig, &service);
	tw_executor *executor =
	    has_word(given, "inline") || has_word(given, "queued") ? NULL : &rig.strand.queue.base;
	expect_eq(tw_strand_create(&rig.strand.strand, rig.strand.rig.service, executor), 0);
}

static void destroy_others(const struct words *words)
{
	if (rig.upper)
		expect_eq(tw_strand_destroy(rig.upper), 0);
	if (rig.other)
		expect_eq(tw_strand_destroy(rig.other), 0);
	rig.upper = rig.other = NULL;
}

static void close_strand(void)
{
	destroy_others(NULL);
	strand_rig_close(&rig.strand);
	for (int i = 0; i < TASKS; i++)
		expect_eq(rig.tasks[i].releases, rig.tasks[i].has_release);
}

static void run(void *arg)
{
	struct task *task = arg;
	say("run %d", (int)(task - rig.tasks));
	tw_clock *clock = rig.strand.rig.clock;
	expect_eq(tw_clock_manual_set(clock, tw_clock_now(clock) + task->stays_ns), 0);
	play_calls(task->in_run);
}

static void release(void *arg, enum tw_fate fate)
{
	struct task *task = arg;
	task->releases++;
	if (fate == TW_FATE_CANCELLED)
		say("%d cancelled", (int)(task - rig.tasks));
	else if (fate != TW_FATE_FIRED)
		say("%d fate %d", (int)(task - rig.tasks), fate);
	play_calls(task->in_release);
}

static struct task *task_of(const struct words *words, int n)
{
	rig.tasks[n] = (struct task){.stays_ns = ms_of(words, "stays"),
				     .in_run = words->in_run,
				     .in_release = words->in_release};
	return &rig.tasks[n];
}

static int submit_one(tw_strand *strand, const struct words *words, struct task *task)
{
	if (has_word(words, "plain"))
		return tw_strand_submit(strand, run, task);
	struct tw_period period = {.size = sizeof period,
				   .first_ns = ms_of(words, "first"),
				   .period_ns = ms_of(words, "every"),
				   .missed =
				       has_word(words, "skip") ? TW_MISSED_SKIP : TW_MISSED_BURST};
	int64_t at_ms = option_of(words, "at", INT64_MIN);
	int64_t named = option_of(words, "named", 0);
	bool is_at = at_ms != INT64_MIN;
	struct tw_strand_task spec = {
	    .size = sizeof spec,
	    .fn = run,
	    .arg = task,
	    .delay_ns = is_at ? RIG_START_NS + (uint64_t)at_ms * MS : ms_of(words, "delay"),
	    .flags = (is_at ? TW_TASK_AT : 0) | (named ? TW_TASK_CONTEXT : 0),
	    .context = script_context(named),
	    .period = period.period_ns ? &period : NULL,
	    .release = release};
	int r = tw_strand_submit_task(strand, &spec, &task->id);
	expect_eq(task->id.id != 0, r == 0);
	task->has_release = r == 0;
	return r;
}

static void submit(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_answer(submit_one(rig.strand.strand, words, task_of(words, n)));
}

static void name_timer(const struct words *words)
{
	if (!rig.executor)
		rig.executor = tw_strand_executor(rig.strand.strand);
	EACH_NUMBER (words, n) {
		struct task *task = task_of(words, n);
		struct tw_task timer = {.size = sizeof timer,
					.fn = run,
					.arg = task,
					.when_ns = ms_of(words, "delay"),
					.release = release,
					.executor = rig.executor};
		int r = tw_schedule_task(rig.strand.rig.service, &timer, &task->timer);
		task->has_release = r == 0;
		say_answer(r);
	}
}

/* Tasks of another strand, on the queue or on the strand. */
static void submit_to(tw_strand **strand, tw_executor *executor, const struct words *words)
{
	if (!*strand)
		expect_eq(tw_strand_create(strand, rig.strand.rig.service, executor), 0);
	EACH_NUMBER (words, n)
		say_answer(submit_one(*strand, words, task_of(words, n)));
}

static void submit_other(const struct words *words)
{
	submit_to(&rig.other, &rig.strand.queue.base, words);
}

static void submit_upper(const struct words *words)
{
	submit_to(&rig.upper, tw_strand_executor(rig.strand.strand), words);
}

static void cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_strand_cancel(rig.strand.strand, rig.tasks[n].id));
}

static void cancel_wait(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_strand_cancel_wait(rig.strand.strand, rig.tasks[n].id, TW_FOREVER));
}

/* By the other strand, whose task it is not. */
static void cancel_foreign(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_strand_cancel(rig.other, rig.tasks[n].id));
}

static void cancel_timer(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_cancel(rig.strand.rig.service, rig.tasks[n].timer));
}

static void close_now(const struct words *words)
{
	say_answer(tw_strand_close(rig.strand.strand, 0));
}

static void close_wait(const struct words *words)
{
	say_answer(tw_strand_close(rig.strand.strand, TW_FOREVER));
}

static void destroy(const struct words *words)
{
	tw_strand *strand = rig.strand.strand;
	rig.strand.strand = NULL;
	say_answer(tw_strand_destroy(strand));
}

static void say_where(const struct words *words)
{
	tw_strand *current = tw_strand_current();
	say("%s", !current ? "on none" : current == rig.strand.strand ? "on it" : "on another");
}

#define GAUGE(name) GAUGE_OF(tw_strand_stats, name)

static const struct gauge gauges[] = {
    GAUGE(queued),    GAUGE(delayed), GAUGE(running), GAUGE(runs),
    GAUGE(cancelled), GAUGE(closed),  {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_strand_stats stats = strand_stats(rig.strand.strand);
	say_gauges(words, gauges, &stats);
}

static const struct verb verbs[] = {
    {"submit", submit},
    {"timer", name_timer},
    {"other", submit_other},
    {"upper", submit_upper},
    {"destroy_others", destroy_others},
    {"cancel", cancel},
    {"cancel_wait", cancel_wait},
    {"cancel_foreign", cancel_foreign},
    {"cancel_timer", cancel_timer},
    {"close", close_now},
    {"close_wait", close_wait},
    {"destroy", destroy},
    {"where", say_where},
    {"stats", say_stats},
    {NULL, NULL},
};

const struct stage strand_stage = {
    .open = open_strand,
    .close = close_strand,
    .rig = &rig.strand.rig,
    .queue = &rig.strand.queue,
    .verbs = verbs,
};
