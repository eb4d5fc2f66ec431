/*
 * The scheduler against a naive one, a list that is searched, in lockstep through random programs
 * of post, cancel, go on, advance and run.
 */
#include <errno.h>
#include <inttypes.h>

#include "test/support/work_rig.h"

enum { TASKS = 64, STEPS = 400, PROGRAMS = 150 };

/* One task of the naive scheduler, and its twin's handle. */
struct twin {
	bool lives, runs, cancelled;
	uint64_t number;
	int64_t start_ns, expiration_ns;
	unsigned turns_left;
	tw_scheduler_task_id task;
	int told; /* 0, or 1 + fate */
	int expected_told;
};

static struct work_rig rig;
static struct twin twins[TASKS];
static uint64_t seed, numbers, program;
static int64_t slice_begin_ns;
static uint64_t slice_begin_number;
static unsigned slice_turns;
static bool slice_ended; /* by a task that goes on */

static int64_t now(void)
{
	return (int64_t)rig_now(&rig.rig);
}

#define check(holds) cr_assert((holds), "program %" PRIu64 ": " #holds, program)

/* ------------------------------------------------------------------- the naive one */

static struct twin *naive_next(void)
{
	struct twin *best = NULL;
	for (int i = 0; i < TASKS; i++) {
		struct twin *t = &twins[i];
		if (!t->lives || t->start_ns > now())
			continue;
		if (!best || t->expiration_ns < best->expiration_ns ||
		    (t->expiration_ns == best->expiration_ns && t->number < best->number))
			best = t;
	}
	return best;
}

static bool naive_slice_is_over(void)
{
	return now() - slice_begin_ns >= (int64_t)(5 * MS);
}

/* Beyond the slice: an expired task that was there when it began. */
static bool naive_may_begin(const struct twin *t)
{
	if (slice_ended)
		return false;
	if (!naive_slice_is_over())
		return slice_turns < 1024;
	return slice_turns < 32 && t->expiration_ns <= now() && t->number <= slice_begin_number;
}

static bool naive_should_yield(const struct twin *t, int64_t turn_begin_ns)
{
	if (t->expiration_ns <= turn_begin_ns)
		return now() - turn_begin_ns >= (int64_t)(5 * MS);
	return naive_slice_is_over() || naive_next() != t;
}

static unsigned naive_count(bool ready)
{
	unsigned count = 0;
	for (int i = 0; i < TASKS; i++)
		count += twins[i].lives && (twins[i].start_ns <= now()) == ready;
	return count;
}

/* ------------------------------------------------------------------------- steps */

static int turn_of_twin(struct tw_turn *turn, void *arg);

static void told(void *arg, enum tw_fate fate, int result)
{
	struct twin *t = arg;
	check(t->told == 0);
	check(result == (fate == TW_FATE_FIRED       ? 0
			 : fate == TW_FATE_CANCELLED ? -ECANCELED
						     : -ESHUTDOWN));
	t->told = 1 + (int)fate;
}

static void post_one(void)
{
	static const int64_t timeouts_ms[] = {0, -1, 250, 5000, 10000};
	struct twin *t = &twins[random_below(&seed, TASKS)];
	if (t->lives)
		return;
	check(t->told == t->expected_told);
	unsigned priority = 1 + (unsigned)random_below(&seed, 4);
	int64_t delay_ms = random_percent(&seed, 50) ? (int64_t)random_below(&seed, 12) : 0;
	bool own = random_percent(&seed, 30);
	int64_t timeout_ms = own ? (int64_t)random_below(&seed, 30) - 5 : timeouts_ms[priority];
	*t = (struct twin){.lives = true,
			   .number = ++numbers,
			   .start_ns = now() + delay_ms * (int64_t)MS,
			   .expiration_ns = now() + (delay_ms + timeout_ms) * (int64_t)MS,
			   .turns_left = 1 + (unsigned)random_below(&seed, 3)};
	const struct tw_scheduler_task post = {.size = sizeof post,
					       .fn = turn_of_twin,
					       .arg = t,
					       .priority = (enum tw_priority)priority,
					       .flags = own ? TW_SCHEDULER_TASK_TIMEOUT : 0,
					       .timeout_ns = own ? timeout_ms * (int64_t)MS : 0,
					       .delay_ns = (uint64_t)delay_ms * MS,
					       .done = told};
	check(tw_scheduler_submit_task(rig.scheduler, &post, &t->task) == 0);
}

static void cancel_one(void)
{
	struct twin *t = &twins[random_below(&seed, TASKS)];
	int expected = !t->lives ? TW_GONE : t->runs ? TW_RUNNING : TW_CANCELLED;
	if (t->runs)
		t->cancelled = true;
	else if (t->lives)
		t->lives = false, t->expected_told = 1 + TW_FATE_CANCELLED;
	check(tw_scheduler_cancel(rig.scheduler, t->task) == expected);
	check(t->told == t->expected_told);
}

static int end_turn(struct twin *t)
{
	t->runs = false;
	bool more = --t->turns_left;
	if (!more || t->cancelled) {
		t->lives = false;
		t->expected_told = 1 + (more ? TW_FATE_CANCELLED : TW_FATE_FIRED);
	}
	slice_ended = t->lives;
	return more ? TW_TURN_AGAIN : TW_TURN_DONE;
}

static int turn_of_twin(struct tw_turn *turn, void *arg)
{
	struct twin *t = arg;
	int64_t begin_ns = now();
	check(t == naive_next());
	check(t->task.id == turn->task.id);
	check(turn->did_timeout == (t->expiration_ns <= now()));
	check(naive_may_begin(t));
	slice_turns++;
	t->runs = true;
	for (unsigned n = (unsigned)random_below(&seed, 4); n-- > 0;) {
		unsigned what = (unsigned)random_below(&seed, 4);
		if (what == 0)
			post_one();
		else if (what == 1)
			cancel_one();
		else if (what == 2)
			rig_advance(&rig.rig, random_below(&seed, 4) * MS);
		else
			check(tw_scheduler_should_yield(turn->scheduler) ==
			      naive_should_yield(t, begin_ns));
	}
	return end_turn(t);
}

static void run_slice(void)
{
	slice_begin_ns = now();
	slice_begin_number = numbers;
	slice_turns = 0;
	slice_ended = false;
	int r = tw_scheduler_run(rig.scheduler, TW_NO_LIMIT);
	struct twin *next = naive_next();
	check(r == (next ? TW_SCHEDULER_RUN_MORE : TW_SCHEDULER_RUN_IDLE));
	check(!next || !naive_may_begin(next));
}

static void check_state(void)
{
	struct tw_scheduler_stats stats = work_rig_stats(&rig);
	check(stats.ready + stats.delayed == naive_count(true) + naive_count(false));
	check(stats.ready == naive_count(true));
	check(stats.host_requested || !stats.ready);
	check(stats.submitted == stats.completed + stats.cancelled + stats.ready + stats.delayed);
}

static void run_program(void)
{
	work_rig_open(&rig, NULL);
	for (int i = 0; i < TASKS; i++)
		twins[i] = (struct twin){.lives = false};
	numbers = 0;
	for (int step = 0; step < STEPS; step++) {
		unsigned what = (unsigned)random_below(&seed, 10);
		if (what < 4)
			post_one();
		else if (what < 6)
			cancel_one();
		else if (what < 8)
			rig_advance(&rig.rig, random_below(&seed, 10) * MS);
		else
			run_slice();
		check_state();
	}
	for (int i = 0; i < TASKS; i++)
		if (twins[i].lives)
			twins[i].expected_told = 1 + TW_FATE_DROPPED;
	work_rig_close(&rig);
	for (int i = 0; i < TASKS; i++)
		check(twins[i].told == twins[i].expected_told);
}

Test(scheduler_model, random_programs_go_as_the_naive_one_says, .timeout = 60)
{
	for (program = 1; program <= PROGRAMS; program++) {
		seed = program;
		run_program();
	}
}
