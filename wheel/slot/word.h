/*
 * The control word: 8 bytes that decide a timer's fate. Every change of a live word is a compare-and-swap. The thread that wins the
 * compare-and-swap does what follows from it, and no other thread does.
 *
 *     63 ......... 32 | 31 .. 28 | 27 .. 25 | 24 ............ 0
 *     generation      | seq      | state    | deadline, in ticks modulo 2^25, while armed; marks, while running
 *
 * States: FREE, RUNNING, SETTLING, DOOMED (its group was cancelled, and a caller was told so), or ARMED with two flags:
 *   BEYOND_RANGE  the deadline was TW__NEAR ticks or more ahead when it was written. The deadline bits are 0, far_ticks of slots.h has it
 *   OPTION        a side record exists (release, period, group, and what else struct tw_task has)
 *
 * Current entry. An entry (in a lane, in the wheel, in an outbox or batch, or held by one thread) carries a slot, a generation and
 * a seq. It is current if generation and seq equal the word's. Every other entry is dropped where it is met.
 *   I   Invariant: an armed timer has a current entry that will be met no later than its deadline.
 *   X   While seq is 0 it has exactly one entry.
 *   B   seq has 15 values beside 0, so a stale entry may pass for a current one: the deadline in the word still decides. Where the
 *       driver files an entry with a seq again because the deadline lies ahead, it draws a new seq at random. So a stale entry
 *       survives a meeting with a chance of 1/15: n entries that were pushed are met n * 15/14 times on average, then they are gone.
 *
 * Transition table (G: generation; one seq if none is named)
 *   from              to                by                        with
 *   FREE G            ARMED G, seq 0    schedule, slot's owner    store-release, then a lane entry
 *   FREE G            SETTLING G        bulk, slot's owner        store-release, group's lock held: its group has ended meanwhile
 *   ARMED             ARMED later       drain (driver)            CAS, if the estimate was too early
 *   ARMED long due    ARMED due         driver                    CAS: keeps a due deadline within the range of the cursor (age.c)
 *   ARMED             FREE G+1          schedule, after close     CAS: it takes its timer back; no release, OPTION or not
 *   ARMED, DOOMED     FREE G+1          schedule, group closed    CAS: likewise (group.h, GROUP8)
 *   ARMED             ARMED later       reset                     CAS; the entry finds out when its bucket comes
 *   ARMED             ARMED earlier,    reset                     CAS, then a lane entry with the new seq
 *                     next seq
 *   ARMED seq > 0     ARMED, drawn seq  driver, met too early     CAS, then the entry is filed with the new seq
 *   BEYOND_RANGE      ARMED due         driver, when due          CAS, under the slot's far lock
 *   ARMED             FREE G+1          cancel, drop; no release  CAS; the winner owns the slot
 *   ARMED OPTION      SETTLING G        cancel, drop; release     CAS; the winner calls release
 *   ARMED OPTION      DOOMED G          cancel, reset: its group  CAS; so that a claim which looked at the group before cannot win
 *                                       was cancelled             any more. Only then "gone" may be answered
 *   ARMED OPTION      as by cancel      settling of its group;    CAS; group cancelled: counts as cancelled
 *                                       claim
 *   DOOMED            as by cancel      settling of its group     CAS
 *   ARMED due         RUNNING G         claim (worker)            CAS, by a current entry, which is used up
 *   RUNNING           RUNNING+marks     cancel (ENDED), wait (WAITED)   CAS; finish, if its group was cancelled (ENDED)
 *   RUNNING           RUNNING+BARRED    close that does not wait  CAS
 *   RUNNING seq 0     ARMED G, seq 0    finish, re-arm            CAS; fails if ENDED or BARRED came; then a lane entry. Also
 *   RUNNING seq > 0   ARMED, next seq                             after a series' run that was claimed too late
 *   RUNNING           FREE G+1          finish, no OPTION         exchange; tells the waiters if WAITED was set
 *   RUNNING OPTION    SETTLING G+marks  finish, before release    CAS; also of what was claimed too late
 *   SETTLING          SETTLING+marks    cancel (ENDED), wait (WAITED)   CAS; ENDED means nothing
 *   SETTLING          FREE G+1          after release             exchange; tells the waiters if WAITED was set
 * A slot whose generation is used up stays FREE at the last one for ever (retired). A free slot in a
 * magazine or depot has one owner, so schedule may store. The model of the current entry: test/model/entry.pml.
 *
 * Pairing table (word w of one slot)
 *   WORD1  schedule: record fields, then w release -> claim, cancel, drain: w acquire. Publishes fn, arg, option.
 *   WORD2  finish: callback's writes, w acq_rel -> cancel_wait, is_pending, reuse: w acquire. "All that it wrote is visible."
 *   WORD3  cancel: caller's writes, w acq_rel -> next owner of the slot, via magazine or depot (its lock): w.
 *   WORD4  reset: caller's writes, w acq_rel -> claim: w acquire. A reset to the same tick writes nothing and orders nothing.
 *   WORD5  record's option index, and the side record's executor and traits: store-release (schedule, depot) -> load-acquire (route,
 *       reset, close), then w, relaxed or stronger. All go to their next owner after w has left ARMED for good: whoever reads
 *       what that one wrote finds w no longer armed. Else runs of one timer might go to another's executor, or a side
 *       record be written without its lock. (Before a compare-and-swap of w relaxed loads do: slots.h.)
 *   WORD6  far_ticks of the slot: with w's compare-and-swap to BEYOND_RANGE, or before the store of w, under the slot's far lock -> w
 *       BEYOND_RANGE and far_ticks, both under the lock: the deadline of that w. Without the lock two resets could leave the word of
 *       one with the deadline of the other, or the driver make due what a reset has moved to later.
 *   WORD7  gate.cursor of the writer of w: loaded before w's compare-and-swap (release) -> w acquire, then the reader's load of the
 *       cursor: it is not older than the writer's, so a near deadline lies less than TW__NEAR ahead of it.
 *   All else about a word follows from its being one atomic variable (modification order): no two transitions from one value.
 *
 * Deadline bits are read relative to a tick `base` that is not older than the writer's cursor: at most TW__NEAR ahead of it, at most
 * three times as much behind (tw__word_deadline). A due deadline stands longer only while its run waits for an executor: age.c.
 */
#ifndef TW_WHEEL_WORD_H
#define TW_WHEEL_WORD_H

#include "mpsc/base/assert.h"
#include "mpsc/base/atomics.h"

#include "wheel/wheel.h"

enum { TW__DEADLINE_BITS = 25, TW__SEQ_SHIFT = 28, TW__SEQS = 16, TW__GENERATION_SHIFT = 32 };

#define TW__DEADLINE_MASK ((UINT64_C(1) << TW__DEADLINE_BITS) - 1)
#define TW__STATE_MASK (UINT64_C(7) << TW__DEADLINE_BITS)
#define TW__SEQ_MASK (UINT64_C(15) << TW__SEQ_SHIFT)
#define TW__LAST_GENERATION UINT32_MAX
#define TW__NEXT_GENERATION (UINT64_C(1) << TW__GENERATION_SHIFT) /* added to a free word or an entry */

/* A deadline this many ticks after the cursor, or more, is written BEYOND_RANGE. */
#define TW__NEAR (UINT64_C(1) << (TW__DEADLINE_BITS - 2))

#define TW__FREE UINT64_C(0)
#define TW__RUNNING (UINT64_C(1) << TW__DEADLINE_BITS)
#define TW__SETTLING (UINT64_C(2) << TW__DEADLINE_BITS)
#define TW__DOOMED (UINT64_C(3) << TW__DEADLINE_BITS)
#define TW__ARMED (UINT64_C(4) << TW__DEADLINE_BITS)
#define TW__BEYOND_RANGE (UINT64_C(1) << TW__DEADLINE_BITS)
#define TW__OPTION (UINT64_C(2) << TW__DEADLINE_BITS)

/* Marks of RUNNING and SETTLING, in the deadline bits. */
#define TW__ENDED UINT64_C(1)      /* cancelled during the run: no further one */
#define TW__WAITED UINT64_C(2)     /* a thread sleeps until the generation moves on */
#define TW__HAS_OPTION UINT64_C(8) /* what the flag was, for a re-arm */
#define TW__BARRED UINT64_C(256)   /* closed during the run: no further one, which is no cancel */

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

/* Armed, and without a side record, of the generation in the upper half of `generation_bits`, whose lower half is 0. */
static inline bool tw__word_is_plain(uint64_t word, uint64_t generation_bits)
{
	uint64_t looked_at = ~(uint64_t)UINT32_MAX | TW__ARMED | TW__OPTION;
	return ((word ^ generation_bits) & looked_at) == TW__ARMED;
}

/* The same, and with a deadline in its bits. */
static inline bool tw__word_is_plain_and_near(uint64_t word, uint64_t entry)
{
	uint64_t looked_at = ~(uint64_t)UINT32_MAX | TW__ARMED | TW__OPTION | TW__BEYOND_RANGE;
	return ((word ^ (entry & ~(uint64_t)UINT32_MAX)) & looked_at) == TW__ARMED;
}

/* Armed, near, and of the same generation as another word. */
static inline bool tw__word_is_same_near(uint64_t word, uint64_t other)
{
	uint64_t looked_at = ~(uint64_t)UINT32_MAX | TW__ARMED | TW__BEYOND_RANGE;
	return ((word ^ ((other & ~(uint64_t)UINT32_MAX) | TW__ARMED)) & looked_at) == 0;
}

static inline uint64_t tw__word_state(uint64_t word)
{
	return word & TW__STATE_MASK;
}

static inline bool tw__word_beyond(uint64_t word)
{
	return (word & (TW__ARMED | TW__BEYOND_RANGE)) == (TW__ARMED | TW__BEYOND_RANGE);
}

/* The absolute tick of an armed word that is not BEYOND_RANGE. base: see the top of the file. */
static inline uint64_t tw__word_deadline(uint64_t word, uint64_t base)
{
	uint64_t ahead = (word - base) & TW__DEADLINE_MASK;
	uint64_t behind = (UINT64_C(1) << TW__DEADLINE_BITS) - ahead;
	if (tw_likely(ahead < TW__NEAR))
		return base + ahead;
	return base > behind ? base - behind : 0;
}

/* How far its deadline lies ahead of `base`, in ticks; behind it: below 0. */
static inline int64_t tw__word_ahead(uint64_t word, uint64_t base)
{
	uint64_t ahead = (word - base) & TW__DEADLINE_MASK;
	return ahead < TW__NEAR ? (int64_t)ahead : (int64_t)ahead - (INT64_C(1) << TW__DEADLINE_BITS);
}

/* The word of the same timer and seq in another state. */
static inline uint64_t tw__word_become(uint64_t word, uint64_t state, uint64_t low)
{
	return (word & ~(TW__STATE_MASK | TW__DEADLINE_MASK)) | state | (low & TW__DEADLINE_MASK);
}

/* The word of the same armed timer with another deadline. */
static inline uint64_t tw__word_move(uint64_t word, uint64_t tick)
{
	return (word & ~(TW__BEYOND_RANGE | TW__DEADLINE_MASK)) | (tick & TW__DEADLINE_MASK);
}

static inline uint64_t tw__word_move_beyond(uint64_t word)
{
	return (word & ~TW__DEADLINE_MASK) | TW__BEYOND_RANGE;
}

/* The same word with another seq. */
static inline uint64_t tw__word_with_seq(uint64_t word, uint64_t seq)
{
	return (word & ~TW__SEQ_MASK) | seq << TW__SEQ_SHIFT;
}

static inline uint64_t tw__word_seq(uint64_t word)
{
	return (word & TW__SEQ_MASK) >> TW__SEQ_SHIFT;
}

/* The seq after the word's: 1 .. 15, then 1 again. */
static inline uint64_t tw__word_next_seq(uint64_t word)
{
	return tw__word_seq(word) % (TW__SEQS - 1) + 1;
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
 * The only ways to change a word. Each asserts that the transition table knows the transition. The compare-and-swaps
 * return true on success, and write the present word to *word on failure.
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

/* The end of a run or a release by its thread, which alone may write the word then. Returns the word before. */
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

/* ------------------------------------------------------------------- entries */

/*
 * A wheel entry, and the `what` of a timer's lane entry: generation | seq | slot. A lane entry has a value:
 *   a delay in ns         counted from the lane's base; only of a new timer
 *   TW__VALUE_TICK | tick the tick to be met by
 * With slot 0 it is no timer's: the seq's bits say what it is (enum tw__kind).
 */
enum { TW__SLOT_BITS = 28 };
#define TW__SLOT_MASK ((UINT32_C(1) << TW__SLOT_BITS) - 1)
#define TW__VALUE_TICK (UINT64_C(1) << 63)
_Static_assert((int)TW__SLOT_BITS == (int)TW__SEQ_SHIFT, "entry and word have generation and seq in the same bits");

/* A new timer's entry, and the name of a slot at a generation. */
static inline uint64_t tw__entry_make(uint32_t slot, uint32_t generation)
{
	return (uint64_t)generation << TW__GENERATION_SHIFT | slot;
}

/* The entry that is current for a word. */
static inline uint64_t tw__entry_of(uint64_t word, uint32_t slot)
{
	return (word >> TW__SEQ_SHIFT << TW__SEQ_SHIFT) | slot;
}

static inline uint32_t tw__entry_slot(uint64_t entry)
{
	return (uint32_t)entry & TW__SLOT_MASK;
}

static inline uint32_t tw__entry_generation(uint64_t entry)
{
	return (uint32_t)(entry >> TW__GENERATION_SHIFT);
}

/* Whether the entry is current for the word, armed or not. */
static inline bool tw__entry_matches(uint64_t entry, uint64_t word)
{
	return (entry ^ word) >> TW__SEQ_SHIFT == 0;
}

/* Whether the entry is the current one of an armed timer. */
static inline bool tw__entry_is_current(uint64_t entry, uint64_t word)
{
	return tw__entry_matches(entry, word) && tw__word_armed(word);
}

/* Lane entries of slot 0. */
enum tw__kind {
	TW__KIND_PADDING = 0,
	TW__KIND_STAMP, /* lane's base: what the published sequence number `value` stands for; the generation's bits: drain.c */
	TW__KIND_NOW /* lane's base: value, in ns */
};

static inline uint64_t tw__base_make(enum tw__kind kind, uint32_t high)
{
	return tw__entry_make(0, high) | (uint64_t)kind << TW__SLOT_BITS;
}

static inline enum tw__kind tw__base_kind(uint64_t what)
{
	return (enum tw__kind)(what >> TW__SLOT_BITS & 0xf);
}

#endif
