#include "wheel/core/user_code.h"
#include "wheel/core/ticks.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpsc/base/fork.h"
#include "mpsc/base/unload.h"

_Atomic(struct tw__run_record *) tw__run_records;
_Thread_local struct tw__run_record *tw__my_run_record;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t exit_key;
static bool ready;
static bool unloaded; /* the key is deleted; registry's lock */

/* ------------------------------------------------------------------ records */

/* The record's thread runs nothing any more. */
static void user_code_clear(struct tw__run_record *record)
{
	for (unsigned i = 0; i < TW__RUN_LEVELS; i++)
		tw_store_relaxed(&record->levels[i].word, tw_load_relaxed(&record->levels[i].word) &
							      ~(uint64_t)TW__USER_RUNS);
	tw_store_relaxed(&record->bringing, NULL);
}

/*
 * A user's function may have ended the thread from inside (pthread_exit), so runs may still be
 * shown. A later exit handler of the thread that runs something takes a record anew.
 */
static void user_code_thread_exits(void *arg)
{
	struct tw__run_record *record = arg;
	pthread_mutex_lock(&tw__registry);
	if (tw__my_run_record) { /* else it has just been freed */
		tw__my_run_record = NULL;
		user_code_clear(record);
		tw_store_release(&record->in_use, 0); /* pairs with take_free */
	}
	pthread_mutex_unlock(&tw__registry);
}

/* The thread of a record in use lives: it takes this lock before it ends. */
static void user_code_unload(bool free_all)
{
	unloaded = pthread_key_delete(exit_key) == 0;
	struct tw__run_record *record = tw_load_relaxed(&tw__run_records);
	for (struct tw__run_record *next; free_all && record; record = next) {
		next = tw_load_relaxed(&record->next);
		if (tw_load_relaxed(&record->in_use))
			*record->mine = NULL;
		free(record);
	}
	if (free_all)
		tw_store_relaxed(&tw__run_records, NULL);
}

/* Only the thread that has forked goes on. What the others ran does not run here. */
static void user_code_after_fork_in_child(void)
{
	for (struct tw__run_record *record = tw_load_acquire(&tw__run_records); record;
	     record = tw_load_acquire(&record->next)) {
		if (record == tw__my_run_record)
			continue;
		user_code_clear(record);
		tw_store_relaxed(&record->in_use, 0);
	}
}

static void get_ready(void)
{
	static struct tw__unloader unloader = {.unload = user_code_unload};
	ready = pthread_key_create(&exit_key, user_code_thread_exits) == 0 &&
		pthread_atfork(NULL, NULL, user_code_after_fork_in_child) == 0 &&
		tw__unload_watch(&unloader);
}

static struct tw__run_record *take_free(void)
{
	struct tw__run_record *record = tw_load_acquire(&tw__run_records); /* USER2 */
	for (; record; record = tw_load_acquire(&record->next)) {
		uint32_t free_now = 0;
		if (!tw_load_relaxed(&record->in_use) &&
		    tw_cas_acq_rel(&record->in_use, &free_now, 1))
			return record;
	}
	return NULL;
}

static struct tw__run_record *user_code_make(void)
{
	struct tw__run_record *record = aligned_alloc(TW__CACHE_LINE, sizeof *record);
	if (!record)
		return NULL;
	memset(record, 0, sizeof *record);
	for (unsigned i = 0; i < TW__RUN_LEVELS; i++)
		record->levels[i].record = record;
	tw_store_relaxed(&record->in_use, 1);
	struct tw__run_record *first = tw_load_relaxed(&tw__run_records);
	do
		tw_store_relaxed(&record->next, first);
	while (!tw_cas_acq_rel(&tw__run_records, &first, record)); /* USER2 */
	return record;
}

struct tw__run_record *tw__run_record_make(void)
{
	pthread_once(&once, get_ready);
	struct tw__run_record *record = ready ? take_free() : NULL;
	if (ready && !record)
		record = user_code_make();
	if (!record)
		return NULL;
	pthread_mutex_lock(&tw__registry);
	bool watched = unloaded || pthread_setspecific(exit_key, record) == 0;
	pthread_mutex_unlock(&tw__registry);
	if (!watched) {
		tw_store_release(&record->in_use, 0);
		return NULL;
	}
	record->mine = &tw__my_run_record;
	tw_store_relaxed(&record->thread_id, (uint32_t)gettid());
	return tw__my_run_record = record;
}

struct tw__run_level *tw__user_next_level(struct tw__run_record *record)
{
	for (unsigned i = 1; i < TW__RUN_LEVELS; i++)
		if (!(tw_load_relaxed(&record->levels[i].word) & TW__USER_RUNS))
			return &record->levels[i];
	return NULL;
}

/* ------------------------------------------------------------- with on_stuck */

struct tw__run_level *tw__user_begin_watched(tw_service *service, enum tw_run_kind kind, tw_fn *fn,
					     const char *name, uint64_t since_ns)
{
	struct tw__run_level *level = tw__user_enter();
	if (!level)
		return NULL;
	uint64_t begun_ns = since_ns ? since_ns : tw__clock_read(service);
	/* USER1, USER3 */
	tw_store_seq_cst(&level->word, tw__user_name(level, kind, service, fn, name, begun_ns));
	_Atomic uint32_t *asleep = tw_load_relaxed(&service->watch.watch_asleep);
	if (tw_load_seq_cst(asleep)) { /* USER3 */
		tw_store_relaxed(asleep, 0);
		tw__gate_ring(&service->gate);
	}
	return level;
}

/* ------------------------------------------------------------------ looking */

/*
 * When the run was first looked at: now, if it was not yet. Two threads that look at the same time
 * may both answer now.
 */
static uint64_t first_seen_ns(struct tw__run_level *level, uint64_t word, uint64_t now_ns)
{
	uint64_t version = tw_load_acquire(&level->seen_version); /* USER4 */
	uint64_t seen_word = tw_load_acquire(&level->seen_word),
		 seen_ns = tw_load_acquire(&level->seen_ns);
	if (version & 1 || tw_load_relaxed(&level->seen_version) != version)
		return now_ns;
	if (seen_word == word)
		return seen_ns;
	if (tw_cas_acq_rel(&level->seen_version, &version, version + 1)) { /* USER4 */
		tw_store_release(&level->seen_ns, now_ns);
		tw_store_release(&level->seen_word, word);
		tw_store_release(&level->seen_version, version + 2);
	}
	return now_ns;
}

bool tw__user_look(struct tw__run_level *level, const void *owner, uint64_t now_ns,
		   struct tw__seen_run *run)
{
	uint64_t word = tw_load_seq_cst(&level->word); /* USER1, USER3 */
	if (!(word & TW__USER_RUNS) || tw_load_acquire(&level->owner) != owner)
		return false;
	tw_fn *fn = tw_load_acquire(&level->fn);
	const char *name = tw_load_acquire(&level->name);
	uint64_t since_ns = tw_load_acquire(&level->since_ns),
		 timer = tw_load_acquire(&level->timer);
	if (tw_load_relaxed(&level->word) != word)
		return false;
	enum tw_run_kind kind = (enum tw_run_kind)((word & TW__USER_KINDS) >> 1);
	*run = (struct tw__seen_run){
	    .word = word,
	    .kind = kind,
	    .timer = {kind == TW_RUN_KIND_TIMER ? timer : 0},
	    .fn = fn,
	    .name = name,
	    .since_ns = word & TW__USER_DATED ? since_ns : first_seen_ns(level, word, now_ns),
	    .thread_id = tw_load_relaxed(&level->record->thread_id),
	    .level = level};
	return true;
}
