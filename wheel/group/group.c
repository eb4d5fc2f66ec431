/*
 * Groups: creation, cancel, close and destroy. Membership: wheel/timer/member.h. The rules:
 * group.h.
 *
 * Progress: each call holds the group's lock for a few stores, or for A_HOLD compare-and-swaps.
 */
#include "wheel/group/group.h"

#include <errno.h>

#include "mpsc/base/struct_read.h"
#include "wheel/core/frame.h"
#include "wheel/timer/cancel.h"
#include "wheel/timer/member.h"

enum {
	LEAST_GROUPS = 65536,
	A_HOLD = 32,   /* members that a walk ends under one hold of the lock */
	GIVES_WAY = 64 /* how long it waits, between two, for a thread to take the lock */
};

/* The farthest that a serial number moves on from that of the oldest member. */
#define FARTHEST_BACK (UINT32_C(1) << 30)

void tw__groups_init(struct tw__groups *groups, uint32_t max_timers)
{
	uint32_t end = max_timers < LEAST_GROUPS ? LEAST_GROUPS : max_timers;
	*groups =
	    (struct tw__groups){.end = end < TW__GROUP_INDEX_MASK ? end + 1 : TW__GROUP_INDEX_MASK};
	tw_store_relaxed(&groups->fresh, 1);
	pthread_mutex_init(&groups->lock, NULL); /* cannot fail with default attributes */
}

void tw__groups_unmap(struct tw__groups *groups)
{
	tw__range_unmap(&groups->of_table);
	tw__range_unmap(&groups->of_at_end);
	tw__region_close(&groups->region);
}

void tw__groups_fini(struct tw__groups *groups)
{
	tw__groups_unmap(groups);
	pthread_mutex_destroy(&groups->lock);
}

/* --------------------------------------------------------------- birth and end */

/* Addresses for all groups. */
static int make_table(struct tw__groups *groups)
{
	size_t offset = 0, table = groups->end * sizeof(struct tw__group),
	       at_end = groups->end * sizeof(struct tw__completion);
	if (groups->region.at)
		return 0;
	if (tw__region_open(&groups->region, tw__range_takes(table) + tw__range_takes(at_end)))
		return -ENOMEM;
	tw__range_init(&groups->of_table, &groups->region, &offset, table, false, false);
	tw__range_init(&groups->of_at_end, &groups->region, &offset, at_end, false, false);
	groups->at_end = (struct tw__completion *)(void *)groups->of_at_end.at;
	return 0;
}

static int range_grow(struct tw__range *range, size_t bytes)
{
	int r = tw__range_map(range, bytes);
	if (!r)
		tw__range_use(range, bytes);
	return r;
}

/* The group of this index, and all before it, may be touched. 0 or -ENOMEM. The lock is held. */
static int map_groups(struct tw__groups *groups, uint32_t index)
{
	size_t n = (size_t)index + 1;
	int r = make_table(groups);
	r = r ? r : range_grow(&groups->of_table, n * sizeof(struct tw__group));
	r = r ? r : range_grow(&groups->of_at_end, n * sizeof(struct tw__completion));
	if (!r && !tw_load_relaxed(&groups->table))
		tw_store_release(&groups->table, (struct tw__group *)(void *)groups->of_table.at);
	return r;
}

/* An index that was never used: 0 or -EAGAIN: none is left, or -ENOMEM. The lock is held. */
static int take_fresh(struct tw__groups *groups, uint32_t base_generation, uint32_t *out)
{
	uint32_t fresh = tw_load_relaxed(&groups->fresh);
	if (fresh == groups->end)
		return -EAGAIN;
	int r = map_groups(groups, fresh);
	if (r)
		return r;
	struct tw__group *group = tw__group_at(groups, fresh);
	tw_store_relaxed(&group->handle, (uint64_t)base_generation << 32 | fresh);
	tw_store_relaxed(&group->dead, true);
	tw_store_release(&groups->fresh, fresh + 1);
	*out = fresh;
	return 0;
}

/* The index of a group that has ended, or 0. */
static uint32_t take_free(struct tw__groups *groups)
{
	tw__tiny_lock(&groups->free_lock);
	uint32_t index = groups->free;
	if (index)
		groups->free = tw__group_at(groups, index)->next_free;
	tw__tiny_unlock(&groups->free_lock);
	return index;
}

/* Handles of one index are numbered, and begin at a random number for each service. */
static uint64_t give_birth(struct tw__group *group)
{
	tw__group_lock(group);
	uint64_t handle = tw_load_relaxed(&group->handle) + TW__GROUP_INDEX_MASK + 1;
	tw_store_relaxed(&group->handle, handle);
	tw_store_relaxed(&group->dead, false);
	group->serial++; /* a walk for the last group may still be about to look */
	group->closed = false;
	group->completion = TW__COMPLETION_NONE;
	tw__group_unlock(group);
	return handle;
}

int tw_group_create(tw_group *out, tw_service *service)
{
	int r = out ? tw__service_check(service) : tw__invalid("out is NULL");
	if (r)
		return r;
	if (tw__gate_refuses(tw__gate_look(&service->gate)))
		return -ESHUTDOWN;
	struct tw__groups *groups = &service->groups;
	uint32_t index = take_free(groups);
	if (tw_unlikely(!index)) {
		pthread_mutex_lock(&groups->lock);
		r = take_fresh(groups, (uint32_t)(service->slots.base >> 32), &index);
		pthread_mutex_unlock(&groups->lock);
	}
	if (r)
		return r;
	if (tw_unlikely(!tw_load_relaxed(&service->slots.written.links)))
		tw_store_relaxed(&service->slots.written.links, true);
	out->id = give_birth(tw__group_at(groups, index));
	return 0;
}

/* ---------------------------------------------------------------- cancelling */

struct tw__group *tw__group_find(tw_service *service, tw_group handle)
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

struct tw__cancel_of tw__group_cancel_begin(tw_service *service, struct tw__group *group,
					    uint32_t index, unsigned flags)
{
	TW_ASSERT_TINY_LOCKED(&group->lock);
	struct tw__cancel_of of = {service, group, index, group->serial};
	group->closed |= flags != 0;
	if (flags & TW__GROUP_DIES)
		tw_store_relaxed(&group->dead, true);
	if (tw_likely(!tw__group_has_upto(group, service->slots.links, of.serial - FARTHEST_BACK)))
		group->serial++;
	return of;
}

/* The releases that a walk has left to do, in order. */
struct owed {
	uint32_t first, last;
};

/* It is RELEASING, off its list, and this call's to end. */
static void owe(struct tw__group *group, struct tw__link *links, uint32_t slot, struct owed *owed)
{
	tw__member_append(links, &group->ending_first, &group->ending_last, slot);
	links[slot].owed = 0;
	*(owed->last ? &links[owed->last].owed : &owed->first) = slot;
	owed->last = slot;
}

enum met { SKIPPED, FREED, OWED };

/* Ends a member that waits, marks one that runs. The lock is held. */
static enum met end_member(tw_service *service, uint32_t slot)
{
	_Atomic uint64_t *at = &service->slots.words[slot];
	uint64_t word = tw_load_acquire(at);
	for (;;) {
		if (tw_likely(tw__word_waits(word))) {
			uint64_t ended = tw__word_ended(&service->slots, slot, word);
			if (tw_unlikely(!tw__word_cas_acq_rel(at, &word, ended))) /* WORD2, WORD3 */
				continue;
			return tw__word_state(ended) == TW__RELEASING ? OWED : FREED;
		}
		if (tw__word_state(word) != TW__RUNNING || word & TW__ENDED ||
		    tw__word_cas_acq_rel(at, &word, word | TW__ENDED))
			return SKIPPED;
	}
}

/* Two members that stay become neighbors; 0: the list's end. */
static void join(struct tw__group *group, struct tw__link *links, uint32_t slot, uint32_t next)
{
	*(slot ? &links[slot].next : &group->first) = next;
	*(next ? &links[next].previous : &group->last) = slot;
}

/*
 * One hold of the lock, which the caller has taken, and which is given up. first: the hold in which
 * the cancel has begun. Members that have left are the caller's to give back: *left of them. False:
 * the walk is over.
 */
static bool end_some(const struct tw__cancel_of *of, bool first, uint32_t *freed, unsigned *left,
		     struct owed *owed)
{
	struct tw__link *links = of->service->slots.links;
	struct tw__group *group = of->group;
	uint32_t slot = group->first, stays = 0;
	unsigned n = 0, ended = 0;
	TW_ASSERT_TINY_LOCKED(&group->lock);
	while (slot && ended < A_HOLD && !tw__serial_is_after(links[slot].serial, of->serial)) {
		uint32_t next = links[slot].next;
		tw_prefetch_write(&links[next]);
		tw_prefetch_write((const void *)&of->service->slots.words[next]);
		enum met met = end_member(of->service, slot);
		if (tw_likely(met == FREED)) {
			freed[n++] = slot;
		} else if (met == OWED) {
			owe(group, links, slot, owed);
		} else {
			join(group, links, stays, slot);
			stays = slot;
		}
		ended += met != SKIPPED;
		slot = next;
	}
	join(group, links, stays, slot);
	group->members -= n;
	*left = n;
	if (n)
		tw__group_left(of->service, group, of->index, links[freed[0]].serial);
	else if (first)
		tw__group_left(of->service, group, of->index, of->serial);
	else
		tw__group_unlock(group); /* perhaps another group's by now */
	return ended == A_HOLD;
}

/*
 * A thread that wants the lock spins by now. Without this the walk would take the lock again
 * first.
 */
static void give_way(struct tw__group *group)
{
	for (unsigned i = 0;
	     i < GIVES_WAY && tw_load_relaxed(&group->wanted) && !tw_load_relaxed(&group->lock);
	     i++)
		tw_cpu_relax();
}

/* The frame says which releases this thread still owes, for those who would wait for one. */
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

/* A member without a release that has left. */
static void give_back(tw_service *service, struct tw__local *local, uint32_t slot)
{
	uint64_t word = tw_load_relaxed(&service->slots.words[slot]);
	uint32_t ext = tw_load_relaxed(&service->slots.records[slot].ext);
	TW_ASSERT(tw__word_state(word) == TW__FREE);
	tw__cancelled(service, local, word - TW__NEXT_GENERATION + slot);
	if (ext)
		tw__ext_put(&service->slots, local ? &local->exts : NULL, ext);
}

void tw__group_cancel_rest(const struct tw__cancel_of *of)
{
	struct tw__local *local = NULL;
	struct owed owed = {0};
	uint32_t freed[A_HOLD];
	unsigned left;
	for (bool first = true, more = true; more; first = false) {
		if (!first)
			tw__group_lock(of->group); /* GROUP1 */
		more = end_some(of, first, freed, &left, &owed);
		if (first && (left || owed.first))
			local = tw__local_of(of->service);
		for (unsigned i = 0; i < left; i++)
			give_back(of->service, local, freed[i]);
		if (more)
			give_way(of->group);
	}
	if (owed.first)
		call_releases(of->service, local, owed.first);
}

/* The serial number that was moved on, or an errno. */
static int64_t cancel_with(const char *call, tw_service *service, tw_group handle, unsigned flags)
{
	int r = tw__service_check_in(call, service);
	if (r)
		return r;
	struct tw__group *group = tw__group_find(service, handle);
	if (!group)
		return -ENOENT;
	struct tw__cancel_of of =
	    tw__group_cancel_begin(service, group, handle.id & TW__GROUP_INDEX_MASK, flags);
	tw__group_cancel_rest(&of);
	return of.serial;
}

static int cancel(const char *call, tw_service *service, tw_group group, unsigned flags)
{
	int64_t r = cancel_with(call, service, group, flags);
	return r < 0 ? (int)r : 0;
}

int tw_group_cancel(tw_service *service, tw_group group)
{
	return cancel(__func__, service, group, 0);
}

int tw_group_close(tw_service *service, tw_group group)
{
	return cancel(__func__, service, group, TW__GROUP_CLOSES);
}

int tw_group_destroy(tw_service *service, tw_group group)
{
	return cancel(__func__, service, group, TW__GROUP_CLOSES | TW__GROUP_DIES);
}

/* In a callback or release of a member, however deep. */
static bool inside_member(const tw_service *service, uint32_t index)
{
	for (const struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->group == index)
			return true;
	return false;
}

/*
 * Until all members up to that serial number have left. The index may be another group's by then.
 */
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
	int64_t serial = cancel_with(__func__, service, handle, 0);
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
	struct tw__group *group = tw__group_find(service, handle);
	if (!group)
		return -ENOENT;
	struct tw_group_stats stats = {.members = group->members,
				       .running = tw_load_relaxed(&group->running)};
	tw__group_unlock(group);
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
