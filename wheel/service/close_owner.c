#include "wheel/service/close_owner.h"

#include <errno.h>
#include <limits.h>

#include "wheel/core/wake.h"

void tw__close_demand(tw_service *service, uint32_t mode)
{
	uint32_t asked = tw_load_relaxed(&service->phase.closing);
	while ((asked == 0 || mode < asked) &&
	       !tw_cas_seq_cst(&service->phase.closing, &asked, mode)) {
	}
	if (service->threaded)
		tw__gate_ring(&service->gate);
}

static bool lock(tw_service *service, uint64_t deadline_ns)
{
	for (;;) {
		uint32_t expected = 0;
		if (tw_cas_acq_rel(&service->close_owner->lock, &expected, 1))
			return true;
		if (!tw__futex_wait(&service->close_owner->lock, 1, deadline_ns))
			return false;
	}
}

void tw__close_leave(const struct tw__close_call *c)
{
	tw_service *service = c->service;
	tw_store_release(&service->close_owner->lock, 0);
	tw__futex_wake(&service->close_owner->lock, INT_MAX);
}

/* Asks for a mode, and asks the close owner to yield. */
static bool let_in(const struct tw__close_call *c, uint32_t mode, uint64_t until_ns)
{
	tw_service *service = c->service;
	tw_add_seq_cst(&service->close_owner->waiters,
		       /* CLOSE2; before the demand, so that no other carries it out in passing */
		       1);
	tw__close_demand(service, mode);
	tw__ring_finish(service);
	bool locked = lock(service, until_ns);
	tw_sub_seq_cst(&service->close_owner->waiters, 1);
	tw__futex_wake(&service->close_owner->waiters, INT_MAX);
	return locked;
}

/* After having made way: the others first. */
static bool lock_again(const struct tw__close_call *c, uint64_t until_ns)
{
	tw_service *service = c->service;
	uint32_t waiters;
	while ((waiters = tw_load_acquire(&service->close_owner->waiters)))
		if (!tw__futex_wait(&service->close_owner->waiters, waiters, until_ns))
			return false;
	return lock(service, until_ns);
}

bool tw__close_must_yield(const struct tw__close_call *c)
{
	return tw_load_seq_cst(&c->service->close_owner->waiters) != 0; /* CLOSE2 */
}

int tw__close_enter(const struct tw__close_call *c, bool first)
{
	uint32_t mode = 1 + (uint32_t)c->options->mode;
	uint64_t until_ns = mode == TW__CLOSING_DRAIN ? c->drain_until_ns : c->deadline_ns;
	bool locked = first ? let_in(c, mode, until_ns) : lock_again(c, until_ns);
	if (!locked && tw__close_mode(c) == TW__CLOSING_DRAIN)
		locked = let_in(c, TW__CLOSING_DROP, c->deadline_ns);
	else if (!locked)
		locked = lock_again(c, c->deadline_ns);
	return locked ? 0 : -ETIMEDOUT;
}
