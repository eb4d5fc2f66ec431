/*
 * User code under way: what each thread runs, for tw_service_liveness and on_stuck.
 *
 * All that calls a user's function does so between tw__user_begin and tw__user_end: callbacks of
 * timers, jobs, tasks of strands, schedulers and pools, actions, releases, hooks. Each thread has
 * a record with a few levels. A run inside another run takes the next level, so that both are
 * shown. Runs below the last level are not shown.
 *
 * A run costs stores to the thread's own lines: no clock is read, except for services with
 * on_stuck. Who looks at an undated run for the first time dates it, so such a run may look younger
 * than it is, never older.
 *
 * Records are freed when the library is unloaded (mpsc/base/unload.h); the record of a thread that
 * has ended serves the next thread.
 *
 * Pairing table
 *   USER1  owner, fn, name, since_ns, timer: store-release, then word: store-release (begin) ->
 *       word: load-acquire, the others: load-acquire, then the word again (look): if the word is
 *       the same, the fields are that run's. Each store is a release, so none of the next run's
 *       fields is visible before this run's end.
 *   USER2  tw__run_records, next: CAS release (make) -> load acquire (look): a record is complete
 *       before it is found.
 *   USER3  word: store seq_cst, then load of the service's watch_asleep (begin, with on_stuck),
 *       against watch_asleep: store seq_cst, then load of the words (look, before the tick thread
 *       sleeps): one of the two sees the other. Without it a run that begins as the tick thread
 *       goes to sleep is never found to be stuck.
 *   USER4  seen_version: CAS acq_rel to odd, the dates: store-release, then store-release to even
 *       (date) -> load acquire, the dates: load acquire, then the version again: the date belongs
 *       to the word.
 */
#ifndef TW_WHEEL_USER_CODE_H
#define TW_WHEEL_USER_CODE_H

#include <stdalign.h>

#include "wheel/core/service.h"

enum { TW__RUN_LEVELS = 4 };

/* In a level's word. */
enum { TW__USER_RUNS = 1, TW__USER_KINDS = 0x7e, TW__USER_DATED = 0x80, TW__USER_NUMBER_SHIFT = 8 };

struct tw__run_record;

/* A run. The first line is written by the thread alone, the second by those who look. */
struct tw__run_level {
	/* number of the run << 8 | DATED | kind << 1 | RUNS */
	alignas(TW__CACHE_LINE) _Atomic uint64_t word;
	/* a service; of a pool's own tasks the pool */
	_Atomic(const void *) owner;
	_Atomic(tw_fn *) fn;
	_Atomic(const char *) name; /* or NULL */
	/* if DATED: on the owner's clock (a pool's: the monotonic one) */
	_Atomic uint64_t since_ns;
	_Atomic uint64_t timer; /* of TW_RUN_KIND_TIMER: its handle's id */
	struct tw__run_record *record;

	alignas(TW__CACHE_LINE) _Atomic uint64_t seen_version;
	_Atomic uint64_t seen_word, seen_ns; /* the run that was last dated by a look, and when */
};

struct tw__run_record {
	struct tw__run_level levels[TW__RUN_LEVELS];
	_Atomic(struct tw__run_record *) next;
	struct tw__run_record **mine; /* of the thread that has it; for the unload */
	_Atomic uint32_t in_use;
	_Atomic uint32_t thread_id; /* the system's */

	/*
	 * By the thread: the pool that it is bringing something to, which is not freed meanwhile
	 * (executor/pool/pool.c, POOLEND2).
	 */
	_Atomic(const void *) bringing;
};

extern _Atomic(struct tw__run_record *) tw__run_records;
extern _Thread_local struct tw__run_record *tw__my_run_record;

/* The calling thread's record. NULL: out of memory; then its runs are not shown. */
struct tw__run_record *tw__run_record_make(void);

/* Any function as the name of what runs. It is not called by this type. */
#define TW__NAMED_BY(function) ((tw_fn *)(void (*)(void))(function))

/* The next free level of a record whose first one is taken, or NULL. */
struct tw__run_level *tw__user_next_level(struct tw__run_record *record);

/* The level that the next run of this thread takes, or NULL. */
static inline struct tw__run_level *tw__user_enter(void)
{
	struct tw__run_record *record = tw__my_run_record;
	if (tw_unlikely(!record) && !(record = tw__run_record_make()))
		return NULL;
	bool taken = tw_load_relaxed(&record->levels[0].word) & TW__USER_RUNS;
	return tw_unlikely(taken) ? tw__user_next_level(record) : &record->levels[0];
}

/* Writes what the run is. The answer is the word to be stored next. since_ns 0: not dated. */
static inline uint64_t tw__user_name(struct tw__run_level *level, enum tw_run_kind kind,
				     const void *owner, tw_fn *fn, const char *name,
				     uint64_t since_ns)
{
	uint64_t number = (tw_load_relaxed(&level->word) >> TW__USER_NUMBER_SHIFT) + 1;
	tw_store_release(&level->owner, owner); /* USER1 */
	tw_store_release(&level->fn, fn);
	tw_store_release(&level->name, name);
	if (since_ns)
		tw_store_release(&level->since_ns, since_ns);
	return number << TW__USER_NUMBER_SHIFT | (since_ns ? TW__USER_DATED : 0) |
	       (uint64_t)kind << 1 | TW__USER_RUNS;
}

/*
 * The same for a service with on_stuck: dates the run, and wakes a tick thread that sleeps without
 * a date to look at runs.
 */
struct tw__run_level *tw__user_begin_watched(tw_service *service, enum tw_run_kind kind, tw_fn *fn,
					     const char *name, uint64_t since_ns);

/*
 * A user's function of the service begins on this thread. name: what the user calls it, or NULL.
 * since_ns: a reading of the service's clock that is cached, or 0. The answer goes to tw__user_end.
 * service NULL: nobody looks.
 */
static inline struct tw__run_level *tw__user_begin_named(tw_service *service, enum tw_run_kind kind,
							 tw_fn *fn, const char *name,
							 uint64_t since_ns)
{
	if (tw_unlikely(!service))
		return NULL;
	if (tw_unlikely(service->config.on_stuck != NULL))
		return tw__user_begin_watched(service, kind, fn, name, since_ns);
	struct tw__run_level *level = tw__user_enter();
	if (tw_likely(level != NULL))
		/* USER1 */
		tw_store_release(&level->word,
				 tw__user_name(level, kind, service, fn, name, since_ns));
	return level;
}

/*
 * The callback of a timer begins. Nobody is woken for it: what a batch may run is looked at anyway
 * (watchdog.c).
 */
static inline struct tw__run_level *tw__user_begin_timer(tw_service *service, tw_timer timer,
							 tw_fn *fn, const char *name,
							 uint64_t since_ns)
{
	struct tw__run_level *level = tw__user_enter();
	if (tw_unlikely(!level))
		return NULL;
	tw_store_release(&level->timer, timer.id); /* USER1 */
	tw_store_release(&level->word,
			 tw__user_name(level, TW_RUN_KIND_TIMER, service, fn, name, since_ns));
	return level;
}

/* The same without a name. */
static inline struct tw__run_level *tw__user_begin(tw_service *service, enum tw_run_kind kind,
						   tw_fn *fn, uint64_t since_ns)
{
	return tw__user_begin_named(service, kind, fn, NULL, since_ns);
}

/* The run is over. Nothing but the thread's own record is touched: the owner may be gone. */
static inline void tw__user_end(struct tw__run_level *level)
{
	if (tw_likely(level != NULL))
		/* USER1 */
		tw_store_release(&level->word,
				 tw_load_relaxed(&level->word) & ~(uint64_t)TW__USER_RUNS);
}

/* ------------------------------------------------------------------ looking */

/* A run under way. */
struct tw__seen_run {
	enum tw_run_kind kind;
	tw_timer timer; /* of a timer's callback */
	tw_fn *fn;
	const char *name;  /* or NULL */
	uint64_t since_ns; /* on the owner's clock */
	uint32_t thread_id;
	struct tw__run_level *level; /* which shows it, */
	uint64_t word;               /* and its word */
};

/*
 * What the level shows, if it is of that owner, whose clock reads now_ns. A run that has no date is
 * dated now. False: nothing.
 */
bool tw__user_look(struct tw__run_level *level, const void *owner, uint64_t now_ns,
		   struct tw__seen_run *run);

#endif
