/*
 * The control word: 8 bytes that decide a timer's fate. Every change of a live word is a
 * compare-and-swap. The thread that wins it does what follows from the change, and no other does.
 *
 *     63 ......... 32 | 31 ... 27 | 26 ............ 0
 *     generation      | state     | armed: deadline, in ticks modulo 2^27; running: marks
 *
 * States of the 5 bits: FREE, RUNNING, RELEASING, CANCEL_PENDING (the timer's group was cancelled,
 * and a caller has the answer), or ARMED with four flags:
 *   IN_LANE       new and far: the entry in the lane has the deadline, and far_ticks (slots.h) has
 *                 it too. The deadline bits are 0.
 *   BEYOND_RANGE  the deadline is a quarter of the range or more ahead. The bits are a hash of it;
 *                 far_ticks and the driver's notes hold all of it.
 *   RELOCATED     more than one entry may exist; the driver's notes say which counts
 *   EXT           an extension record exists (release, period, group, and what else struct tw_task
 *                 has)
 *
 * Transition table (G: generation)
 *   from            to               by                     with
 *   FREE G          ARMED G          schedule, slot's owner store-release: no other thread writes
 *                                                           a free word
 *   FREE G          RELEASING G      bulk, slot's owner     store-release, group's lock held: its
 *                                                           group has ended meanwhile
 *   ARMED           ARMED later      drain (driver)         CAS, if the estimate was too early;
 *                                                           IN_LANE likewise
 *   ARMED long due  ARMED due        drain, resolve         CAS: a deadline hours back becomes a
 *                                    (driver)               recent one
 *   ARMED           FREE G+1         schedule, after close  CAS: it takes its timer back; no
 *                                                           release, EXT or not
 *   ARMED, CANCEL_  FREE G+1         schedule, group closed CAS: likewise (group.h, GROUP8)
 *     PENDING
 *   ARMED           ARMED later      reset                  CAS; the entry finds out when its
 *                                                           bucket comes
 *   ARMED           ARMED RELOCATED  reset to earlier, far  CAS, then a lane entry
 *   ARMED BEYOND_   ARMED            driver, when near      CAS
 *     RANGE
 *   ARMED           FREE G+1         cancel, drop; no       CAS; the winner owns the slot
 *                                    release
 *   ARMED EXT       RELEASING G      cancel, drop; release  CAS; the winner calls release
 *   ARMED EXT       CANCEL_PENDING G cancel, reset: its     CAS, so that a claim that looked at the
 *                                    group was cancelled    group before cannot win any more. Only
 *                                                           then "gone" may be answered
 *   ARMED EXT       as by cancel     reaping of its group;  CAS; group cancelled: counts as
 *                                    claim                  cancelled
 *   CANCEL_PENDING  as by cancel     reaping of its group   CAS
 *   ARMED due       RUNNING G        claim (worker)         CAS
 *   RUNNING         RUNNING+marks    cancel (ENDED), wait   CAS; finish, if its group was cancelled
 *                                    (WAITED)               (ENDED)
 *   RUNNING         RUNNING+BARRED   close without a wait   CAS
 *   RUNNING         ARMED G          finish, re-arm         CAS; fails if ENDED or BARRED came;
 *                                                           then a lane entry. Also after a
 *                                                           series' run that was claimed too late
 *   RUNNING         FREE G+1         finish, no EXT         exchange; wakes the waiters if WAITED
 *                                                           was set
 *   RUNNING EXT     RELEASING        finish, before release CAS; also of what was claimed too late
 *                     G+marks
 *   RELEASING       RELEASING+marks  cancel (ENDED), wait   CAS; ENDED means nothing
 *                                    (WAITED)
 *   RELEASING       FREE G+1         after release          exchange; wakes the waiters if WAITED
 *                                                           was set
 * A slot whose generation is used up stays FREE at the last one (retired). A free slot in
 * a magazine or depot has one owner, so schedule may store.
 *
 * Pairing table (word w of one slot)
 *   WORD1  schedule: record fields, then w release -> claim, cancel, drain: w acquire. Publishes
 *       fn, arg, option.
 *   WORD2  finish: callback's writes, w acq_rel -> cancel_wait, is_pending, reuse: w acquire. "All
 *       that it wrote is visible."
 *   WORD3  cancel: caller's writes, w acq_rel -> next owner of the slot, via magazine or depot (its
 *       lock): w.
 *   WORD4  reset: caller's writes, w acq_rel -> claim: w acquire. A reset to the same tick writes
 *       nothing and orders nothing.
 *   WORD5  record's option index, and the extension record's executor and traits: store-release
 *       (schedule, depot) -> load-acquire (route, reset, close), then w, relaxed or stronger. All
 *       go to their next owner after w has left ARMED for good: whoever reads what that one wrote
 *       finds w no longer armed. Else runs of one timer might go to another's executor, or a side
 *       record be written without its lock. (Before a compare-and-swap of w relaxed loads do:
 *       slots.h.)
 *   WORD6  far_ticks of the slot: with w's compare-and-swap to BEYOND_RANGE, or before the store of
 *       w IN_LANE, under the slot's far lock -> w BEYOND_RANGE or IN_LANE, then far_ticks under the
 *       lock: the deadline of that w, or of a later one. Without the lock two resets could leave
 *       the word of one with the deadline of the other.
 *   All else about a word follows from its being one atomic variable (modification order): no two
 *   transitions from one value.
 *
 * Deadline bits are read relative to a tick `base` that is near: the driver's cursor, or the
 * published one, which never runs ahead of it. A writer makes a deadline that lies TW__WHEEL_REACH
 * (a quarter of the range) or more beyond the published cursor BEYOND_RANGE, so that 2^27 never
 * wraps between the two. See tw__word_deadline.
 */
#ifndef TW_WHEEL_WORD_H
#define TW_WHEEL_WORD_H

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

#include "wheel/wheel.h"

enum { TW__DEADLINE_BITS = 27, TW__GENERATION_SHIFT = 32 };

#define TW__DEADLINE_MASK ((UINT64_C(1) << TW__DEADLINE_BITS) - 1)
#define TW__STATE_MASK (UINT64_C(0x1f) << TW__DEADLINE_BITS)
#define TW__LAST_GENERATION UINT32_MAX
#define TW__NEXT_GENERATION \
	(UINT64_C(1) << TW__GENERATION_SHIFT) /* added to a free word or an entry */

#define TW__FREE UINT64_C(0)
#define TW__RUNNING (UINT64_C(1) << TW__DEADLINE_BITS)
#define TW__RELEASING (UINT64_C(2) << TW__DEADLINE_BITS)
#define TW__CANCEL_PENDING (UINT64_C(3) << TW__DEADLINE_BITS)
#define TW__ARMED (UINT64_C(16) << TW__DEADLINE_BITS)
#define TW__IN_LANE (UINT64_C(1) << TW__DEADLINE_BITS)
#define TW__BEYOND_RANGE (UINT64_C(2) << TW__DEADLINE_BITS)
#define TW__RELOCATED (UINT64_C(4) << TW__DEADLINE_BITS)
#define TW__EXT (UINT64_C(8) << TW__DEADLINE_BITS)

/* Marks of RUNNING and RELEASING, in the deadline bits. */
#define TW__ENDED UINT64_C(1)         /* cancelled during the run: no further one */
#define TW__WAITED UINT64_C(2)        /* someone sleeps until the generation moves on */
#define TW__HAS_RELOCATED UINT64_C(4) /* what the flags were, for a re-arm */
#define TW__HAS_EXT UINT64_C(8)
#define TW__BARRED UINT64_C(256) /* closed during the run: no further one, which is no cancel */

static inline uint32_t tw__word_generation(uint64_t word)
{
	return (uint32_t)(word >> TW__GENERATION_SHIFT);
}

static inline uint64_t tw__word_make(uint32_t generation, uint64_t state, uint64_t low)
{
	return (uint64_t)generation << TW__GENERATION_SHIFT | state | (low & TW__DEADLINE_MASK);
}

static inline bool tw__word_armed(uint64_t word)
{
	return word & TW__ARMED;
}

/*
 * Armed, and without an extension record, of the generation in the upper half of `generation_bits`,
 * whose lower half is 0.
 */
static inline bool tw__word_is_plain(uint64_t word, uint64_t generation_bits)
{
	uint64_t looked_at = ~(uint64_t)UINT32_MAX | TW__ARMED | TW__EXT;
	return ((word ^ generation_bits) & looked_at) == TW__ARMED;
}

/* The same, and with a deadline in its bits. */
static inline bool tw__word_is_plain_and_near(uint64_t word, uint64_t entry)
{
	uint64_t looked_at =
	    ~(uint64_t)UINT32_MAX | TW__ARMED | TW__EXT | TW__IN_LANE | TW__BEYOND_RANGE;
	return ((word ^ (entry & ~(uint64_t)UINT32_MAX)) & looked_at) == TW__ARMED;
}

static inline uint64_t tw__word_state(uint64_t word)
{
	return word & TW__STATE_MASK;
}

/* The absolute tick of an armed, filed, near word: the one within half the range of `base`. */
static inline uint64_t tw__word_deadline(uint64_t word, uint64_t base)
{
	uint64_t ahead = (word - base) & TW__DEADLINE_MASK;
	uint64_t half = UINT64_C(1) << (TW__DEADLINE_BITS - 1);
	uint64_t behind = (UINT64_C(1) << TW__DEADLINE_BITS) - ahead;
	if (ahead < half)
		return base + ahead;
	return base > behind ? base - behind : 0;
}

/* How far its deadline lies ahead of `base`, in ticks; behind it: below 0. */
static inline int64_t tw__word_ahead(uint64_t word, uint64_t base)
{
	return (int64_t)((word - base) << (64 - TW__DEADLINE_BITS)) >> (64 - TW__DEADLINE_BITS);
}

/*
 * What a BEYOND_RANGE word says in the place of deadline bits: a hash (Knuth's multiplicative one),
 * so that it tells any two deadlines apart, with an error of 2^-27, also those that lie a
 * multiple of the range apart.
 */
static inline uint64_t tw__far_bits(uint64_t tick)
{
	return tick * UINT64_C(0x9e3779b97f4a7c15) >> (64 - TW__DEADLINE_BITS);
}

/* The word of the same timer with another deadline and other flags. */
static inline uint64_t tw__word_move(uint64_t word, uint64_t clear, uint64_t set, uint64_t tick)
{
	return (word & ~(TW__DEADLINE_MASK | clear)) | set | (tick & TW__DEADLINE_MASK);
}

/* The next owner's word: the generation moves on, and with it every handle and entry goes stale. */
static inline uint64_t tw__word_next_free(uint64_t word)
{
	return (word & ~(uint64_t)UINT32_MAX) + TW__NEXT_GENERATION;
}

/* ------------------------------------------------------------------- changes */

/* Whether the transition table has a line from one word to the other. */
bool tw__word_may_become(uint64_t from, uint64_t to);

/*
 * The only ways to change a word. Each asserts that the transition table knows the transition. The
 * compare-and-swaps return true on success, and write the present word to *word on failure.
 */
static inline bool tw__word_cas_acq_rel(_Atomic uint64_t *at, uint64_t *word, uint64_t to)
{
	uint64_t from = *word;
	bool changed = tw_cas_acq_rel(at, word, to);
	TW_ASSERT(!changed || tw__word_may_become(from, to));
	return changed;
}

static inline bool tw__word_cas_seq_cst(_Atomic uint64_t *at, uint64_t *word, uint64_t to)
{
	uint64_t from = *word;
	bool changed = tw_cas_seq_cst(at, word, to);
	TW_ASSERT(!changed || tw__word_may_become(from, to));
	return changed;
}

/*
 * The end of a run or a release by its thread, which alone may write the word then. Returns the
 * word before.
 */
static inline uint64_t tw__word_free_seq_cst(_Atomic uint64_t *at, uint64_t to)
{
	uint64_t from = tw_exchange_seq_cst(at, to);
	TW_ASSERT(tw__word_may_become(from, to));
	return from;
}

/* A free word by its owner. */
static inline void tw__word_arm_release(_Atomic uint64_t *at, uint64_t to)
{
	TW_ASSERT(tw__word_may_become(tw_load_relaxed(at), to));
	tw_store_release(at, to);
}

/* A wheel entry, and the `what` of a lane entry: generation | kind (lane only) | slot. */
enum { TW__SLOT_BITS = 28 };
#define TW__SLOT_MASK ((UINT32_C(1) << TW__SLOT_BITS) - 1)

static inline uint64_t tw__entry_make(uint32_t slot, uint32_t generation)
{
	return (uint64_t)generation << TW__GENERATION_SHIFT | slot;
}

static inline uint32_t tw__entry_slot(uint64_t entry)
{
	return (uint32_t)entry & TW__SLOT_MASK;
}

static inline uint32_t tw__entry_generation(uint64_t entry)
{
	return (uint32_t)(entry >> TW__GENERATION_SHIFT);
}

/* Kinds of lane entries. */
enum tw__kind {
	TW__KIND_PADDING = 0,
	TW__KIND_DELAY,    /* a new timer, value: delay in ns from the lane's base */
	TW__KIND_DEADLINE, /* a new timer, value: deadline in ns */
	/* a further entry for a live timer, which was moved: its word says when */
	TW__KIND_FILE,
	TW__KIND_FAR, /* the same for a far one, value: deadline in ticks */
	/*
	 * the entry of a timer that was handed over, and is not any more: armed again, or not due
	 */
	TW__KIND_BACK,
	TW__KIND_BACK_FAR, /* the same for a far one, value: deadline in ticks */
	/*
	 * lane's base: what the published sequence number `value` stands for; the generation's
	 * bits: drain.c
	 */
	TW__KIND_STAMP,
	TW__KIND_NOW /* lane's base: value, in ns */
};

static inline uint64_t tw__what_make(enum tw__kind kind, uint64_t entry)
{
	return entry | (uint64_t)kind << TW__SLOT_BITS;
}

static inline enum tw__kind tw__what_kind(uint64_t what)
{
	return (enum tw__kind)(what >> TW__SLOT_BITS & 0xf);
}

static inline uint64_t tw__what_entry(uint64_t what)
{
	return what & ~(UINT64_C(0xf) << TW__SLOT_BITS);
}

#endif
