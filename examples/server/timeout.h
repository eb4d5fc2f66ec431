/*
 * Timeouts of an event loop: the pattern to copy.
 *
 * A timer's callback runs on a worker of the timer service; a connection belongs to the thread of its loop. So the
 * callback touches nothing of the connection. It posts a notice to the loop's mailbox and wakes the loop, and the loop
 * decides.
 *
 * Why not shutdown(fd) right in the callback? Because the number is not the connection: the loop may close it and
 * accept another one under the same number just before the call, and a stranger is cut off. It would be right only if
 * the loop waited for the callback (tw_cancel_wait) before each close, and then one slow callback would hold up every
 * connection.
 *
 * Stale notices are harmless. Between the callback and the loop's look into its mailbox the connection may have been
 * served, closed, even replaced by another one in the same slot. Nobody has to count generations for that: the timer's
 * handle is one. Handles are never used twice, so a notice counts only if the handle that fired (tw_self) is the one
 * that the loop holds at that moment. If a touch loses the race against the callback, tw_reset_at says so, the loop
 * schedules anew, has another handle, and the notice on its way has become stale.
 *
 * Nothing is allocated and posting cannot fail: the notice is a part of the timeout. If it is still in the mailbox
 * when the timeout fires once more, the older one was stale, and is overwritten.
 *
 * Lifetime: a callback may post until the service is closed, so timeouts and mailboxes are freed after that. Slots are
 * reused meanwhile, never returned.
 *
 * Not good at: a million notices a second. All workers meet at one lock for each loop, held for a few instructions.
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

	bool posted; /* under the mailbox's lock, as are the last three */

	/* The loop's own. */
	tw_timer timer; /* "no timer": not armed */
	uint64_t deadline_ns;

	struct timeout *next;
	tw_timer fired;
	uint64_t ran_ns; /* the clock when the callback began */
};

/* A copy for the loop to work with, free of the lock. */
struct notice {
	struct timeout *timeout;
	tw_timer fired;
	uint64_t ran_ns;
};

/* False: no event descriptor to be had. */
bool mailbox_init(struct mailbox *m, tw_service *service);
void mailbox_destroy(struct mailbox *m);
void mailbox_wake(struct mailbox *m);
void mailbox_slept(struct mailbox *m); /* before taking, when event_fd was readable */
size_t mailbox_take(struct mailbox *m, struct notice *out, size_t room);

/* All of these by the loop only. */
void timeout_init(struct timeout *t, struct mailbox *mailbox, void *owner, unsigned kind);

/* Arms it, or moves it if it is armed. Negative errno: it is not armed; do not keep a connection without it. */
int timeout_set(struct timeout *t, uint64_t deadline_ns);
void timeout_clear(struct timeout *t);

/* Whether the notice counts. If so, the timeout is not armed any more. */
bool timeout_accept(const struct notice *n);

#endif
