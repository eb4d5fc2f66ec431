/*
 * Giving a running series another period. A file of its own, which a static program that calls
 * nothing of it does not link. Calls the slots.
 */
#include <errno.h>

#include "mpsc/base/misuse.h"
#include "wheel/core/service.h"

/* Under the slot's far lock the timer stays the slot's, or its successor stores after this. */
static int period_change(struct tw__slots *slots, uint64_t entry, uint64_t period_ns)
{
	uint32_t slot = (uint32_t)entry, traits = tw__traits_of(slots, slot); /* WORD5 */
	uint64_t word = tw_load_acquire(&slots->words[slot]), state = tw__word_state(word);
	if ((word ^ entry) >> TW__GENERATION_SHIFT || state == TW__FREE || state == TW__RELEASING)
		return -ENOENT;
	if (!tw__word_has_record(word) || !(traits & TW__TRAIT_SERIES))
		return -EINVAL; /* told below, without the lock */
	if (state == TW__RUNNING && word & TW__ENDED)
		return -ECANCELED;
	if (state == TW__RUNNING && word & TW__BARRED)
		return -ESHUTDOWN;
	/* planted: period_apart */
	tw_store_relaxed(&slots->series[slot].period_ns, period_ns); /* WORD8 */
	return 0;
}

int tw_set_period(tw_service *service, tw_timer timer, uint64_t period_ns)
{
	uint64_t entry;
	int r = tw__service_check(service);
	if (r)
		return r;
	if (!period_ns || period_ns > TW_MAX_DELAY_NS)
		return tw__bad(period_ns ? -ERANGE : -EINVAL, __func__, "period_ns");
	if (tw__gate_refuses(tw__gate_look(&service->gate)) && !tw__draining(service))
		return -ESHUTDOWN;
	if (!tw__handle_entry(&service->slots, timer, &entry))
		return -ENOENT;
	_Atomic uint32_t *lock = tw__far_lock(&service->slots, (uint32_t)entry);
	r = period_change(&service->slots, entry, period_ns);
	tw__tiny_unlock(lock);
	return r == -EINVAL ? tw__refuse(r, __func__, "the timer is no series") : r;
}
