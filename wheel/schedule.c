/*
 * Scheduling: a slot, a record, a word, an entry in this thread's lane, a look at the gate. Wait-free but for growing.
 *
 * Linearisation: the store of the control word. From then on a cancel through *out works, though the entry that makes it fire
 * is published a moment later, by the same thread.
 *
 * Against close: the push is published, then the gate is looked at (gate.h, P2). If that says closed, the call cancels its
 * own timer: if it wins, nothing has happened (-ESHUTDOWN); if it loses, close has dealt with the timer, and it was accepted.
 */
#include "wheel/schedule.h"

#include <errno.h>

/* Longest push of a schedule: a base and the entry. */
enum { SCHEDULE_ENTRIES = 2 };

static int refused(struct tw__local *local, tw_timer *out, int error)
{
	if (local)
		tw_bump(&local->rejected, 1);
	if (out)
		*out = (tw_timer){0};
	return error;
}

int tw__refused_by_gate(tw_service *service)
{
	if (tw__forked(service))
		return -EPERM;
	tw__acknowledge_close(tw__local_of(service));
	return -ESHUTDOWN;
}

static __attribute__((noinline)) int refused_by_gate(tw_service *service, tw_timer *out)
{
	int error = tw__refused_by_gate(service);
	return refused(error == -EPERM ? NULL : tw__local_of(service), out, error);
}

static int out_of_range(tw_service *service, tw_timer *out)
{
	return tw__forked(service) ? refused(NULL, out, -EPERM) : refused(tw__local_of(service), out, -ERANGE);
}

/*
 * The lane's base for delays that follow. While the driver ticks it is the published sequence number, pushed only when it
 * has changed, else a reading of the clock. Returns the instant to count from: that reading, or what the driver has published
 * for this tick, which it will correct if it comes late (drain.c).
 */
static inline uint64_t put_base(tw_service *service, struct tw__local *local, uint64_t word)
{
	if (tw_likely(tw__gate_is_open(word))) {
		uint64_t sequence = tw__gate_sequence(word);
		if (tw_unlikely(local->stamp != sequence)) {
			local->stamp = sequence;
			local->counted_ns = tw_load_relaxed(&service->gate.base_ns); /* its own or a later one's */
			uint64_t counted = tw__entry_make(0, (uint32_t)local->counted_ns);
			tw__lane_put(&local->lane, tw__what_make(TW__KIND_STAMP, counted), sequence);
		}
		return local->counted_ns;
	}
	uint64_t now_ns = tw__clock_read(service);
	if (now_ns < local->counted_ns)
		now_ns = local->counted_ns; /* the driver fell asleep in the tick whose end was counted from: G6 */
	local->stamp = 0;
	tw__lane_put(&local->lane, tw__what_make(TW__KIND_NOW, 0), now_ns);
	return now_ns;
}

/*
 * The instant to count from where nobody publishes one: a manual drive, or a clock that moves by hand. Such a lane's entries all bring
 * deadlines, and need no base; as with a base, the instant never falls within a lane (G6).
 */
static inline uint64_t own_instant(tw_service *service, struct tw__local *local)
{
	uint64_t now_ns = tw__clock_read_fast(service);
	if (tw_unlikely(now_ns < local->counted_ns))
		now_ns = local->counted_ns;
	return local->counted_ns = now_ns;
}

/* What a new timer's word says of its deadline: the tick, or if that is far, a hint and that its entry knows. */
static inline uint64_t deadline_bits(tw_service *service, uint64_t deadline_ns)
{
	uint64_t tick = tw__tick_to_write(service, deadline_ns), cursor = tw_load_relaxed(&service->gate.cursor);
	if (tw_likely(tick < cursor + TW__WHEEL_REACH))
		return tick & TW__DEADLINE_MASK;
	return TW__UNFILED | tick >> tw__hint_shift(service);
}

/* Takes back a timer that was pushed into a service that has closed; its side record stays the caller's. */
static int retract(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation, tw_timer *out)
{
	uint64_t word = tw_load_acquire(&service->slots.words[slot]);
	while (tw__word_generation(word) == generation && tw__word_armed(word)) {
		if (!tw_cas_acq_rel(&service->slots.words[slot], &word, tw__word_next_free(word)))
			continue;
		tw__slot_put(&service->slots, &local->magazine, slot, generation + 1);
		tw_bump(&local->scheduled, (uint64_t)-1);
		return refused_by_gate(service, out);
	}
	tw__acknowledge_close(local);
	return 0;
}

/* Whether a driver that sleeps must hear of a push. */
static inline bool wanted_now(tw_service *service, uint64_t deadline_ns, bool grew)
{
	return grew || deadline_ns < tw_load_relaxed(&service->gate.plan); /* P1 */
}

/* The rare ends of a push: the driver sleeps, and is wanted, or has closed. */
static int after_push(tw_service *service, struct tw__local *local, uint64_t word, uint32_t slot, uint32_t generation,
		      tw_timer *out)
{
	if (tw__gate_refuses(word)) {
		int r = retract(service, local, slot, generation, out);
		tw__wake(service); /* the lane holds an entry: if the timer is close's, it must be met */
		return r;
	}
	tw__gate_ring(&service->gate);
	return 0;
}

/* Inlined into each of the short calls, where `kind` and `option` are constants. */
static inline __attribute__((always_inline)) int arm(tw_service *service, enum tw__kind kind, uint64_t value, tw_fn *fn,
						     void *arg, uint32_t option, tw_timer *out)
{
	uint64_t word = tw__gate_look(&service->gate);
	if (tw_unlikely(tw__gate_refuses(word)))
		return refused_by_gate(service, out);
	struct tw__local *local = tw__local_of(service);
	if (tw_unlikely(!local))
		return refused(NULL, out, -ENOMEM);
	bool grew = false;
	if (tw_unlikely(!tw__lane_has_room(&local->lane, SCHEDULE_ENTRIES))) {
		int r = tw__lane_grow(&local->lane, SCHEDULE_ENTRIES, &grew);
		if (r)
			return refused(local, out, r);
	}
	uint32_t slot = tw__slot_get(&service->slots, &local->magazine);
	if (tw_unlikely(!slot))
		return refused(local, out, -EAGAIN);

	uint32_t generation = tw__word_generation(tw_load_relaxed(&service->slots.words[slot])); /* ours alone */
	if (out)
		*out = tw__handle_make(&service->slots, slot, generation);
	struct tw__record *record = &service->slots.records[slot];
	tw_store_relaxed(&record->fn, fn); /* published by W1 */
	tw_store_relaxed(&record->arg, arg);
	if (option)
		tw_store_relaxed(&record->option, option);
	tw_bump(&local->scheduled, 1);

	uint64_t deadline_ns = value;
	if (kind == TW__KIND_DELAY && tw_likely(service->published)) {
		deadline_ns += put_base(service, local, word);
	} else if (kind == TW__KIND_DELAY) {
		kind = TW__KIND_DEADLINE;
		value = deadline_ns += own_instant(service, local);
	}
	uint64_t state = TW__ARMED | (option ? TW__OPTION : 0) | deadline_bits(service, deadline_ns);
	tw_store_release(&service->slots.words[slot], tw__word_make(generation, state, 0)); /* W1: pairs with claim */
	tw__lane_put(&local->lane, tw__what_make(kind, tw__entry_make(slot, generation)), value);
	tw__publish(service, local);

	uint64_t before = word;
	word = tw__gate_look_after_push(&service->gate);
	if (tw_likely(tw__gate_is_open(word)))
		return 0;
	if (tw__gate_is_open(before))
		deadline_ns = 0; /* the driver fell asleep meanwhile, and knows nothing of this */
	if (tw_likely(!tw__gate_refuses(word) && !(word & TW__GATE_PARKED && wanted_now(service, deadline_ns, grew))))
		return 0;
	return after_push(service, local, word, slot, generation, out);
}

int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	if (tw_unlikely(!service || !fn))
		return -EINVAL;
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return out_of_range(service, out);
	return arm(service, TW__KIND_DELAY, delay_ns, fn, arg, 0, out);
}

static __attribute__((noinline)) int arm_any(tw_service *service, enum tw__kind kind, uint64_t value, tw_fn *fn,
					     void *arg, uint32_t option, tw_timer *out)
{
	return arm(service, kind, value, fn, arg, option, out);
}

static bool beyond_range(const tw_service *service, uint64_t deadline_ns)
{
	return deadline_ns > service->start_ns && deadline_ns - service->start_ns > TW_MAX_DELAY_NS;
}

int tw_schedule_at(tw_service *service, uint64_t deadline_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	if (tw_unlikely(!service || !fn))
		return -EINVAL;
	if (tw_unlikely(beyond_range(service, deadline_ns)))
		return out_of_range(service, out);
	return arm(service, TW__KIND_DEADLINE, deadline_ns, fn, arg, 0, out);
}

static int read_period(struct tw_period *period, const struct tw_period *in)
{
	int r = tw__struct_read(period, sizeof *period, offsetof(struct tw_period, mode), in);
	if (r)
		return r;
	if (period->period_ns == 0 || (unsigned)period->mode > TW_FIXED_DELAY)
		return -EINVAL;
	return period->period_ns > TW_MAX_DELAY_NS || period->first_ns > TW_MAX_DELAY_NS ? -ERANGE : 0;
}

/* A timer with a side record. A series reads the clock: its nominal instants are exact from the first on. */
static int arm_with_option(tw_service *service, const struct tw_task *task, const struct tw_period *period,
			   tw_timer *out)
{
	uint32_t index = tw__option_get(&service->slots);
	if (!index)
		return refused(tw__local_of(service), out, -ENOMEM);
	struct tw__option *option = &service->slots.options[index];
	option->release = task->release;
	enum tw__kind kind = task->flags & TW_TASK_AT ? TW__KIND_DEADLINE : TW__KIND_DELAY;
	uint64_t value = task->when_ns;
	if (period) {
		if (kind == TW__KIND_DELAY)
			value = tw__clock_read(service) + period->first_ns;
		kind = TW__KIND_DEADLINE;
		option->nominal_ns = value;
		option->period_ns = period->period_ns;
		option->runs_left = period->count;
		option->fixed_delay = period->mode == TW_FIXED_DELAY;
	}
	int r = arm_any(service, kind, value, task->fn, task->arg, index, out);
	if (r)
		tw__option_put_unslotted(&service->slots, index);
	return r;
}

static int check_task(const tw_service *service, const struct tw_task *task, const struct tw_period *period)
{
	bool at = task->flags & TW_TASK_AT;
	if (!task->fn || task->flags & ~(uint32_t)TW_TASK_AT || task->reserved)
		return -EINVAL;
	if (period && (at ? period->first_ns : task->when_ns))
		return -EINVAL;
	if (at ? beyond_range(service, task->when_ns) : task->when_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	return 0;
}

int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out)
{
	struct tw_task known;
	struct tw_period period;
	if (!service || !task)
		return -EINVAL;
	if (tw__forked(service))
		return refused(NULL, out, -EPERM);
	int r = tw__struct_read(&known, sizeof known, offsetof(struct tw_task, when_ns), task);
	if (!r && known.period)
		r = read_period(&period, known.period);
	if (!r)
		r = check_task(service, &known, known.period ? &period : NULL);
	if (r)
		return r == -ERANGE ? out_of_range(service, out) : r;
	if (known.period || known.release)
		return arm_with_option(service, &known, known.period ? &period : NULL, out);
	enum tw__kind kind = known.flags & TW_TASK_AT ? TW__KIND_DEADLINE : TW__KIND_DELAY;
	return arm_any(service, kind, known.when_ns, known.fn, known.arg, 0, out);
}

int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg, tw_timer *out)
{
	if (!period)
		return -EINVAL;
	struct tw_task task = {.size = sizeof task, .fn = fn, .arg = arg, .period = period};
	return tw_schedule_task(service, &task, out);
}
