/* The verbs of semaphores' scripts. */
#include "semaphore_script.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum { FUNCTIONS = 64 };

struct function {
	tw_waiter waiter;
	const char *in_run;
	pthread_t thread;
	int32_t permits; /* of the thread */
	int answer;
};

static struct {
	struct rig rig;
	struct queue_executor queue;
	tw_semaphore *permits;
	struct function functions[FUNCTIONS];
} stage;

static void open_semaphore(const struct words *given)
{
	memset(&stage, 0, sizeof stage);
	queue_executor_open(&stage.queue);
	struct tw_service_config service = script_service(given);
	rig_open(&stage.rig, &service);
	tw_executor *executor = has_word(given, "inline") ? NULL : &stage.queue.base;
	expect_eq(tw_semaphore_create(&stage.permits, stage.rig.service, executor,
				      (int32_t)option_of(given, "capacity", 1)),
		  0);
}

static void close_semaphore(void)
{
	expect_eq(tw_semaphore_destroy(stage.permits), 0);
	rig_close(&stage.rig);
	queue_executor_close(&stage.queue);
}

static void run(void *arg)
{
	struct function *function = arg;
	say("run %d", (int)(function - stage.functions));
	play_calls(function->in_run);
}

static void acquire(const struct words *words)
{
	say_answer(tw_semaphore_acquire(stage.permits, (int32_t)words->number[0],
					has_word(words, "forever") ? TW_FOREVER : 0));
}

static void release(const struct words *words)
{
	say_answer(tw_semaphore_release(stage.permits, (int32_t)words->number[0]));
}

static void wait_async(const struct words *words)
{
	EACH_NUMBER (words, n) {
		struct function *function = &stage.functions[n];
		*function = (struct function){.in_run = words->in_run};
		int r = tw_semaphore_acquire_async(stage.permits,
						   (int32_t)option_of(words, "permits", 1), run,
						   function, &function->waiter);
		expect_eq(function->waiter.id != 0, r == 0);
		say_answer(r);
	}
}

static struct tw_semaphore_stats stats_now(void)
{
	struct tw_semaphore_stats stats = {.size = sizeof stats};
	expect_eq(tw_semaphore_stats(stage.permits, &stats), 0);
	expect_eq(stats.capacity + stats.debt, stats.available + stats.held);
	return stats;
}

static void *acquire_in_thread(void *arg)
{
	struct function *self = arg;
	self->answer = tw_semaphore_acquire(stage.permits, self->permits, 50 * SECOND);
	return NULL;
}

/* Returns when the thread is in line. */
static void start_thread(const struct words *words)
{
	struct function *self = &stage.functions[words->number[0]];
	uint64_t before = stats_now().waiters;
	*self = (struct function){.permits = (int32_t)option_of(words, "permits", 1)};
	expect_eq(pthread_create(&self->thread, NULL, acquire_in_thread, self), 0);
	while (stats_now().waiters == before)
		sched_yield();
}

static void join_thread(const struct words *words)
{
	struct function *self = &stage.functions[words->number[0]];
	expect_eq(pthread_join(self->thread, NULL), 0);
	say_answer(self->answer);
	if (self->answer == 0)
		say("%d has it", (int)words->number[0]);
}

static void cancel(const struct words *words)
{
	EACH_NUMBER (words, n)
		say_outcome(tw_semaphore_cancel(stage.permits, stage.functions[n].waiter));
}

static void set_capacity(const struct words *words)
{
	say_answer(tw_semaphore_set_capacity(stage.permits, (int32_t)words->number[0]));
}

static void destroy(const struct words *words)
{
	expect_eq(tw_semaphore_destroy(stage.permits), -EBUSY);
	say("EBUSY");
}

#define GAUGE(name) GAUGE_OF(tw_semaphore_stats, name)

static const struct gauge gauges[] = {
    GAUGE(available), GAUGE(capacity), GAUGE(waiters),         GAUGE(debt), GAUGE(held),
    GAUGE(handed),    GAUGE(refused),  GAUGE(waiting_threads), {NULL, 0},
};

static void say_stats(const struct words *words)
{
	struct tw_semaphore_stats stats = stats_now();
	say_gauges(words, gauges, &stats);
}

static const struct verb verbs[] = {
    {"acquire", acquire},       {"release", release},
    {"wait", wait_async},       {"thread", start_thread},
    {"joined", join_thread},    {"cancel", cancel},
    {"capacity", set_capacity}, {"destroy", destroy},
    {"stats", say_stats},       {NULL, NULL},
};

const struct stage semaphore_stage = {
    .open = open_semaphore,
    .close = close_semaphore,
    .rig = &stage.rig,
    .queue = &stage.queue,
    .verbs = verbs,
};
