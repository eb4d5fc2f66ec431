/*
 * What each object of the layers begins with: a lock, users, a bell, an inbox with its runner, and
 * an end.
 *
 * Users need the object after an unlock: its creator until destroy, a call that waits or calls
 * back, a delay, an object that has this one as its executor, and the runner (ACTIVE). The thread
 * that drops the last user frees the object.
 *
 * Any thread pushes into the inbox, without the lock. The thread that raises ACTIVE submits the
 * object's work, so there is one runner at most. The owner of the lock takes, the oldest first.
 *
 *     word:  the last link that came | CLOSED | ACTIVE
 *
 * Transition table of the word
 *   from          to              by                    with
 *   any           link, ACTIVE    push                  CAS; if CLOSED only for users
 *   any           no link         take, the lock held   and
 *   only ACTIVE   no ACTIVE       rest, the lock held   CAS; fails if a link is there
 *   any           CLOSED          close, the lock held  or; stays
 *
 * Pairing table
 *   OBJECT1  word: CAS acq_rel (push) -> and seq_cst (take): what the pusher wrote.
 *   OBJECT2  ACTIVE, a link: CAS acq_rel (push) -> CAS acq_rel (rest): what is pushed before makes
 *       rest fail, what is pushed after raises ACTIVE and submits.
 *   OBJECT3  rings: changed under the lock when something ends -> read under the lock that showed
 *       what to wait for, then futex on the value. (one site: the lock orders them)
 *
 * Rules
 *   1. After a push only the thread that raised ACTIVE touches the object, to submit the work.
 *   2. After an unlock only users and the runner touch it.
 *   3. Under the lock: lists, states, futex wakes, schedules and cancels of timers, and in slow
 *      calls the allocator. Never an executor's submit, a release or another function of the
 *      user's.
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
	/* Under the lock, if not said otherwise. */
	_Atomic uint32_t lock;
	_Atomic uint32_t rings;
	uint32_t sleepers; /* threads in await */
	uint32_t users;
	uint32_t uppers;     /* users that have the object as their executor */
	uint32_t releasing;  /* releases under way, on any thread */
	_Atomic bool closed; /* as CLOSED; the runner reads it without the lock */
	/* read without the lock */
	bool left;        /* destroyed, and not freed yet */
	bool pooled;      /* constant: its executor is a pool */
	bool later : 1;   /* its work is with the driver, until the next tick */
	bool exposed : 1; /* handed out as an executor: freed with the service */
	uint32_t delays;  /* items in `delayed` */
	tw__link coming;  /* taken from the word, the newest first */
	tw__link arrived; /* then, the oldest first */
	tw__link delayed; /* the first, or 0 */
	struct tw__listed listed;
};

/* The entry check of a layer's object; `what` is the parameter's name in the header. */
#define TW__OBJECT_CHECK(layer, what) TW__OBJECT_CHECK_IN(__func__, layer, what)
#define TW__OBJECT_CHECK_IN(call, layer, what) \
	tw__layer_check(call, layer, what, (layer) ? tw__object_service(&(layer)->object) : NULL)

/*
 * A new object with one user, its creator, in a struct of zeros. It holds service and executor
 * (NULL: the service's). Without a service it has no runner and no delays. A look may come from
 * here on. Returns as tw__base_hold, or -ENOMEM.
 *
 * An object without an inbox submits its work itself, and counts it as a user while it is out.
 */
int tw__object_create(struct tw__object **out, tw_service *service, tw_executor *executor,
		      tw__work_fn *run, const struct tw__object_kind *kind);

/* name: for a dump, or NULL. It is not copied. Returns 0. */
int tw__object_set_name(struct tw__object *object, const char *name);

static inline tw_service *tw__object_service(struct tw__object *object)
{
	return tw__work_service(&object->work);
}

/* Nodes of TW__SMALL_NODE bytes that objects of a service share. */
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

static inline void tw__object_unlock(struct tw__object *object)
{
	tw__tiny_unlock(&object->lock);
}

/* Wakes those in await. The lock is held. */
static inline void tw__object_ring(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	if (tw_likely(!object->sleepers))
		return;
	tw_add_relaxed(&object->rings, 1); /* OBJECT3 */
	tw__futex_wake(&object->rings, INT32_MAX);
}

/* A user sleeps until a ring, or the deadline (false). May return early. Releases the lock. */
bool tw__object_await(struct tw__object *object, uint64_t deadline_ns);

static inline void tw__object_use(struct tw__object *object)
{
	TW_ASSERT_TINY_LOCKED(&object->lock);
	object->users++;
}

/* The last user is gone; its memory alone. */
void tw__object_free(struct tw__object *object);
void tw__object_dispose(struct tw__object *object);

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

/* In a long call of a user: others get the lock now and then. */
void tw__object_breathe(struct tw__object *object, unsigned *steps);

/* ------------------------------------------------------------------------- end */

/* Refuses pushes, except those of users. False: it was closed. The lock is held. */
bool tw__object_close(struct tw__object *object);

/*
 * The creator drops the object, in which nothing new begins. Waits for the runner and the calls if
 * the thread may wait (TW__BASE_MAY_WAIT): the pool may be closed next. Releases the lock.
 */
void tw__object_destroy(struct tw__object *object);

/* In a forked child: frees the object, and returns true. Else false. */
bool tw__object_destroy_forked(struct tw__object *object);

/* ------------------------------------------------------------------------ inbox */

enum tw__posted { TW__REFUSED = -1, TW__POSTED, TW__RAISED };

/* REFUSED: closed, and no user. RAISED: the caller submits the work. */
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

/* Submits the work, too. False: refused. */
static inline bool tw__object_push(struct tw__object *object, tw__link link, bool user)
{
	enum tw__posted posted = tw__object_post(object, link, user);
	if (posted == TW__RAISED)
		tw__work_submit(&object->work);
	return posted != TW__REFUSED;
}

/* For what the lock's holder puts into a line. True: it submits the work, after the unlock. */
static inline bool tw__object_raise(struct tw__object *object)
{
	return !(tw_load_relaxed(&object->word) & TW__ACTIVE) &&
	       !(tw_or_seq_cst(&object->word, TW__ACTIVE) & TW__ACTIVE);
}

static inline bool tw__object_has_mail(struct tw__object *object)
{
	return object->arrived || object->coming ||
	       tw_load_relaxed(&object->word) & ~(uint64_t)TW__WORD_BITS;
}

/*
 * Takes the oldest; 0: none, or the steps are used up. Reverses the stack of what came in pieces.
 * What is half reversed came before what the word has. The lock is held.
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
 * Of an executor that comes directly before its object. Batches and works come into the inbox, with
 * FOREIGN in the link. Closed: the timers end as cancelled.
 */
extern const struct tw_executor_ops tw__object_ops;

/* Uses up n tickets of a batch, which is gone after its last one. */
static inline void tw__batch_use_up(tw_batch *batch, unsigned n)
{
	while (n-- > 0)
		if (tw_run_one(batch) < 0)
			tw_run_return(batch);
}

/* False if the executor is no object's. */
bool tw__executor_is_closed(tw_executor *executor);

/* ----------------------------------------------------------------------- delays */

/*
 * Lets the driver call fn(arg) at an instant (flags: TW_TASK_AT), or after a delay. The delay is a
 * user of the object. fn either
 *   - pushes, as a user, and the taker drops the user; or
 *   - takes the lock, looks whether the delay is still wanted, and drops the user.
 * The lock is held. Returns 0, -ENOMEM, -EAGAIN or -ESHUTDOWN.
 */
int tw__object_delay(struct tw__object *object, uint32_t flags, uint64_t when_ns, tw_fn *fn,
		     void *arg, tw_timer *out);

/* The list of delayed items, in any order. The lock is held. */
static inline void tw__object_delayed_join(struct tw__object *object, struct tw__in_line *place)
{
	tw__link_set(&place->next, object->delayed);
	tw__link_set(&object->delayed, tw__in_line_link(place));
	object->delays++;
}

static inline void tw__object_delayed_leave(struct tw__object *object, struct tw__in_line *place)
{
	tw__link_set(place->where, place->next);
	place->where = NULL;
	object->delays--;
}

/* Takes a delay back, and drops its user. False: fn runs or will. The lock is held. */
bool tw__object_undelay(struct tw__object *object, tw_timer timer);

/* ----------------------------------------------------------- what a thread is in */

/* A user's function that the calling thread runs for an object. Innermost first. */
struct tw__inside {
	const struct tw__object *object;
	const void *item; /* the object's, or NULL */
	bool releasing;
	struct tw__inside *outer;
	struct tw__run_record *shown;
	void *former; /* context */
};

extern _Thread_local struct tw__inside *tw__innermost_inside;

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
