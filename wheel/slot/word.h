/*
 * The control word: 8 bytes that decide a timer's fate. Every change of a live word is a
 * compare-and-swap. The thread that wins it does what follows, and no other does.
 *
 *     63 ......... 32 | 31 ... 27 | 26 ............ 0
 *     generation      | state     | armed: deadline, in ticks modulo 2^27; running: marks
 *
 * States of the 5 bits: FREE, RUNNING, RELEASING; or ARMED, or DISARMED, with flags:
 *   PERSISTENT    after a run the timer is disarmed, not ended. Alone, without ARMED: DISARMED
 *   EXT           its record names an extension record (slots.h), a group, or both
 *   RELOCATED     more than one entry may exist; the driver's locations say which counts
 *   BEYOND_RANGE  of ARMED: the deadline was TW__NEAR_TICKS or more ahead, or more than that
 *                 behind, when the word was written. far_ticks (slots.h) holds it; the bits are 0
 *   UNFILED       of DISARMED, the same bit: no entry is promised; the bits are 0. Without it, the
 *                 timer is FILED: an entry will be met no later than the tick in the bits
 *
 * Transition table (G: generation). With a CAS, unless it says otherwise
 *   from            to               by
 *   FREE G          ARMED G          schedule; store-release: no other writes a free word
 *   FREE G          DISARMED UNFILED schedule, TW_NEVER; store-release
 *   FREE            FREE later       slot's owner (tw__slot_entry); store
 *   ARMED           ARMED later      drain, if the estimate was too early; reset: the entry finds
 *                                    out when its bucket comes
 *   ARMED long due  ARMED BEYOND_    drain, resolve: the deadline stays, and leaves the bits
 *                     RANGE          before they wrap
 *   ARMED           ARMED RELOCATED  reset to earlier; then a lane entry
 *   ARMED           FREE G+1         cancel, drop, cancel of its group: no release. The winner owns
 *                                    the slot
 *   ARMED           FREE G+1         schedule, after close, takes its timer back: no release
 *   ARMED EXT       RELEASING G      cancel, drop, group: the winner calls the release
 *   ARMED due       RUNNING G        claim (worker); the flags become marks
 *   RUNNING         RUNNING+marks    cancel, of its group too (ENDED); wait (WAITED); close, out of
 *                                    time (BARRED)
 *   RUNNING         ARMED G          finish, re-arm; fails if ENDED or BARRED came; then an entry
 *   RUNNING         FREE G+1         finish, no EXT; exchange; wakes the waiters (WAITED)
 *   RUNNING EXT     RELEASING        finish, before release; WAITED stays
 *   RELEASING       RELEASING+WAITED wait
 *   RELEASING       FREE G+1         after release; exchange; wakes the waiters (WAITED)
 * and of persistent timers
 *   ARMED           DISARMED         disarm; entry and bits stay. Far: UNFILED and RELOCATED
 *   DISARMED        ARMED            reset. FILED, and not earlier than the bits: no entry. Else a
 *                                    lane entry; FILED: and RELOCATED
 *   DISARMED        DISARMED UNFILED driver or worker, before it drops the entry
 *   DISARMED        as ARMED         cancel, drop, group: as there
 *   RUNNING         RUNNING+REARMED  reset; the deadline is in far_ticks
 *   RUNNING+REARMED RUNNING          disarm
 *   RUNNING         DISARMED UNFILED finish; fails if a mark came
 *   RUNNING+REARMED ARMED            finish, with the deadline in far_ticks; then a lane entry
 * A CAS that sets a far deadline, or relies on one, is made under the slot's far lock (WORD6). A
 * slot at its last generation stays FREE (retired).
 *
 * Pairing table (word w of one slot)
 *   WORD1  schedule: record, then w release -> claim, cancel, drain: w acquire. Publishes fn, arg,
 *       ext.
 *   WORD2  finish: callback's writes, w acq_rel -> cancel_wait, is_pending, reuse: w acquire.
 *   WORD3  cancel: caller's writes, w acq_rel -> next owner of the slot, via magazine or depot: w.
 *   WORD4  reset: caller's writes, w acq_rel -> claim: w acquire. A reset to the same tick writes
 *       and orders nothing.
 *   WORD5  record's ext and group, and the extension record's executor, traits and name:
 *       store-release (schedule) -> load-acquire (route, reset, close), then w, relaxed or
 *       stronger. They go to their next owner after w has left ARMED for good: a thread that reads
 *       what the next owner wrote finds w no longer armed. Before a compare-and-swap of w relaxed
 *       loads do.
 *   WORD6  far_ticks: written before w's compare-and-swap to BEYOND_RANGE or REARMED, or the store
 *       of a new w, under the slot's far lock -> such a w, then far_ticks, under the lock. Two far
 *       deadlines give one word, so a compare-and-swap that relies on one is made under the lock,
 *       after a look at far_ticks. Without it a word could get another reset's deadline.
 *   WORD7  is_moved of a series: store by a reset, then w acq_rel, also within the tick -> claim: w
 *       acquire, then is_moved. The owner clears it while the series runs, or is new. A reset that
 *       fails, or whose slot has gone to another series, at worst rounds an instant up to its tick.
 *       Model: test/model/series.pml.
 *   WORD8  period_ns of a series: schedule and tw_set_period store it under the slot's far lock,
 *       under which tw_set_period looks at w. So a call that is held up until the slot has gone to
 *       another series stores before that one does -> the run: relaxed, the old or the new period.
 * All else about a word follows from its modification order.
 *
 * Persistent timers. Invariant: an ARMED or a FILED timer has an entry that will be met no later
 * than its deadline bits. A thread that drops an entry of a FILED timer first takes the promise
 * back (tw__unfile): the wheel when the tick of the bits has come, a worker, an outbox and a drain
 * immediately. A turn expires each bucket that it passes before it publishes its cursor, so the
 * bits of a FILED word are never read too late.
 *
 * RUNNING and UNFILED promise nothing, so what arms a timer then brings an entry. A timer that is
 * not RELOCATED has one entry if it is ARMED or FILED, none otherwise, and no location: its next
 * entry is like that of a new timer (KIND_DEADLINE). The entry of a RELOCATED timer counts whatever
 * the locations say (KIND_BACK). Model: test/model/location.pml.
 *
 * Deadline bits are read relative to a tick `base` that is near: the driver's cursor, or the
 * published one, which never runs ahead of it. Near deadlines lie within a quarter of the bits'
 * range of the cursor, so 2^27 never wraps between writer and reader.
 */
#ifndef TW_WHEEL_WORD_H
#define TW_WHEEL_WORD_H

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

#include <stdint.h>

enum { TW__DEADLINE_BITS = 27, TW__GENERATION_SHIFT = 32 };

#define TW__NEAR_TICKS (UINT64_C(1) << (TW__DEADLINE_BITS - 2))
#define TW__DEADLINE_MASK ((UINT64_C(1) << TW__DEADLINE_BITS) - 1)
#define TW__STATE_MASK (UINT64_C(0x1f) << TW__DEADLINE_BITS)
#define TW__LAST_GENERATION UINT32_MAX
#define TW__NEXT_GENERATION \
	(UINT64_C(1) << TW__GENERATION_SHIFT) /* added to a free word or an entry */

#define TW__FREE UINT64_C(0)
#define TW__RUNNING (UINT64_C(2) << TW__DEADLINE_BITS)
#define TW__RELEASING (UINT64_C(4) << TW__DEADLINE_BITS)
#define TW__ARMED (UINT64_C(16) << TW__DEADLINE_BITS)

/* Flags of ARMED and DISARMED. RUNNING and RELEASING have neither ARMED nor PERSISTENT. */
#define TW__PERSISTENT (UINT64_C(1) << TW__DEADLINE_BITS)
#define TW__BEYOND_RANGE (UINT64_C(2) << TW__DEADLINE_BITS)
#define TW__UNFILED TW__BEYOND_RANGE
#define TW__RELOCATED (UINT64_C(4) << TW__DEADLINE_BITS)
#define TW__EXT (UINT64_C(8) << TW__DEADLINE_BITS)

/* Marks of RUNNING, in the deadline bits. RELEASING has WAITED */
#define TW__HAS_PERSISTENT (TW__PERSISTENT >> TW__DEADLINE_BITS) /* what the flags were */
#define TW__HAS_EXT (TW__EXT >> TW__DEADLINE_BITS)
#define TW__ENDED UINT64_C(16)    /* cancelled during the run: no further one */
#define TW__BARRED UINT64_C(32)   /* closed during the run: no further one, which is no cancel */
#define TW__WAITED UINT64_C(64)   /* someone sleeps until the generation moves on */
#define TW__REARMED UINT64_C(128) /* persistent: armed during the run, for the tick in far_ticks */

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

/* Tells whether a word is armed, without EXT, and of that generation. */
static inline bool tw__word_is_plain(uint64_t word, uint64_t generation_bits)
{
	uint64_t looked_at = ~(uint64_t)UINT32_MAX | TW__ARMED | TW__EXT;
	return ((word ^ generation_bits) & looked_at) == TW__ARMED;
}

/* The deadline is in far_ticks: armed BEYOND_RANGE, or REARMED. */
static inline bool tw__word_is_far(uint64_t word)
{
	return word & TW__BEYOND_RANGE && word & (TW__ARMED | TW__REARMED);
}

_Static_assert((TW__RUNNING & TW__BEYOND_RANGE) != 0, "tw__word_is_far");

static inline uint64_t tw__word_state(uint64_t word)
{
	return word & TW__STATE_MASK;
}

/*
 * How far the deadline of an armed, near word lies ahead of `base`, in ticks; behind it: below 0.
 * Three quarters of the range lie behind.
 */
static inline int64_t tw__word_ahead(uint64_t word, uint64_t base)
{
	uint64_t behind = 3 * TW__NEAR_TICKS;
	return (int64_t)((word - base + behind) & TW__DEADLINE_MASK) - (int64_t)behind;
}

/* The absolute tick of an armed, near word. */
static inline uint64_t tw__word_deadline(uint64_t word, uint64_t base)
{
	int64_t ahead = tw__word_ahead(word, base);
	return tw_likely(ahead >= 0 || base > (uint64_t)-ahead) ? base + (uint64_t)ahead : 0;
}

/* Whether a word that is written at the published cursor can say this tick itself. */
static inline bool tw__tick_is_near(uint64_t tick, uint64_t cursor)
{
	return tick - cursor + TW__NEAR_TICKS < 2 * TW__NEAR_TICKS;
}

/* The deadline bits of a word that is written at the published cursor. */
static inline uint64_t tw__tick_bits(uint64_t tick, uint64_t cursor)
{
	return tw_likely(tw__tick_is_near(tick, cursor)) ? tick & TW__DEADLINE_MASK
							 : TW__BEYOND_RANGE;
}

static inline uint64_t tw__word_move(uint64_t word, uint64_t tick_bits)
{
	return (word & ~(TW__DEADLINE_MASK | TW__BEYOND_RANGE)) | tick_bits;
}

/* The timer is armed, or disarmed, or has run. */
static inline uint64_t tw__word_arm(uint64_t word, uint64_t tick_bits)
{
	return tw__word_move(word, tick_bits) | TW__ARMED;
}

static inline uint64_t tw__word_next_free(uint64_t word)
{
	return (word & ~(uint64_t)UINT32_MAX) + TW__NEXT_GENERATION;
}

/* --------------------------------------------------------- persistent timers */

static inline bool tw__word_disarmed(uint64_t word)
{
	return (word & (TW__ARMED | TW__PERSISTENT)) == TW__PERSISTENT;
}

static inline bool tw__word_waits(uint64_t word)
{
	return word & (TW__ARMED | TW__PERSISTENT);
}

/* Disarmed, and an entry is promised. */
static inline bool tw__word_filed(uint64_t word)
{
	return (word & (TW__ARMED | TW__PERSISTENT | TW__UNFILED)) == TW__PERSISTENT;
}

/*
 * Tells whether a timer waits, without EXT, with the entry's generation, and with a promised entry.
 */
static inline bool tw__word_is_plain_and_filed(uint64_t word, uint64_t entry)
{
	uint64_t none_of = ~(uint64_t)UINT32_MAX | TW__EXT | TW__BEYOND_RANGE;
	return !((word ^ (entry & ~(uint64_t)UINT32_MAX)) & none_of) && tw__word_waits(word);
}

static inline bool tw__word_runs_persistent(uint64_t word)
{
	return tw__word_state(word) == TW__RUNNING && word & TW__HAS_PERSISTENT;
}

static inline uint64_t tw__word_unfiled(uint64_t word)
{
	return (word & ~TW__DEADLINE_MASK) | TW__UNFILED;
}

/* Of an armed persistent word. A far one gives no bits, and its entry may meet the next one's. */
static inline uint64_t tw__word_disarm(uint64_t word)
{
	return (word & ~TW__ARMED) | (word & TW__BEYOND_RANGE ? TW__RELOCATED : 0);
}

/* ----------------------------------------------------------------- the run */

/* The flags that a run leaves as they are. */
#define TW__KEPT (TW__PERSISTENT | TW__RELOCATED | TW__EXT)

static inline uint64_t tw__word_run(uint64_t word)
{
	return tw__word_make(tw__word_generation(word), TW__RUNNING,
			     (word & TW__KEPT) >> TW__DEADLINE_BITS);
}

/* And after its run: disarmed, if it is persistent; else only to be armed again. */
static inline uint64_t tw__word_after_run(uint64_t word)
{
	return tw__word_make(tw__word_generation(word),
			     (word << TW__DEADLINE_BITS & TW__KEPT) | TW__UNFILED, 0);
}

/* ------------------------------------------------------------------- changes */

/* Whether the transition table has a line from one word to the other. */
bool tw__word_may_become(uint64_t from, uint64_t to);

/* The only ways to change a word. On failure *word is the present word. */
static inline bool tw__word_cas_acq_rel(_Atomic uint64_t *at, uint64_t *word, uint64_t to)
{
	uint64_t from = *word;
	bool changed = tw_cas_acq_rel(at, word, to);
	TW_ASSERT(!changed || tw__word_may_become(from, to));
	return changed;
}

/* Ends a run or a release. Returns the old word. */
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
	TW__KIND_DEADLINE, /* a timer that has no other entry, value: deadline in ns */
	/* a new timer that counts from its own reading of the clock, value: delay in ns */
	TW__KIND_OWN,
	/* a further entry for a live timer, which was moved; value: deadline in ticks */
	TW__KIND_FILE,
	/* of a timer that comes back from an executor: armed again, or not due; value: in ticks */
	TW__KIND_BACK,
	/* lane's base: the instant of sequence number `value`; the generation's bits: drain.c */
	TW__KIND_EPOCH
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
