#include "wheel/core/user_code.h"
#include "wheel/core/frame.h"

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
	uint64_t word = tw_load_relaxed(&record->word);
	tw_store_relaxed(&record->word, word + (word & 1));
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

void tw__user_hide_callback(const tw_service *service)
{
	struct tw__run *run = tw__current_run;
	if (!run || run->service != service)
		return;
	tw__user_end(run->shown);
	run->shown = NULL;
}
