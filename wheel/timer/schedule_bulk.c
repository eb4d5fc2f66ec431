/*
 * Scheduling many in one call: one look at the gate, one base, one publication, one wake, for as
 * many timers as there are.
 *
 * All or nothing, in two passes. The first takes slots and extension records and writes the lane's
 * entries, unpublished; whatever fails there is taken back, and nobody has seen any of it. The
 * second stores the control words and cannot fail. Then the lane's tail moves once. So no timer of
 * a batch can run before all of `out` is written.
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
#include "wheel/timer/schedule_bulk.h"
#include "wheel/timer/end.h"
#include "wheel/timer/release.h"
#include "wheel/timer/schedule_task.h"

enum { POLL_NS = 1000000 };

struct batch_call {
	tw_service *service;
	struct tw__local *local;
	const char *tasks;
	size_t n, stride;
	uint64_t word;   /* of the look at the gate */
	uint64_t now_ns; /* the one reading of the clock, or 0 */
	uint64_t base_ns;
	uint64_t random; /* the thread's numbers, once the batch is scheduled */
	/* extension records of timers whose group ended meanwhile, in array order; 0: none */
	uint32_t orphan, last_orphan;
	uint64_t epoch_word_before;
	struct tw__lane_mark begin; /* of the base */
	bool grew;
	bool plain; /* no timer gets a context but by its task: this thread has none */
};

static const struct tw_task *task_at(const struct batch_call *call, size_t i)
{
	return (const struct tw_task *)(const void *)(call->tasks + i * call->stride);
}

static int room_for_one(struct batch_call *call)
{
	struct tw__lane *lane = &call->local->lane;
	return tw_likely(tw__lane_has_room(lane, 1)) ? 0 : tw__lane_extend(lane, &call->grew);
}

/* The record and the unpublished entry of one timer. */
static inline __attribute__((always_inline)) int put(struct batch_call *call,
						     const struct tw_task *task, enum tw__kind kind,
						     uint64_t value, uint32_t ext)
{
	struct tw__slots *slots = &call->service->slots;
	int r = room_for_one(call);
	if (tw_unlikely(r))
		return r;
	uint64_t entry = tw__slot_get(slots, &call->local->magazine);
	if (tw_unlikely(!entry))
		return -EAGAIN;
	uint32_t slot = tw__entry_slot(entry);
	struct tw__record *record = &slots->records[slot];
	tw_store_relaxed(&record->fn, task->fn); /* published by WORD1 */
	tw_store_relaxed(&record->arg, task->arg);
	/* WORD5; 0 tells the second pass that it is plain */
	tw_store_release(&record->ext, ext);
	tw__lane_put(&call->local->lane, tw__what_make(kind, entry), value);
	return 0;
}

static int put_with_option(struct batch_call *call, const struct tw_task *task,
			   const struct tw_period *period)
{
	struct tw__arming arming;
	/* a cached record stays cached: a bulk call enters before its words are armed */
	arming.ext = 0;
	int r = tw__task_prepare(call->service, call->local, task, period, &call->random,
				 &call->now_ns, &arming);
	if (r)
		return r;
	r = put(call, task, arming.kind, arming.value, arming.ext);
	if (r && arming.ext)
		tw__task_discard(call->service, call->local, arming.ext);
	if (r || !arming.ext)
		return r;
	struct tw__slots *slots = &call->service->slots;
	uint64_t entry = tw__what_entry(tw__lane_at(&call->local->lane)[-1].what);
	int entered = tw__group_enter(&call->service->groups, slots, arming.ext, entry);
	if (entered < 0)
		return entered; /* what was put is taken back with the rest */
	(void)tw__group_entered(call->service, call->local, arming.ext, entry,
				entered); /* the lock was held, if any */
	return 0;
}

/* Puts a timer of any kind. */
static __attribute__((noinline)) int put_any(struct batch_call *call, const struct tw_task *task)
{
	struct tw_task other;
	struct tw_period period;
	if (task->size != call->stride)
		return -EINVAL; /* tell_misuse tells */
	int r = tw__task_read(call->service, &task, &other, &period, false);
	if (!r && task->flags & TW_TASK_PERSISTENT)
		return -EINVAL; /* tell_misuse tells */
	return r ? r : put_with_option(call, task, task->period ? &period : NULL);
}

/*
 * A plain task with a delay, in the struct that we know, that a check would find nothing wrong
 * with: most are.
 */
static inline bool is_simple(const struct batch_call *call, const struct tw_task *task)
{
	return call->stride == sizeof *task && tw__task_is_short(task) && !task->flags &&
	       !task->group.id && task->when_ns <= TW_MAX_DELAY_NS;
}

/*
 * Simple tasks from i on, as long as there are slots in the magazine and room in the segment: no
 * call, no field of lane or magazine written but at the end. How many.
 */
static size_t put_stretch(struct batch_call *call, size_t i)
{
	struct tw__lane *lane = &call->local->lane;
	struct tw__magazine *magazine = &call->local->magazine;
	const struct tw__slots *slots = &call->service->slots;
	struct tw__record *records = slots->records;
	struct tw__entry *at = tw__lane_at(lane);
	size_t n = call->n - i, room = tw__lane_room(lane);
	n = n < room ? n : room;
	n = n < tw__magazine_count(magazine) ? n : tw__magazine_count(magazine);
	size_t done = 0;
	for (; done < n; done++) {
		const struct tw_task *task = task_at(call, i + done);
		if (tw_unlikely(!is_simple(call, task)))
			break;
		uint64_t entry = tw__magazine_peek(magazine, (uint32_t)done);
		uint32_t slot = tw__entry_slot(entry);
		tw_store_relaxed(&records[slot].fn, task->fn); /* published by WORD1 */
		tw_store_relaxed(&records[slot].arg, task->arg);
		/* tells the second pass that it is plain */
		tw_store_relaxed(&records[slot].ext, 0);
		at[done] = (struct tw__entry){tw__what_make(TW__KIND_DELAY, entry), task->when_ns};
	}
	tw__magazine_take(magazine, (uint32_t)done);
	tw__lane_has_put(lane, done);
	return done;
}

static int put_all(struct batch_call *call)
{
	int r = room_for_one(call);
	if (!r)
		call->base_ns =
		    tw__schedule_base(call->service, call->local, call->word, &call->now_ns);
	for (size_t i = 0; !r && i < call->n;) {
		size_t done = tw_likely(call->plain) ? put_stretch(call, i) : 0;
		if (done == 0)
			/* makes room, and takes what is not simple */
			r = put_any(call, task_at(call, i));
		i += done ? done : 1;
	}
	return r;
}

static bool is_timer(const struct tw__entry *entry)
{
	enum tw__kind kind = tw__what_kind(entry->what);
	return kind == TW__KIND_DELAY || kind == TW__KIND_DEADLINE; /* else the base, or padding */
}

static void discard(struct batch_call *call, uint32_t slot, uint32_t generation)
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

static void bulk_take_back(struct batch_call *call)
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

/*
 * The bits that go with a deadline; of the last tick they are still known, since one array's
 * deadlines are often alike.
 */
struct last_tick {
	uint64_t from_ns, to_ns; /* instants in (from, to] have these bits */
	uint64_t bits;
};

static inline uint64_t bits_of(const tw_service *service, struct last_tick *last,
			       uint64_t deadline_ns)
{
	if (tw_likely(deadline_ns - last->from_ns - 1 < last->to_ns - last->from_ns))
		return last->bits;
	last->to_ns = tw__tick_ns(service, tw__tick_of(service, deadline_ns));
	last->from_ns = last->to_ns - service->time.tick_ns;
	last->bits = tw__deadline_bits(service, deadline_ns);
	return last->bits;
}

/*
 * A member has been on its group's list since the first pass. If the group was cancelled or closed
 * since, the timer ends with it: it was scheduled, and is cancelled, and nobody finds it armed. Its
 * release is called when the batch has been published.
 */
static void arm_with_option(struct batch_call *call, uint32_t index, uint64_t entry, uint64_t state)
{
	tw_service *service = call->service;
	struct tw__ext *ext = &service->slots.exts[index];
	uint64_t tag = tw_load_relaxed(&ext->tag);
	struct tw__group *group =
	    tag ? tw__group_at(&service->groups, tag & TW__GROUP_INDEX_MASK) : NULL;
	if (group)
		tw__group_lock(group); /* GROUP2 */
	if (group && tw__tag_is_stale(&service->groups, tag)) {
		state = TW__RELEASING;
		if (call->last_orphan)
			service->slots.exts[call->last_orphan].next_free = index;
		else
			call->orphan = index;
		call->last_orphan = index;
	}
	tw__word_arm_release(&service->slots.words[tw__entry_slot(entry)],
			     (entry & ~(uint64_t)UINT32_MAX) | state); /* WORD1 */
	if (group)
		tw__group_unlock(group);
}

/*
 * The lane is not pinned any more, and may be anybody's: all that is needed
 * is in the extension records, which are this thread's.
 */
static void end_orphans(struct batch_call *call)
{
	struct tw__ext *exts = call->service->slots.exts;
	for (uint32_t index = call->orphan, next; index; index = next) {
		uint64_t entry = tw_load_relaxed(&exts[index].member);
		next = exts[index].next_free;
		tw__count_cancel(call->service, call->local);
		(void)tw__release(call->service, call->local, tw__entry_slot(entry),
				  (uint32_t)(entry >> TW__GENERATION_SHIFT), TW_FATE_CANCELLED);
	}
}

/* Stores the words. The earliest deadline. */
static uint64_t arm_all(struct batch_call *call, tw_timer *out)
{
	const struct tw__slots *slots = &call->service->slots;
	struct tw__lane_mark at = call->begin;
	const struct tw__entry *entry, *end;
	struct last_tick last = {0, 0, 0};
	uint64_t earliest_ns = UINT64_MAX;
	tw__magazine_count_scheduled(&call->local->magazine, (int64_t)call->n);
	while ((entry = tw__lane_stretch(&call->local->lane, &at, &end)))
		for (; entry != end; entry++) {
			if (tw_unlikely(!is_timer(entry)))
				continue;
			uint32_t slot = tw__entry_slot(entry->what);
			bool is_delay = tw__what_kind(entry->what) == TW__KIND_DELAY;
			uint64_t deadline_ns = entry->value + (is_delay ? call->base_ns : 0);
			uint32_t ext = tw_load_relaxed(&slots->records[slot].ext);
			uint64_t state = TW__ARMED | bits_of(call->service, &last, deadline_ns);
			uint64_t generation = entry->what & ~(uint64_t)UINT32_MAX;
			if (tw_unlikely(state & TW__BEYOND_RANGE))
				tw__far_set(&call->service->slots, slot, /* WORD6 */
					    tw__tick_to_write(call->service, deadline_ns));
			if (tw_likely(out))
				*out++ = tw__handle_make(slots, slot, (uint32_t)(generation >> 32));
			if (tw_likely(!ext))
				tw__word_arm_release(&slots->words[slot],
						     /* WORD1: pairs with claim */
						     generation | state);
			else
				arm_with_option(call, ext, tw__what_entry(entry->what),
						state | TW__EXT);
			earliest_ns = deadline_ns < earliest_ns ? deadline_ns : earliest_ns;
		}
	return earliest_ns;
}

/* Nothing between the pin and its end waits for anybody. */
static int schedule_pinned(struct batch_call *call, tw_timer *out)
{
	tw_service *service = call->service;
	call->word = tw__gate_pin_and_look(&service->gate, &call->local->lane.pinned);
	if (tw__gate_refuses(call->word))
		return tw__refused_by_gate(service);
	int r = tw__lane_admit(&call->local->lane, call->n + 1);
	if (r)
		return r;
	call->epoch_word_before = call->local->epoch_word;
	call->random = call->local->random;
	call->plain = !tw__context_is_on() || !tw__context_is_present();
	/* after admission, which may move the lane's end */
	call->begin = tw__lane_here(&call->local->lane);
	r = put_all(call);
	if (r) {
		bulk_take_back(call);
		return r;
	}
	call->local->random = call->random;
	uint64_t earliest_ns = arm_all(call, out);
	tw__publish(service, call->local);
	TW_PROBE3(arm_batch, service, call->n, earliest_ns);
	uint64_t word = tw__gate_look_after_push(&service->gate);
	if (tw_unlikely(!tw__gate_is_open(word))) {
		bool fell_asleep =
		    /* as in schedule.c: the driver knows nothing of this */
		    tw__gate_is_open(call->word);
		tw__wake_after_push(service, word, fell_asleep ? 0 : earliest_ns, call->grew);
	}
	return 0;
}

/*
 * Tells why the first bad task is refused, outside of the call's pin, in which the hook must not
 * schedule.
 */
static int tell_misuse(const struct batch_call *call, int error)
{
	for (size_t i = 0; i < call->n; i++) {
		const struct tw_task *task = task_at(call, i);
		struct tw_task other;
		struct tw_period period;
		if (task->size != call->stride)
			return tw__refuse(-EINVAL, "tw_schedule_bulk",
					  "tasks[%zu].size %zu: must be that of tasks[0]", i,
					  task->size);
		int r = tw__task_read(call->service, &task, &other, &period, true);
		if (r)
			return r;
		if (task->flags & TW_TASK_PERSISTENT)
			return tw__refuse(-EINVAL, "tw_schedule_bulk",
					  "tasks[%zu] is TW_TASK_PERSISTENT: schedule it alone", i);
	}
	return error;
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
	struct batch_call call = {
	    .service = service, .tasks = (const char *)tasks, .n = n, .stride = tasks->size};
	if (call.stride < offsetof(struct tw_task, when_ns) ||
	    call.stride % _Alignof(struct tw_task))
		return tw__invalid("tasks[0].size %zu: use TW_INIT(tw_task)", call.stride);
	call.local = tw__local_of(service);
	if (!call.local)
		return bulk_refused(NULL, out, n, -ENOMEM);
	int r = schedule_pinned(&call, out);
	tw__gate_unpin(&call.local->lane.pinned); /* GATE6 */
	if (tw_unlikely(call.orphan) && !r)
		end_orphans(&call); /* close waits for them as for any release */
	if (r)
		bulk_refused(call.local, out, n, r);
	return r == -EINVAL || r == -E2BIG || r == -ERANGE ? tell_misuse(&call, r) : r;
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
