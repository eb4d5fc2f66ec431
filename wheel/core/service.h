/*
 * The core: the service over a given executor. What each of its parts shares.
 *
 *     schedule.c reset.c cancel.c   any thread: words, magazines, lanes (schedule_short.c: the usual case, short; tsc.c: a cheap clock
 *                                   for resets)
 *     drain.c resolve.c sweep.c poll.c    the driver (tick thread, or the caller of tw_advance): lanes -> wheel -> batches
 *     park.c                 when the tick thread turns next, and how it sleeps
 *     outbox.c compact.c drop.c     the driver's: due runs that wait for their executor, and what is done if it refuses them
 *     batch.c run.c series.c end.c   workers: batches on loan; claim, run, finish; what follows on a run; other ends of timers
 *     group.c reap.c              groups: birth, cancelling, settling (group.h)
 *     loop_fd.c                        driving by a loop of one's own: when next, and a descriptor that tells
 *     close.c close_turns.c core.c      birth and end
 *     stats.c inspect.c watchdog.c  looking on
 *     schedule_bulk.c                       many schedules in one
 *     work.c                        what the layers above want run, by the same face (work.h)
 *     purge.c slots_purge.c                 memory goes back after a storm
 *
 * The driver is whoever holds `driving`. There is one at a time, and it alone touches the wheel, the notes and the gate's word.
 */
#ifndef TW_WHEEL_CORE_H
#define TW_WHEEL_CORE_H

#include "mpsc/gate.h"
#include "mpsc/queue.h"
#include "tickwheel/service.h"
#include "tickwheel/stats.h"
#include "wheel/base/clock.h"
#include "wheel/base/tsc.h"
#include "wheel/group/group.h"
#include "wheel/base/histogram.h"
#include "wheel/driver/loop_fd.h"
#include "wheel/driver/outbox.h"
#include "wheel/slot/slots.h"
#include "wheel/wheel.h"

/* A block: what is drained at once of a lane. Long, so that most words are superseded within it and not looked at (drain.c). */
enum { TW__STAMPS = 64, TW__BLOCK_ENTRIES = 64 * TW__SEGMENT_ENTRIES };
enum { TW__LATENCY_WAIT, TW__LATENCY_RUN, TW__LATENCIES };

/* What a sweep takes an entry for dead by (sweep.c). */
enum tw__sweep_by { TW__SWEEP_BY_WORDS, TW__SWEEP_BY_CENSUS, TW__SWEEP_BY_DRAINED };

/* One thread's part of a service; survives the thread, and goes to the next one. */
struct tw__local {
	struct tw__lane lane; /* first: the queue knows it by this */

	/* Its thread's alone. */
	struct tw__magazine magazine;
	struct tw__option_cache options;
	struct tw__kept kept;
	uint64_t stamped; /* the base its lane carries is that of this word of the gate, which was open; or 0 */
	/* What it last counted from, but for a reading of the clock beside stamps; later bases are not earlier (G6). */
	uint64_t counted_ns;
	uint64_t random; /* state of its generator (timing.h) */

	/* Written by its thread, read by a driver that is called: entries up to here may be due at once (loop_fd.c). */
	_Atomic uint64_t hurried;

	/* Written by its thread, read by statistics. */
	_Atomic uint64_t scheduled, fired, cancelled, dropped, late_dropped;
	_Atomic uint64_t rejected, runs, overruns, resets, resets_eager;
	_Atomic(struct tw__histogram *) latencies; /* [TW__LATENCIES]; made when the thread first runs a callback */
	_Atomic uint64_t running;                  /* the entry whose callback it is in, or 0; see watchdog.h */
	_Atomic uint64_t running_since_ns;
	_Atomic uint32_t thread_id; /* the system's; 0: has not run anything */

	/* Written by its thread, read by close; cleared when the thread ends. See close.c, "Without membarrier". */
	_Atomic uint32_t has_seen_close; /* its pushes that did not see the gate closed came before */
	_Atomic uint32_t of_service;     /* a thread of the service's own */

	/* The driver's alone. */
	alignas(TW__CACHE_LINE) uint64_t base_ns; /* delays in this lane count from here; never falls (G6) */
	uint64_t guess_ns;      /* what the thread itself counted from: base_ns is not earlier; 0: unknown */
	uint64_t base_sequence; /* the stamp that the lane carries at this point, or 0: base_ns is exact */
	uint64_t stuck_told_ns; /* on_stuck was told of the run that began then */
};

typedef bool tw__pool_busy_fn(void *pool, struct tw_liveness *out, uint64_t *progress);

struct tw_service {
	struct tw__gate gate;       /* the line that every push reads; zero in a forked child: all else is not */
	struct tw__counter counter; /* for resets, if the clock is the monotonic one */

	/* Constant after creation. */
	alignas(TW__CACHE_LINE) struct tw__queue queue;
	struct tw__slots slots;
	struct tw__groups groups;
	tw_clock *clock;
	tw_executor *executor;
	_Atomic(void *) pool; /* the composition root's (executor/service.c); NULL: the executor is the user's */
	uint64_t start_ns;    /* tick 0 */
	uint64_t tick_ns, tick_multiplier; /* see tw__ticks_down */
	uint32_t tick_shift;
	enum tw_on_refused on_refused;
	bool threaded;               /* has a tick thread */
	bool steps;                  /* the clock may step back: readings are clamped */
	bool published;              /* may tell its time to producers: a tick thread on a clock that runs */
	_Atomic bool routed;         /* a timer has named another executor; never cleared */
	_Atomic bool has_background; /* there was a background timer; never cleared */
	_Atomic bool condemns;       /* a refused timer or group was left with releases owed; never cleared */
	struct tw_service_config config;

	/* For on_stuck (run/watchdog.c). The composition root sets these for a service on a pool. */
	_Atomic(const void *) watched_pool;       /* the pool whose own tasks are looked at too, or NULL */
	_Atomic uint32_t watch_bit;               /* tells the services on one pool apart */
	_Atomic(_Atomic uint32_t *) watch_asleep; /* the tick thread sleeps without a date to look at runs */
	_Atomic uint32_t own_watch_asleep;

	/*
	 * For on_stuck and tw_liveness_get: whether the pool is at its maximum, with each worker inside
	 * a run. *progress changes with each run.
	 * Set by the composition root; NULL: no pool. The full_ members are the driver's.
	 */
	_Atomic(tw__pool_busy_fn *) pool_busy;
	_Atomic uint32_t pool_lookers; /* threads in tw_liveness_get that look at the pool */
	uint64_t full_look_ns;         /* the next look */
	uint64_t full_since_ns;        /* 0: it was not full at the last look */
	uint64_t full_progress;
	bool full_told;

	/* The driver's. */
	alignas(TW__CACHE_LINE) pthread_mutex_t driving;
	struct tw__wheel wheel;
	struct tw__outboxes outboxes; /* due, not yet taken over by their executors */
	uint64_t last_now_ns;         /* clamped: never falls */
	_Atomic uint64_t turned_ns;   /* when the last turn was; read by liveness */
	uint64_t last_reading_ns;
	uint64_t turning_to;              /* the tick of the turn under way */
	uint64_t moved_tick;              /* `next` at the last move_nearer */
	uint64_t bases_ns[TW__STAMPS];    /* by sequence number: what its pushes count from, drain.c's B(S) */
	uint64_t replaced_ns[TW__STAMPS]; /* a reading taken after that sequence number was replaced */
	uint64_t batch_sequence;          /* of the last batch; 48 bits */
	uint32_t quiet_turns;             /* in a row, with little traffic */
	uint32_t turns;
	uint32_t census;            /* the slot at which a census stands; 0: none is under way (sweep.c) */
	enum tw__sweep_by sweep_by; /* of the sweep under way, or the last one */
	bool writes_down;           /* drains write down what generations slots have reached: sweep.c */
	bool drained_suffices;      /* the next sweep can go by that */
	bool unfinished;            /* something is left to do soon, whatever the clock says */
	bool woken;                 /* slept since the last turn */
	bool slept_a_tick;          /* ... as it was meant to, and no more */
	bool fires_each_tick;       /* so it stays awake: park.c */
	struct tw__histogram lateness;
	_Atomic uint64_t wakeups, refused, ticks, tick_cpu_ns, tick_cpu_max_ns, clock_steps;
	_Atomic uint64_t entries; /* copy of wheel.entries */
	_Atomic uint64_t chunks_used;
	void *table, *arena, *cold;
	size_t table_bytes, arena_bytes, cold_bytes;
	bool trimming;                     /* memory is going back, a step a turn; purge.c */
	uint32_t trim_slots, trim_options; /* blocks from here on have been looked at */
	uint64_t trim_at_ns;               /* when that begins, if things stay as they are; 0: nothing to give */
	struct tw__loop loop;
	pthread_t thread;
	struct tw__clock_listener listener;

	/* Batches that executors have finished with; any thread pushes, the driver takes all. */
	alignas(TW__CACHE_LINE) _Atomic(struct tw__chunk *) returned;
	_Atomic uint32_t batches_out; /* handed over and not yet returned; TW__CLOSER_WAITS: wake the closer */
	_Atomic uint64_t cancelled_without_lane, dropped_without_lane; /* by threads that could not be attached */
	_Atomic uint32_t finish_bell; /* moves on when a run finishes that someone waits for */

	/* The layers above; see work.h. */
	_Atomic uint64_t seeds_drawn;     /* timing.h */
	_Atomic(struct tw__work *) works; /* a stack: for the driver to offer, or to run */
	_Atomic uint32_t works_pushers;   /* threads that are pushing, or look whether to wake the driver */
	_Atomic uint32_t works_recall;    /* a lock: of those who take some back */
	struct tw__work *works_kept;      /* the driver's: refused, to be offered again in the next tick; in order */
	_Atomic(struct tw__strands *) strands; /* made with the first of them; ended by the composition root */
	_Atomic uint64_t
	    holders; /* layers that use the service; LEAVING: of those destroyed, CLOSED: no more of them */

	/* Closing; see close.c, close_turns.h. */
	_Atomic uint32_t close_lock;
	_Atomic uint32_t newcomers; /* closers that the one with the lock is to let in */
	_Atomic uint32_t closing;   /* 0, or TW__CLOSING_*: what the driver is asked to do; only falls, once set */
	_Atomic uint32_t closed;    /* the same, once the driver has published that the gate accepts nothing more */
	_Atomic uint32_t stopping;  /* the tick thread is asked to end */
	_Atomic uint32_t stopped;   /* it has */
	_Atomic uint32_t started;   /* 1: the tick thread runs; 2: it could not be set up */
	_Atomic uint32_t unsure;    /* membarrier was refused at close; set by the driver, cleared by the closer */
	bool settled;               /* under close_lock: nothing is left, all threads have ended */

	struct tw__entry block[TW__BLOCK_ENTRIES]; /* the driver's: entries copied out of a lane */

	/* Whole turns that others wait for: asked for, and done. */
	_Atomic uint32_t turn_wanted;
	_Atomic uint32_t turn_done;
};

/* The modes of a close, the strictest first. */
enum {
	TW__CLOSING_DROP = 1 + TW_CLOSE_DROP,
	TW__CLOSING_RUN = 1 + TW_CLOSE_RUN,
	TW__CLOSING_DRAIN = 1 + TW_CLOSE_DRAIN
};

#define TW__CLOSER_WAITS (UINT32_C(1) << 31)
#define TW__HOLDERS_LEAVING (UINT64_C(1) << 32)
#define TW__HOLDERS_CLOSED (UINT64_C(1) << 63)

/* ------------------------------------------------------------------- core.c */

/* Makes a service over cfg->executor, which is given. 0, or as tw_service_create. cfg is complete: no defaults left. */
int tw__core_create(tw_service **out, const struct tw_service_config *cfg);

/*
 * tw_service_close_with; `options` is complete and sound. quiet(service) is called once, when nothing is left, by the closer,
 * while others still wait: it ends the executor's threads. alone: nobody else uses the service, nor will.
 */
int tw__core_close(tw_service *service, const struct tw_close_options *options, void (*quiet)(tw_service *),
		   bool alone);

/* After a close that settled. */
void tw__core_free(tw_service *service);

/* In a forked child, whatever the state of things. */
void tw__core_free_forked(tw_service *service);

/* Copies a config that may be older or newer than this library and fills in the defaults, but for executor and workers. */
int tw__config_read(struct tw_service_config *out, const struct tw_service_config *cfg);

/*
 * Copies a struct that begins with its size, from a caller that may be older or newer. -EINVAL: smaller than `least`;
 * -E2BIG: what the library does not know is not zero.
 */
int tw__struct_read(void *out, size_t known, size_t least, const void *in);

/* The same for a config, whose size may be 0 if all else is 0 too. */
int tw__config_copy(void *out, size_t known, size_t least, const void *in);

/* -------------------------------------------------------------------- time */

/*
 * Ticks in a span, rounded down: n / d for n < 2^62, by a multiplication whose high half is shifted. With 2^s < d <= 2^(s+1) and
 * m = (2^(64+s) + e) / d, e < d, it is n * m / 2^(64+s) = n/d + (n * e) / (d * 2^(64+s)), and n * e < 2^(64+s): never the next integer (T. Granlund,
 * P. Montgomery: Division by invariant integers using multiplication, 1994). Each push waits for it.
 */
static inline uint64_t tw__ticks_in_range(const tw_service *service, uint64_t span_ns)
{
	return (uint64_t)((unsigned __int128)span_ns * service->tick_multiplier >> 64) >> service->tick_shift;
}

static inline bool tw__is_in_range(uint64_t span_ns)
{
	return !(span_ns >> 62);
}

/* The same for all spans. */
static inline uint64_t tw__ticks_down(const tw_service *service, uint64_t span_ns)
{
	return tw_likely(tw__is_in_range(span_ns)) ? tw__ticks_in_range(service, span_ns) : span_ns / service->tick_ns;
}

/* The first tick that is not before an instant; instants before the service's start are tick 0. */
static inline uint64_t tw__tick_of(const tw_service *service, uint64_t instant_ns)
{
	if (instant_ns <= service->start_ns)
		return 0;
	return tw__ticks_down(service, instant_ns - service->start_ns - 1) + 1;
}

static inline uint64_t tw__tick_ns(const tw_service *service, uint64_t tick)
{
	return service->start_ns + tick * service->tick_ns;
}

/* The service's clock: where the clock may step back, no earlier than what the driver has turned through. */
static inline uint64_t tw__clock_read(const tw_service *service)
{
	uint64_t now_ns = service->clock->ops->now(service->clock);
	if (tw_unlikely(service->steps)) {
		uint64_t turned_ns = tw__tick_ns(service, tw_load_relaxed(&service->gate.cursor));
		return now_ns > turned_ns ? now_ns : turned_ns;
	}
	return now_ns;
}

/* The same or a little later, and cheaper: for resets, which nothing corrects afterwards. */
static inline uint64_t tw__clock_read_fast(tw_service *service)
{
	if (tw_likely(service->counter.usable))
		return tw__counter_now(&service->counter);
	return tw__clock_read(service);
}

/* The tick to write into a word: one long past is as good as the cursor's, and cannot be taken for the future. */
static inline uint64_t tw__tick_to_write(const tw_service *service, uint64_t deadline_ns)
{
	uint64_t tick = tw__tick_of(service, deadline_ns), cursor = tw_load_relaxed(&service->gate.cursor);
	return tick + TW__WHEEL_REACH < cursor ? cursor : tick;
}

/* How many timers live, by the lanes' counters: about right while others work. *producers (may be NULL): lanes, but for those of the service's own threads. */
uint64_t tw__live_timers(tw_service *service, uint64_t *producers);

/* Whether a program's executor may be used. */
bool tw__executor_is_sound(const tw_executor *executor);

/* ----------------------------------------------------------- any thread's */

/*
 * In a forked child: nothing of the service but its constants may be looked at, no lock of it taken. Asked at the entry of each public
 * function, by the look at the gate where there is one, and wherever a function of the user's has returned.
 */
static inline bool tw__forked(const tw_service *service)
{
	return tw_unlikely(tw__gate_forked(&service->gate));
}

static inline struct tw__local *tw__local_of(tw_service *service)
{
	return (struct tw__local *)tw__queue_lane(&service->queue);
}

/* The same if it is the one that this thread used last; else NULL. */
static inline struct tw__local *tw__local_at_hand(const tw_service *service)
{
	return tw__thread.queue_id == service->queue.id ? (struct tw__local *)tw__thread.lane : NULL;
}

/*
 * Makes what was put into the lane visible. Followed by a look at the gate (tw__gate_look_after_push). By tw__publish_calm: nothing of it
 * is due before the next tick.
 */
static inline void tw__publish_calm(tw_service *service, struct tw__local *local)
{
	if (tw_likely(service->gate.asymmetric))
		tw__lane_publish(&local->lane);
	else
		tw__lane_publish_seq_cst(&local->lane);
}

static inline void tw__publish(tw_service *service, struct tw__local *local)
{
	tw_store_relaxed(&local->hurried, local->lane.written); /* published with the tail (lane.h, LANE1) */
	tw__publish_calm(service, local);
}

/* This thread has seen that the gate accepts nothing more: all that it has pushed before is visible to whoever sees this. */
static inline void tw__acknowledge_close(struct tw__local *local)
{
	if (local)
		tw_store_release(&local->has_seen_close, 1); /* CLOSE1: pairs with close.c, has_passed */
}

/* After a push whose deadline is known: wakes the driver if it sleeps longer than that. */
void tw__wake_for(tw_service *service, uint64_t deadline_ns);

/* Wakes the driver if it sleeps. */
void tw__wake(tw_service *service);

/* How many wakes a sleeping driver should get for cancels that leave dead entries: one for so many. */
enum { TW__CANCELS_PER_WAKE = 2048 };

/* end.c */

/* Whether an armed word's timer belongs to a group that was cancelled. Only a CAS of that word makes it certain (group.h, GROUP1). */
static inline bool tw__member_is_stale(const tw_service *service, uint32_t slot)
{
	return tw__tag_is_stale(&service->groups, tw_load_relaxed(&tw__option_of(&service->slots, slot)->tag));
}

/* The timer counts as cancelled and nobody has settled it: armed in a cancelled group, or DOOMED. */
static inline bool tw__is_unsettled(const tw_service *service, uint32_t slot, uint64_t word)
{
	return tw__word_state(word) == TW__DOOMED ||
	       ((word & (TW__ARMED | TW__OPTION)) == (TW__ARMED | TW__OPTION) && tw__member_is_stale(service, slot));
}

/*
 * Ends a timer with a side record, whose word, armed or DOOMED, is *word. False: it has changed; *word is what it is now. In two
 * steps for whoever holds the group's lock between: the CAS, and what follows from it.
 */
bool tw__end(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word, enum tw_fate fate);
bool tw__end_word(tw_service *service, uint32_t slot, uint64_t *word);
void tw__end_rest(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation, enum tw_fate fate);

/* Ends a timer as cancelled if its group was, unless somebody else does. */
void tw__end_unsettled(tw_service *service, struct tw__local *local, uint32_t slot, uint32_t generation);

/* Cancels an armed or DOOMED timer with a side record: an enum tw_outcome, or -1: *word has changed. */
int tw__cancel_option(tw_service *service, uint32_t slot, uint64_t *word, bool settle);

/* Counts a timer that this thread has cancelled. */
static inline void tw__count_cancel(tw_service *service, struct tw__local *local)
{
	if (tw_unlikely(!local)) {
		tw_add_relaxed(&service->cancelled_without_lane, 1);
		return;
	}
	uint64_t cancelled = tw_load_relaxed(&local->cancelled) + 1;
	tw_store_relaxed(&local->cancelled, cancelled);
	if (tw_unlikely(cancelled % TW__CANCELS_PER_WAKE == 0))
		tw__wake(service); /* to sweep what cancels leave behind (G11) */
}

/* Ends an armed timer as dropped (as cancelled, if its group was), unless someone else is faster. */
bool tw__drop(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word);

/* The same; tell(context, slot, word) comes before the release, as if inside it. May be NULL. */
typedef void tw__tell_fn(void *context, uint32_t slot, uint64_t word);
bool tw__drop_telling(tw_service *service, struct tw__local *local, uint32_t slot, uint64_t *word, tw__tell_fn *tell,
		      void *context);

/* ------------------------------------------------------------- the driver's */

/* resolve.c */
void tw__judge(void *context, enum tw__judge_for what_for, const struct tw__place *place,
	       const tw__wheel_entry *entries, unsigned n, uint64_t *verdicts);

/* The whole of a FAR deadline has become known. */
void tw__note_far(tw_service *service, uint32_t slot, uint32_t generation, uint64_t far_tick);

/* An entry has left the wheel without having been judged. */
void tw__note_handed(tw_service *service, tw__wheel_entry entry);

/* Files an entry whose timer's word is `word` (armed, filed) for `tick`; a FAR one by its note. back: it was handed over, and is not any more (resolve.c). */
void tw__file(tw_service *service, uint32_t slot, uint64_t word, uint64_t tick, bool back);

/*
 * No chunk is left beside those that the wheel may need to turn. The arena is sized so that outboxes and batches do not lead to this (core.c,
 * make_wheel); it is the last line of defense.
 */
enum { TW__SPARE_CHUNKS = 512 };

static inline bool tw__short_of_chunks(const tw_service *service)
{
	return tw_unlikely(tw__wheel_chunks_left(&service->wheel) < service->wheel.slack + TW__SPARE_CHUNKS);
}

/* sweep.c: sweeps a part, if a sweep is under way, or (look) wanted; whether it is; all of it at once; whether one is under way. */
void tw__sweep(tw_service *service, uint64_t drained, bool look);
bool tw__sweep_wanted(tw_service *service);
void tw__sweep_all(tw_service *service);
bool tw__sweep_under_way(const tw_service *service);

/* Something is due that no executor has yet. */
static inline bool tw__any_ready(const tw_service *service)
{
	return tw__outbox_any(&service->outboxes);
}

/* drain.c: takes what the lanes hold. The number of entries; *again: a lane was left with unread entries. */
uint64_t tw__drain(tw_service *service, bool *again);

/* poll.c */

/* Clamped reading. */
uint64_t tw__driver_now(tw_service *service);

#endif
