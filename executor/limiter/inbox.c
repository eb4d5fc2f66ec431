/*
 * The limiter's inbox: how a plain job comes in without the lock while all permits are out.
 *
 * Then nothing can start before some attempt ends, or the limit grows: the thread that does that
 * takes the lock, and looks here. So submitters leave jobs on a stack, and the thread that has the
 * lock takes them all over in one go: they get their numbers, in the order in which they came, and
 * are queued, before anything else is decided. No thread that holds the lock acts on a state
 * that lacks a job whose submit has returned before the lock was taken.
 *
 * The word of the inbox: the last job that came, or 0; OPEN.
 *
 *   transition   from           to             by whom
 *   open         0              OPEN       who gives up the lock: all permits are out
 *   leave        OPEN, any  OPEN, job  a submitter, without the lock
 *   take         OPEN, any  OPEN       the thread that has the lock
 *   shut         OPEN       0              who gives up the lock: a permit is free, or nothing
 *                                              may start. Fails if a job came
 *
 * Invariant: when the lock is free, OPEN implies that all permits are out (running or searching
 * runners), and the limiter is neither closed nor paused. Each of these ends under the lock only,
 * and the thread that ends it shuts the inbox, or has given out the permits anew, before it gives
 * the lock up.
 *
 * For limiters that have nothing more to decide at a submit: no bound on the jobs that wait, no
 * rate, no collected results, no refusal while paused. And for jobs without
 * options, of priority 0, whose place in the queue is there from birth: so taking over cannot fail.
 * Runners need no reserve: when all permits were given out, there was one for each.
 *
 * Pairing table
 *   INBOX1  inbox: CAS acq_rel (leave) -> exchange acquire (take): the job, and what its submitter
 *       did before.
 *   INBOX2  inbox: store-release (open), CAS acq_rel (shut) -> CAS acq_rel (leave): a submitter
 *       that finds it open was not before.
 *
 * Model: test/model/inbox.pml.
 */
#include "executor/limiter/inbox.h"
#include "executor/limiter/queue.h"

/* Runners are out for all permits, so there is somebody to look. */
static bool all_permits_out(const struct tw_limiter *l)
{
	return !l->closed && !l->paused &&
	       l->permits.running + l->permits.searching >= l->permits.limit;
}

void tw__inbox_init(struct tw_limiter *l)
{
	const struct tw_limiter_config *c = &l->config;
	l->has_inbox = c->max_pending == TW__NODES_MAX && !c->rate_starts &&
		       !(c->flags & ~(uint32_t)(TW_LIMITER_NONBLOCKING | TW_LIMITER_PAUSED));
}

bool tw__inbox_leave(struct tw_limiter *l, struct tw__job *job, tw_job *out)
{
	uintptr_t word = tw_load_relaxed(&l->inbox);
	if (out && word & TW__INBOX_OPEN)
		*out = tw__job_handle(job);
	do {
		if (!(word & TW__INBOX_OPEN))
			return false;
		job->next = (struct tw__job *)(word & ~(uintptr_t)TW__INBOX_OPEN);
	} while (!tw_cas_acq_rel(&l->inbox, &word,
				 (uintptr_t)job | TW__INBOX_OPEN)); /* INBOX1, INBOX2 */
	return true;
}

void tw__job_accept(struct tw_limiter *l, struct tw__job *job)
{
	TW_ASSERT_LOCKED(&l->lock);
	job->id = ++l->counters.added;
	l->ends.unfinished++;
	l->times.timed += job->options != NULL;
	l->pending++;
}

void tw__inbox_take(struct tw_limiter *l)
{
	TW_ASSERT_LOCKED(&l->lock);
	uintptr_t word = tw_exchange_acquire(&l->inbox, TW__INBOX_OPEN); /* INBOX1 */
	struct tw__job *job = (struct tw__job *)(word & ~(uintptr_t)TW__INBOX_OPEN), *first = NULL,
		       *next;
	for (; job; job = next) {
		next = job->next;
		job->next = first;
		first = job;
	}
	for (job = first; job; job = next) {
		next = job->next;
		tw__job_accept(l, job);
		tw__job_enqueue(l, job, job->since_ns);
	}
}

static void limiter_shut(struct tw_limiter *l)
{
	/* INBOX2 */
	for (uintptr_t empty = TW__INBOX_OPEN; !tw_cas_acq_rel(&l->inbox, &empty, 0);
	     empty = TW__INBOX_OPEN)
		tw__inbox_take(l);
	l->open = false;
}

void tw__inbox_attend(struct tw_limiter *l, struct tw__limiter_deferred *deferred)
{
	TW_ASSERT_LOCKED(&l->lock);
	bool all_out = all_permits_out(l);
	if (l->open && !all_out) {
		limiter_shut(l);
		/*
		 * The limit may have grown. Without memory one that runs will look when it is
		 * through.
		 */
		(void)tw__runner_reserve(l, l->ends.unfinished);
		tw__dispatch(l, 0, deferred);
		all_out = all_permits_out(l);
	}
	if (!l->open && all_out && l->has_inbox) {
		l->open = true;
		tw_store_release(&l->inbox, TW__INBOX_OPEN); /* INBOX2 */
	}
}
