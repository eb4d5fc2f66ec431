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

#include "wheel/member.h"
#include "wheel/timing.h"

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
			tw__lane_put(&local->lane, tw__what_make(TW__KIND_STAMP, 0), sequence);
		}
		return tw_load_relaxed(&service->gate.base_ns); /* of this number or a later one: an estimate */
	}
	uint64_t now_ns = tw__clock_read(service);
	local->stamp = 0;
	tw__lane_put(&local->lane, tw__what_make(TW__KIND_NOW, 0), now_ns);
	return now_ns;
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
		return refused(local, out, -ESHUTDOWN);
	}
	return 0;
}

/* The rare ends of a push: the driver sleeps, or is driven by hand, or has closed. deadline_ns 0: wake it anyway. */
static int after_push(tw_service *service, struct tw__local *local, uint64_t word, uint64_t deadline_ns, bool grew,
		      uint32_t slot, uint32_t generation, tw_timer *out)
{
	if (word & TW__GATE_CLOSED) {
		int r = retract(service, local, slot, generation, out);
		tw__wake(service); /* the lane holds an entry: if the timer is close's, it must be met */
		return r;
	}
	if (word & TW__GATE_PARKED && (grew || deadline_ns < tw_load_relaxed(&service->gate.plan)))
		tw__gate_ring(&service->gate);
	return 0;
}

/* Inlined into each of the short calls, where `kind` and `option` are constants. */
static inline __attribute__((always_inline)) int arm(tw_service *service, enum tw__kind kind, uint64_t value, tw_fn *fn,
						     void *arg, uint32_t option, tw_timer *out)
{
	struct tw__local *local = tw__local_of(service);
	if (tw_unlikely(!local))
		return refused(NULL, out, -ENOMEM);
	uint64_t word = tw__gate_look(&service->gate);
	if (tw_unlikely(word & TW__GATE_CLOSED))
		return refused(local, out, -ESHUTDOWN);
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
		tw_store_release(&record->option, option); /* W5 */

	uint64_t deadline_ns = kind == TW__KIND_DELAY ? put_base(service, local, word) + value : value;
	uint64_t state = TW__ARMED | (option ? TW__OPTION : 0) | deadline_bits(service, deadline_ns);
	if (option) {
		int r = tw__group_enter(&service->groups, &service->slots, option, tw__entry_make(slot, generation));
		if (r) {
			tw__slot_put(&service->slots, &local->magazine, slot, generation);
			return refused(local, out, r);
		}
	}
	tw_bump(&local->scheduled, 1);
	tw_store_release(&service->slots.words[slot], tw__word_make(generation, state, 0)); /* W1: pairs with claim */
	if (option)
		tw__group_entered(&service->groups, &service->slots.options[option]);
	tw__lane_put(&local->lane, tw__what_make(kind, tw__entry_make(slot, generation)), value);
	tw__publish(service, local);

	uint64_t before = word;
	word = tw__gate_look_after_push(&service->gate);
	if (tw_likely(tw__gate_is_open(word)))
		return 0;
	if (tw__gate_is_open(before))
		deadline_ns = 0; /* the driver fell asleep meanwhile, and knows nothing of this */
	return after_push(service, local, word, deadline_ns, grew, slot, generation, out);
}

int tw_schedule(tw_service *service, uint64_t delay_ns, tw_fn *fn, void *arg, tw_timer *out)
{
	if (tw_unlikely(!service || !fn))
		return -EINVAL;
	if (tw_unlikely(delay_ns > TW_MAX_DELAY_NS))
		return refused(tw__local_of(service), out, -ERANGE);
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
		return refused(tw__local_of(service), out, -ERANGE);
	return arm(service, TW__KIND_DEADLINE, deadline_ns, fn, arg, 0, out);
}

static int read_period(struct tw_period *period, const struct tw_period *in)
{
	int r = tw__struct_read(period, sizeof *period, offsetof(struct tw_period, mode), in);
	if (r)
		return r;
	if (period->period_ns == 0 || (unsigned)period->mode > TW_FIXED_DELAY ||
	    (unsigned)period->missed > TW_MISSED_BURST || period->reserved)
		return -EINVAL;
	return period->period_ns > TW_MAX_DELAY_NS || period->first_ns > TW_MAX_DELAY_NS ? -ERANGE : 0;
}

/* Whether the instant itself is wanted, and not only what the lane's base makes of a delay. */
static bool wants_instant(const struct tw_task *task)
{
	return task->period || task->slack_ns || task->max_lateness_ns;
}

/* A reset also takes the mark from a condemned timer (route.c). */
static uint32_t traits_of(const tw_service *service, const struct tw_task *task)
{
	bool may_be_condemned = task->release && service->on_refused == TW_REFUSED_DROP;
	return (task->release ? TW__TRAIT_RELEASE : 0u) |
	       (wants_instant(task) || may_be_condemned ? TW__TRAIT_MOVES : 0u);
}

static void name_executor(tw_service *service, struct tw__option *option, tw_executor *executor)
{
	tw_store_release(&option->executor, executor);    /* W5: pairs with route */
	if (!tw_load_relaxed(&service->routed))           /* else its line stays unwritten */
		tw_store_relaxed(&service->routed, true); /* published with the word: W1 */
}

static void fill_option(tw_service *service, struct tw__option *option, const struct tw_task *task,
			const struct tw_period *period)
{
	tw_store_relaxed(&option->tag, task->group.id);              /* until it has entered */
	tw_store_release(&option->traits, traits_of(service, task)); /* W5 */
	option->release = task->release;
	option->max_lateness_ns = task->max_lateness_ns;
	option->late_drop = task->late == TW_LATE_DROP;
	option->slack_ns = task->slack_ns;
	if (task->executor && task->executor != service->executor)
		name_executor(service, option, task->executor);
	if (period) {
		option->period_ns = period->period_ns;
		option->runs_left = period->count;
		option->fixed_delay = period->mode == TW_FIXED_DELAY;
		option->missed = (uint8_t)period->missed;
	}
}

/* The timer was refused, perhaps after others could see it (retract). */
static void take_back_option(tw_service *service, struct tw__local *local, uint32_t index)
{
	if (tw_load_relaxed(&service->slots.options[index].traits) & TW__TRAIT_MOVES)
		tw__option_await_all_resets(&service->slots);
	if (service->slots.options[index].member)
		tw__group_leave(service, index);
	tw__option_put(&service->slots, &local->options, index);
}

/*
 * A timer with a side record. Where its instant is wanted the clock is read: nominal instants are exact from the first on. It is
 * armed for that instant only if slack or period need it, or else takes its place by its delay, as a plain one does (G6).
 */
static int arm_with_option(tw_service *service, enum tw__kind kind, uint64_t value, const struct tw_task *task,
			   const struct tw_period *period, tw_timer *out)
{
	struct tw__local *local = tw__local_of(service);
	uint32_t index = local ? tw__option_get(&service->slots, &local->options) : 0;
	if (!index)
		return refused(local, out, -ENOMEM);
	struct tw__option *option = &service->slots.options[index];
	fill_option(service, option, task, period);
	if (wants_instant(task))
		option->nominal_ns = kind == TW__KIND_DEADLINE ? value : tw__clock_read(service) + value;
	if (period || task->slack_ns) {
		kind = TW__KIND_DEADLINE;
		value = tw__within_slack(service, option->nominal_ns, task->slack_ns);
	}
	int r = arm_any(service, kind, value, task->fn, task->arg, index, out);
	if (r)
		take_back_option(service, local, index);
	return r;
}

/* Whether there is more to it than fn, arg and one instant. */
static bool needs_option(const tw_service *service, const struct tw_task *task)
{
	return task->release || task->period || task->group.id || task->slack_ns || task->max_lateness_ns ||
	       (task->executor && task->executor != service->executor);
}

/* The delay or deadline that a task or its period names. */
static uint64_t first_of(const struct tw_task *task, const struct tw_period *period)
{
	return period && !(task->flags & TW_TASK_AT) ? period->first_ns : task->when_ns;
}

static int arm_task(tw_service *service, const struct tw_task *task, const struct tw_period *period, uint64_t jitter_ns,
		    tw_timer *out)
{
	enum tw__kind kind = task->flags & TW_TASK_AT ? TW__KIND_DEADLINE : TW__KIND_DELAY;
	uint64_t value = first_of(task, period) + jitter_ns;
	if (needs_option(service, task))
		return arm_with_option(service, kind, value, task, period, out);
	return arm_any(service, kind, value, task->fn, task->arg, 0, out);
}

/* Jitter leaves no trace in the timer. A refused call has drawn nothing. */
static int arm_with_jitter(tw_service *service, const struct tw_task *task, const struct tw_period *period,
			   tw_timer *out)
{
	struct tw__local *local = tw__local_of(service);
	if (!local)
		return refused(NULL, out, -ENOMEM);
	uint64_t random = local->random;
	int r = arm_task(service, task, period, tw__random_upto(&random, task->jitter_ns), out);
	if (r == 0)
		local->random = random;
	return r;
}

static int check_range(const tw_service *service, const struct tw_task *task, const struct tw_period *period)
{
	bool at = task->flags & TW_TASK_AT;
	if (task->slack_ns > TW_MAX_DELAY_NS || task->jitter_ns > TW_MAX_DELAY_NS - task->slack_ns)
		return -ERANGE;
	if (at ? beyond_range(service, task->when_ns) : task->when_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	uint64_t latest_ns = first_of(task, period) + task->slack_ns + task->jitter_ns;
	if (at ? beyond_range(service, latest_ns) : latest_ns > TW_MAX_DELAY_NS)
		return -ERANGE;
	return 0;
}

static int check_task(const tw_service *service, const struct tw_task *task, const struct tw_period *period)
{
	bool at = task->flags & TW_TASK_AT;
	if (!task->fn || task->flags & ~(uint32_t)TW_TASK_AT || task->reserved || task->reserved_late)
		return -EINVAL;
	if (period && (at ? period->first_ns : task->when_ns))
		return -EINVAL;
	if ((unsigned)task->late > TW_LATE_DROP || (task->late && !task->max_lateness_ns))
		return -EINVAL;
	if (task->executor && !tw__executor_is_sound(task->executor))
		return -EINVAL;
	return check_range(service, task, period);
}

int tw_schedule_task(tw_service *service, const struct tw_task *task, tw_timer *out)
{
	struct tw_task other;
	struct tw_period period;
	if (tw_unlikely(!service || !task))
		return -EINVAL;
	int r = 0;
	if (tw_unlikely(task->size != sizeof *task)) {
		r = tw__struct_read(&other, sizeof other, offsetof(struct tw_task, when_ns), task);
		task = &other;
	}
	if (!r && task->period)
		r = read_period(&period, task->period);
	if (!r)
		r = check_task(service, task, task->period ? &period : NULL);
	if (r)
		return r == -ERANGE ? refused(tw__local_of(service), out, r) : r;
	const struct tw_period *series = task->period ? &period : NULL;
	if (task->jitter_ns)
		return arm_with_jitter(service, task, series, out);
	return arm_task(service, task, series, 0, out);
}

int tw_schedule_every(tw_service *service, const struct tw_period *period, tw_fn *fn, void *arg, tw_timer *out)
{
	if (!period)
		return -EINVAL;
	struct tw_task task = {.size = sizeof task, .fn = fn, .arg = arg, .period = period};
	return tw_schedule_task(service, &task, out);
}
