/*
 * How attempts and jobs of a limiter end, and what is told of it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "executor/limiter/internal.h"
#include "mpsc/base/futex.h"

enum { GONE_AT_ONCE = 16 };

/* -------------------------------------------------------------- user's code */

static _Thread_local struct tw__limiter_call *innermost;

void tw__limiter_call_begin(struct tw__limiter_call *call, struct tw_limiter *l, const struct tw__job *job)
{
	call->limiter = l;
	call->job = job;
	call->outer = innermost;
	innermost = call;
	call->shown = NULL;
	tw__context_enter(job ? job->context : NULL, &call->saved);
}

void tw__limiter_call_show(struct tw__limiter_call *call, enum tw_run_kind kind, tw_fn *fn, uint64_t since_ns)
{
	tw__user_end(call->shown);
	call->shown = tw__user_begin(call->limiter->service, kind, fn, since_ns);
}

void tw__limiter_call_end(struct tw__limiter_call *call)
{
	tw__context_leave(&call->saved);
	tw__user_end(call->shown);
	innermost = call->outer;
}

bool tw__limiter_is_inside(const struct tw_limiter *l, const struct tw__job *job)
{
	for (const struct tw__limiter_call *call = innermost; call; call = call->outer)
		if (call->limiter == l && (!job || call->job == job))
			return true;
	return false;
}

/* ------------------------------------------------------------------ results */

void tw__result_of(const struct tw__job *job, struct tw_job_result *out)
{
	*out = (struct tw_job_result){.id = job->id,
				      .status = (enum tw_job_status)job->status,
				      .error = job->error,
				      .value = job->value,
				      .attempts = job->attempts,
				      .queued_ns = job->queued_ns,
				      .run_ns = job->run_ns};
}

void tw__results_put(struct tw__results *results)
{
	if (results && --results->refs == 0)
		free(results);
}

/* Those that were told are their listeners' until these have returned; a new collection begins. */
int tw__results_reserve(struct tw_limiter *l)
{
	struct tw__results *old = l->results;
	bool fresh = !old || old->delivered;
	size_t needed = (fresh ? 0 : old->n) + (size_t)(l->added - l->settled) + 1;
	if (!fresh && needed <= old->room)
		return 0;
	size_t room = needed < 16 ? 16 : 2 * needed;
	struct tw__results *results = malloc(sizeof *results + room * sizeof *results->items);
	if (!results)
		return -ENOMEM;
	*results = (struct tw__results){.refs = 1, .room = room};
	if (!fresh) {
		results->n = old->n;
		memcpy(results->items, old->items, old->n * sizeof *old->items);
	}
	tw__results_put(old);
	l->results = results;
	return 0;
}

static void collect(struct tw_limiter *l, const struct tw__job *job)
{
	if (l->config.flags & TW_LIMITER_COLLECT)
		tw__result_of(job, &l->results->items[l->results->n++]);
}

/* ------------------------------------------------------------------ the end */

static void count(struct tw_limiter *l, enum tw_job_status status)
{
	l->settled++;
	switch (status) {
	case TW_JOB_SUCCEEDED:
		l->succeeded++;
		break;
	case TW_JOB_FAILED:
		l->failed++;
		break;
	case TW_JOB_CANCELLED:
		l->cancelled++;
		break;
	case TW_JOB_TIMED_OUT:
		l->timed_out++;
		break;
	case TW_JOB_DROPPED:
		l->dropped++;
		break;
	}
}

static bool is_quiet(const struct tw_limiter *l)
{
	return l->unfinished == l->pending;
}

/* One is through with everything. */
static void finish(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	job->flags |= TW__JOB_FINISHED;
	if (--l->unfinished == 0) {
		tw__idle_reached(l);
		todo->idle = true;
	}
	if (l->quiet_waiters && is_quiet(l) && !todo->idle) /* else after the listeners */
		tw__limiter_ring(l);
	tw__job_look_for_end(l, job);
}

void tw__limiter_ring(struct tw_limiter *l)
{
	tw_add_release(&l->quiet_bell, 1);
	tw__futex_wake(&l->quiet_bell, INT32_MAX);
}

static void put_gone(struct tw_limiter *l)
{
	struct tw__job *job = l->gone;
	for (struct tw__job *next; job; job = next) {
		next = job->next;
		tw__node_put(&l->nodes, &job->node);
	}
	l->gone = NULL;
	l->gone_n = 0;
}

void tw__job_look_for_end(struct tw_limiter *l, struct tw__job *job)
{
	if (!(job->flags & TW__JOB_FINISHED) || job->timers || job->state == TW_JOB_GONE)
		return;
	l->timed -= job->options != NULL;
	free(job->options);
	job->options = NULL;
	if (job->flags & TW__JOB_KEEP || job->waiters)
		return;
	job->state = TW_JOB_GONE;
	job->next = l->gone;
	l->gone = job;
	if (++l->gone_n == GONE_AT_ONCE || !l->unfinished)
		put_gone(l);
}

/* Told, and its last attempt over: released, and then finished. */
static void look_for_release(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	if (job->flags & (TW__JOB_INSIDE | TW__JOB_STOPPING | TW__JOB_RELEASED) || !(job->flags & TW__JOB_TOLD))
		return;
	job->flags |= TW__JOB_RELEASED;
	if (job->context || (job->options && job->options->release))
		tw__jobs_append(&todo->releases_end, job);
	else
		finish(l, job, todo);
}

static void told(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	job->flags |= TW__JOB_TOLD;
	if (tw_unlikely(job->waiters)) {
		tw_store_release(&job->bell, 1);
		tw__futex_wake(&job->bell, INT32_MAX);
	}
	look_for_release(l, job, todo);
}

static void note_settled(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	if (job->done || l->config.hooks.settled)
		tw__jobs_append(&todo->settled_end, job);
	else
		told(l, job, todo);
}

void tw__settle(struct tw_limiter *l, struct tw__job *job, enum tw_job_status status, int error, struct tw__todo *todo)
{
	job->state = TW_JOB_SETTLED;
	job->status = (uint8_t)status;
	job->error = error;
	if (status != TW_JOB_SUCCEEDED && status != TW_JOB_FAILED && !job->attempts)
		job->value = NULL;
	tw__job_disarm(l, job);
	count(l, status);
	collect(l, job);
	if (job->flags & TW__JOB_INSIDE)
		l->late++; /* told by whoever tells it to stop */
	else
		note_settled(l, job, todo);
}

void tw__job_stop(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	bool tells = job->options && job->options->stop && !(job->flags & TW__JOB_STOPPED);
	job->flags |= TW__JOB_STOPPED;
	if (tells) {
		job->flags |= TW__JOB_STOPPING;
		tw__jobs_append(&todo->stops_end, job);
	} else if (job->state == TW_JOB_SETTLED && !(job->flags & TW__JOB_STOPPING)) {
		note_settled(l, job, todo);
	}
}

/* ----------------------------------------------------------------- attempts */

/* What follows on the attempt's end has to wait a little. */
static void hold_up(struct tw_limiter *l, struct tw__job *job)
{
	job->flags |= TW__JOB_ENDED;
	l->between++;
}

static void go_on(struct tw_limiter *l, struct tw__job *job)
{
	job->flags &= (uint16_t)~TW__JOB_ENDED;
	l->between--;
}

/* The attempt has ended, nothing holds up what follows. `job->error` and `job->value` are its own. */
static void decide(struct tw_limiter *l, struct tw__job *job, uint64_t now_ns, struct tw__todo *todo)
{
	bool overdue = job->flags & TW__JOB_OVERDUE;
	if (overdue)
		job->error = -ETIMEDOUT;
	if (job->error == 0) {
		tw__settle(l, job, TW_JOB_SUCCEEDED, 0, todo);
	} else if (job->flags & TW__JOB_CANCEL) {
		tw__settle(l, job, TW_JOB_CANCELLED, job->error, todo);
	} else if (tw__job_may_retry(l, job, now_ns)) {
		hold_up(l, job);
		tw__jobs_append(&todo->retries_end, job);
	} else {
		tw__settle(l, job, overdue ? TW_JOB_TIMED_OUT : TW_JOB_FAILED, job->error, todo);
	}
}

void tw__attempt_end(struct tw_limiter *l, struct tw__job *job, int error, void *value, uint64_t now_ns,
		     struct tw__todo *todo)
{
	uint64_t run_ns = now_ns > job->since_ns ? now_ns - job->since_ns : 0;
	job->flags &= (uint16_t)~TW__JOB_INSIDE;
	l->running--;
	l->run_sum_ns += run_ns;
	tw__histogram_add(&l->run, run_ns, 1);
	if (job->state == TW_JOB_SETTLED) {
		l->late--;
		look_for_release(l, job, todo);
		return;
	}
	job->run_ns += run_ns;
	job->error = error;
	job->value = value;
	if (job->flags & TW__JOB_STOPPING)
		hold_up(l, job);
	else
		decide(l, job, now_ns, todo);
}

/* --------------------------------------------------- to be done without lock */

static struct tw__job *take(struct tw__job **first, struct tw__job ***end)
{
	struct tw__job *job = *first;
	if (job && !(*first = job->next))
		*end = first;
	return job;
}

static void send_runners(struct tw_limiter *l, struct tw__todo *todo)
{
	struct tw__runner *runner = todo->runners;
	todo->runners = NULL;
	pthread_mutex_unlock(&l->lock);
	for (struct tw__runner *next; runner; runner = next) {
		next = runner->next;
		tw__work_submit(&runner->work);
	}
	tw__limiter_relock(l);
}

static void call_begin(struct tw_limiter *l, struct tw__job *job, struct tw__limiter_call *call)
{
	pthread_mutex_unlock(&l->lock);
	tw__limiter_call_begin(call, l, job);
}

/* False: this is a forked child, where the lock is not to be had. */
static bool call_end(struct tw_limiter *l, struct tw__limiter_call *call)
{
	tw__limiter_call_end(call);
	if (tw__forked(l->service))
		return false;
	tw__limiter_relock(l);
	return true;
}

static bool do_stop(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	struct tw__limiter_call call;
	enum tw_job_status why = job->flags & TW__JOB_OVERDUE ? TW_JOB_TIMED_OUT : TW_JOB_CANCELLED;
	call_begin(l, job, &call);
	tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(job->options->stop), 0);
	job->options->stop(job->arg, (tw_job){tw__node_handle(&job->node)}, why);
	if (!call_end(l, &call))
		return false;
	job->flags &= (uint16_t)~TW__JOB_STOPPING;
	if (job->state == TW_JOB_SETTLED) {
		note_settled(l, job, todo);
	} else if (job->flags & TW__JOB_ENDED) {
		go_on(l, job);
		decide(l, job, tw_now(l->service), todo);
	}
	return true;
}

static bool do_settled(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	struct tw__limiter_call call;
	struct tw_job_result result;
	tw__result_of(job, &result);
	call_begin(l, job, &call);
	if (l->config.hooks.settled) {
		tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(l->config.hooks.settled), 0);
		l->config.hooks.settled(l->config.hooks.hooks_arg, &result);
	}
	if (job->done && !tw__forked(l->service)) {
		tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(job->done), 0);
		job->done(job->arg, &result);
	}
	if (!call_end(l, &call))
		return false;
	told(l, job, todo);
	return true;
}

static bool do_retry(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	uint64_t delay_ns = tw__job_draw_delay(l, job), now_ns = tw_now(l->service);
	if (now_ns + delay_ns > job->options->retry_deadline_ns) {
		job->options->retry.count = 0;
	} else if (l->config.hooks.retried) {
		struct tw__limiter_call call;
		call_begin(l, job, &call);
		tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(l->config.hooks.retried), 0);
		l->config.hooks.retried(l->config.hooks.hooks_arg, job->id, job->attempts, delay_ns);
		if (!call_end(l, &call))
			return false;
	}
	go_on(l, job);
	if (!tw__job_has_retries(l, job)) {
		job->options->retry.count = 0;
		decide(l, job, now_ns, todo); /* cancelled or stopped meanwhile, or it would be too late */
		return true;
	}
	tw__job_back_off(l, job, now_ns + delay_ns);
	return true;
}

static bool do_release(struct tw_limiter *l, struct tw__job *job, struct tw__todo *todo)
{
	struct tw__limiter_call call;
	tw_job_release_fn *release = job->options ? job->options->release : NULL;
	call_begin(l, job, &call);
	if (release) {
		tw__limiter_call_show(&call, TW_RUN_KIND_RELEASE, TW__NAMED_BY(release), 0);
		release(job->arg);
	}
	tw__limiter_call_end(&call);
	if (tw__forked(l->service))
		return false;
	tw__context_release(job->context);
	job->context = NULL;
	tw__limiter_relock(l);
	finish(l, job, todo);
	return true;
}

static bool do_low_water(struct tw_limiter *l, struct tw__todo *todo)
{
	struct tw__limiter_call call;
	todo->low_water = false;
	call_begin(l, NULL, &call);
	tw__limiter_call_show(&call, TW_RUN_KIND_HOOK, TW__NAMED_BY(l->config.on_low_water), 0);
	l->config.on_low_water(l->config.low_water_arg);
	return call_end(l, &call);
}

/* One step; false: in a forked child, without the lock. */
static bool do_next(struct tw_limiter *l, struct tw__todo *todo)
{
	struct tw__job *job;
	if (todo->runners)
		return send_runners(l, todo), true;
	if ((job = take(&todo->stops, &todo->stops_end)))
		return do_stop(l, job, todo);
	if ((job = take(&todo->retries, &todo->retries_end)))
		return do_retry(l, job, todo);
	if (todo->low_water)
		return do_low_water(l, todo);
	if ((job = take(&todo->settled, &todo->settled_end)))
		return do_settled(l, job, todo);
	if ((job = take(&todo->releases, &todo->releases_end)))
		return do_release(l, job, todo);
	todo->idle = false;
	return tw__idle_tell(l);
}

static bool anything(const struct tw__todo *todo)
{
	return todo->runners || todo->stops || todo->settled || todo->retries || todo->releases || todo->low_water ||
	       todo->idle;
}

static void todo_init(struct tw__todo *todo)
{
	*todo = (struct tw__todo){.runners = NULL};
	todo->stops_end = &todo->stops;
	todo->settled_end = &todo->settled;
	todo->retries_end = &todo->retries;
	todo->releases_end = &todo->releases;
}

void tw__limiter_lock(struct tw_limiter *l, struct tw__todo *todo)
{
	todo_init(todo);
	tw__limiter_relock(l);
}

/* What is in the inbox has priority 0, and came later than all that is in line: it need not be taken over while there is such a job. */
void tw__limiter_lock_lazily(struct tw_limiter *l, struct tw__todo *todo)
{
	todo_init(todo);
	pthread_mutex_lock(&l->lock);
	if (l->line.count == l->line.lows || l->config.on_low_water)
		tw__inbox_look(l);
}

void tw__limiter_unlock(struct tw_limiter *l, struct tw__todo *todo)
{
	tw__inbox_attend(l, todo);
	while (tw_unlikely(anything(todo))) {
		l->unlocking++; /* destroy waits: what is sent here may be all that was left, and over before this thread is back */
		if (!do_next(l, todo))
			return;
		l->unlocking--;
		tw__inbox_attend(l, todo);
	}
	pthread_mutex_unlock(&l->lock);
}
