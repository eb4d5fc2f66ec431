/*
 * Timeouts of an event loop: the pattern to copy.
 *
 * A timer's callback runs on a worker of the timer service. A connection belongs to the thread of
 * its loop. So the callback touches nothing of the connection: it posts a notice to the loop's
 * mailbox, and the loop decides.
 *
 * Why not shutdown(fd) in the callback? Because the number is not the connection. The loop may
 * close it, and accept another one under the same number just before the call. That would be right
 * only if the loop waited for the callback (tw_cancel_wait) before each close. Then one slow
 * callback would hold up every connection.
 *
 * Stale notices are harmless. Before the loop looks into its mailbox, the connection may have been
 * served, closed, or replaced in the same slot. Handles are never used twice. So a notice counts
 * only if the handle that fired (tw_self) is the one that the loop holds at that moment. If a touch
 * loses the race against the callback, tw_reset_at says so. Then the loop schedules anew and has
 * another handle, and the notice is stale.
 *
 * Nothing is allocated, and a post cannot fail: the notice is a part of the timeout. If it is still
 * in the mailbox when the timeout fires again, the older notice was stale, and is overwritten.
 *
 * Lifetime: a callback may post until the service is closed, so timeouts and mailboxes are freed
 * after that. Slots are reused meanwhile, never returned.
 *
 * Limit: workers share one lock for each loop, held for a few instructions. A million notices a
 * second would contend for it.
 */
#ifndef EXAMPLES_SERVER_TIMEOUT_H
#define EXAMPLES_SERVER_TIMEOUT_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tickwheel.h"

struct mailbox {
	tw_service *service;
	int event_fd; /* readable when there may be notices; the loop watches it */
	pthread_mutex_t lock;
	struct timeout *first, **end; /* under lock */
};

struct timeout {
	/* Constant from timeout_init. */
	struct mailbox *mailbox;
	void *owner;
	unsigned kind;

	tw_timer timer; /* the loop's own; "no timer": not scheduled */

	/* Under the mailbox's lock. */
	bool posted;
	struct timeout *next;
	tw_timer fired;
};

/* A copy that the loop uses without the lock. */
struct notice {
	struct timeout *timeout;
	tw_timer fired;
};

/* False: no event descriptor is left. */
bool mailbox_init(struct mailbox *m, tw_service *service);
void mailbox_destroy(struct mailbox *m);
void mailbox_wake(struct mailbox *m);
void mailbox_slept(struct mailbox *m); /* first, when event_fd was readable */
size_t mailbox_take(struct mailbox *m, struct notice *out, size_t room);

/* All of these are called by the loop only. */
void timeout_init(struct timeout *t, struct mailbox *mailbox, void *owner, unsigned kind);

/*
 * Schedules it, or moves it. A negative errno: it is not scheduled; do not keep a connection
 * without it.
 */
int timeout_set(struct timeout *t, uint64_t deadline_ns);
void timeout_clear(struct timeout *t);

/* Tells whether the notice counts. If so, the timeout is no longer scheduled. */
bool timeout_accept(const struct notice *n);

#endif
