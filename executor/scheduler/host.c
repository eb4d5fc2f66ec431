/* What a scheduler asks of its host, and the timer that asks later. */
#include "executor/scheduler/host.h"

#include "executor/scheduler/submit.h"

/* ------------------------------------------------------------- the host timer */

/* The driver promotes at most this many tasks. The slice that it asks for promotes the rest. */
enum { DRIVER_PROMOTES = 32 };

void tw__scheduler_put_timer_away(tw_scheduler *scheduler)
{
	if (!scheduler->host.timer_set)
		return;
	scheduler->host.timer_set = false;
	if (tw_cancel(scheduler->base.service, scheduler->host.timer) == TW_CANCELLED)
		scheduler->host.out--;
}

static void timer_fired(void *arg)
{
	tw_scheduler *scheduler = arg;
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	scheduler->host.out--;
	/* not if the timer was put away, or set anew, after this one was claimed */
	if (scheduler->host.timer_set && scheduler->host.timer.id == tw_self().id) {
		scheduler->host.timer_set = false;
		tw__scheduler_promote(scheduler, now_ns, DRIVER_PROMOTES);
	}
	tw__scheduler_unlock(scheduler);
}

/*
 * Returns 0, or an error if there was no room for a timer. A timer that is about to fire counts as
 * set: it sets the next one.
 *
 * The driver itself runs the timer's callback. The callback needs no worker, so blocked workers
 * delay no task of another host, and no executor can refuse it. It waits for the lock, which is
 * free: a timer is set only while nothing is ready.
 */
static int scheduler_set_timer(tw_scheduler *scheduler, int64_t at_ns)
{
	int r;
	if (scheduler->host.timer_set) {
		r = tw_reset_at(scheduler->base.service, scheduler->host.timer, (uint64_t)at_ns);
		if (r == -ENOENT || r == -EBUSY)
			return 0;
	} else {
		r = tw__base_schedule(scheduler->base.service, (uint64_t)at_ns, timer_fired,
				      scheduler, &scheduler->host.timer);
		scheduler->host.out += r == 0;
	}
	scheduler->host.timer_set |= r == 0;
	scheduler->stats.timers_armed += r == 0;
	scheduler->host.timer_ns = r == 0 ? at_ns : scheduler->host.timer_ns;
	return r;
}

/* The instant, or the last one that the service can express. */
static int64_t in_range(const tw_scheduler *scheduler, int64_t at_ns)
{
	uint64_t last_ns = scheduler->base.service->time.start_ns + TW_MAX_DELAY_NS;
	return (uint64_t)at_ns < last_ns ? at_ns : (int64_t)last_ns;
}

static void set_timer_for_first(tw_scheduler *scheduler)
{
	struct tw__task *first = tw__scheduler_head(scheduler, &scheduler->timers);
	if (!first) {
		tw__scheduler_put_timer_away(scheduler);
		return;
	}
	int64_t at_ns = in_range(scheduler, tw__heap_first_key(&scheduler->timers));
	if (scheduler->host.timer_set && scheduler->host.timer_ns == at_ns)
		return;
	if (scheduler_set_timer(scheduler, at_ns) && !scheduler->host.retrying) {
		scheduler->host.retrying = true;
		tw__work_submit_later(&scheduler->retry);
	}
}

void tw__scheduler_retry(struct tw__work *work)
{
	tw_scheduler *scheduler = TW__OWNER(tw_scheduler, retry, work);
	int64_t now_ns = tw__scheduler_now(scheduler);
	pthread_mutex_lock(&scheduler->lock);
	scheduler->host.retrying = false; /* it may be submitted again */
	tw__scheduler_promote(scheduler, now_ns, DRIVER_PROMOTES);
	tw__scheduler_unlock(scheduler);
}

/* --------------------------------------------------------------------- the host */

bool tw__scheduler_arm_host(tw_scheduler *scheduler)
{
	TW_ASSERT_LOCKED(&scheduler->lock);
	if (scheduler->host.state != TW__HOST_IDLE || scheduler->closed)
		return false;
	if (!tw__scheduler_head(scheduler, &scheduler->tasks)) {
		set_timer_for_first(scheduler);
		return false;
	}
	tw__scheduler_put_timer_away(scheduler);
	scheduler->host.state = TW__HOST_REQUESTED;
	scheduler->stats.host_requests++;
	return true;
}

/*
 * Work for an executor is out, and that holds the scheduler: it is not touched after the submit.
 * `wanted` counts as out itself, so neither the scheduler nor what the function uses goes while
 * another thread is inside it.
 */
void tw__scheduler_unlock(tw_scheduler *scheduler)
{
	const struct tw_scheduler_config *config = &scheduler->config;
	bool call = tw__scheduler_arm_host(scheduler);
	if (call && config->host == TW_HOST_EXECUTOR) {
		pthread_mutex_unlock(&scheduler->lock);
		tw__work_submit(&scheduler->work);
		return;
	}
	if (call && config->wanted) {
		scheduler->host.out++;
		pthread_mutex_unlock(&scheduler->lock);
		tw_service *service = scheduler->base.service;
		tw__user_hide_callback(service); /* timer_fired */
		struct tw__run_record *shown = tw__user_begin(service, TW__NAMED_BY(config->wanted),
							      config->wanted_arg, NULL, 0);
		config->wanted(config->wanted_arg);
		tw__user_end(shown);
		pthread_mutex_lock(&scheduler->lock);
		scheduler->host.out--;
	}
	tw__scheduler_unlock_returned(scheduler);
}
