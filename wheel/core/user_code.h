/*
 * User code under way: a table of what each thread runs, for tw_service_liveness.
 *
 * All that calls a user's function does so between tw__user_begin and tw__user_end: callbacks of
 * timers, jobs, tasks of strands, schedulers and pools, actions, releases, hooks. Each thread has
 * one record (mpsc/queue.h). Of runs inside one another on one thread the outermost is shown: it
 * is the one that began first.
 *
 * A run costs stores to the thread's own line, and no clock is read. The first look at a run
 * without a date dates it, so such a run may look younger than it is, never older.
 *
 * Pairing table
 *   USER1  owner, fn, arg, name, since_ns: store-release, then word: store-release (begin) -> word:
 *       load-acquire, the others: load-acquire, then the word again (look): if the word is the
 *       same, the fields are that run's. Each store is a release, so none of the next run's fields
 *       is visible before this run's end.
 *   USER2  since_ns: the word, marked as no date: store-release (begin) -> CAS acq_rel to the date
 *       (look): only the run with that word is dated. Without it a look that was held up since it
 *       read the clock would make a later run look older than it is.
 */
#ifndef TW_WHEEL_USER_CODE_H
#define TW_WHEEL_USER_CODE_H

#include <stdalign.h>

#include "mpsc/base/private.h"
#include "wheel/core/service.h"

/* In since_ns of a run without a date: the rest is the record's word before the run. */
#define TW__USER_UNDATED (UINT64_C(1) << 63)

struct tw__run;

/* Any function as the name of what runs. It is not called by this type. */
#define TW__NAMED_BY(function) ((tw_fn *)(void (*)(void))(function))

/*
 * A user's function begins on this thread. owner: the service, or of a pool's own task the pool;
 * NULL: nobody looks. name: what the user calls it, or NULL. since_ns: a reading of the owner's
 * clock that is cached, or 0. The answer goes to tw__user_end; NULL: the run is not shown.
 */
static inline struct tw__run_record *tw__user_begin(const void *owner, tw_fn *fn, void *arg,
						    const char *name, uint64_t since_ns)
{
	struct tw__run_record *record = tw__my_run_record;
	if (tw_unlikely(!owner) || (tw_unlikely(!record) && !(record = tw__run_record_make())))
		return NULL;
	uint64_t word = tw_load_relaxed(&record->word);
	if (tw_unlikely(word & 1)) /* inside another run */
		return NULL;
	tw_store_release(&record->owner, owner); /* USER1 */
	tw_store_release(&record->fn, fn);
	tw_store_release(&record->arg, arg);
	tw_store_release(&record->name, name);
	/* USER2 */
	tw_store_release(&record->since_ns, since_ns ? since_ns : TW__USER_UNDATED | word);
	tw_store_release(&record->word, word + 1);
	return record;
}

/* The run is over. Nothing but the thread's own record is touched: the owner may be gone. */
static inline void tw__user_end(struct tw__run_record *record)
{
	if (tw_likely(record != NULL))
		tw_store_release(&record->word, tw_load_relaxed(&record->word) + 1); /* USER1 */
}

/*
 * The same for the layers, which end with tw__user_end. frame: NULL; or the frame that becomes the
 * thread's current one, which is exchanged for the former. owner NULL: nothing else happens.
 */
TW_PRIVATE struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg,
						  const char *name, struct tw__run **frame);

#endif
