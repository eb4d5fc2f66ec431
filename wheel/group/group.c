/*
 * Groups: creation, cancel, close and destroy. Membership: wheel/timer/member.h. Reap: reap.c. The
 * rules: group.h.
 *
 * Progress: cancel, close: lock-free; enter, leave and statistics take the group's lock for a few
 * stores.
 */
#include "wheel/group/group.h"

#include <errno.h>

#include "wheel/base/struct_read.h"
#include "wheel/core/frame.h"
#include "wheel/group/reap.h"
#include "wheel/timer/member.h"
#include "wheel/timer/reap_queue.h"

enum { LEAST_GROUPS = 65536 };

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

/* A free index: 0 or -EAGAIN: none is left, or -ENOMEM. */
static int take_index(struct tw__groups *groups, uint32_t base_generation, uint32_t *out)
{
	uint32_t index = groups->free, fresh = tw_load_relaxed(&groups->fresh);
	if (index) {
		groups->free = tw__group_at(groups, index)->next_free;
		*out = index;
		return 0;
	}
	if (fresh == groups->end)
		return -EAGAIN;
	int r = map_groups(groups, fresh);
	if (r)
		return r;
	struct tw__group *group = tw__group_at(groups, fresh);
	tw_store_relaxed(&group->word,
			 (uint64_t)base_generation << 32 | TW__GROUP_CLOSED | TW__GROUP_DEAD);
	group->vacant = true;
	tw_store_release(&groups->fresh, fresh + 1);
	*out = fresh;
	return 0;
}

static uint64_t give_birth(struct tw__group *group, uint32_t index)
{
	uint64_t word = tw_load_relaxed(&group->word), born, handle; /* the CAS checks it */
	tw__group_lock(group);
	do {
		born =
		    (word + TW__GROUP_SERIAL_ONE) & ~(uint64_t)(TW__GROUP_CLOSED | TW__GROUP_DEAD);
		handle = (born & ~(uint64_t)TW__GROUP_INDEX_MASK) | index;
		tw_store_relaxed(&group->handle, handle); /* GROUP7: published by the CAS */
	} while (!tw_cas_acq_rel(&group->word, &word, born));
	group->vacant = false;
	tw_store_relaxed(&group->completion, TW__COMPLETION_NONE);
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
	pthread_mutex_lock(&groups->lock);
	uint32_t index = 0;
	r = take_index(groups, (uint32_t)(service->slots.base >> 32), &index);
	pthread_mutex_unlock(&groups->lock);
	if (r)
		return r;
	out->id = give_birth(tw__group_at(groups, index), index);
	return 0;
}

/* ---------------------------------------------------------------- cancelling */

/*
 * Whether the cancel needs the bias owner's barrier (GROUP8). Without a bias owner it does too:
 * there may soon be one that has not seen the cancel.
 */
static bool is_remote(const tw_service *service, const struct tw__group *group)
{
	const struct tw__local *local = tw__local_at_hand(service);
	return !local || tw_load_relaxed(&group->bias_owner) != local;
}

uint64_t tw__group_shift(const tw_service *service, struct tw__group *group, uint64_t handle,
			 uint64_t flags)
{
	uint64_t word = tw_load_acquire(&group->word), shifted; /* GROUP7 */
	do {
		if (!tw__group_is(group, word, handle))
			return 0;
		shifted = (word + TW__GROUP_SERIAL_ONE) | flags;
	} while (
	    !tw_cas_acq_rel(&group->word, &word, shifted)); /* GROUP2, GROUP3, GROUP4, GROUP8 */
	if (is_remote(service, group))
		tw_store_release(&group->remote, true); /* GROUP8: after the serial number */
	return shifted;
}

/*
 * A group without members need not wake anyone. If another thread has its lock, nobody waits for
 * it, and the reap looks. All members being cached counts as none, but only the bias owner knows
 * that this stays so.
 */
static bool seen_empty(const tw_service *service, struct tw__group *group, uint64_t word)
{
	if (!tw__tiny_try_lock(&group->lock))
		return false;
	bool empty = !group->first || (!is_remote(service, group) &&
				       !tw__group_has_before(group, &service->slots, word));
	tw__group_unlock(group);
	return empty;
}

static int cancel_with(const char *call, tw_service *service, tw_group handle, uint64_t flags)
{
	int r = tw__service_check_in(call, service);
	if (r)
		return r;
	struct tw__group *group = tw__group_of(&service->groups, handle.id);
	uint64_t word = group ? tw__group_shift(service, group, handle.id, flags) : 0;
	if (!word)
		return -ENOENT;
	if (!seen_empty(service, group, word))
		tw__group_reap_soon(service, group, handle.id & TW__GROUP_INDEX_MASK);
	return 0;
}

int tw_group_cancel(tw_service *service, tw_group group)
{
	return cancel_with(__func__, service, group, 0);
}

int tw_group_close(tw_service *service, tw_group group)
{
	return cancel_with(__func__, service, group, TW__GROUP_CLOSED);
}

int tw_group_destroy(tw_service *service, tw_group handle)
{
	int r = cancel_with(__func__, service, handle, TW__GROUP_CLOSED | TW__GROUP_DEAD);
	if (r)
		return r;
	uint32_t index = handle.id & TW__GROUP_INDEX_MASK;
	struct tw__group *group = tw__group_at(&service->groups, index);
	struct tw__local *local = tw__local_at_hand(service);
	if (local)
		tw__cached_flush(service, local, index);
	tw__group_lock(group);
	tw__group_unlock_and_vacate(&service->groups, group, index);
	return 0;
}

/* In a callback or release of a member, however deep. */
static bool inside_member(const tw_service *service, tw_group group)
{
	for (const struct tw__run *run = tw__current_run; run; run = run->outer)
		if (run->service == service && run->tag &&
		    !((run->tag ^ group.id) & TW__GROUP_INDEX_MASK))
			return true;
	return false;
}

/*
 * Whether no member from before the serial number of `word` is left; if not, *bell has not rung for
 * it (GROUP6).
 */
static bool none_older(tw_service *service, struct tw__group *group, uint64_t word, uint32_t *bell)
{
	tw__group_lock(group);
	bool none = !tw__group_has_before(group, &service->slots, word); /* GROUP9 */
	*bell = tw_load_acquire(&service->finish_bell);                  /* GROUP6 */
	tw__group_unlock(group);
	return none;
}

static int await_older(tw_service *service, struct tw__group *group, uint64_t word,
		       uint64_t deadline_ns)
{
	uint32_t bell;
	tw__group_make_certain(service, group); /* GROUP8 */
	while (!none_older(service, group, word, &bell)) {
		if (tw_clock_now(tw_clock_monotonic()) >= deadline_ns)
			return TW_RUNNING;
		if (!tw__group_reap(service, tw__local_of(service), group))
			tw__futex_wait(&service->finish_bell, bell, deadline_ns);
	}
	return TW_CANCELLED;
}

/* Under the lock, for threads that leave; sequentially consistent, for the bias owner (GROUP9). */
static void count_waiter(struct tw__group *group, uint32_t by)
{
	tw__group_lock(group);
	tw_add_seq_cst(&group->waiters, by);
	tw__group_unlock(group);
}

int tw_group_cancel_wait(tw_service *service, tw_group handle, uint64_t timeout_ns)
{
	int r = tw__service_check(service);
	if (r)
		return r;
	struct tw__group *group = tw__group_of(&service->groups, handle.id);
	uint64_t word = group ? tw__group_shift(service, group, handle.id, 0) : 0;
	if (!word)
		return -ENOENT;
	int outcome = TW_SELF;
	if (!inside_member(service, handle)) {
		uint64_t deadline_ns = tw__deadline_in(timeout_ns);
		count_waiter(group, 1);
		outcome = await_older(service, group, word, deadline_ns);
		count_waiter(group, (uint32_t)-1);
	}
	if (outcome != TW_CANCELLED)
		tw__group_reap_soon(service, group, handle.id & TW__GROUP_INDEX_MASK);
	return outcome;
}

/*
 * How many members of the group's list are cached. By any thread, a hint. The group's lock is held.
 */
static uint32_t count_cached(tw_service *service, uint32_t index)
{
	uint32_t cached = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__cached_members *by = &((struct tw__local *)lane)->cached;
		uint32_t count = tw_load_relaxed(&by->count);
		for (uint32_t i = 0; i < count; i++) {
			uint64_t item = tw_load_relaxed(&by->items[i]);
			cached += tw__cached_group(item) == index &&
				  tw_load_relaxed(&service->slots.exts[(uint32_t)item].linked);
		}
	}
	return cached;
}

int tw_group_stats(tw_service *service, tw_group handle, struct tw_group_stats *out)
{
	int r = TW__OUT_CHECK(tw_group_stats, out, running);
	if (!r)
		r = tw__service_check(service);
	if (r)
		return r;
	struct tw__group *group = tw__group_of(&service->groups, handle.id);
	if (!group)
		return -ENOENT;
	struct tw_group_stats stats = {0};
	tw__group_lock(group);
	uint64_t word = tw_load_acquire(&group->word);
	bool is_it = tw__group_is(group, word, handle.id);
	uint32_t cached = count_cached(service, handle.id & TW__GROUP_INDEX_MASK);
	stats.members = group->members > cached ? group->members - cached : 0;
	tw__group_unlock(group);
	if (!is_it)
		return -ENOENT;
	stats.running = word & TW__GROUP_RUNNING_MASK;
	tw__struct_write(out, &stats, sizeof stats);
	return 0;
}
