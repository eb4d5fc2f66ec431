/* Waiters that are threads: sleeping, and waking. Calls the futex. */
#include "executor/base/waiter.h"

void tw__waiter_grant(struct tw__waiter *waiter)
{
	_Atomic uint32_t *granted = &waiter->granted;
	tw_store_release(granted, 1); /* WAITER1: the thread may be gone from here on */
	tw__futex_wake(granted, 1);
}

bool tw__waiter_sleep(struct tw__waiter *waiter, uint64_t deadline_ns)
{
	bool in_time = true;
	while (!tw_load_acquire(&waiter->granted) && in_time) /* WAITER1 */
		in_time = tw__futex_wait(&waiter->granted, 0, deadline_ns);
	return in_time || tw_load_acquire(&waiter->granted);
}
