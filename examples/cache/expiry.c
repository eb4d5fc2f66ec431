/*
 * Keys that end on time.
 *
 * Ownership. An entry has at most one timer. The lock of its shard guards the entry's fields, and
 * the calls that schedule, move and cancel its timer. The timer's callback takes the same lock
 * first of all.
 *
 *   I1  e->timer is set  exactly if e has a timer whose callback has not taken the lock yet
 *   I2  e is dead        exactly if e is out of the table and that callback will come; it frees e
 *   I3  e is visible     exactly if e is in the table and now < e->deadline_ms; each look-up
 *                        reads the clock
 *   I4  only the callback reaches e without the table; so a thread that holds the lock, and knows
 *       that no callback will come, may free e
 *
 * What the service answers to a thread that holds the lock. "In flight": a worker has claimed the
 * run, and its callback has not taken the lock.
 *
 *   call         answer            meaning            then
 *   tw_cancel    TW_CANCELLED      no callback comes  the caller clears e->timer, or frees e
 *                TW_RUNNING        in flight          e is marked dead, or stays in the table; the
 *                                                     callback does the rest
 *                TW_GONE           service is closed  dropped; as TW_CANCELLED
 *   tw_reset_at  0                 moved
 *                -ENOENT, -EBUSY   in flight          only e->deadline_ms changes; the callback
 *                                                     does the rest
 *                -EAGAIN, -ENOMEM  no room            the command is refused; nothing has changed
 *
 * TW_GONE cannot mean "has run": the callback clears e->timer under the lock first (I1).
 *
 * The callback clears e->timer under the lock (I1). What it does next:
 *
 *   e is                  because of                               then
 *   dead                  DEL, overwrite, RENAME, FLUSHALL         it frees e
 *   without a deadline    PERSIST, or SET in place                 nothing
 *   before its deadline   EXPIRE to later, or SET EX in place      it schedules a new timer
 *   past its deadline     the usual case                           it unlinks e, publishes
 *                                                                  "expired", and frees e
 *
 * It does not re-arm its own timer by tw_reset_at. Between that call and the callback's return
 * another thread could cancel. It would get TW_RUNNING, and leave e to a callback that has passed
 * the lock already: I1 would be false.
 *
 * Never early: the callback compares the clock with e->deadline_ms, both read under the lock.
 * Never visible late: I3. Published once: the thread that unlinks an entry past its deadline
 * publishes, and it holds the lock.
 * A timer's argument never changes. A key that is renamed, or whose value outgrows its allocation,
 * moves to a new entry with a timer of its own; the old entry is retired.
 *
 * Order of locks: shard, then pubsub. The callback takes no other lock. No thread calls a function
 * of the service that blocks while it holds a shard. So the tick thread waits for one command on
 * one shard at most.
 */
#include <errno.h>
#include <stdlib.h>

#include "examples/cache/table.h"
#include "examples/cache/pubsub.h"

static void expire(void *arg);

bool expiry_visible(const struct entry *e)
{
	return e->deadline_ms == 0 || unix_ms() < e->deadline_ms;
}

/*
 * Deadlines beyond what the service can count (146 years) get no timer. False: the deadline is so
 * far away.
 */
static bool service_time(uint64_t deadline_ms, uint64_t *out_ns)
{
	uint64_t offset_ms = cache.unix_offset_ns / TW_MILLISECOND;
	if (deadline_ms > offset_ms + TW_MAX_DELAY_NS / TW_MILLISECOND)
		return false;
	uint64_t unix_ns = deadline_ms * TW_MILLISECOND;
	*out_ns = unix_ns > cache.unix_offset_ns ? unix_ns - cache.unix_offset_ns : 0;
	return true;
}

/* Puts the entry's timer to the deadline. False: the service has no room. */
static bool arm(struct shard *s, struct entry *e, uint64_t deadline_ms)
{
	uint64_t at_ns;
	if (!service_time(deadline_ms, &at_ns)) {
		if (e->timer.id != 0 && tw_cancel(cache.service, e->timer) != TW_RUNNING)
			e->timer = (tw_timer){0};
		return true;
	}
	int error = e->timer.id != 0 ? tw_reset_at(cache.service, e->timer, at_ns)
				     : tw_schedule_at(cache.service, at_ns, expire, e, &e->timer);
	if (error == -EBUSY || error == -ENOENT) {
		figure_add(&s->figures.met_in_flight, 1);
		return true;
	}
	if (error == -EAGAIN || error == -ENOMEM)
		figure_add(&s->figures.timers_refused, 1);
	return error == 0 || error == -ESHUTDOWN;
}

/* True: no callback will come, and the caller owns the entry. */
static bool disarm(struct shard *s, struct entry *e)
{
	if (e->timer.id != 0 && tw_cancel(cache.service, e->timer) == TW_RUNNING) {
		figure_add(&s->figures.met_in_flight, 1);
		return false;
	}
	e->timer = (tw_timer){0};
	return true;
}

static void count_volatile(struct shard *s, int more)
{
	size_t now = atomic_load_explicit(&s->volatile_keys, memory_order_relaxed);
	atomic_store_explicit(&s->volatile_keys, now + (size_t)(ptrdiff_t)more,
			      memory_order_relaxed);
}

static void give_back(struct shard *s, struct entry *e)
{
	if (disarm(s, e))
		free(e);
	else
		e->dead = 1;
}

static void end_volatile(struct shard *s, struct entry *e, _Atomic uint64_t *figure)
{
	if (e->deadline_ms == 0)
		return;
	count_volatile(s, -1);
	figure_add(figure, 1);
	e->deadline_ms = 0;
}

/* Unlinks an entry that is past its deadline, and publishes that. The caller frees it. */
static void remove_expired(struct shard *s, uint64_t hash, struct entry *e)
{
	table_unlink(s, hash, e);
	end_volatile(s, e, &s->figures.expired);
	notify(NOTIFY_EXPIRED, "expired", entry_key(e));
}

struct entry *expiry_find(struct shard *s, uint64_t hash, struct slice key)
{
	struct entry *e = table_find(s, hash, key);
	if (e == NULL || expiry_visible(e))
		return e;
	remove_expired(s, hash, e);
	give_back(s, e);
	return NULL;
}

/*
 * The timer's callback. The entry is alive: whoever unlinked it has left it to this callback
 * (I2).
 */
static void expire(void *arg)
{
	struct entry *e = arg;
	uint64_t hash = table_hash(entry_key(e));
	struct shard *s = table_shard(hash);
	bool ended = true;
	pthread_mutex_lock(&s->lock);
	e->timer = (tw_timer){0};
	if (e->dead) {
		;
	} else if (e->deadline_ms == 0) {
		ended = false;
	} else if (unix_ms() < e->deadline_ms) {
		arm(s, e, e->deadline_ms);
		ended = false;
	} else {
		remove_expired(s, hash, e);
	}
	pthread_mutex_unlock(&s->lock);
	if (ended)
		free(e);
}

bool expiry_set(struct shard *s, struct entry *e, uint64_t deadline_ms)
{
	if (!arm(s, e, deadline_ms))
		return false;
	if (e->deadline_ms == 0) {
		count_volatile(s, 1);
		figure_add(&s->figures.volatile_made, 1);
	}
	e->deadline_ms = deadline_ms & INT64_MAX;
	return true;
}

void expiry_clear(struct shard *s, struct entry *e)
{
	end_volatile(s, e, &s->figures.volatile_ended);
	disarm(s, e);
}

void expiry_retire(struct shard *s, struct entry *e)
{
	end_volatile(s, e, &s->figures.volatile_ended);
	give_back(s, e);
}
