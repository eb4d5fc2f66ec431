/* A call on a thread that has a pending pthread_cancel: the call does its work and returns. */
#ifndef TEST_SUPPORT_CANCELLED_H
#define TEST_SUPPORT_CANCELLED_H

#include <pthread.h>
#include <stdatomic.h>

#include "expect.h"

struct caller {
	int (*call)(void);
	atomic_bool pending, returned;
	int answer;
};

__attribute__((noreturn)) static inline void *make_the_call(void *arg)
{
	struct caller *caller = arg;
	while (!caller->pending) { /* no cancellation point */
	}
	caller->answer = caller->call();
	caller->returned = true;
	for (;;)
		pthread_testcancel();
}

/* What the call answers to a thread that is cancelled before it, and ends only after it. */
static inline int cancelled_in(int (*call)(void))
{
	struct caller caller = {.call = call};
	pthread_t thread;
	void *end;
	expect_eq(pthread_create(&thread, NULL, make_the_call, &caller), 0);
	expect_eq(pthread_cancel(thread), 0);
	caller.pending = true;
	expect_eq(pthread_join(thread, &end), 0);
	cr_assert(end == PTHREAD_CANCELED);
	cr_assert(caller.returned, "the thread ended inside the call");
	return caller.answer;
}

#endif
