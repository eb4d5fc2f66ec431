/*
 * Slots: where a timer lives. Arrays that are indexed alike: control words (word.h), records, and
 * what not all timers need, in ranges that are mapped in steps (mpsc/base/reserve.h).
 *
 * Free slots are kept in a **magazine** for each thread, first in first out, so that one hot slot
 * does not burn through its generations, and behind it in a shared **depot** (depot.h; after J.
 * Bonwick and J. Adams, "Magazines and Vmem", USENIX 2001).
 *
 * Pairing table
 *   SLOT1  mapped: store-release (map_slots) -> relaxed load (tw__handle_entry): which words may be
 *       touched. A handle comes after its slot was mapped. Without the check a foreign handle
 *       touches memory that is not there.
 *
 * When the memory of a block of free slots goes back to the system, its words are 0, so each old
 * handle to them is stale (G5). The block remembers the highest generation that its words had, and
 * its slots go on from there.
 */
#ifndef TW_WHEEL_SLOTS_H
#define TW_WHEEL_SLOTS_H

#include <pthread.h>
#include <stdalign.h>

#include "mpsc/base/depot.h"
#include "mpsc/base/futex.h"
#include "mpsc/base/assert.h"
#include "mpsc/base/reserve.h"
#include "tickwheel/service.h"
#include "wheel/slot/word.h"

enum { TW__FAR_LOCKS = 16 };

/* Written by the slot's owner (WORD1), read by the thread that won a transition. */
struct tw__record {
	_Atomic(tw_fn *) fn;
	_Atomic(void *) arg;
	/* if the word says EXT: indices of the extension record and of the group, or 0 */
	_Atomic uint32_t ext, group;
};

/* The driver's own: where the entry of a RELOCATED timer is that counts. */
enum tw__location_state {
	TW__NOWHERE,
	TW__IN_BUCKET, /* in the wheel, for `tick` */
	/* in a batch, or with a worker; comes back through a lane */
	TW__IN_BATCH
};

struct tw__location {
	uint32_t generation;
	uint16_t state; /* enum tw__location_state */
	uint16_t level; /* of the wheel */
	uint64_t tick;
	uint64_t pass; /* of a sweep that has met the entry there since; or 0 */
};

/* A member's place in its group's list, by slots; 0: none. Under the group's lock. */
struct tw__link {
	uint32_t next, previous;
	uint32_t serial; /* the group's when the member entered */
	uint32_t owed;   /* the next one whose release the same cancel calls */
};

enum tw__trait {
	TW__TRAIT_RELEASE = 1, /* the timer passes through RELEASING */
	TW__TRAIT_SERIES = 2,
	TW__TRAIT_BACKGROUND = 4 /* TW_TASK_BACKGROUND: a drain does not wait for it */
};

/* Indices that are no slot's, and the first slot. */
enum { TW__EXT_NONE, TW__EXT_INLINE, TW__SLOT_FIRST };

/*
 * Extension record of a timer with more than fn and arg, at the index of its slot. Others may still
 * read the atomic members when the slot has gone to the next timer (WORD5). Two are no slot's, and
 * stay zero:
 *   NONE  of timers without an extension record
 *   INLINE  of all plain timers that name the executor tw_executor_inline (outbox.c)
 */
struct tw__ext {
	_Atomic(tw_executor *) executor; /* NULL: the service's */
	_Atomic uint32_t traits;         /* enum tw__trait */
	_Atomic(const char *) name;      /* of the timer, or NULL; see tw__name_of */

	tw_release_fn *release;
	void *context; /* what its runs are under, or NULL */
};

/* The part of a series, beside its extension record. */
struct tw__series {
	_Atomic uint64_t period_ns; /* WORD8 */
	uint64_t nominal_ns; /* the instant at which the next run is due, unless it is_moved */
	uint64_t runs_left;  /* 0: no end */
	uint64_t overruns;   /* to be reported to the next run */
	_Atomic uint32_t is_moved; /* a reset has moved the next run (WORD7) */
	uint8_t mode;              /* enum tw_period_mode */
	uint8_t missed;            /* enum tw_missed_policy */
};

/* Slots whose memory goes back together: 1 << this. */
enum { TW__BLOCK_SHIFT = 10 };

/* The arrays, by slot. Those from LOCATIONS on are not of use to all services. */
enum tw__slot_array {
	TW__WORDS,
	TW__RECORDS,
	TW__LOCATIONS,
	TW__FAR_TICKS,
	TW__LINKS,
	TW__EXTS,
	TW__SERIES,
	TW__SLOT_ARRAYS
};

/* What else is in the region. The wheel's chunks grow with the arrays; tables do not grow. */
enum {
	TW__ARENA = TW__SLOT_ARRAYS,
	TW__SLOT_TABLES,  /* of the depot, and first_generations */
	TW__WHEEL_TABLES, /* service/create.c */
	TW__RANGES
};

/* Bytes of the wheel: the lower one of two lines by slots, and tables. */
struct tw__wheel_bytes {
	size_t few, few_a_slot;
	size_t many, many_a_slot;
	size_t tables;
};

/* Bytes of the arena that go with n slots. */
static inline size_t tw__arena_bytes(const struct tw__wheel_bytes *wheel, size_t n)
{
	size_t few = wheel->few + n * wheel->few_a_slot,
	       many = wheel->many + n * wheel->many_a_slot;
	return few < many ? few : many;
}

/* Where the arrays are. */
struct tw__slots_memory {
	struct tw__region region;
	struct tw__range ranges[TW__RANGES];
	struct tw__wheel_bytes wheel;
};

struct tw__slots {
	_Atomic uint64_t *words;
	struct tw__record *records;
	struct tw__location *locations;
	_Atomic uint64_t *far_ticks; /* WORD6 */
	struct tw__link *links;
	/* by block: what generations go on from; under the lock */
	uint32_t *first_generations;
	struct tw__ext *exts;
	struct tw__series *series;
	_Atomic uint32_t mapped; /* indices below it may be touched (SLOT1); up to `end` */
	uint32_t end;
	_Atomic bool written[TW__SLOT_ARRAYS]; /* of the arrays that not all services use */
	uint64_t base;                         /* handles are entries plus this */
	uint32_t max_timers;
	_Atomic uint32_t threads; /* magazines, each of which may hold slots back */
	_Atomic uint64_t retired;

	/* of the depot; the driver only tries it. Each schedule reads what is above */
	alignas(TW__CACHE_LINE) pthread_mutex_t lock;
	struct tw__depot depot;                    /* free slots that are in no magazine */
	_Atomic uint32_t far_locks[TW__FAR_LOCKS]; /* of far_ticks and period_ns, by slot */
	struct tw__slots_memory memory;
};

static inline void tw__slots_write(struct tw__slots *slots, enum tw__slot_array array)
{
	if (tw_unlikely(!tw_load_relaxed(&slots->written[array])))
		tw_store_relaxed(&slots->written[array], true);
}

/* Maps more of the arena than the slots need, up to what many need. The lock is only tried. */
bool tw__slots_more_chunks(struct tw__slots *slots);

/* One past the last slot of a service. */
uint32_t tw__slots_end(uint32_t max_timers);

/* Slots are given out only if their part of the arena is mapped. 0 or -ENOMEM. */
int tw__slots_init(struct tw__slots *slots, uint32_t max_timers, struct tw__wheel_bytes wheel);

/* Works after an init that has failed, and in a forked child: it takes no lock. */
void tw__slots_unmap(struct tw__slots *slots);

/*
 * Takes up to `want` free slots. Returns how many, -EAGAIN (max_timers are in use) or -ENOMEM.
 */
int tw__slots_take(struct tw__slots *slots, uint32_t want, uint32_t *out);
/* Gives n slots back. */
void tw__slots_put(struct tw__slots *slots, const uint32_t *out, uint32_t n);

/* The entry of a slot that was just taken, whose free word says the same from now on. */
uint64_t tw__slot_entry(const struct tw__slots *slots, uint32_t slot);

/* As tw__depot_purge. The lock is only tried. */
bool tw__slots_purge(struct tw__slots *slots);

/* Bytes that hold slots and extension records, an upper bound. */
uint64_t tw__slots_bytes(const struct tw__slots *slots);

/* A walk over the slots in use, `slot` with the word that it had. Slots used later are not met. */
struct tw__walk {
	const struct tw__slots *slots;
	uint32_t slot, end;
	uint64_t word;
};

static inline struct tw__walk tw__walk_over(const struct tw__slots *slots)
{
	return (struct tw__walk){.slots = slots, .end = tw_load_acquire(&slots->depot.fresh)};
}

/* False: there are no more. */
static inline bool tw__walk_on(struct tw__walk *at)
{
	while (++at->slot < at->end) {
		at->word = tw_load_acquire(&at->slots->words[at->slot]); /* WORD1 */
		if (tw__word_state(at->word) != TW__FREE)
			return true;
	}
	return false;
}

/* Locks what has no compare-and-swap: far deadlines (WORD6), the period of a series (WORD8). */
static inline _Atomic uint32_t *tw__far_lock(struct tw__slots *slots, uint32_t slot)
{
	_Atomic uint32_t *lock = &slots->far_locks[slot % TW__FAR_LOCKS];
	tw__tiny_lock(lock);
	return lock;
}

/*
 * Far deadlines, with their words (WORD6). False: the word or its deadline has changed; *word is
 * what it is now.
 *   set   before the word of a new timer is stored
 *   read  the deadline of *word, which is far
 *   move  the compare-and-swap of *word, whose deadline is `was`, to `moved`, for `tick`
 */
void tw__far_set(struct tw__slots *slots, uint32_t slot, uint64_t tick);
bool tw__far_read(struct tw__slots *slots, uint32_t slot, uint64_t *word, uint64_t *tick);
bool tw__far_move(struct tw__slots *slots, uint32_t slot, uint64_t *word, uint64_t was,
		  uint64_t moved, uint64_t tick);

/* The deadline of an armed word, near ones as read from `base`. Returns as tw__far_read. */
static inline bool tw__deadline_read(struct tw__slots *slots, uint32_t slot, uint64_t *word,
				     uint64_t base, uint64_t *tick)
{
	if (tw_unlikely(tw__word_is_far(*word)))
		return tw__far_read(slots, slot, word, tick);
	*tick = tw__word_deadline(*word, base);
	return true;
}

/* Writes another deadline. As tw__far_move, for any word. */
static inline bool tw__deadline_move(struct tw__slots *slots, uint32_t slot, uint64_t *word,
				     uint64_t was, uint64_t moved, uint64_t tick)
{
	if (tw_unlikely(tw__word_is_far(*word) || tw__word_is_far(moved)))
		return tw__far_move(slots, slot, word, was, moved, tick);
	return tw__word_cas_acq_rel(&slots->words[slot], word, moved); /* WORD4 */
}

/* The entry of a FILED timer will be dropped: takes the promise back. False: as above. */
static inline bool tw__unfile(struct tw__slots *slots, uint32_t slot, uint64_t *word)
{
	uint64_t unfiled = tw__word_unfiled(*word);
	if (!tw__word_cas_acq_rel(&slots->words[slot], word, unfiled))
		return false;
	*word = unfiled;
	return true;
}

/* Whether an entry is of an armed timer, whose word is *word. If not, drop the entry. */
static inline bool tw__entry_is_armed(struct tw__slots *slots, uint64_t entry, uint64_t *word)
{
	uint32_t slot = tw__entry_slot(entry);
	*word = tw_load_acquire(&slots->words[slot]); /* WORD1, WORD4 */
	for (;;) {
		if ((*word ^ entry) >> TW__GENERATION_SHIFT)
			return false;
		/* planted: promise_kept */
		if (tw_likely(!tw__word_filed(*word)) || tw__unfile(slots, slot, word))
			return tw__word_armed(*word);
	}
}

static inline struct tw__ext *tw__ext_of(const struct tw__slots *slots, uint32_t slot)
{
	return &slots->exts[tw_load_relaxed(&slots->records[slot].ext)];
}

/* The traits. They are the timer's own if its word is still armed after this (WORD5). */
static inline uint32_t tw__traits_of(const struct tw__slots *slots, uint32_t slot)
{
	/* WORD5 */
	return tw_load_acquire(&slots->exts[tw_load_acquire(&slots->records[slot].ext)].traits);
}

/* The word is in use. */
static inline bool tw__word_has_record(uint64_t word)
{
	uint64_t state = tw__word_state(word);
	return word & TW__EXT || state == TW__RELEASING ||
	       (state == TW__RUNNING && word & TW__HAS_EXT);
}

/* The name of the slot's timer, or NULL; valid if the word is the same timer's after this. */
static inline const char *tw__name_of(const struct tw__slots *slots, uint32_t slot, uint64_t word)
{
	if (!tw__word_has_record(word))
		return NULL;
	/* WORD5 */
	return tw_load_acquire(&slots->exts[tw_load_acquire(&slots->records[slot].ext)].name);
}

/* Debug builds poison the function of a free slot. */
#define TW__POISON ((tw_fn *)(uintptr_t)UINT64_C(0xdead0000dead0000))
#ifdef TW_DEBUG
static inline void tw__debug_poison(struct tw__slots *slots, uint32_t slot)
{
	tw_store_relaxed(&slots->records[slot].fn, TW__POISON);
}
#else
#define tw__debug_poison(slots, slot) ((void)0)
#endif

/* The handle of an entry's timer. */
static inline tw_timer tw__handle_of(const struct tw__slots *slots, uint64_t entry)
{
	return (tw_timer){entry + slots->base};
}

static inline tw_timer tw__handle_make(const struct tw__slots *slots, uint32_t slot,
				       uint32_t generation)
{
	return tw__handle_of(slots, tw__entry_make(slot, generation));
}

/* The entry of a handle. False: it names no slot of this service. */
static inline bool tw__handle_entry(const struct tw__slots *slots, tw_timer timer, uint64_t *entry)
{
	*entry = timer.id - slots->base;
	return (uint32_t)*entry < tw_load_relaxed(&slots->mapped); /* SLOT1 */
}

#endif
