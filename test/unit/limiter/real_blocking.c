/*
 * A limiter whose jobs block, in real time: jobs that wait until their `stop` is called. Their
 * timeouts come on time, and nothing else of the service stands still.
 *
 * Bounds on times grow with what a control thread loses in the same run. A busy machine may keep a
 * new thread of the pool from running for longer than that, so one of TRIES must keep the bounds.
 * What must hold on any machine is asserted in each of them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

#include "test/support/limiter_suite.h"
#include "test/support/pooled_limiter.h"
#include "test/support/queue_executor.h"

TestSuite(limiter_real_blocking, .timeout = 120);

enum { TRIES = 6 };

static uint64_t now_ns(void)
{
	return tw_clock_now(tw_clock_monotonic());
}

/* ------------------------------------------------------------------ a control thread */

static _Atomic bool control_ends;
static uint64_t control_late_ns; /* the longest that a sleep of 1 ms took beyond it */
static unsigned control_missed;  /* beats of 10 ms that a series would have missed meanwhile */
static pthread_t control;

static void *sleep_and_measure(void *arg)
{
	while (!atomic_load(&control_ends)) {
		uint64_t begun_ns = now_ns();
		nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
		uint64_t late_ns = now_ns() - begun_ns - MS;
		control_late_ns = late_ns > control_late_ns ? late_ns : control_late_ns;
		control_missed += (unsigned)((late_ns + 3 * MS) / (10 * MS));
	}
	return NULL;
}

static void begin_control(void)
{
	atomic_store(&control_ends, false);
	control_late_ns = control_missed = 0;
	expect_eq(pthread_create(&control, NULL, sleep_and_measure, NULL), 0);
}

static void end_control(void)
{
	atomic_store(&control_ends, true);
	expect_eq(pthread_join(control, NULL), 0);
}

static void expect_one_try(bool (*try_once)(void))
{
	int tries = 0;
	while (!try_once())
		expect_lt(++tries, TRIES);
}

static uint64_t allowed_ns(void)
{
	return 2 * MS + 2 * MS + 10 * MS + 4 * control_late_ns; /* two ticks, 2 ms, and dispatch */
}

/* -------------------------------------------------------------------- silent peers */

enum { PEERS = 8, ATTEMPTS = 2 };
#define TIMEOUT_NS (100 * MS)

static struct peer {
	sem_t stopped;
	_Atomic unsigned starts, stops, dones;
	_Atomic uint64_t started_ns[ATTEMPTS], stopped_ns[ATTEMPTS];
	uint64_t done_ns;
	struct tw_job_result result;
} peers[PEERS];

static int wait_for_stop(void *arg, struct tw_job_run *run)
{
	struct peer *peer = arg;
	atomic_store(&peer->started_ns[run->attempt - 1], now_ns());
	atomic_fetch_add(&peer->starts, 1);
	while (sem_wait(&peer->stopped) != 0) {
	}
	return -EPIPE;
}

static void end_wait(void *arg, tw_job job, enum tw_job_status why)
{
	struct peer *peer = arg;
	atomic_store(&peer->stopped_ns[atomic_fetch_add(&peer->stops, 1)], now_ns());
	sem_post(&peer->stopped);
}

static void note_end(void *arg, const struct tw_job_result *result)
{
	struct peer *peer = arg;
	peer->result = *result;
	peer->done_ns = now_ns();
	atomic_fetch_add(&peer->dones, 1);
}

static void call_peer(tw_limiter *by, struct peer *peer, uint64_t timeout_ns, unsigned attempts)
{
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = wait_for_stop,
				       .arg = peer,
				       .done = note_end,
				       .stop = end_wait,
				       .attempt_timeout_ns = timeout_ns,
				       .retry = {.count = attempts - 1, .delay_ns = 10 * MS}};
	*peer = (struct peer){.done_ns = 0};
	sem_init(&peer->stopped, 0, 0);
	expect_eq(tw_limiter_submit_task(by, &task, NULL), 0);
}

static void expect_timed_out(const struct peer *peer, unsigned attempts)
{
	expect_eq(atomic_load(&peer->starts), attempts);
	expect_eq(atomic_load(&peer->stops), attempts);
	expect_eq(atomic_load(&peer->dones), 1);
	expect_eq(peer->result.status, TW_JOB_STATUS_TIMED_OUT);
}

static bool is_in_time(const struct peer *peer)
{
	bool in_time = true;
	uint64_t latest_ns = 0;
	for (int i = 0; i < ATTEMPTS; i++) {
		latest_ns = atomic_load(&peer->started_ns[i]) + TIMEOUT_NS + allowed_ns();
		in_time &= atomic_load(&peer->stopped_ns[i]) <= latest_ns;
	}
	return in_time && peer->done_ns <= latest_ns;
}

static _Atomic unsigned beats;

static void beat(void *arg)
{
	atomic_fetch_add(&beats, 1);
}

/* Whether all peers, which never answer, were given up in time, and the heart went on. */
static bool call_silent_peers(void)
{
	tw_timer heart;
	struct tw_period period = {.size = sizeof period, .period_ns = 10 * MS};
	atomic_store(&beats, 0);
	open_pooled((struct tw_service_config){.workers = 0}, PEERS);
	begin_control();
	uint64_t begun_ns = now_ns();
	for (int i = 0; i < PEERS; i++)
		call_peer(limiter, &peers[i], TIMEOUT_NS, ATTEMPTS);
	expect_eq(tw_schedule_every(service, &period, beat, NULL, &heart), 0);
	expect_eq(tw_limiter_wait_idle(limiter, 30 * SECOND), 0);
	uint64_t passed_ns = now_ns() - begun_ns;
	unsigned beaten = atomic_load(&beats);
	end_control();
	bool in_time = beaten + 2 + 2 * control_missed >= passed_ns / (10 * MS);
	for (int i = 0; i < PEERS; i++) {
		expect_timed_out(&peers[i], ATTEMPTS);
		in_time &= is_in_time(&peers[i]);
	}
	tw_cancel_wait(service, heart, TW_FOREVER);
	close_pooled();
	return in_time;
}

/* By a default service: as many workers as it begins with are not enough. */
Test(limiter_real_blocking, silent_peers_are_given_up_on_time_and_the_heart_goes_on)
{
	expect_one_try(call_silent_peers);
}

/*
 * Their permits add up to more than the pool has workers, and each job waits until its `stop` has
 * run.
 */
static void share_a_pool(unsigned workers, unsigned max_workers)
{
	tw_limiter *limiters[PEERS];
	struct tw_limiter_config config = limited_config(1);
	open_pooled((struct tw_service_config){.workers = workers, .max_workers = max_workers}, 1);
	for (int i = 0; i < PEERS; i++)
		call_peer(limiters[i] = make_limiter(&config), &peers[i], 20 * MS, 1);
	for (int i = 0; i < PEERS; i++) {
		expect_eq(tw_limiter_wait_idle(limiters[i], 30 * SECOND), 0);
		expect_timed_out(&peers[i], 1);
		expect_eq(tw_limiter_destroy(limiters[i]), 0);
	}
	close_pooled();
}

/* One that is there already, and one that the pool may start. */
Test(limiter_real_blocking, limiters_that_share_a_pool_leave_a_worker_to_their_stops)
{
	share_a_pool(2, 2);
	share_a_pool(1, 4);
}

/* ------------------------------------------------------------------------ throughput */

static _Atomic unsigned asleep, most_asleep;

static int sleep_200_ms(void *arg, struct tw_job_run *run)
{
	unsigned now = atomic_fetch_add(&asleep, 1) + 1, most = atomic_load(&most_asleep);
	while (now > most && !atomic_compare_exchange_weak(&most_asleep, &most, now)) {
	}
	nanosleep(&(struct timespec){.tv_nsec = 200 * MS}, NULL);
	atomic_fetch_sub(&asleep, 1);
	return 0;
}

/* Whether sixteen jobs took two rounds of eight. */
static bool run_two_rounds(void)
{
	open_pooled((struct tw_service_config){.workers = 2}, 8);
	atomic_store(&most_asleep, 0);
	begin_control();
	uint64_t begun_ns = now_ns();
	for (int i = 0; i < 16; i++)
		expect_eq(tw_limiter_submit(limiter, sleep_200_ms, NULL, NULL), 0);
	expect_eq(tw_limiter_wait_idle(limiter, 30 * SECOND), 0);
	uint64_t passed_ns = now_ns() - begun_ns;
	end_control();
	expect_le(most_asleep, 8);
	close_pooled();
	return most_asleep == 8 && passed_ns <= 480 * MS + 4 * control_late_ns;
}

Test(limiter_real_blocking, jobs_that_block_run_as_many_at_a_time_as_the_limit_says)
{
	expect_one_try(run_two_rounds);
}

/* ----------------------------------------------------------- the service's own workers */

static _Atomic bool released;
static _Atomic unsigned blocked;

static void block(void *arg)
{
	atomic_fetch_add(&blocked, 1);
	while (!atomic_load(&released))
		nanosleep(&(struct timespec){.tv_nsec = MS}, NULL);
}

static void come_late(void *arg, const struct tw_job_result *result)
{
	expect_eq(atomic_load(&released), true);
}

/*
 * All workers are inside callbacks: a job in line settles on time all the same, as those who ask
 * see; done comes later.
 */
static bool job_in_line_settles_in_time(void)
{
	tw_job job;
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = job_succeeds,
				       .done = come_late,
				       .flags = TW_LIMITER_TASK_KEEP,
				       .queue_timeout_ns = 20 * MS};
	struct tw_job_result result;
	atomic_store(&released, false);
	atomic_store(&blocked, 0);
	open_pooled((struct tw_service_config){.workers = 2, .max_workers = 2}, 1);
	for (int i = 0; i < 2; i++)
		expect_eq(tw_schedule(service, 0, block, NULL, NULL), 0);
	while (atomic_load(&blocked) < 2)
		sched_yield();
	begin_control();
	uint64_t due_ns = now_ns() + 20 * MS;
	expect_eq(tw_limiter_submit_task(limiter, &task, &job), 0);
	expect_eq(tw_job_wait(limiter, job, 10 * SECOND, &result), 0);
	uint64_t settled_ns = now_ns();
	end_control();
	expect_eq(result.status, TW_JOB_STATUS_TIMED_OUT);
	atomic_store(&released, true);
	close_pooled();
	return settled_ns <= due_ns + allowed_ns();
}

Test(limiter_real_blocking, job_in_line_is_timed_out_while_no_worker_is_free)
{
	expect_one_try(job_in_line_settles_in_time);
}

/* ----------------------------------------------------------------------------- end */

/* Only this thread can bring the hand-over home, which frees the limiter. */
Test(limiter_real_blocking, destroy_does_not_wait_for_its_caller)
{
	struct load load = LOAD(1);
	open_started(1);
	load_submit(&load);
	expect_eq(tw_job_cancel(home.limiter, load.job), TW_CANCELLED);
	expect_eq(queue_executor_waiting(&home.queue), 1);
	uint64_t begun_ns = now_ns();
	expect_eq(tw_limiter_destroy(home.limiter), 0);
	expect_lt(now_ns() - begun_ns, 500 * MS);
	expect_eq(tw_service_close(home.rig.service, TW_CLOSE_DROP, 0), -ETIMEDOUT);
	limited_pump(&home);
	home.limiter = NULL;
	queue_executor_close(&home.queue);
	rig_close(&home.rig);
}
