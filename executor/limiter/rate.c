/*
 * The limiter's rate: a bucket of tokens, one for each attempt that may begin in an interval.
 *
 * A token is taken when an attempt leaves the queue, and begins to come back when its function is
 * about to be called: what comes between (a callback of low water, the hook `started`, the lock)
 * would otherwise let later starts move together. A job leaves the queue a whole interval after the
 * start of which it has the token. So there are never more than rate_starts starts in an interval,
 * whatever the delay between the queue and the function; and no more calls of the hook `started`,
 * which lie in between.
 */

#include "executor/limiter/rate.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/tell.h"

/* A token is back; or it is time to try for a timer again. */
static void on_token(void *arg)
{
	struct tw_limiter *l = arg;
	struct tw__limiter_deferred deferred;
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, &deferred);
	l->rate.armed = false;
	tw__dispatch(l, now_ns, &deferred);
	l->out.timers--;
	tw__limiter_unlock(l, &deferred);
}

static void on_rate_retry(struct tw__work *work)
{
	on_token(TW__OWNER(struct tw_limiter, rate.retry, work));
}

void tw__rate_init(struct tw_limiter *l)
{
	tw__work_init(&l->rate.retry, l->service, &tw__inline_executor, on_rate_retry);
}

static void limiter_arm(struct tw_limiter *l, uint64_t at_ns)
{
	if (l->rate.armed)
		return;
	l->rate.armed = true;
	l->out.timers++;
	if (tw__base_schedule(l->service, at_ns, on_token, l, &l->rate.timer))
		tw__work_submit_later(&l->rate.retry);
}

static uint64_t *token(struct tw_limiter *l, uint64_t place)
{
	return &l->rate.tokens[(l->rate.first + place) % l->rate.starts];
}

static void drop_oldest(struct tw_limiter *l)
{
	l->rate.first = (l->rate.first + 1) % l->rate.starts;
	l->rate.used--;
}

uint64_t tw__rate_tokens(struct tw_limiter *l, uint64_t now_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	if (tw_likely(!l->rate.tokens))
		return UINT64_MAX;
	while (l->rate.used && *token(l, 0) <= now_ns)
		drop_oldest(l);
	uint64_t taken = l->rate.used + l->rate.out; /* above `starts` after the rate has shrunk */
	return taken < l->rate.starts ? l->rate.starts - taken : 0;
}

bool tw__rate_has_token(struct tw_limiter *l, uint64_t beyond, uint64_t now_ns)
{
	TW_ASSERT_LOCKED(&l->lock);
	uint64_t there = tw__rate_tokens(l, now_ns);
	if (beyond < there)
		return true;
	if (beyond - there < l->rate.used) /* else the thread that begins looks again */
		/* not a later one: who is on his way for this one may find it gone */
		limiter_arm(l, *token(l, 0));
	return false;
}

void tw__rate_begin(struct tw_limiter *l)
{
	pthread_mutex_lock(&l->lock);
	l->rate.out--;
	if (l->rate.used == l->rate.starts) /* the rate has shrunk since the token was taken */
		drop_oldest(l);
	/* planted: token_early */
	*token(l, l->rate.used++) = tw_service_now(l->service) + l->rate.interval_ns;
	if (l->queue.count > l->permits.searching)
		limiter_arm(l, *token(l, 0));
	pthread_mutex_unlock(&l->lock);
}

/* ------------------------------------------------------------------- change */

static int limiter_rate_check_rate(const struct tw_limiter *l, uint32_t starts,
				   uint64_t interval_ns)
{
	if (!l->config.rate_starts)
		return tw__misuse(-EINVAL,
				  "tw_limiter_set_rate: the limiter was created without a rate");
	if (!starts || starts > TW__MAX_RATE)
		return tw__misuse(-EINVAL, "tw_limiter_set_rate: starts %u: must be 1 to %u",
				  (unsigned)starts, (unsigned)TW__MAX_RATE);
	if (!interval_ns || interval_ns > TW_MAX_DELAY_NS)
		return tw__misuse(
		    -EINVAL, "tw_limiter_set_rate: interval_ns %llu: must be 1 to TW_MAX_DELAY_NS",
		    (unsigned long long)interval_ns);
	return 0;
}

/*
 * The tokens that are out return one new interval after their starts. Of more than the new rate
 * has, the oldest return now: the next start waits for a later one anyway. Returns the old ring.
 */
static uint64_t *move_tokens(struct tw_limiter *l, uint64_t *tokens, uint32_t starts,
			     uint64_t interval_ns)
{
	uint64_t *old = l->rate.tokens;
	while (l->rate.used > starts)
		drop_oldest(l);
	for (uint32_t i = 0; i < l->rate.used; i++)
		tokens[i] = *token(l, i) - l->rate.interval_ns + interval_ns;
	l->rate.tokens = tokens;
	l->rate.first = 0;
	l->rate.starts = starts;
	l->rate.interval_ns = interval_ns;
	return old;
}

/* The next thread that needs a token arms it again. */
static void limiter_rate_disarm(struct tw_limiter *l)
{
	if (!l->rate.armed || tw_cancel(l->service, l->rate.timer) != TW_CANCELLED)
		return;
	l->rate.armed = false;
	l->out.timers--;
}

int tw_limiter_set_rate(tw_limiter *l, uint32_t starts, uint64_t interval_ns)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (!r)
		r = limiter_rate_check_rate(l, starts, interval_ns);
	if (r)
		return r;
	uint64_t *tokens = calloc(starts, sizeof *tokens);
	if (!tokens)
		return -ENOMEM;
	uint64_t now_ns = tw_service_now(l->service);
	tw__limiter_lock(l, &deferred);
	(void)tw__rate_tokens(l, now_ns); /* those that are back, by the old interval */
	uint64_t *old = move_tokens(l, tokens, starts, interval_ns);
	limiter_rate_disarm(l);
	tw__bell_ring(&l->ends.room);
	tw__dispatch(l, now_ns, &deferred);
	tw__limiter_unlock(l, &deferred);
	free(old);
	return 0;
}
