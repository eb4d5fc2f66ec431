/* Groups: the calls, and what the leaving of a member brings about. The rules: group.h. */
#include <errno.h>

#include "wheel/timer/group.h"
#include "mpsc/base/entry.h"
#include "wheel/core/frame.h"
#include "wheel/timer/cancel.h"
#include "wheel/core/wake.h"

enum {
	LEAST_GROUPS = 65536,
	A_HOLD = 32,   /* members that a walk ends under one hold */
	GIVES_WAY = 64 /* spins between two, for a thread that wants the lock */
};

/* The farthest that a serial number moves on from that of the oldest member. */
#define FARTHEST_BACK (UINT32_C(1) << 30)

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers)
{
	uint32_t end = max_timers < LEAST_GROUPS ? LEAST_GROUPS : max_timers;
	*groups =
	    (struct tw__groups){.end = end < TW__GROUP_INDEX_MASK ? end + 1 : TW__GROUP_INDEX_MASK};
	tw_store_relaxed(&groups->fresh, 1);
}

void tw__groups_unmap(struct tw__groups *groups)
{
	tw__region_close(&groups->region);
}

/* ------------------------------------------------------------------- birth */

/* Addresses for all groups. */
static int make_table(struct tw__groups *groups)
{
	if (groups->region.at)
		return 0;
	groups->ranges[0] = (struct tw__range){.bytes = groups->end * sizeof(struct tw__group)};
	groups->ranges[1] =
	    (struct tw__range){.bytes = groups->end * sizeof(struct tw__completion)};
	if (tw__region_open(&groups->region, groups->ranges, 2))
		return -ENOMEM;
	groups->at_end = (struct tw__completion *)(void *)groups->ranges[1].at;
	return 0;
}

/*
 * An index that was never used. 0, -EAGAIN, -ENOMEM. The lock is held. Handles of one index are
 * numbered, from a random number on.
 */
static int take_fresh(struct tw__groups *groups, uint32_t base_generation, uint32_t *out)
{
	uint32_t fresh = tw_load_relaxed(&groups->fresh);
	size_t n = (size_t)fresh + 1;
	if (fresh == groups->end)
		return -EAGAIN;
	if (make_table(groups) || tw__range_map(&groups->ranges[0], n * sizeof(struct tw__group)) ||
	    tw__range_map(&groups->ranges[1], n * sizeof(struct tw__completion))) {
		if (!tw_load_relaxed(&groups->table))
			tw__groups_unmap(groups); /* a refused call leaves nothing mapped */
		return -ENOMEM;
	}
	struct tw__group *table = (struct tw__group *)(void *)groups->ranges[0].at;
	tw_store_relaxed(&table[fresh].handle, (uint64_t)base_generation << 32 | fresh);
	tw_store_relaxed(&table[fresh].dead, true);
	if (!tw_load_relaxed(&groups->table))
		tw_store_release(&groups->table, table);
	tw_store_release(&groups->fresh, fresh + 1);
	*out = fresh;
	return 0;
}

int tw_group_create(tw_group *out, tw_service *service)
{
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	if (tw__gate_refuses(tw__gate_look(&service->gate)))
		return -ESHUTDOWN;
	struct tw__groups *groups = &service->groups;
	tw__tiny_lock(&groups->lock);
	uint32_t index = groups->free;
	if (tw_likely(index))
		groups->free = tw__group_at(groups, index)->next_free;
	else
		r = take_fresh(groups, (uint32_t)(service->slots.base >> 32), &index);
	tw__tiny_unlock(&groups->lock);
	if (tw_unlikely(r))
		return r;
	tw__slots_write(&service->slots, TW__LINKS);
	struct tw__group *group = tw__group_at(groups, index); /* nobody has its handle yet */
	group->closed = false;
	out->id = tw_load_relaxed(&group->handle);
	tw_store_release(&group->dead, false);
	return 0;
}

/* ------------------------------------------------------------------- cancel */

/* Returns the group with its lock held, or NULL: the handle is void. */
static struct tw__group *find(tw_service *service, tw_group handle)
{
	struct tw__group *group = tw__group_of(&service->groups, handle.id);
	if (!group)
		return NULL;
	tw__group_lock(group);
	if (tw__group_is(group, handle.id))
		return group;
	tw__group_unlock(group);
	return NULL;
}

/* Members that have left, and the releases that are owed, in order. */
struct ended {
	uint32_t freed[A_HOLD];
	unsigned n;
	uint32_t owed_first, owed_last;
};

/* Ends a member that waits, and marks one that runs. False: it stays in its list. */
static bool end_member(tw_service *service, struct tw__group *group, uint32_t slot,
		       struct ended *ended)
{
	struct tw__link *links = service->slots.links;
	_Atomic uint64_t *at = &service->slots.words[slot];
	uint64_t word = tw_load_acquire(at), end;
	bool waits;
	do {
		waits = tw__word_waits(word);
		if (!waits && (tw__word_state(word) != TW__RUNNING || word & TW__ENDED))
			return false;
		end = waits ? tw__word_ended(&service->slots, slot, word) : word | TW__ENDED;
	} while (tw_unlikely(!tw__word_cas_acq_rel(at, &word, end))); /* WORD2, WORD3 */
	if (!waits)
		return false;
	tw__member_unlink(group, links, slot);
	if (tw__word_state(end) != TW__RELEASING) {
		ended->freed[ended->n++] = slot;
		return true;
	}
	tw__member_append(links, &group->ending_first, &group->ending_last, slot);
	links[slot].owed = 0;
	*(ended->owed_last ? &links[ended->owed_last].owed : &ended->owed_first) = slot;
	ended->owed_last = slot;
	return true;
}

/*
 * Walks under one hold, up to the members of that serial number. Returns false if the walk is over.
 */
static bool end_some(tw_service *service, struct tw__group *group, uint32_t serial,
		     struct ended *ended)
{
	const struct tw__link *links = service->slots.links;
	unsigned ends = 0;
	TW_ASSERT_TINY_LOCKED(&group->lock);
	ended->n = 0;
	for (uint32_t slot = group->first, next;
	     slot && ends < A_HOLD && !tw__serial_is_after(links[slot].serial, serial);
	     slot = next) {
		next = links[slot].next;
		tw_prefetch_write(&links[next]);
		tw_prefetch_write((const void *)&service->slots.words[next]);
		ends += end_member(service, group, slot, ended);
	}
	group->members -= ended->n;
	return ends == A_HOLD;
}

/* Gives the slots of members without a release back. */
static void give_back(tw_service *service, struct tw__local *local, const struct ended *ended)
{
	for (unsigned i = 0; i < ended->n; i++) {
		uint32_t slot = ended->freed[i];
		uint64_t word = tw_load_relaxed(&service->slots.words[slot]);
		TW_ASSERT(tw__word_state(word) == TW__FREE);
		tw__count_end(service, local, TW_FATE_CANCELLED);
		tw__slot_put(&service->slots, local ? &local->magazine : NULL, slot,
			     tw__word_generation(word));
	}
}

/* Else the walk would take the lock again before a thread that spins for it. */
static void give_way(struct tw__group *group)
{
	for (unsigned i = 0;
	     i < GIVES_WAY && tw_load_relaxed(&group->wanted) && !tw_load_relaxed(&group->lock);
	     i++)
		tw_cpu_relax();
}

/* The frame says which releases are owed: a wait for one of them gets -EDEADLK. */
static void call_releases(tw_service *service, struct tw__local *local, uint32_t slot)
{
	struct tw__run frame = {.outer = tw__current_run, .service = service};
	tw__current_run = &frame;
	for (; slot; slot = frame.owed) {
		/* first: then the slot is another's */
		frame.owed = service->slots.links[slot].owed;
		uint64_t word = tw_load_relaxed(&service->slots.words[slot]);
		tw__count_end(service, local, TW_FATE_CANCELLED);
		(void)tw__release(service, local, slot, tw__word_generation(word),
				  TW_FATE_CANCELLED);
	}
	tw__current_run = frame.outer;
}

int64_t tw__group_cancel(const char *call, tw_service *service, tw_group handle,
			 enum tw__group_end end, const struct tw__completion *then)
{
	int r = tw__service_check_in(call, service);
	struct tw__group *group = r ? NULL : find(service, handle);
	if (!group)
		return r ? r : -ENOENT;
	uint32_t index = handle.id & TW__GROUP_INDEX_MASK, serial = group->serial;
	struct tw__link *links = service->slots.links;
	if (then && group->completion != TW__COMPLETION_NONE) {
		tw__group_unlock(group);
		return -EALREADY;
	}
	if (then) {
		service->groups.at_end[index] = *then;
		group->completion = TW__COMPLETION_GIVEN; /* GROUP3 */
	}
	group->closed |= end != TW__GROUP_STAYS;
	if (end == TW__GROUP_DIES)
		tw_store_relaxed(&group->dead, true);
	if (tw_likely(!tw__group_has_upto(group, links, serial - FARTHEST_BACK)))
		group->serial++;

	struct ended ended = {.owed_first = 0};
	bool more = end_some(service, group, serial, &ended);
	tw__group_left(service, group, index, ended.n ? links[ended.freed[0]].serial : serial);
	struct tw__local *local = ended.n || ended.owed_first ? tw__local_of(service) : NULL;
	give_back(service, local, &ended);
	while (tw_unlikely(more)) {
		give_way(group);
		tw__group_lock(group); /* GROUP1 */
		more = end_some(service, group, serial, &ended);
		if (ended.n)
			tw__group_left(service, group, index, links[ended.freed[0]].serial);
		else
			tw__group_unlock(group); /* perhaps another group's by now */
		give_back(service, local, &ended);
	}
	if (ended.owed_first)
		call_releases(service, local, ended.owed_first);
	return serial;
}

int tw__group_end(const char *call, tw_service *service, tw_group group, enum tw__group_end end)
{
	int64_t r = tw__group_cancel(call, service, group, end, NULL);
	return r < 0 ? (int)r : 0;
}

int tw_group_cancel(tw_service *service, tw_group group)
{
	return tw__group_end(__func__, service, group, TW__GROUP_STAYS);
}

int tw_group_destroy(tw_service *service, tw_group group)
{
	return tw__group_end(__func__, service, group, TW__GROUP_DIES);
}

/* In a callback or release of a member, however deep. */
static bool inside_member(const tw_service *service, uint32_t index)
{
	for (const struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->group == index)
			return true;
	return false;
}

/* Until all members up to that serial number have left; perhaps as another group's. */
static int await_older(tw_service *service, struct tw__group *group, uint32_t serial,
		       uint64_t deadline_ns)
{
	bool in_time = true, waits;
	tw__group_lock(group);
	group->waiters++;
	while ((waits = tw__group_has_upto(group, service->slots.links, serial)) && in_time) {
		uint32_t bell = tw_load_acquire(&service->finish_bell); /* GROUP2 */
		tw__group_unlock(group);
		in_time = tw__futex_wait(&service->finish_bell, bell, deadline_ns);
		tw__group_lock(group);
	}
	group->waiters--;
	tw__group_unlock(group);
	return waits ? TW_RUNNING : TW_CANCELLED;
}

int tw_group_cancel_wait(tw_service *service, tw_group handle, uint64_t timeout_ns)
{
	uint64_t deadline_ns = tw__deadline_in(timeout_ns);
	int64_t serial = tw__group_cancel(__func__, service, handle, TW__GROUP_STAYS, NULL);
	if (serial < 0)
		return (int)serial;
	uint32_t index = handle.id & TW__GROUP_INDEX_MASK;
	if (inside_member(service, index))
		return TW_SELF;
	return await_older(service, tw__group_at(&service->groups, index), (uint32_t)serial,
			   deadline_ns);
}

int tw_group_stats(tw_service *service, tw_group handle, struct tw_group_stats *out)
{
	int r = TW__OUT_CHECK(tw_group_stats, out, running);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw__group *group = find(service, handle);
	if (!group)
		return -ENOENT;
	struct tw_group_stats stats = {.members = group->members,
				       .running = tw_load_relaxed(&group->running)};
	tw__group_unlock(group);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}

/* --------------------------------------------------------------- a member leaves */

void tw__group_left_slowly(tw_service *service, struct tw__group *group, uint32_t index,
			   uint32_t serial)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	bool tells = group->waiters && !tw__group_has_upto(group, service->slots.links, serial);
	bool completes = !group->members && group->completion == TW__COMPLETION_GIVEN;
	if (completes)
		group->completion = TW__COMPLETION_DUE;
	bool settled =
	    group->completion == TW__COMPLETION_NONE || group->completion == TW__COMPLETION_OVER;
	bool vacates = tw_load_relaxed(&group->dead) && !group->members && settled;
	if (vacates) { /* for the next group; a walk for this one may be about to look */
		tw_store_relaxed(&group->handle,
				 tw_load_relaxed(&group->handle) + TW__GROUP_INDEX_MASK + 1);
		group->serial++;
		group->completion = TW__COMPLETION_NONE;
	}
	struct tw__work *work = completes ? &service->groups.at_end[index].work : NULL;
	tw__group_unlock(group);
	if (tells)
		tw__ring_finish(service); /* GROUP2 */
	if (vacates) {
		tw__tiny_lock(&service->groups.lock);
		group->next_free = service->groups.free;
		service->groups.free = index;
		tw__tiny_unlock(&service->groups.lock);
	}
	if (completes)
		tw__work_push_and_ring(service, work);
}
