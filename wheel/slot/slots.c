/* The depot, what threads keep of it, and the transition table of word.h for assertions. */
#include <errno.h>
#include <string.h>

#include "wheel/slot/slots.h"
#include "mpsc/base/random.h"
#include "mpsc/base/futex.h"
#include "wheel/slot/magazine.h"
#include "wheel/slot/word.h"

/* Slots beyond max_timers that threads' magazines may hold back. */
enum { MAGAZINES_COUNTED = 1024, SPARE_SLOTS = MAGAZINES_COUNTED * TW__MAGAZINE_MAX };

/* Slots that are mapped first, and in one step at most; those of a step stay after a storm. */
enum { FIRST_SLOTS = 64, STEP_SLOTS = 16384 };

/* The first generation of a slot of this block that no handle has had. The lock is held. */
static uint32_t first_generation(const struct tw__slots *slots, uint32_t block)
{
	uint32_t first = slots->first_generations[block], begin = block << TW__BLOCK_SHIFT;
	for (uint32_t i = 0; i < UINT32_C(1) << TW__BLOCK_SHIFT; i++) {
		uint32_t generation =
		    tw__word_generation(tw_load_relaxed(&slots->words[begin + i]));
		first = generation > first ? generation : first;
	}
	return first;
}

static void block_leaves(struct tw__depot *depot, uint32_t block)
{
	struct tw__slots *slots = (void *)((char *)depot - offsetof(struct tw__slots, depot));
	slots->first_generations[block] = first_generation(slots, block);
}

/*
 * Words and records of many timers are met at random: with small pages most of that time goes into
 * translating addresses. All go back with a block of free slots.
 */
#define ARRAY(member, huge)                                                                       \
	{                                                                                         \
		offsetof(struct tw__slots, member), sizeof *((struct tw__slots *)0)->member, huge \
	}
static const struct {
	size_t pointer, item_bytes;
	bool prefers_huge_pages;
} arrays[TW__SLOT_ARRAYS] = {
    [TW__WORDS] = ARRAY(words, true),          [TW__RECORDS] = ARRAY(records, true),
    [TW__LOCATIONS] = ARRAY(locations, false), [TW__FAR_TICKS] = ARRAY(far_ticks, false),
    [TW__LINKS] = ARRAY(links, false),         [TW__EXTS] = ARRAY(exts, false),
    [TW__SERIES] = ARRAY(series, false),
};

_Static_assert(TW__SLOT_ARRAYS <= (int)TW__DEPOT_ARRAYS, "all go back");
_Static_assert((sizeof(uint32_t) << TW__BLOCK_SHIFT) % 4096 == 0, "blocks are whole pages");

/* ------------------------------------------------------------------------ ranges */

static int open_ranges(struct tw__slots *slots, size_t tables_bytes)
{
	struct tw__range *ranges = slots->memory.ranges;
	const struct tw__wheel_bytes *wheel = &slots->memory.wheel;
	for (int i = 0; i < TW__SLOT_ARRAYS; i++)
		ranges[i] = (struct tw__range){.bytes = slots->end * arrays[i].item_bytes,
					       .prefers_huge_pages = arrays[i].prefers_huge_pages};
	ranges[TW__ARENA] = (struct tw__range){.bytes = tw__arena_bytes(wheel, slots->end)};
	ranges[TW__SLOT_TABLES] = (struct tw__range){.bytes = tables_bytes};
	ranges[TW__WHEEL_TABLES] = (struct tw__range){.bytes = wheel->tables};
	int r = tw__region_open(&slots->memory.region, ranges, TW__RANGES);
	r = r ? r : tw__range_map(&ranges[TW__SLOT_TABLES], tables_bytes);
	return r ? r : tw__range_map(&ranges[TW__WHEEL_TABLES], wheel->tables);
}

/* One past the last slot that may be in use: what magazines hold back is no timer's. */
static uint32_t slots_limit(const struct tw__slots *slots)
{
	uint64_t threads = tw_load_relaxed(&slots->threads);
	uint64_t limit =
	    TW__SLOT_FIRST + (uint64_t)slots->max_timers + tw_load_relaxed(&slots->retired) +
	    (threads < MAGAZINES_COUNTED ? threads : MAGAZINES_COUNTED) * TW__MAGAZINE_MAX;
	return limit < slots->end ? (uint32_t)limit : slots->end;
}

/* The lock is held. What was mapped before a failure stays mapped. */
static int map_slots(struct tw__slots *slots)
{
	struct tw__range *ranges = slots->memory.ranges;
	uint64_t mapped = tw_load_relaxed(&slots->mapped),
		 more = mapped < FIRST_SLOTS ? FIRST_SLOTS
					     : mapped + (mapped < STEP_SLOTS ? mapped : STEP_SLOTS);
	size_t limit = slots_limit(slots), n = more < limit ? more : limit;
	for (int i = 0; i < TW__SLOT_ARRAYS; i++)
		if (tw__range_map(&ranges[i], n * arrays[i].item_bytes))
			return -ENOMEM;
	if (tw__range_map(&ranges[TW__ARENA], tw__arena_bytes(&slots->memory.wheel, n)))
		return -ENOMEM;
	tw_store_release(&slots->mapped, (uint32_t)n); /* SLOT1 */
	return 0;
}

bool tw__slots_more_chunks(struct tw__slots *slots)
{
	struct tw__range *arena = &slots->memory.ranges[TW__ARENA];
	const struct tw__wheel_bytes *wheel = &slots->memory.wheel;
	size_t mapped = tw_load_relaxed(&arena->mapped), more = 2 * mapped,
	       most = wheel->many + tw_load_relaxed(&slots->mapped) * wheel->many_a_slot;
	if (mapped >= most || pthread_mutex_trylock(&slots->lock))
		return false;
	int r = tw__range_map(arena, more < most ? more : most);
	pthread_mutex_unlock(&slots->lock);
	return !r;
}

uint32_t tw__slots_end(uint32_t max_timers)
{
	uint64_t end = (uint64_t)max_timers + SPARE_SLOTS + TW__SLOT_FIRST;
	return end <= TW__SLOT_MASK ? (uint32_t)end : TW__SLOT_MASK;
}

tw_cold int tw__slots_init(struct tw__slots *slots, uint32_t max_timers,
			   struct tw__wheel_bytes wheel)
{
	*slots = (struct tw__slots){.max_timers = max_timers,
				    .base = tw__entry_make(0, (uint32_t)tw__random_bits()),
				    .memory.wheel = wheel};
	slots->end = tw__slots_end(max_timers);
	pthread_mutex_init(&slots->lock, NULL); /* cannot fail with default attributes */
	size_t depot_bytes = tw__depot_bytes(slots->end, TW__BLOCK_SHIFT),
	       blocks = (slots->end >> TW__BLOCK_SHIFT) + 1;
	if (open_ranges(slots, depot_bytes + blocks * sizeof *slots->first_generations))
		return -ENOMEM;
	char *tables = slots->memory.ranges[TW__SLOT_TABLES].at;
	tw__depot_init(&slots->depot, slots->end, TW__BLOCK_SHIFT, TW__SLOT_FIRST, tables);
	slots->first_generations = (uint32_t *)(void *)(tables + depot_bytes);
	slots->depot.kept = STEP_SLOTS;
	slots->depot.leaves = block_leaves;
	for (int i = 0; i < TW__SLOT_ARRAYS; i++) {
		char *at = slots->memory.ranges[i].at;
		memcpy((char *)slots + arrays[i].pointer, &at, sizeof at);
		slots->depot.arrays[i] = (struct tw__depot_array){at, arrays[i].item_bytes};
	}
	return map_slots(slots);
}

void tw__slots_unmap(struct tw__slots *slots)
{
	tw__region_close(&slots->memory.region);
}

/* ------------------------------------------------------------------- far deadlines */

static void far_store(struct tw__slots *slots, uint32_t slot, uint64_t tick)
{
	tw__slots_write(slots, TW__FAR_TICKS);
	/* planted: far_bits_lost */
	tw_store_relaxed(&slots->far_ticks[slot], tick); /* WORD6 */
}

/* The lock: a move of the slot's last timer may have won, and not have stored yet. */
void tw__far_set(struct tw__slots *slots, uint32_t slot, uint64_t tick)
{
	TW_ASSERT(slot > 0 && slot < slots->end);
	_Atomic uint32_t *lock = tw__far_lock(slots, slot); /* planted: far_set_unlocked */
	far_store(slots, slot, tick);
	tw__tiny_unlock(lock);
}

/* An acquire load, for what a reset published with the word (WORD4). */
static bool far_is(const struct tw__slots *slots, uint32_t slot, uint64_t *word)
{
	uint64_t seen = *word;
	*word = tw_load_acquire(&slots->words[slot]);
	return *word == seen;
}

bool tw__far_read(struct tw__slots *slots, uint32_t slot, uint64_t *word, uint64_t *tick)
{
	TW_ASSERT(tw__word_is_far(*word));
	_Atomic uint32_t *lock = tw__far_lock(slots, slot); /* planted: far_read_unlocked */
	bool is_same = far_is(slots, slot, word);
	*tick = tw_load_relaxed(&slots->far_ticks[slot]); /* WORD6 */
	tw__tiny_unlock(lock);
	return is_same;
}

bool tw__far_move(struct tw__slots *slots, uint32_t slot, uint64_t *word, uint64_t was,
		  uint64_t moved, uint64_t tick)
{
	TW_ASSERT(slot > 0 && slot < slots->end);
	_Atomic uint32_t *lock = tw__far_lock(slots, slot); /* planted: far_move_unlocked */
	bool done = !tw__word_is_far(*word) || tw_load_relaxed(&slots->far_ticks[slot]) == was;
	if (done)
		done = tw__word_cas_acq_rel(&slots->words[slot], word, moved); /* WORD4 */
	else
		far_is(slots, slot, word);
	if (done && tw__word_is_far(moved))
		far_store(slots, slot, tick);
	tw__tiny_unlock(lock);
	return done;
}

/* ------------------------------------------------------------------- depot */

static uint32_t take_mapped(struct tw__slots *slots, uint32_t want, uint32_t *out)
{
	uint32_t limit = slots_limit(slots), mapped = tw_load_relaxed(&slots->mapped);
	return tw__depot_take(&slots->depot, want, limit < mapped ? limit : mapped, out);
}

int tw__slots_take(struct tw__slots *slots, uint32_t want, uint32_t *out)
{
	int refusal = -EAGAIN;
	pthread_mutex_lock(&slots->lock); /* planted: depot_unlocked */
	TW_ASSERT_LOCKED(&slots->lock);
	uint32_t n = take_mapped(slots, want, out);
	if (!n && tw_load_relaxed(&slots->mapped) < slots_limit(slots)) {
		refusal = map_slots(slots);
		n = refusal ? 0 : take_mapped(slots, want, out);
	}
	pthread_mutex_unlock(&slots->lock);
	return n ? (int)n : refusal;
}

void tw__slots_put(struct tw__slots *slots, const uint32_t *out, uint32_t n)
{
	pthread_mutex_lock(&slots->lock);
	tw__depot_put(&slots->depot, out, n);
	pthread_mutex_unlock(&slots->lock);
}

/* Under the lock no thread takes an index whose memory goes. */
bool tw__slots_purge(struct tw__slots *slots)
{
	if (!tw__depot_has_surplus(&slots->depot, 1))
		return false;
	if (pthread_mutex_trylock(&slots->lock))
		return true;
	bool more = tw__depot_purge(&slots->depot);
	pthread_mutex_unlock(&slots->lock);
	return more;
}

uint64_t tw__slot_entry(const struct tw__slots *slots, uint32_t slot)
{
	uint64_t word = tw_load_relaxed(&slots->words[slot]);
	uint32_t generation = tw__word_generation(word),
		 first = slots->first_generations[slot >> TW__BLOCK_SHIFT];
	TW_ASSERT(tw__word_state(word) == TW__FREE);
	first += first == 0; /* 0 is no timer's */
	if (generation >= first)
		return tw__entry_make(slot, generation);
	tw_store_relaxed(&slots->words[slot], tw__word_make(first, TW__FREE, 0));
	return tw__entry_make(slot, first);
}

uint64_t tw__slots_bytes(const struct tw__slots *slots)
{
	uint64_t per_held = 0;
	for (int i = 0; i < TW__SLOT_ARRAYS; i++)
		per_held += i < TW__LOCATIONS || tw_load_relaxed(&slots->written[i])
				? arrays[i].item_bytes
				: 0;
	return tw__depot_held(&slots->depot) * per_held;
}

/* -------------------------------------------------------------------- magazines */

void tw__magazine_init(struct tw__slots *slots, struct tw__magazine *magazine)
{
	*magazine = (struct tw__magazine){.capacity = TW__MAGAZINE_MIN};
	tw_add_relaxed(&slots->threads, 1);
}

int tw__magazine_refill(struct tw__slots *slots, struct tw__magazine *magazine)
{
	uint32_t out[TW__MAGAZINE_MAX / 2];
	int n = tw__slots_take(slots, magazine->capacity / 2, out);
	for (int i = 0; i < n; i++)
		tw__magazine_put(magazine, tw__slot_entry(slots, out[i]));
	if (magazine->capacity < TW__MAGAZINE_MAX)
		magazine->capacity *= 2;
	return tw__magazine_count(magazine) ? 0 : n;
}

/* The oldest n. */
static void unload(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t n)
{
	uint32_t out[TW__MAGAZINE_MAX];
	for (uint32_t i = 0; i < n; i++)
		out[i] = tw__entry_slot(tw__magazine_peek(magazine, i));
	magazine->head += n;
	tw__slots_put(slots, out, n);
}

void tw__slot_put_slowly(struct tw__slots *slots, struct tw__magazine *magazine, uint32_t slot,
			 uint32_t generation)
{
	if (generation == TW__LAST_GENERATION) {
		tw_add_relaxed(&slots->retired, 1);
		return;
	}
	if (!magazine) {
		tw__slots_put(slots, &slot, 1);
		return;
	}
	if (magazine->capacity < TW__MAGAZINE_MAX)
		magazine->capacity *= 2;
	else
		unload(slots, magazine, magazine->capacity / 2);
	tw__magazine_put(magazine, tw__entry_make(slot, generation));
}

void tw__magazine_flush(struct tw__slots *slots, struct tw__magazine *magazine)
{
	if (tw__magazine_count(magazine))
		unload(slots, magazine, tw__magazine_count(magazine));
}

/* ------------------------------------------------------ the table of word.h */

/* Each function is one group of lines of the table; `from` and `to` have one generation. */

static bool waiting_may_become(uint64_t from, uint64_t to)
{
	if (tw__word_armed(to))
		return (to & (TW__EXT | TW__PERSISTENT)) == (from & (TW__EXT | TW__PERSISTENT)) &&
		       (to & TW__RELOCATED) >= (from & TW__RELOCATED);
	if (tw__word_disarmed(to) && tw__word_armed(from))
		return from & TW__PERSISTENT && to == tw__word_disarm(from);
	if (tw__word_disarmed(to))
		return to == tw__word_unfiled(from);
	if (tw__word_state(to) == TW__RUNNING)
		return tw__word_armed(from) && to == tw__word_run(from);
	return from & TW__EXT && tw__word_state(to) == TW__RELEASING && !(to & TW__DEADLINE_MASK);
}

static bool running_may_become(uint64_t from, uint64_t to)
{
	uint64_t marks = from & TW__DEADLINE_MASK, marks_then = to & TW__DEADLINE_MASK;
	bool goes_on = !(from & (TW__ENDED | TW__BARRED));
	if (tw__word_armed(to))
		return goes_on && !((to ^ tw__word_after_run(from)) & TW__KEPT);
	if (tw__word_disarmed(to))
		return goes_on && from & TW__HAS_PERSISTENT && to == tw__word_after_run(from);
	uint64_t may_fall = from & TW__HAS_PERSISTENT ? TW__REARMED : 0;
	switch (tw__word_state(to)) {
	case TW__RUNNING:
		return !(marks & ~marks_then & ~may_fall) &&
		       !((marks ^ marks_then) & ~(TW__ENDED | TW__WAITED | TW__BARRED | may_fall));
	case TW__RELEASING:
		return marks & TW__HAS_EXT && marks_then == (marks & TW__WAITED);
	default:
		return false;
	}
}

static bool may_become_free(uint64_t from, uint64_t to)
{
	return to == tw__word_next_free(from) && tw__word_state(from) != TW__FREE;
}

bool tw__word_may_become(uint64_t from, uint64_t to)
{
	if (tw__word_generation(from) != tw__word_generation(to))
		return may_become_free(from, to);
	if (tw__word_waits(from))
		return waiting_may_become(from, to);
	switch (tw__word_state(from)) {
	case TW__FREE:
		return tw__word_armed(to) || (tw__word_disarmed(to) && to == tw__word_unfiled(to));
	case TW__RUNNING:
		return running_may_become(from, to);
	case TW__RELEASING:
		return to == (from | TW__WAITED);
	default:
		return false;
	}
}
