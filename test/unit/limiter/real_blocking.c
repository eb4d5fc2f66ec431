/*
 * A limiter whose jobs block, in real time: jobs that read from peers which never answer. Their
 * timeouts come on time, `stop` is called, and nothing else of the service stands still.
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
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "test/support/limiter_suite.h"
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

/* -------------------------------------------------------------------- silent peers */

enum { PEERS = 8, ATTEMPTS = 2 };
#define TIMEOUT_NS (100 * MS)

struct peer {
	pthread_mutex_t lock; /* `stop` may come while the attempt opens or closes its socket */
	int fd;               /* -1: none */
	_Atomic unsigned starts, stops, dones;
	_Atomic uint64_t started_ns[ATTEMPTS], stopped_ns[ATTEMPTS];
	uint64_t done_ns;
	struct tw_job_result result;
};

static struct peer peers[PEERS];

static void use_fd(struct peer *peer, int fd)
{
	pthread_mutex_lock(&peer->lock);
	peer->fd = fd;
	pthread_mutex_unlock(&peer->lock);
}

static int read_from_silence(void *arg, struct tw_job_run *run)
{
	struct peer *peer = arg;
	int fds[2];
	char byte;
	ssize_t n = 0;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) != 0)
		return -errno;
	use_fd(peer, fds[0]);
	atomic_store(&peer->started_ns[run->attempt - 1], now_ns());
	atomic_fetch_add(&peer->starts, 1);
	if (!tw_job_is_cancelled(run->limiter, run->job)) /* else `stop` came before the socket */
		n = read(fds[0], &byte, 1);               /* until `stop` shuts it down */
	use_fd(peer, -1);
	close(fds[0]);
	close(fds[1]);
	return n == 1 ? 0 : -EPIPE;
}

static void shut_down(void *arg, tw_job job, enum tw_job_status why)
{
	struct peer *peer = arg;
	atomic_store(&peer->stopped_ns[atomic_fetch_add(&peer->stops, 1)], now_ns());
	pthread_mutex_lock(&peer->lock);
	if (peer->fd >= 0)
		shutdown(peer->fd, SHUT_RDWR);
	pthread_mutex_unlock(&peer->lock);
}

static void note_end(void *arg, const struct tw_job_result *result)
{
	struct peer *peer = arg;
	peer->result = *result;
	peer->done_ns = now_ns();
	atomic_fetch_add(&peer->dones, 1);
}

static _Atomic unsigned beats;

static void beat(void *arg)
{
	atomic_fetch_add(&beats, 1);
}

static uint64_t allowed_ns(void)
{
	return 2 * MS + 2 * MS + 10 * MS + 4 * control_late_ns; /* two ticks, 2 ms, and dispatch */
}

static void expect_timed_out(const struct peer *peer)
{
	expect_eq(atomic_load(&peer->starts), ATTEMPTS);
	expect_eq(atomic_load(&peer->stops), ATTEMPTS);
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

/*
 * As the guide says how to call a backend, with peers that never answer. Whether all were given up
 * in time, and the heart went on.
 */
static bool call_silent_peers(void)
{
	tw_service *service;
	tw_limiter *limiter;
	tw_timer heart;
	struct tw_limiter_config config = {
	    .size = sizeof config, .max_concurrency = PEERS, .max_pending = 1000};
	struct tw_period period = {.size = sizeof period, .period_ns = 10 * MS};
	for (int i = 0; i < PEERS; i++)
		peers[i] = (struct peer){.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};
	atomic_store(&beats, 0);
	expect_eq(tw_service_create(&service, NULL), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	begin_control();
	uint64_t begun_ns = now_ns();
	for (int i = 0; i < PEERS; i++) {
		struct tw_limiter_task task = {
		    .size = sizeof task,
		    .fn = read_from_silence,
		    .arg = &peers[i],
		    .done = note_end,
		    .stop = shut_down,
		    .attempt_timeout_ns = TIMEOUT_NS,
		    .retry = {.count = ATTEMPTS - 1, .delay_ns = 10 * MS}};
		expect_eq(tw_limiter_submit_task(limiter, &task, NULL), 0);
	}
	expect_eq(tw_schedule_every(service, &period, beat, NULL, &heart), 0);
	expect_eq(tw_limiter_wait_idle(limiter, 30 * SECOND), 0);
	uint64_t passed_ns = now_ns() - begun_ns;
	unsigned beaten = atomic_load(&beats);
	end_control();
	bool in_time = beaten + 2 + 2 * control_missed >= passed_ns / (10 * MS);
	for (int i = 0; i < PEERS; i++) {
		expect_timed_out(&peers[i]);
		in_time &= is_in_time(&peers[i]);
	}
	tw_cancel_wait(service, heart, TW_FOREVER);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
	return in_time;
}

/* By a default service: as many workers as it begins with are not enough. */
Test(limiter_real_blocking, silent_peers_are_given_up_on_time_and_the_heart_goes_on)
{
	expect_one_try(call_silent_peers);
}

/* ---------------------------------------------------------------- limiters share a pool */

struct waiter {
	sem_t stopped;
	_Atomic unsigned dones;
};

static int wait_for_stop(void *arg, struct tw_job_run *run)
{
	struct waiter *waiter = arg;
	while (sem_wait(&waiter->stopped) != 0) {
	}
	return -ECANCELED;
}

static void end_wait(void *arg, tw_job job, enum tw_job_status why)
{
	struct waiter *waiter = arg;
	sem_post(&waiter->stopped);
}

static void count_done(void *arg, const struct tw_job_result *result)
{
	struct waiter *waiter = arg;
	atomic_fetch_add(&waiter->dones, result->status == TW_JOB_STATUS_TIMED_OUT);
}

enum { SHARERS = 6 };

static struct waiter waiters[SHARERS];

/*
 * Their permits add up to more than the pool has workers, and each job waits until its `stop` has
 * run.
 */
static void time_out_on(const struct tw_service_config *cfg)
{
	tw_service *service;
	tw_limiter *limiters[SHARERS];
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	expect_eq(tw_service_create(&service, cfg), 0);
	for (int i = 0; i < SHARERS; i++) {
		struct tw_limiter_task task = {.size = sizeof task,
					       .fn = wait_for_stop,
					       .arg = &waiters[i],
					       .done = count_done,
					       .stop = end_wait,
					       .attempt_timeout_ns = 20 * MS};
		sem_init(&waiters[i].stopped, 0, 0);
		atomic_store(&waiters[i].dones, 0);
		expect_eq(tw_limiter_create(&limiters[i], service, &config), 0);
		expect_eq(tw_limiter_set_paused(limiters[i], false), 0);
		expect_eq(tw_limiter_submit_task(limiters[i], &task, NULL), 0);
	}
	for (int i = 0; i < SHARERS; i++) {
		expect_eq(tw_limiter_wait_idle(limiters[i], 30 * SECOND), 0);
		expect_eq(atomic_load(&waiters[i].dones), 1);
		expect_eq(tw_limiter_destroy(limiters[i]), 0);
	}
	expect_eq(tw_service_destroy(service), 0);
}

/* One that is there already, and one that the pool may start. */
Test(limiter_real_blocking, limiters_that_share_a_pool_leave_a_worker_to_their_stops)
{
	time_out_on(&(struct tw_service_config){
	    .size = sizeof(struct tw_service_config), .workers = 2, .max_workers = 2});
	time_out_on(&(struct tw_service_config){
	    .size = sizeof(struct tw_service_config), .workers = 1, .max_workers = 4});
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
	tw_service *service;
	tw_limiter *limiter;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2};
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 8};
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
	atomic_store(&most_asleep, 0);
	begin_control();
	uint64_t begun_ns = now_ns();
	for (int i = 0; i < 16; i++)
		expect_eq(tw_limiter_submit(limiter, sleep_200_ms, NULL, NULL), 0);
	expect_eq(tw_limiter_wait_idle(limiter, 30 * SECOND), 0);
	uint64_t passed_ns = now_ns() - begun_ns;
	end_control();
	expect_le(most_asleep, 8);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
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

/*
 * All workers are inside callbacks: a job in line settles on time all the same, as those who ask
 * see; done comes later.
 */
static bool job_in_line_settles_in_time(void)
{
	tw_service *service;
	tw_limiter *limiter;
	tw_job job;
	struct tw_service_config cfg = {.size = sizeof cfg, .workers = 2, .max_workers = 2};
	struct tw_limiter_config config = {.size = sizeof config, .max_concurrency = 1};
	struct tw_limiter_task task = {.size = sizeof task,
				       .fn = job_succeeds,
				       .flags = TW_LIMITER_TASK_KEEP,
				       .queue_timeout_ns = 20 * MS};
	struct tw_job_result result;
	atomic_store(&released, false);
	atomic_store(&blocked, 0);
	expect_eq(tw_service_create(&service, &cfg), 0);
	expect_eq(tw_limiter_create(&limiter, service, &config), 0);
	expect_eq(tw_limiter_set_paused(limiter, false), 0);
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
	expect_eq(tw_limiter_wait_idle(limiter, TW_FOREVER), 0);
	expect_eq(tw_limiter_destroy(limiter), 0);
	expect_eq(tw_service_destroy(service), 0);
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
