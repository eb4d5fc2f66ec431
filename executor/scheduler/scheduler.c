/* Creation and end of schedulers, and their host timer. */
#include "executor/scheduler/internal.h"

#include <errno.h>
#include <stdlib.h>

#include "executor/pool/internal.h"
#include "wheel/base/misuse.h"
#include "wheel/core/user_code.h"
#include "wheel/core/frame.h"
#include "wheel/run/run.h"
#include "executor/scheduler/config.h"
#include "executor/scheduler/log.h"
#include "executor/scheduler/run.h"
#include "executor/scheduler/submit.h"

/* ------------------------------------------------------------- the host timer */

/* Deadlines farther away are set in steps of this length. */
#define FARTHEST_NS (INT64_C(1) << 60)

/* The driver promotes at most this many tasks. The slice that it asks for promotes the rest. */
enum { DRIVER_PROMOTES = 32 };

static void put_timer_away(tw_scheduler *scheduler)
{
	if (!scheduler->host.timer_set)
		return;
	scheduler->host.timer_set = false;
	if (tw_cancel(scheduler->base.service, scheduler->host.timer) == TW_CANCELLED)
		scheduler->host.out--;
}

/*
 * Tells whether the timer that calls is the one that is set. If so, it is no longer set. Its
 * callback is out until call_and_come_home.
 */
static bool take_timer(tw_scheduler *scheduler)
{
	bool mine = scheduler->host.timer_set && scheduler->host.timer.id == tw_self().id;
	scheduler->host.timer_set &= !mine;
	return mine;
}

/*
 * Ends a timer's callback or the retry, which is out until then. The lock is held, and released
 * here.
 */
static void call_and_come_home(tw_scheduler *scheduler, bool call_host)
{
	scheduler->host.out--;
	if (call_host)
		tw__scheduler_unlock_and_call(scheduler);
	else
		tw__scheduler_unlock_home(scheduler);
}

static void timer_fired(void *arg)
{
	tw_scheduler *scheduler = arg;
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	bool call_host = false;
	if (take_timer(scheduler)) {
		tw__scheduler_promote(scheduler, now_ns, DRIVER_PROMOTES);
		call_host = tw__scheduler_settle(scheduler);
	}
	call_and_come_home(scheduler, call_host);
}

static void call_later(tw_scheduler *scheduler)
{
	if (scheduler->host.retrying)
		return;
	scheduler->host.retrying = true;
	tw__work_submit_later(&scheduler->retry);
}

/*
 * Returns 0, or an error if there was no room for a timer. A timer that is about to fire counts as
 * set: it sets the next one.
 *
 * The driver itself runs the timer's callback. The callback needs no worker, so blocked workers
 * delay no task of another host, and no executor can refuse it. It waits for the lock, which is
 * free: a timer is set only while nothing is ready.
 */
static int set_timer(tw_scheduler *scheduler, int64_t at_ns)
{
	int r;
	if (scheduler->host.timer_set) {
		r = tw_reset_at(scheduler->base.service, scheduler->host.timer, (uint64_t)at_ns);
		if (r == -ENOENT || r == -EBUSY)
			return 0;
	} else {
		const struct tw_task task = {.size = sizeof task,
					     .fn = timer_fired,
					     .arg = scheduler,
					     .when_ns = (uint64_t)at_ns,
					     .flags = TW_TASK_AT | TW_TASK_CONTEXT,
					     .executor = &tw__inline_executor};
		r = tw_schedule_task(scheduler->base.service, &task, &scheduler->host.timer);
		scheduler->host.out += r == 0;
	}
	scheduler->host.timer_set |= r == 0;
	scheduler->stats.timers_armed += r == 0;
	scheduler->host.timer_ns = r == 0 ? at_ns : scheduler->host.timer_ns;
	return r;
}

static void set_timer_for_first(tw_scheduler *scheduler)
{
	struct tw__task *first = tw__scheduler_head(scheduler, &scheduler->timers);
	if (!first) {
		put_timer_away(scheduler);
		return;
	}
	int64_t at_ns = tw__heap_first_key(&scheduler->timers);
	if (at_ns > FARTHEST_NS) {
		int64_t farthest_ns = (int64_t)scheduler->base.service->time.start_ns;
		farthest_ns = farthest_ns > INT64_MAX - FARTHEST_NS ? INT64_MAX : farthest_ns + FARTHEST_NS;
		at_ns = at_ns < farthest_ns ? at_ns : farthest_ns;
	}
	if (scheduler->host.timer_set && scheduler->host.timer_ns == at_ns)
		return;
	if (set_timer(scheduler, at_ns))
		call_later(scheduler);
}

static void retry_called(struct tw__work *work)
{
	tw_scheduler *scheduler = (tw_scheduler *)(void *)((char *)work - offsetof(tw_scheduler, retry));
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	scheduler->host.retrying = false; /* it may be submitted again, */
	scheduler->host.out++;            /* and is out itself like a timer's callback */
	bool call_host = false;
	if (!scheduler->closed && scheduler->host.state == TW__HOST_IDLE) {
		tw__scheduler_promote(scheduler, now_ns, DRIVER_PROMOTES);
		call_host = tw__scheduler_settle(scheduler);
	}
	call_and_come_home(scheduler, call_host);
}

/* --------------------------------------------------------------------- the host */

bool tw__scheduler_settle(tw_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	if (scheduler->host.state != TW__HOST_IDLE || scheduler->closed)
		return false;
	if (!tw__scheduler_head(scheduler, &scheduler->tasks)) {
		set_timer_for_first(scheduler);
		return false;
	}
	put_timer_away(scheduler);
	if (scheduler->paused)
		return false;
	scheduler->host.state = TW__HOST_REQUESTED;
	scheduler->stats.host_requests++;
	return true;
}

/*
 * Work for an executor is out, and that holds the scheduler: it is not touched after the submit.
 * `wanted` counts as out itself, so neither the scheduler nor what the function uses goes while
 * another thread is inside it.
 */
void tw__scheduler_unlock_and_call(tw_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	const struct tw_scheduler_config *config = &scheduler->config;
	if (config->host == TW_HOST_EXECUTOR) {
		pthread_mutex_unlock(&scheduler->lock);
		tw__work_submit(&scheduler->work);
		return;
	}
	if (config->wanted) {
		scheduler->host.out++;
		pthread_mutex_unlock(&scheduler->lock);
		struct tw__run_level *level =
		    tw__user_begin(scheduler->base.service, TW_RUN_KIND_HOOK, TW__NAMED_BY(config->wanted), 0);
		config->wanted(config->wanted_arg);
		tw__user_end(level);
		pthread_mutex_lock(&scheduler->lock);
		scheduler->host.out--;
	}
	tw__scheduler_unlock_home(scheduler);
}

/* ------------------------------------------------------------------------ birth */

/*
 * Submitters and host hold the lock for some 50 ns in alternation. Therefore a mutex that spins
 * for a moment before it sleeps, if the system has one.
 */
static void init_lock(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
#ifdef __GLIBC__
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static void init_locks(tw_scheduler *scheduler)
{
	pthread_condattr_t attr;
	init_lock(&scheduler->lock);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&scheduler->home, &attr);
	pthread_condattr_destroy(&attr);
}

static void init(tw_scheduler *scheduler)
{
	const struct tw_scheduler_config *config = &scheduler->config;
	scheduler->slice_ns = (int64_t)config->slice_ns;
	/* As many again may be cleared. */
	tw__nodes_init(&scheduler->nodes, sizeof(struct tw__task), TW__NODES_MAX);
	tw__work_init(&scheduler->work, scheduler->base.service, scheduler->base.executor, tw__scheduler_host_called);
	tw__work_init(&scheduler->retry, scheduler->base.service, &tw__inline_executor, retry_called);
	init_locks(scheduler);
}

int tw_scheduler_create(tw_scheduler **out, tw_service *service, const struct tw_scheduler_config *cfg)
{
	struct tw_scheduler_config config;
	if (!out || !service)
		return tw__invalid("%s is NULL", out ? "service" : "out");
	int r = tw__scheduler_config_read(&config, cfg);
	if (r)
		return r;
	tw_scheduler *scheduler = calloc(1, sizeof *scheduler);
	struct tw_scheduler_event *events = config.log_events ? calloc(config.log_events, sizeof *events) : NULL;
	r = !scheduler || (config.log_events && !events) ? -ENOMEM
							 : tw__base_hold(&scheduler->base, service, config.executor);
	if (r) {
		free(events);
		free(scheduler);
		return r;
	}
	scheduler->config = config;
	scheduler->log.events = events;
	init(scheduler);
	*out = scheduler;
	return 0;
}

/* -------------------------------------------------------------------------- end */

/* The calling thread may be the one that what is out waits for. */
static bool would_wait_for_itself(const tw_scheduler *scheduler)
{
	tw_pool *pool = tw__pool_of(scheduler->base.executor);
	return scheduler->config.host == TW_HOST_EXECUTOR && scheduler->host.state != TW__HOST_IDLE && pool &&
	       tw_pool_is_worker(pool);
}

/*
 * The lock is held; it is released while done functions are called. The task that runs is not
 * touched.
 */
static void drop_all(tw_scheduler *scheduler, struct tw__heap *heap)
{
	struct tw__task *task;
	while ((task = tw__task_of(tw__heap_pop_loose(heap)))) {
		if (task == scheduler->current)
			continue; /* out of its heap; its turn ends the rest */
		if (tw__task_is_cleared(task)) {
			tw__scheduler_forget(scheduler, task);
			continue;
		}
		struct tw__ending ending = tw__ending_of(task);
		scheduler->stats.dropped++;
		if (scheduler->log.events)
			tw__scheduler_log(scheduler, task, TW_EVENT_CANCEL, tw__scheduler_now(scheduler), 0);
		tw__scheduler_give_back(scheduler, task);
		pthread_mutex_unlock(&scheduler->lock);
		tw__scheduler_tell(scheduler, ending, TW_FATE_DROPPED, -ESHUTDOWN);
		pthread_mutex_lock(&scheduler->lock);
	}
}

/* Takes back what is out, if possible: no other thread might ever call it. */
static void fetch_home(tw_scheduler *scheduler)
{
	bool requested = scheduler->host.state == TW__HOST_REQUESTED;
	put_timer_away(scheduler);
	if (requested && (scheduler->config.host == TW_HOST_MANUAL || tw__work_recall(&scheduler->work)))
		scheduler->host.state = TW__HOST_IDLE;
	if (scheduler->host.retrying && tw__work_recall(&scheduler->retry))
		scheduler->host.retrying = false;
}

static bool is_home(const tw_scheduler *scheduler)
{
	return scheduler->host.state == TW__HOST_IDLE && !scheduler->host.out && !scheduler->host.retrying;
}

static bool turn_has_ended(const tw_scheduler *scheduler)
{
	return scheduler->host.state != TW__HOST_RUNNING;
}

/* The lock is held. False: the time is up. */
static bool await(tw_scheduler *scheduler, bool what(const tw_scheduler *), uint64_t timeout_ns)
{
	uint64_t until_ns = tw_clock_now(tw_clock_monotonic()) + timeout_ns;
	struct timespec until = {.tv_sec = (time_t)(until_ns / 1000000000), .tv_nsec = (long)(until_ns % 1000000000)};
	bool bounded = timeout_ns <= TW_MAX_DELAY_NS;
	scheduler->waiters++;
	int r = 0;
	while (!what(scheduler) && r != ETIMEDOUT)
		r = bounded ? pthread_cond_timedwait(&scheduler->home, &scheduler->lock, &until)
			    : pthread_cond_wait(&scheduler->home, &scheduler->lock);
	scheduler->waiters--;
	return what(scheduler);
}

/* The lock is held. */
static void shut(tw_scheduler *scheduler)
{
	scheduler->closed = true;
	fetch_home(scheduler);
	drop_all(scheduler, &scheduler->timers);
	drop_all(scheduler, &scheduler->tasks);
}

int tw_scheduler_close(tw_scheduler *scheduler, uint64_t timeout_ns)
{
	int r = TW__CHECK(scheduler, "scheduler");
	if (r)
		return r;
	if (tw__scheduler_is_inside(scheduler))
		return tw__misuse(-EDEADLK, "tw_scheduler_close: called from one of its own tasks");
	pthread_mutex_lock(&scheduler->lock);
	r = -EDEADLK;
	if (!would_wait_for_itself(scheduler)) {
		shut(scheduler);
		r = await(scheduler, is_home, timeout_ns) ? 0 : -ETIMEDOUT;
	}
	pthread_mutex_unlock(&scheduler->lock);
	return r == -EDEADLK ? tw__misuse(r, "tw_scheduler_close: its work waits for this worker") : r;
}

static void free_all(tw_scheduler *scheduler)
{
	tw__nodes_fini(&scheduler->nodes);
	tw__heap_free(&scheduler->tasks);
	tw__heap_free(&scheduler->timers);
	free(scheduler->log.events);
	free(scheduler);
}

/* It has returned, and no other thread uses it. */
static void end(tw_scheduler *scheduler)
{
	struct tw__base base = scheduler->base;
	bool left = scheduler->destroyed;
	pthread_cond_destroy(&scheduler->home);
	pthread_mutex_destroy(&scheduler->lock);
	free_all(scheduler);
	(left ? tw__base_let_go_left : tw__base_let_go)(&base);
}

void tw__scheduler_unlock_home(tw_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	bool last = scheduler->destroyed && is_home(scheduler);
	if (tw_unlikely(scheduler->waiters))
		pthread_cond_broadcast(&scheduler->home);
	pthread_mutex_unlock(&scheduler->lock);
	if (tw_unlikely(last))
		end(scheduler);
}

/*
 * Tells whether other threads finish what is out without the calling thread. The scheduler's own
 * pool runs the host callback; the service's tick thread runs timers and retries. Another executor
 * may be a queue that this very thread pumps.
 */
static bool others_bring_it_home(const tw_scheduler *scheduler)
{
	tw_service *service = scheduler->base.service;
	tw_pool *pool = tw__pool_of(scheduler->base.executor);
	if (tw_pool_is_worker(pool) || tw__inside(service) || tw__inside_work(service))
		return false; /* it may be the driver */
	if (scheduler->host.state == TW__HOST_REQUESTED && !pool)
		return false;
	return service->threaded || (!scheduler->host.out && !scheduler->host.retrying);
}

int tw_scheduler_destroy(tw_scheduler *scheduler)
{
	if (!scheduler)
		return 0;
	if (tw__scheduler_is_inside(scheduler))
		return tw__misuse(-EDEADLK, "tw_scheduler_destroy: called from one of its own tasks");
	if (TW__CHECK(scheduler, "scheduler")) { /* a forked child */
		free_all(scheduler);
		return 0;
	}
	pthread_mutex_lock(&scheduler->lock);
	shut(scheduler);
	await(scheduler, turn_has_ended, TW_FOREVER);
	while (!is_home(scheduler) && others_bring_it_home(scheduler))
		await(scheduler, is_home, TW_FOREVER);
	bool home = is_home(scheduler);
	if (!home) {
		scheduler->destroyed = true;
		tw__base_leave(&scheduler->base);
	}
	pthread_mutex_unlock(&scheduler->lock);
	if (home)
		end(scheduler);
	return 0;
}
