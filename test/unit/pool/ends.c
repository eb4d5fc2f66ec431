/*
 * Ends of pools and services that their own tasks bring about. The sanitizers tell what is touched
 * too late.
 */
#include <errno.h>
#include <pthread.h>

#include "pools.h"
#include "test/support/faults.h"
#include "test/support/rig.h"
#include "wheel/core/frame.h"

TestSuite(pool_ends, .timeout = 60);

struct round {
	tw_pool *pool;
	tw_service *service;
	tw_group group;
	atomic_int inside, submits;
	int answer;
	sem_t ran;
};

/* Keeps a worker awake until the task is on its way, so that nobody has to wake it. */
static void await_submit(void *arg)
{
	struct round *round = arg;
	atomic_store(&round->inside, 1);
	while (!atomic_load(&round->submits))
		sched_yield();
}

static void tell(void *arg)
{
	sem_post(&((struct round *)arg)->ran);
}

static void *submit(void *arg)
{
	struct round *round = arg;
	atomic_store(&round->submits, 1);
	round->answer = tw_pool_submit(round->pool, tell, round);
	return NULL;
}

static void wait_for(struct round *round)
{
	while (sem_wait(&round->ran) != 0) {
	}
}

Test(pool_ends, whoever_learns_of_a_task_may_destroy_the_pool_before_its_submit_returns)
{
	enum { ROUNDS = 100 };
	for (int i = 0; i < ROUNDS; i++) {
		struct round round = {.pool = pool_up_to(1, 2)};
		pthread_t thread;
		sem_init(&round.ran, 0, 0);
		expect_eq(tw_pool_submit(round.pool, await_submit, &round), 0);
		await_value(&round.inside, 1);
		expect_eq(pthread_create(&thread, NULL, submit, &round), 0);
		wait_for(&round);
		expect_eq(tw_pool_destroy(round.pool), 0);
		pthread_join(thread, NULL);
		expect_eq(round.answer, 0);
	}
}

static void *destroy_soon(void *arg)
{
	struct round *round = arg;
	while (tw_pool_destroy(round->pool) == -EBUSY)
		sched_yield();
	return NULL;
}

Test(pool_ends, a_shared_pool_may_be_destroyed_as_soon_as_its_service_has_left)
{
	for (int i = 0; i < 100; i++) {
		struct round round = {.pool = pool_up_to(1, 0)};
		pthread_t thread;
		struct tw_service_config user = {.size = sizeof user,
						 .executor = tw_pool_executor(round.pool)};
		expect_eq(tw_service_create(&round.service, &user), 0);
		expect_eq(pthread_create(&thread, NULL, destroy_soon, &round), 0);
		expect_eq(tw_service_destroy(round.service), 0);
		pthread_join(thread, NULL);
	}
}

/*
 * The call is about to wake the driver, which has woken by itself meanwhile and run the completion.
 */
static void stay_in_call(void *arg)
{
	struct round *round = arg;
	atomic_store(&round->inside, 1);
	sem_post(&round->ran);
	while (!atomic_load(&round->submits))
		sched_yield();
}

static void *close_group(void *arg)
{
	struct round *round = arg;
	faults_at_wakes(stay_in_call, NULL, round);
	round->answer = tw_group_close(round->service, round->group, tell, round);
	faults_at_wakes(NULL, NULL, NULL);
	return NULL;
}

/* False: the driver did not sleep when the call came. */
static bool close_during_call(void)
{
	struct round round = {0};
	pthread_t thread;
	sem_init(&round.ran, 0, 0);
	expect_eq(tw_service_create(&round.service, NULL), 0);
	expect_eq(tw_group_create(&round.group, round.service), 0);
	while (!(tw__gate_look(&round.service->gate) & TW__GATE_PARKED))
		sched_yield();
	expect_eq(pthread_create(&thread, NULL, close_group, &round), 0);
	wait_for(&round); /* of the hook and the completion, one or both */
	bool inside = atomic_load(&round.inside);
	if (inside) {
		/* The driver wakes by itself, as after a signal. */
		tw__futex_wake(&round.service->gate.bell, 1);
		wait_for(&round);
		expect_eq(tw_service_close(round.service, TW_CLOSE_DROP, 10 * MS), -ETIMEDOUT);
	}
	atomic_store(&round.submits, 1);
	pthread_join(thread, NULL);
	expect_eq(round.answer, 0);
	expect_eq(tw_service_destroy(round.service), 0);
	return inside;
}

Test(pool_ends, close_waits_for_a_call_of_close_then_whose_completion_has_run)
{
	while (!close_during_call()) {
	}
}

static tw_pool *dropping;
static struct gate gate;
static int calls, answers[2];

static void close_again(void *told_arg, tw_fn *fn, void *arg)
{
	(void)told_arg, (void)fn, (void)arg;
	answers[0] = tw_pool_close(dropping, TW_CLOSE_DRAIN, NULL, NULL);
	answers[1] = tw_pool_destroy(dropping);
	calls++;
	let_go(&gate, 1);
}

/* A second close would wait for the first, which waits for this function. */
Test(pool_ends, a_close_inside_the_dropped_function_of_a_close_is_refused)
{
	dropping = pool_of(1, 16);
	occupy(dropping, &gate, 1);
	block(dropping, &gate, 1);
	expect_eq(tw_pool_close(dropping, TW_CLOSE_DROP, close_again, NULL), 0);
	expect_eq(calls, 1);
	expect_eq(answers[0], -EDEADLK);
	expect_eq(answers[1], -EDEADLK);
	expect_eq(tw_pool_destroy(dropping), 0);
}

static tw_fn *const named = tell;

static void *leave_inside(void *arg)
{
	tw__user_begin(arg, named, NULL, NULL, 0);
	tw__user_begin(arg, named, NULL, NULL, 0);
	pthread_exit(NULL);
}

static void *begin_and_end(void *arg)
{
	tw__user_end(tw__user_begin(arg, named, NULL, NULL, 0));
	return NULL;
}

/* A user's function has called pthread_exit. Its record serves the next thread. */
Test(pool_ends, a_thread_that_ends_inside_user_code_is_not_shown_as_running)
{
	struct tw_service_liveness seen = {.size = sizeof seen};
	tw_service *service;
	pthread_t thread;
	expect_eq(tw_service_create(&service, NULL), 0);
	for (int i = 0; i < 4; i++) {
		expect_eq(
		    pthread_create(&thread, NULL, i % 2 ? begin_and_end : leave_inside, service),
		    0);
		pthread_join(thread, NULL);
		expect_eq(tw_service_liveness(service, &seen), 0);
		expect_eq(seen.running, 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* ------------------------------------------------------- the starter at a stop */

static tw_pool *stopped;
static atomic_int about_to_sleep;

static bool stop_has_begun(void)
{
	tw__tiny_lock(&stopped->lock);
	bool begun = stopped->stopping;
	tw__tiny_unlock(&stopped->lock);
	return begun;
}

/* The worker is called, and late, while the starter looks more often than it takes to sleep. */
static void come_late(void *arg)
{
	uint64_t look_ns = *(uint64_t *)arg, until_ns;
	atomic_store(&about_to_sleep, 1);
	while (!stop_has_begun())
		sched_yield();
	until_ns = tw_clock_now(tw_clock_monotonic()) + 100 * look_ns;
	while (tw_load_relaxed(&stopped->starter.sleeper.called) &&
	       tw_clock_now(tw_clock_monotonic()) < until_ns)
		sched_yield();
	faults_at_sleeps(NULL, NULL);
}

static void be_late(void *look_ns)
{
	faults_at_sleeps(come_late, look_ns);
}

Test(pool_ends, a_starter_that_a_stop_has_woken_does_not_sleep_again)
{
	atomic_int ran = 0;
	tw__pool_times.look_ns = 50000;
	stopped = pool_up_to(1, 2);
	expect_eq(tw_pool_submit(stopped, be_late, &tw__pool_times.look_ns), 0);
	await_value(&about_to_sleep, 1);
	expect_eq(tw_pool_submit(stopped, count, &ran), 0);
	expect_eq(tw_pool_destroy(stopped), 0);
	expect_eq(atomic_load(&ran), 1);
}
