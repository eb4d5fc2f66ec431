/*
 * What each object of the layers begins with: a lock, users, a bell, an inbox with its runner, and
 * an end.
 *
 * Users. Who needs the object after an unlock is a user of it: its creator until destroy, a call
 * that waits or calls back, a delay until its callback is over, an object that has this one as its
 * executor. The thread that drops the last user frees the object, so destroying never has to wait.
 * ACTIVE is one more user: the runner.
 *
 * Inbox. Any thread pushes, without the lock. The thread that raises ACTIVE submits the object's
 * work, once; so there is one runner at most. The owner of the lock takes what came, the oldest
 * first, a bounded number of steps a hold: tw__object_take reverses the stack of what came, and the
 * object keeps what is half done.
 *
 *     word:  the last link that came | CLOSED | ACTIVE
 *
 * Transition table of the word
 *   from          to              by                    with
 *   any           link, ACTIVE    push                  CAS; if CLOSED only for those who are users
 *   any           no link         take, the lock held   and
 *   only ACTIVE   no ACTIVE       rest, the lock held   CAS; fails if a link is there
 *   any           CLOSED          close, the lock held  or; stays
 *
 * Pairing table
 *   OBJECT1  word: CAS acq_rel (push) -> and seq_cst (take): what the pusher wrote, into the link
 *       and before. Without it the runner reads an item that is not complete.
 *   OBJECT2  ACTIVE, a link: CAS acq_rel (push) -> CAS acq_rel (rest): what is pushed before makes
 *       rest fail, what is pushed after raises ACTIVE and submits. Without it something stays in
 *       the inbox with nobody to run it.
 *   OBJECT3  rings: changed under the lock when something ends -> read under the lock that showed
 *       what to wait for, then futex on the value: the waiter sees the end, or another value.
 *       (one site: the lock orders them)
 *
 * Rules
 *   1. Nothing of the object is touched after a push, except by the thread that raised ACTIVE,
 *      which submits the work: nobody runs, and frees, the object before that.
 *   2. Nothing of the object is touched after an unlock, except by users and the runner.
 *   3. Under the lock: lists, states, futex wakes, and schedules and cancels of timers. Never an
 *      executor's submit, a release or another function of the user's.
 *   4. The driver, in the callback of a delay, pushes, or takes the lock for some stores.
 *
 * Model: test/model/object.pml.
 */
#ifndef TW_EXECUTOR_OBJECT_H
#define TW_EXECUTOR_OBJECT_H

#include "executor/base/living.h"
#include "executor/pool/layer.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/futex.h"

enum { TW__ACTIVE = 1, TW__CLOSED = 2, TW__WORD_BITS = 3 };

struct tw__object {
	_Atomic uint64_t word;
	struct tw__work work;  /* the runner's */
	tw_executor *executor; /* constant; the work may leave it (tw__base_leave_work) */
	/* What follows is under the lock, if not said otherwise. */
	_Atomic uint32_t lock;
	_Atomic uint32_t rings;
	uint32_t sleepers; /* threads in await */
	uint32_t users;
	uint32_t uppers;     /* users that have the object as their executor */
	uint32_t releasing;  /* releases under way, on any thread */
	_Atomic bool closed; /* as CLOSED; the runner reads it without the lock */
	/* Bytes of their own, because they are read without the lock. */
	bool left;        /* destroyed, and not freed yet: its base knows */
	bool pooled;      /* constant: its executor is a pool */
	bool later : 1;   /* its work is with the driver, until the next tick */
	bool exposed : 1; /* was handed out as an executor: it is freed with the service */
	uint32_t delays;  /* items in `delayed` */
	tw__link coming;  /* taken from the word, the newest first */
	tw__link arrived; /* the same, the oldest first */
	tw__link delayed; /* the last of a ring; 0: none */
	struct tw__listed listed;
};

/* The entry check of a layer's object; `what` is the parameter's name in the header. */
#define TW__OBJECT_CHECK(layer, what) TW__OBJECT_CHECK_IN(__func__, layer, what)
#define TW__OBJECT_CHECK_IN(call, layer, what) \
	tw__layer_check(call, layer, what, (layer) ? tw__object_service(&(layer)->object) : NULL)

/*
 * A new object with one user, its creator. It holds service and executor; executor NULL: the
 * service's; service NULL: an object without either, which has no runner and no delays. run: the
 * runner, or NULL. The kind's `free` is called when the last user is gone, without the lock;
 * service and executor are let go after it. If the executor is an object's, the new one is a user
 * of that object. It is listed, so a look at it may come from here on. Returns as tw__base_hold, or
 * -ENOMEM.
 *
 * An object without an inbox submits its work itself, and counts it as a user while it is out.
 */
int tw__object_init(struct tw__object *object, tw_service *service, tw_executor *executor,
		    tw__work_fn *run, const struct tw__object_kind *kind);

/* name: for a dump, or NULL. It is not copied. */
void tw__object_set_name(struct tw__object *object, const char *name);

static inline tw_service *tw__object_service(struct tw__object *object)
{
	return tw__work_service(&object->work);
}

/* A table of nodes of TW__SMALL_NODE bytes that small objects of a service share. */
static inline struct tw__nodes *tw__object_small_nodes(struct tw__object *object)
{
	return &tw__living_of(tw__object_service(object))->small;
}

static inline struct tw__base tw__object_base(struct tw__object *object)
{
	return (struct tw__base){.service = tw__object_service(object),
				 .executor = object->executor,
				 .pooled = object->pooled,
				 .left = object->left};
}

/* --------------------------------------------------------------- lock and users */

static inline void tw__object_lock(struct tw__object *object)
{
	tw__tiny_lock(&object->lock);
}

/* The caller is a user, or the runner, or does not touch the object any more. */
static inline void tw__object_unlock(struct tw__object *object)
{
	tw__tiny_unlock(&object->lock);
}

/* Something has ended for which threads may wait. The lock is held. */
static inline void tw__object_ring(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	if (tw_likely(!object->sleepers))
		return;
	tw_add_relaxed(&object->rings, 1); /* OBJECT3 */
	tw__futex_wake(&object->rings, INT32_MAX);
}

/*
 * Sleeps until something has ended, or until the deadline (false). May return early. The lock is
 * held, and released meanwhile. The caller is a user.
 */
bool tw__object_await(struct tw__object *object, uint64_t deadline_ns);

/* The lock is held. The caller unlocks with drop. */
static inline void tw__object_use(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	object->users++;
}

void tw__object_free(struct tw__object *object);

/* Drops n users, and unlocks. 0: the runner, after rest. */
static inline void tw__object_drop(struct tw__object *object, uint32_t n)
{
	TW_ASSERT(object->users >= n);
	object->users -= n;
	bool last = !object->users && !(tw_load_relaxed(&object->word) & TW__ACTIVE);
	tw__object_ring(object);
	tw__tiny_unlock(&object->lock);
	if (tw_unlikely(last))
		tw__object_free(object);
}

/* The lock is not fair: in a long call others get it now and then. The caller is a user. */
void tw__object_breathe(struct tw__object *object, unsigned *steps);

/* ------------------------------------------------------------------------- end */

/* From now on pushes are refused, except those of users. False: it was closed. The lock is held. */
bool tw__object_close(struct tw__object *object);

/*
 * The creator drops the object, in which nothing new begins. If a pool is its executor, and the
 * caller is none of its workers and not inside a callback, waits until the runner and the calls
 * have returned: the pool may be closed next. Elsewhere the last user frees it. The lock is held,
 * and released here.
 */
void tw__object_destroy(struct tw__object *object);

/* In a forked child: frees the object, and returns true. Else false. */
bool tw__object_destroy_forked(struct tw__object *object);

/* ------------------------------------------------------------------------ inbox */

enum tw__posted { TW__REFUSED = -1, TW__POSTED, TW__RAISED };

/*
 * Leaves a link in the inbox. REFUSED: closed, and the caller is no user. RAISED: it is ACTIVE now,
 * and the caller submits the work.
 */
static inline enum tw__posted tw__object_post(struct tw__object *object, tw__link link, bool user)
{
	uint64_t word = tw_load_relaxed(&object->word);
	do {
		if (tw_unlikely(word & TW__CLOSED) && !user)
			return TW__REFUSED;
		*tw__link_at(link) = word & ~(uint64_t)TW__WORD_BITS;
	} while (tw_unlikely(!tw_cas_acq_rel(&object->word, &word, /* OBJECT1, OBJECT2 */
					     link | (word & TW__CLOSED) | TW__ACTIVE)));
	return word & TW__ACTIVE ? TW__POSTED : TW__RAISED;
}

/* The same, and submits the work. False: refused. */
static inline bool tw__object_push(struct tw__object *object, tw__link link, bool user)
{
	enum tw__posted posted = tw__object_post(object, link, user);
	if (posted == TW__RAISED)
		tw__work_submit(&object->work);
	return posted != TW__REFUSED;
}

/*
 * Raises ACTIVE without a link, for what is put into a line under the lock. True: the caller
 * submits the work, after the unlock. The lock is held.
 */
static inline bool tw__object_raise(struct tw__object *object)
{
	return !(tw_load_relaxed(&object->word) & TW__ACTIVE) &&
	       !(tw_or_seq_cst(&object->word, TW__ACTIVE) & TW__ACTIVE);
}

/* Something is in the inbox. The lock is held. */
static inline bool tw__object_has_mail(struct tw__object *object)
{
	return object->arrived || object->coming ||
	       tw_load_relaxed(&object->word) & ~(uint64_t)TW__WORD_BITS;
}

/*
 * Takes the oldest of what came. 0: nothing is there, or the steps are used up. The lock is held.
 *
 * All that came is in the order of its pushes: what this call finds half reversed comes before what
 * the word has.
 */
static inline tw__link tw__object_take(struct tw__object *object, unsigned *steps)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	if (!tw__object_has_mail(object))
		return 0;
	if (!object->arrived && !object->coming)
		object->coming =
		    (tw__link)tw_and_seq_cst(&object->word, TW__WORD_BITS) & /* OBJECT1 */
		    ~(tw__link)TW__WORD_BITS;
	for (tw__link link; *steps && (link = object->coming); --*steps) {
		object->coming = *tw__link_at(link);
		*tw__link_at(link) = object->arrived;
		object->arrived = link;
	}
	tw__link oldest = object->coming || !*steps ? 0 : object->arrived;
	if (oldest) {
		object->arrived = *tw__link_at(oldest);
		--*steps;
	}
	return oldest;
}

/* The runner goes. False: something has come. The lock is held; drop(0) is next. */
static inline bool tw__object_rest(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	uint64_t closed = tw_load_relaxed(&object->word) & TW__CLOSED, active = closed | TW__ACTIVE;
	return !object->arrived && !object->coming &&
	       tw_cas_acq_rel(&object->word, &active, closed); /* OBJECT2 */
}

/* ------------------------------------------------------------------ an executor */

/*
 * Of an executor that comes directly before its object: batches of timers and works of other
 * objects come into the inbox, with FOREIGN in the link. Closed: the timers end as cancelled.
 */
extern const struct tw_executor_ops tw__object_ops;

/* Uses up n tickets of a batch. The batch is gone after its last one. */
static inline void tw__batch_use_up(tw_batch *batch, unsigned n)
{
	while (n-- > 0)
		if (tw_run_one(batch) < 0)
			tw_run_return(batch);
}

/* Tells whether the executor is an object's that is closed. */
bool tw__executor_is_closed(tw_executor *executor);

/* ----------------------------------------------------------------------- delays */

/*
 * Lets the driver call fn(arg) at an instant of the service's clock (flags: TW_TASK_AT), or after a
 * delay. The delay is a user of the object. fn runs no user code; it does one of two things:
 *   - push something that a user brings, and the taker drops the user;
 *   - take the lock, look whether the delay is still wanted, and drop the user.
 * The lock is held. Returns 0, -ENOMEM, -EAGAIN or -ESHUTDOWN.
 */
int tw__object_delay(struct tw__object *object, uint32_t flags, uint64_t when_ns, tw_fn *fn,
		     void *arg, tw_timer *out);

/* The item is one of those delayed; is none any more. The lock is held. */
void tw__object_delayed_join(struct tw__object *object, struct tw__in_line *place);
void tw__object_delayed_leave(struct tw__object *object, struct tw__in_line *place);

/* The first of them, or 0. */
static inline tw__link tw__object_delayed(const struct tw__object *object)
{
	return object->delayed ? *tw__link_at(object->delayed) : 0;
}

/* Takes a delay back, and drops its user. False: too late, fn runs or will. The lock is held. */
bool tw__object_undelay(struct tw__object *object, tw_timer timer);

/* ----------------------------------------------------------- what a thread is in */

/* A function of a user's that the calling thread runs for an object. Innermost first. */
struct tw__inside {
	const struct tw__object *object;
	const void *item; /* or NULL: whatever the object names by it */
	bool releasing;
	struct tw__inside *outer;
	struct tw__run_record *shown;
	void *former; /* context */
};

extern _Thread_local struct tw__inside *tw__innermost_inside;

/* fn, arg, name: for tw_service_liveness. */
static inline void tw__inside_begin(struct tw__inside *inside, struct tw__object *object,
				    const void *item, tw_fn *fn, void *arg, const char *name,
				    void *context)
{
	inside->object = object;
	inside->item = item;
	inside->releasing = false;
	inside->outer = tw__innermost_inside;
	tw__innermost_inside = inside;
	inside->shown = tw__layer_begin(tw__object_service(object), fn, arg, name, NULL);
	inside->former = tw__context_enter(context);
}

static inline void tw__inside_end(struct tw__inside *inside)
{
	tw__context_leave(inside->former);
	tw__user_end(inside->shown);
	tw__innermost_inside = inside->outer;
}

/* Tells whether this thread is inside the object, at any depth. item: inside that very item. */
bool tw__inside_object(const struct tw__object *object, const void *item);

#endif
