/*
 * The floor: only the memory work that no timer service with safe handles can avoid, through the
 * same array of handles. Cancel reads a handle and does one compare-and-swap on its baseline word;
 * schedule writes one record and appends 8 bytes. Nothing ever fires: this is no timer, and is left
 * out where timers must fire.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/candidate.h"

/* A baseline word: generation, armed, deadline in ticks. A handle: generation, index. */
#define GENERATION_SHIFT 32
#define ARMED (UINT64_C(1) << 31)
#define TICK_MASK (ARMED - 1)

enum { TAIL_ENTRIES = 16384 };

struct record {
	expiry_fn *fn;
	void *arg;
	uint64_t options;
};

struct tail {
	_Alignas(64) uint64_t loop_ns;
	uint64_t count;
	uint64_t entries[TAIL_ENTRIES];
};

struct limit {
	uint32_t slots;
	uint64_t *handles;
	_Atomic uint64_t *words;
	struct record *records;
	struct tail *tails;
};

static void destroy(void *me)
{
	struct limit *self = me;
	free(self->handles);
	free((void *)self->words);
	free(self->records);
	free(self->tails);
	free(self);
}

static void *create(const struct candidate_setup *setup)
{
	struct limit *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->slots = setup->slots;
	self->handles = touched_array(setup->slots, sizeof *self->handles);
	self->words = touched_array(setup->slots, sizeof *self->words);
	self->records = touched_array(setup->slots, sizeof *self->records);
	self->tails = touched_array(setup->threads, sizeof *self->tails);
	if (!self->handles || !self->words || !self->records || !self->tails) {
		destroy(self);
		return NULL;
	}
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		self->handles[slot] = slot;
	for (unsigned thread = 0; thread < setup->threads; thread++)
		self->tails[thread].loop_ns = now_ns();
	return self;
}

static inline uint64_t ticks_after(const struct tail *tail, uint64_t delay_ns)
{
	return ((tail->loop_ns + delay_ns) / TICK_NS) & TICK_MASK;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	struct limit *self = me;
	struct tail *tail = &self->tails[thread];
	uint64_t handle = self->handles[slot];
	uint32_t index = (uint32_t)handle;
	self->records[index] = (struct record){.fn = fn, .arg = arg};
	uint64_t word =
	    (handle >> GENERATION_SHIFT << GENERATION_SHIFT) | ARMED | ticks_after(tail, delay_ns);
	atomic_store_explicit(&self->words[index], word, memory_order_release);
	tail->entries[tail->count++ % TAIL_ENTRIES] = handle;
	return 0;
}

static bool cancel(void *me, uint32_t slot)
{
	struct limit *self = me;
	uint64_t handle = self->handles[slot];
	_Atomic uint64_t *word = &self->words[(uint32_t)handle];
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
	if (!(seen & ARMED) || (seen ^ handle) >> GENERATION_SHIFT)
		return false;
	uint64_t next_generation = ((seen >> GENERATION_SHIFT) + 1) << GENERATION_SHIFT;
	if (!atomic_compare_exchange_strong(word, &seen, next_generation))
		return false;
	self->handles[slot] = next_generation | (uint32_t)handle;
	return true;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct limit *self = me;
	uint64_t handle = self->handles[slot];
	_Atomic uint64_t *word = &self->words[(uint32_t)handle];
	uint64_t seen = atomic_load_explicit(word, memory_order_relaxed);
	if (!(seen & ARMED) || (seen ^ handle) >> GENERATION_SHIFT)
		return false;
	uint64_t moved = (seen & ~TICK_MASK) | ticks_after(&self->tails[thread], delay_ns);
	return atomic_compare_exchange_strong(word, &seen, moved);
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	struct limit *self = me;
	self->tails[thread].loop_ns = at_ns;
}

static void view(void *me, struct candidate_view *out)
{
	struct limit *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof *self->handles};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += (self->words[slot] & ARMED) != 0;
}

const struct candidate candidate_limit = {
    .name = "limit",
    .what = "no timer: handle, compare-and-swap, record, 8-byte append, and nothing else",
    .workloads = ON_CHURN | ON_REQUEST | ON_TOUCH,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .cancel = cancel,
    .touch = touch,
    .turn = turn,
    .view = view,
};
