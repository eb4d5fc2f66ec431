/*
 * Scheduling many in one call: one look at the gate, one base, one publication, one wake, for as
 * many timers as there are.
 *
 * All or nothing. First all tasks are checked. Then two passes: one takes slots and extension
 * records and writes the lane's entries, unpublished; whatever fails there is taken back, and
 * nobody has seen any of it. The other stores the control words and cannot fail. Then the lane's
 * tail moves once. So no timer of a batch can run before all of `out` is written.
 *
 * Against close the call pins its lane before it looks (gate.h, GATE6): either it sees that it is
 * closed, or close waits until all of the batch is published, and ends it whole. A single
 * schedule takes its timer back instead (schedule.c); of a batch, some of the timers could be taken
 * back and some not.
 *
 * Linearisation: the publication, or the look that refuses. Wait-free, except for growing, as a
 * single schedule. The lane's compaction is done first: later it would publish what is not ready.
 *
 * Rejected:
 *   - An array of the slots taken. It needs memory of the batch's size; the unpublished entries are
 *     that array.
 *   - No pin, and taking the timers back after the look, as a single schedule does. Close may have
 *     ended some of them.
 *   - A counter of calls under way, which close waits for, in place of a pin in each lane. It is
 *     about 20 lines less, but all threads write one line: with two threads a call for 16 timers
 *     took 599 ns with the counter and 448 ns with the pin (4 timers: 190 and 134; minimum of 5
 *     runs).
 */
#include <errno.h>

#include "wheel/timer/member.h"
#include "wheel/base/probes.h"
#include "wheel/core/wake.h"
#include "wheel/timer/reap_queue.h"
#include "wheel/timer/schedule_bulk.h"
#include "wheel/timer/schedule_task.h"

enum { POLL_NS = 1000000 };

struct bulk_call {
	tw_service *service;
	struct tw__local *local;
	const char *tasks;
	size_t n, stride;
	uint64_t word;   /* of the look at the gate */
	uint64_t now_ns; /* the one reading of the clock, or 0 */
	uint64_t base_ns;
	uint64_t epoch_word_before;
	/* instants in (from, to] have these bits: one array's deadlines are often alike */
	uint64_t from_ns, to_ns, bits;
	struct tw__lane_mark begin; /* of the base */
	bool grew;
};

/* --------------------------------------------------------------------- check */

static const struct tw_task *task_at(const struct bulk_call *call, size_t i)
{
	return (const struct tw_task *)(const void *)(call->tasks + i * call->stride);
}

/* A task as the library knows it: *task, or a copy in *other. 0, -EINVAL, -E2BIG, -ERANGE. */
static int bulk_read(const struct bulk_call *call, size_t i, const struct tw_task **task,
		     struct tw_task *other, struct tw_period *period)
{
	*task = task_at(call, i);
	if ((*task)->size != call->stride)
		return tw__refuse(-EINVAL, "tw_schedule_bulk",
				  "tasks[%zu].size %zu: must be that of tasks[0]", i,
				  (*task)->size);
	int r = tw__task_read(call->service, task, other, period);
	if (!r && (*task)->flags & TW_TASK_PERSISTENT)
		return tw__refuse(-EINVAL, "tw_schedule_bulk",
				  "tasks[%zu] is TW_TASK_PERSISTENT: schedule it alone", i);
	return r;
}

/* A task with fn, arg and a delay, that a check would find nothing wrong with: most are. */
static inline bool is_plain(const struct bulk_call *call, const struct tw_task *task)
{
	return call->stride == sizeof *task && tw__task_is_short(task) && !task->flags &&
	       !task->group.id && task->when_ns <= TW_MAX_DELAY_NS;
}

/* Before the call pins its lane: the misuse hook may schedule. */
static int check_all(const struct bulk_call *call)
{
	const struct tw_task *task;
	struct tw_task other;
	struct tw_period period;
	int r = 0;
	for (size_t i = 0; !r && i < call->n; i++)
		r = is_plain(call, task_at(call, i)) ? 0
						     : bulk_read(call, i, &task, &other, &period);
	return r;
}

/* ----------------------------------------------------------------- first pass */

static int room_for_one(struct bulk_call *call)
{
	struct tw__lane *lane = &call->local->lane;
	return tw_likely(tw__lane_has_room(lane, 1)) ? 0 : tw__lane_extend(lane, &call->grew);
}

/* The record and the unpublished entry of one timer, and its place in its group's list. */
static int put(struct bulk_call *call, const struct tw_task *task, const struct tw_period *period)
{
	struct tw__slots *slots = &call->service->slots;
	struct tw__local *local = call->local;
	/* a cached record stays cached: a bulk call enters before its words are armed */
	struct tw__arming arming = {.ext = 0};
	int r = room_for_one(call);
	if (!r)
		r = tw__task_prepare(call->service, local, task, period, &call->now_ns, &arming);
	if (r)
		return r;
	uint64_t entry = tw__slot_get(slots, &local->magazine);
	if (tw_unlikely(!entry)) {
		if (arming.ext)
			tw__task_discard(call->service, local, arming.ext);
		return tw__slots_refusal(slots);
	}
	struct tw__record *record = &slots->records[tw__entry_slot(entry)];
	tw_store_relaxed(&record->fn, task->fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, task->arg);
	/* WORD5; 0 tells the second pass that it is plain */
	tw_store_release(&record->ext, arming.ext);
	tw__lane_put(&local->lane, tw__what_make(arming.kind, entry), arming.value);
	if (!arming.ext)
		return 0;
	int entered = tw__group_enter(&call->service->groups, slots, arming.ext, entry);
	if (entered < 0)
		return entered; /* what was put is taken back with the rest */
	(void)tw__group_entered(call->service, local, arming.ext, entry,
				entered); /* the lock was held, if any */
	return 0;
}

/*
 * Plain tasks from i on, as long as there are slots in the magazine and room in
 * the segment: no call, no field of lane or magazine written but at the end. How many.
 */
static size_t put_stretch(struct bulk_call *call, size_t i)
{
	struct tw__lane *lane = &call->local->lane;
	struct tw__magazine *magazine = &call->local->magazine;
	struct tw__record *records = call->service->slots.records;
	struct tw__entry *at = tw__lane_at(lane);
	size_t n = tw__context_is_on() ? 0 : call->n - i, room = tw__lane_room(lane), done = 0;
	n = n < room ? n : room;
	n = n < tw__magazine_count(magazine) ? n : tw__magazine_count(magazine);
	for (; done < n; done++) {
		const struct tw_task *task = task_at(call, i + done);
		if (tw_unlikely(!is_plain(call, task)))
			break;
		uint64_t entry = tw__magazine_peek(magazine, (uint32_t)done);
		struct tw__record *record = &records[tw__entry_slot(entry)];
		tw_store_relaxed(&record->fn, task->fn); /* published by WORD1 */
		tw_store_relaxed(&record->arg, task->arg);
		tw_store_relaxed(&record->ext, 0);
		at[done] = (struct tw__entry){tw__what_make(TW__KIND_DELAY, entry), task->when_ns};
	}
	tw__magazine_take(magazine, (uint32_t)done);
	tw__lane_has_put(lane, done);
	return done;
}

static int put_all(struct bulk_call *call)
{
	const struct tw_task *task;
	struct tw_task other;
	struct tw_period period;
	int r = room_for_one(call);
	if (!r)
		call->base_ns =
		    tw__schedule_base(call->service, call->local, call->word, &call->now_ns);
	for (size_t i = 0; !r && (i += put_stretch(call, i)) < call->n; i++) {
		r = bulk_read(call, i, &task, &other, &period);
		if (!r)
			/* makes room, and takes what is not plain */
			r = put(call, task, task->period ? &period : NULL);
	}
	return r;
}

static bool is_timer(const struct tw__entry *entry)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	return kind == TW__KIND_DELAY || kind == TW__KIND_DEADLINE; /* else the base, or padding */
}

static void discard(struct bulk_call *call, uint32_t slot, uint32_t generation)
{
	struct tw__slots *slots = &call->service->slots;
	uint32_t ext = tw_load_relaxed(&slots->records[slot].ext);
	/*
	 * Not cached, and off the list before the slot is another timer's: a record of the same
	 * generation would be taken for that timer's.
	 */
	if (ext && tw_load_acquire(&slots->exts[ext].linked)) /* GROUP12 */
		(void)tw__group_leave_slowly(call->service, NULL, ext, false);
	if (ext)
		tw__task_discard(call->service, call->local, ext);
	/* never handed out: the same generation */
	tw__slot_put(slots, &call->local->magazine, slot, generation);
}

static void bulk_take_back(struct bulk_call *call)
{
	struct tw__lane_mark at = call->begin;
	const struct tw__entry *entry, *end;
	while ((entry = tw__lane_stretch(&call->local->lane, &at, &end)))
		for (; entry != end; entry++)
			if (is_timer(entry))
				discard(call, tw__entry_slot(entry->what),
					(uint32_t)(entry->what >> TW__GENERATION_SHIFT));
	tw__lane_take_back(&call->local->lane, &call->begin);
	call->local->epoch_word = call->epoch_word_before;
	call->local->short_word = TW__NO_SHORT_WORD;
}

/* --------------------------------------------------------------- second pass */

/*
 * A member has been on its group's list since the first pass, where walks skip it. If its group was
 * cancelled or closed since, it is queued for another walk, which ends the member.
 */
static void arm_member(tw_service *service, uint64_t tag, uint32_t slot, uint64_t word)
{
	uint32_t index = tag & TW__GROUP_INDEX_MASK;
	struct tw__group *group = tw__group_at(&service->groups, index);
	tw__group_lock(group); /* GROUP2 */
	bool stale = tw__tag_is_stale(&service->groups, tag);
	tw__word_arm_release(&service->slots.words[slot], word); /* WORD1 */
	tw__group_unlock(group);
	if (tw_likely(!stale))
		return;
	tw__group_reap_soon(service, group, index);
	tw__ring_finish(service); /* GROUP6: a thread that waits for the group walks again */
}

/* Stores the word of one timer. Returns its deadline. */
static inline uint64_t arm_one(struct bulk_call *call, const struct tw__entry *entry)
{
	tw_service *service = call->service;
	struct tw__slots *slots = &service->slots;
	uint32_t slot = tw__entry_slot(entry->what);
	bool is_delay = tw__what_kind(entry->what) == TW__KIND_DELAY;
	uint64_t deadline_ns = entry->value + (is_delay ? call->base_ns : 0);
	if (tw_unlikely(deadline_ns - call->from_ns - 1 >= call->to_ns - call->from_ns)) {
		uint64_t tick = tw__tick_to_write(service, deadline_ns);
		call->bits = tw__tick_bits(tick, tw_load_relaxed(&service->gate.cursor));
		call->to_ns = tw__tick_ns(service, tw__tick_of(service, deadline_ns));
		call->from_ns = call->to_ns - service->time.tick_ns;
	}
	uint32_t ext = tw_load_relaxed(&slots->records[slot].ext);
	uint64_t state = TW__ARMED | (ext ? TW__EXT : 0) | call->bits;
	uint64_t word = tw__word_make(tw__entry_generation(entry->what), state, 0);
	uint64_t tag = tw_unlikely(ext) ? tw_load_relaxed(&slots->exts[ext].tag) : 0;
	if (tw_unlikely(tw__word_is_far(word)))
		tw__far_set(slots, slot, tw__tick_to_write(service, deadline_ns)); /* WORD6 */
	if (tw_unlikely(tag))
		arm_member(service, tag, slot, word);
	else
		tw__word_arm_release(&slots->words[slot], word); /* WORD1: pairs with claim */
	return deadline_ns;
}

/* Stores the words. The earliest deadline. */
static uint64_t arm_all(struct bulk_call *call, tw_timer *out)
{
	struct tw__lane_mark at = call->begin;
	const struct tw__entry *entry, *end;
	uint64_t earliest_ns = UINT64_MAX;
	tw__magazine_count_scheduled(&call->local->magazine, (int64_t)call->n);
	while ((entry = tw__lane_stretch(&call->local->lane, &at, &end)))
		for (; entry != end; entry++) {
			if (tw_unlikely(!is_timer(entry)))
				continue;
			if (tw_likely(out))
				*out++ = tw__handle_of(&call->service->slots,
						       tw__what_entry(entry->what));
			earliest_ns = tw__earlier(earliest_ns, arm_one(call, entry));
		}
	return earliest_ns;
}

/* Nothing between the pin and its end waits for anybody. */
static int schedule_pinned(struct bulk_call *call, tw_timer *out)
{
	tw_service *service = call->service;
	call->word = tw__gate_pin_and_look(&service->gate, &call->local->lane.pinned);
	if (tw__gate_refuses(call->word))
		return tw__refused_by_gate(service);
	int r = tw__lane_admit(&call->local->lane, call->n + 1);
	if (r)
		return r;
	call->epoch_word_before = call->local->epoch_word;
	/* after admission, which may move the lane's end */
	call->begin = tw__lane_here(&call->local->lane);
	r = put_all(call);
	if (r) {
		bulk_take_back(call);
		return r;
	}
	uint64_t earliest_ns = arm_all(call, out);
	tw__publish(service, call->local);
	TW_PROBE3(arm_batch, service, call->n, earliest_ns);
	/* a driver that fell asleep meanwhile knows nothing of this */
	bool wants = call->grew || tw__gate_is_open(call->word);
	tw__wake_for(service, wants ? 0 : tw__tick_of(service, earliest_ns));
	return 0;
}

static int bulk_refused(struct tw__local *local, tw_timer *out, size_t n, int error)
{
	if (error == -EINVAL || error == -E2BIG)
		return error;
	if (local)
		tw_bump(&local->rejected, n);
	for (size_t i = 0; out && i < n; i++)
		out[i] = (tw_timer){0};
	return error;
}

int tw_schedule_bulk(tw_service *service, const struct tw_task *tasks, size_t n, tw_timer *out)
{
	if (!service || (n && !tasks))
		return tw__invalid("%s is NULL", service ? "tasks" : "service");
	if (tw__forked(service))
		return bulk_refused(NULL, out, n, -EPERM);
	if (n == 0)
		return 0;
	struct bulk_call call = {
	    .service = service, .tasks = (const char *)tasks, .n = n, .stride = tasks->size};
	if (call.stride < offsetof(struct tw_task, when_ns) ||
	    call.stride % _Alignof(struct tw_task))
		return tw__invalid("tasks[0].size %zu: use TW_INIT(tw_task)", call.stride);
	call.local = tw__local_of(service);
	if (!call.local)
		return bulk_refused(NULL, out, n, -ENOMEM);
	int r = check_all(&call);
	if (!r) {
		r = schedule_pinned(&call, out);
		tw__gate_unpin(&call.local->lane.pinned); /* GATE6 */
	}
	return r ? bulk_refused(call.local, out, n, r) : 0;
}

/* Such calls are short, and a close is rare: looked at now and then. */
bool tw__await_batch_calls(tw_service *service, uint64_t deadline_ns)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		while (tw__gate_is_pinned(&lane->pinned)) {
			uint64_t now_ns = tw_clock_now(tw_clock_monotonic());
			if (now_ns >= deadline_ns)
				return false;
			uint32_t bell = tw_load_relaxed(&service->finish_bell);
			tw__futex_wait(&service->finish_bell, bell, now_ns + POLL_NS);
		}
	}
	return true;
}
