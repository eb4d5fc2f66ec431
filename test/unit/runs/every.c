/*
 * What holds for every executor: the inline one, one of a user's own, manual queues, pools, and
 * strands over these. Each test goes through all of them, once as the executor of the service, once
 * as the one that timers name.
 */
#include <errno.h>
#include <sched.h>

#include "test/support/eager_executor.h"
#include "test/support/queue_executor.h"
#include "test/support/user_code.h"

TestSuite(runs_every, .timeout = 120);

enum base { INLINE, EAGER, QUEUE, MANUAL, POOL };

/* How it runs things: `one`: one after the other; `held`: only while the test pumps. */
struct kind {
	const char *name;
	enum base base;
	uint32_t workers;
	bool strand, one, held;
};

static const struct kind kinds[] = {
    {"inline", INLINE, 0, false, true, false},
    {"user's, inside submit", EAGER, 0, false, true, false},
    {"user's queue", QUEUE, 0, false, true, true},
    {"manual", MANUAL, 0, false, true, true},
    {"pool of one", POOL, 1, false, true, false},
    {"pool of three", POOL, 3, false, false, false},
    {"strand on the driver", INLINE, 0, true, true, false},
    {"strand on a user's, inside submit", EAGER, 0, true, true, false},
    {"strand on a user's queue", QUEUE, 0, true, true, true},
    {"strand on a manual queue", MANUAL, 0, true, true, true},
    {"strand on a pool", POOL, 3, true, true, false},
};

enum { KINDS = sizeof kinds / sizeof *kinds, MANY = 500 };

struct subject {
	const struct kind *kind;
	struct rig rig, host; /* host: of the strand */
	struct queue_executor queue;
	tw_manual *manual;
	tw_pool *pool;
	tw_strand *strand;
	tw_executor *executor;
	bool own; /* it is the service's */
};

static struct probe probes[MANY];

static tw_executor *open_base(struct subject *s)
{
	struct tw_pool_config config = TW_INIT(tw_pool_config);
	config.workers = config.max_workers = s->kind->workers;
	switch (s->kind->base) {
	case EAGER:
		return &eager_executor;
	case QUEUE:
		queue_executor_open(&s->queue);
		return &s->queue.base;
	case MANUAL:
		expect_eq(tw_manual_create(&s->manual, NULL), 0);
		return tw_manual_executor(s->manual);
	case POOL:
		expect_eq(tw_pool_create(&s->pool, &config), 0);
		return tw_pool_executor(s->pool);
	default:
		return tw_executor_inline();
	}
}

static void open_subject(struct subject *s, const struct kind *kind, bool own)
{
	*s = (struct subject){.kind = kind, .own = own};
	s->executor = open_base(s);
	if (kind->strand) {
		rig_open(&s->host, NULL);
		expect_eq(tw_strand_create(&s->strand, s->host.service, s->executor), 0);
		s->executor = tw_strand_executor(s->strand);
	}
	struct tw_service_config config = rig_config();
	if (own)
		config.executor = s->executor;
	rig_open(&s->rig, &config);
}

/* Lets run what is with the executor: a little of it, if others run it. */
static void pump(struct subject *s)
{
	if (s->kind->strand)
		rig_advance(&s->host, MS); /* runs what is for the driver, and brings it again */
	if (s->kind->base == QUEUE)
		queue_executor_run_all(&s->queue);
	else if (s->kind->base == MANUAL)
		tw_manual_pump(s->manual, TW_NO_LIMIT);
	sched_yield();
}

static void await(struct subject *s, atomic_int *count, int wanted)
{
	while (atomic_load(count) < wanted) {
		rig_advance(&s->rig, MS);
		pump(s);
	}
}

static void close_subject(struct subject *s)
{
	rig_close(&s->rig);
	if (s->strand) {
		expect_eq(tw_strand_destroy(s->strand), 0);
		for (int i = 0; i < 3; i++)
			pump(s);
		rig_close(&s->host);
	}
	expect_eq(tw_manual_destroy(s->manual), 0);
	expect_eq(tw_pool_destroy(s->pool), 0);
	if (s->kind->base == QUEUE)
		queue_executor_close(&s->queue);
}

static atomic_int releases;

static void count_release(struct probe *probe)
{
	(void)probe;
	atomic_fetch_add(&releases, 1);
}

/* The first `count` probes have been released: a release counts itself before it is over. */
static void await_released(struct subject *s, int count)
{
	await(s, &releases, count);
	for (int i = 0; i < count; i++)
		while (!probes[i].releases)
			sched_yield();
}

static void schedule(struct subject *s, int i, uint64_t delay_ns)
{
	probes[i] = PROBE(&s->rig, i);
	probes[i].act_in_release = count_release;
	struct tw_task task = probe_task(&probes[i]);
	task.when_ns = delay_ns;
	task.executor = s->own ? NULL : s->executor;
	probe_schedule_task(&probes[i], &task);
}

static void for_each(void (*test)(struct subject *s))
{
	for (int i = 0; i < 2 * KINDS; i++) {
		struct subject s;
		atomic_store(&releases, 0);
		open_subject(&s, &kinds[i / 2], i % 2);
		test(&s);
		close_subject(&s);
	}
}

/* ------------------------------------------------------------------------ timers */

static void runs_each_once_in_order(struct subject *s)
{
	for (int i = 0; i < MANY; i++)
		schedule(s, i, (uint64_t)(1 + i / 200) * MS);
	await_released(s, MANY);
	for (int i = 0; i < MANY; i++) {
		expect_eq(probes[i].runs, 1);
		expect_released(&probes[i], TW_FATE_FIRED);
	}
	expect_eq(s->rig.ran, MANY);
	if (s->kind->one)
		expect_ids_ascend(&s->rig);
}

Test(runs_every, runs_each_timer_once_and_in_order)
{
	for_each(runs_each_once_in_order);
}

/* Some are cancelled before they are due, some when the executor has them. */
static void cancels(struct subject *s)
{
	enum { COUNT = 90 };
	for (int i = 0; i < COUNT; i++)
		schedule(s, i, MS);
	for (int i = 0; i < COUNT; i += 3)
		expect_eq(tw_cancel(s->rig.service, probes[i].timer), TW_CANCELLED);
	rig_advance(&s->rig, MS);
	for (int i = 1; i < COUNT; i += 3)
		if (s->kind->held)
			expect_eq(tw_cancel(s->rig.service, probes[i].timer), TW_CANCELLED);
	await_released(s, COUNT);
	for (int i = 0; i < COUNT; i++) {
		bool cancelled = i % 3 == 0 || (i % 3 == 1 && s->kind->held);
		expect_eq(probes[i].runs, !cancelled);
		expect_released(&probes[i], cancelled ? TW_FATE_CANCELLED : TW_FATE_FIRED);
	}
}

Test(runs_every, does_not_run_what_was_cancelled)
{
	for_each(cancels);
}

static void moves(struct subject *s)
{
	schedule(s, 0, MS);
	if (s->kind->held)
		rig_advance(&s->rig, MS); /* the executor has it */
	expect_eq(tw_reset(s->rig.service, probes[0].timer, 50 * MS), 0);
	for (int i = 0; i < 40; i++) {
		rig_advance(&s->rig, MS);
		pump(s);
	}
	expect_eq(probes[0].runs, 0);
	await_released(s, 1);
	expect_eq(probes[0].runs, 1);
}

Test(runs_every, does_not_run_what_was_moved_before_its_new_deadline)
{
	for_each(moves);
}

static void come_again(struct probe *probe)
{
	if (probe->runs < 19)
		probe->answer = tw_reset(probe->rig->service, probe->timer, 0);
}

static void rearms(struct subject *s)
{
	probes[0] = PROBE(&s->rig, 0);
	probes[0].act = come_again;
	probes[0].act_in_release = count_release;
	struct tw_task task = probe_task(&probes[0]);
	task.executor = s->own ? NULL : s->executor;
	probe_schedule_task(&probes[0], &task);
	await_released(s, 1);
	expect_eq(probes[0].runs, 20);
	expect_eq(probes[0].answer, 0);
}

Test(runs_every, runs_what_re_arms_itself)
{
	for_each(rearms);
}

/* ------------------------------------------------------------------------- layers */

static int order[MANY];
static atomic_int ran;

static void note(void *arg)
{
	order[atomic_load(&ran)] = (int)(intptr_t)arg; /* none runs beside another */
	atomic_fetch_add(&ran, 1);
}

static void *at(int i)
{
	return (void *)(intptr_t)i;
}

static void expect_order(struct subject *s, int count)
{
	await(s, &ran, count);
	for (int i = 0; i < count; i++)
		expect_eq(order[i], i);
	pump(s);
}

static void carries_a_strand(struct subject *s)
{
	tw_strand *strand;
	atomic_store(&ran, 0);
	expect_eq(tw_strand_create(&strand, s->rig.service, s->executor), 0);
	for (int i = 0; i < MANY; i++)
		expect_eq(tw_strand_submit(strand, note, at(i)), 0);
	if (s->kind->base != POOL)
		expect_eq(atomic_load(&ran), 0);
	expect_order(s, MANY);
	while (tw_strand_destroy(strand) == -EBUSY)
		pump(s);
}

Test(runs_every, runs_the_tasks_of_a_strand_in_order_and_none_inside_submit)
{
	for_each(carries_a_strand);
}

static struct subject *pumped;

static void pump_subject(void)
{
	rig_advance(&pumped->rig, MS);
	pump(pumped);
}

static void count_call(void)
{
	atomic_fetch_add(&ran, 1);
}

static void carries_user_code(struct subject *s)
{
	if (!s->own)
		return;
	pumped = s;
	user_code_open(s->rig.service, count_call, pump_subject);
	for (int i = 0; i < USER_CODES; i++) {
		atomic_store(&ran, 0);
		user_codes[i].begin();
		if (s->kind->base != POOL)
			expect_eq(atomic_load(&ran), 0);
		await(s, &ran, 1);
		for (int turns = 0; turns < 3; turns++)
			pump_subject();
		user_code_end();
		expect_eq(atomic_load(&ran), 1);
	}
}

Test(runs_every, calls_user_code_of_each_kind_and_none_inside_submit)
{
	for_each(carries_user_code);
}

/* --------------------------------------------------------------------------- ends */

/* A close that runs all: what the executor has, and what is still to come. */
static void closes(struct subject *s)
{
	enum { COUNT = 120 };
	for (int i = 0; i < COUNT; i++)
		schedule(s, i, i % 2 ? MS : HOUR);
	rig_advance(&s->rig, MS);
	int r;
	while ((r = tw_service_close(s->rig.service, TW_CLOSE_RUN, 0)) == -ETIMEDOUT)
		pump(s);
	expect_eq(r, 0);
	expect_eq(atomic_load(&releases), COUNT);
	for (int i = 0; i < COUNT; i++)
		expect_eq(probes[i].releases, 1);
}

Test(runs_every, lets_a_close_get_to_its_end_with_one_fate_for_each_timer)
{
	for_each(closes);
}
