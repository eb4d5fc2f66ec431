/*
 * The limiter's rate: a bucket of tokens, one for each attempt that may begin in an interval.
 *
 * A token is taken when an attempt leaves the queue. It begins to come back just before the
 * attempt's function is called. Otherwise the event STARTED, which is called between the two, would
 * let later starts move together. A job leaves the queue a whole interval after the
 * start of which it has the token. So there are never more than rate_starts starts in an interval,
 * whatever the delay between the queue and the function; and no more calls of the event STARTED,
 * which lie in between.
 */

#include "executor/limiter/rate.h"
#include "executor/limiter/inbox.h"
#include "executor/limiter/queue.h"
#include "executor/limiter/retry.h"
#include "executor/limiter/tell.h"

static uint64_t *token(struct tw_limiter *l, uint64_t place)
{
	return &l->rate.tokens[(l->rate.first + place) % l->rate.room];
}

static void drop_oldest(struct tw_limiter *l)
{
	l->rate.first = (l->rate.first + 1) % l->rate.room;
	l->rate.used--;
}

/* Not a later one: who is on his way for this one may find it gone. */
static void await_first(struct tw_limiter *l)
{
	l->rate.awaited_ns = *token(l, 0);
	tw__times_arm(l, l->rate.awaited_ns);
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
		await_first(l);
	return false;
}

void tw__rate_begin(struct tw_limiter *l)
{
	pthread_mutex_lock(&l->lock);
	l->rate.out--;
	TW_ASSERT(l->rate.used < l->rate.room);
	/* planted: token_early */
	*token(l, l->rate.used++) = tw_service_now(l->service) + l->rate.interval_ns;
	if (l->queue.count > l->permits.searching || l->ends.room.waiters)
		await_first(l);
	pthread_mutex_unlock(&l->lock);
}

/* ------------------------------------------------------------------- change */

static int limiter_rate_check_rate(const struct tw_limiter *l, uint32_t starts,
				   uint64_t interval_ns)
{
	if (!l->config.rate_starts)
		return tw__refuse(-EINVAL, "tw_limiter_set_rate",
				  "the limiter was created without a rate");
	if (!starts || starts > TW__MAX_RATE)
		return tw__bad(-EINVAL, "tw_limiter_set_rate", "starts");
	if (!interval_ns || interval_ns > TW_MAX_DELAY_NS)
		return tw__bad(-EINVAL, "tw_limiter_set_rate", "interval_ns");
	return 0;
}

/* Tokens that the ring must have room for. The lock is held. */
static uint32_t room_for(const struct tw_limiter *l, uint32_t starts)
{
	uint64_t taken = l->rate.used + l->rate.out;
	return taken > starts ? (uint32_t)taken : starts;
}

/*
 * The tokens that are out return one new interval after their starts. All are kept, also if they
 * are more than the new rate has: the rate may grow again before they are back. Returns the old
 * ring.
 */
static uint64_t *move_tokens(struct tw_limiter *l, uint64_t *tokens, uint32_t room, uint32_t starts,
			     uint64_t interval_ns)
{
	uint64_t *old = l->rate.tokens;
	for (uint32_t i = 0; i < l->rate.used; i++)
		tokens[i] = *token(l, i) - l->rate.interval_ns + interval_ns;
	l->rate.tokens = tokens;
	l->rate.room = room;
	l->rate.first = 0;
	l->rate.starts = starts;
	l->rate.interval_ns = interval_ns;
	return old;
}

/* The lock is held, and given up meanwhile. NULL: no memory. */
static uint64_t *make_ring(struct tw_limiter *l, uint32_t starts, uint32_t *room)
{
	uint64_t *tokens;
	do {
		*room = room_for(l, starts);
		pthread_mutex_unlock(&l->lock);
		tokens = calloc(*room, sizeof *tokens);
		tw__limiter_relock(l);
		if (tokens && *room >= room_for(l, starts))
			return tokens;
		free(tokens); /* more tokens were taken meanwhile */
	} while (tokens);
	return NULL;
}

int tw_limiter_set_rate(tw_limiter *l, uint32_t starts, uint64_t interval_ns)
{
	struct tw__limiter_deferred deferred;
	int r = TW__CHECK(l, "limiter");
	if (!r)
		r = limiter_rate_check_rate(l, starts, interval_ns);
	if (r)
		return r;
	tw__limiter_lock(l, &deferred);
	uint32_t room;
	uint64_t now_ns = tw_service_now(l->service);
	(void)tw__rate_tokens(l, now_ns); /* those that are back, by the old interval */
	uint64_t *tokens = make_ring(l, starts, &room), *old = NULL;
	if (tokens) {
		old = move_tokens(l, tokens, room, starts, interval_ns);
		l->rate.awaited_ns = UINT64_MAX; /* a thread that needs a token says so again */
		tw__times_disarm(l);
		tw__bell_ring(&l->ends.room);
		tw__dispatch(l, now_ns, &deferred);
	}
	tw__limiter_unlock(l, &deferred);
	free(old);
	return tokens ? 0 : -ENOMEM;
}
