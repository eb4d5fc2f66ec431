#include "wheel/core/user_code.h"
#include "wheel/core/frame.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpsc/base/process.h"

_Atomic(struct tw__run_record *) tw__run_records;
_Thread_local struct tw__run_record *tw__my_run_record;

static pthread_once_t user_code_once = PTHREAD_ONCE_INIT;
static bool ready;

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
static void user_code_thread_ends(void)
{
	struct tw__run_record *record = tw__my_run_record;
	if (!record)
		return;
	tw__my_run_record = NULL;
	user_code_clear(record);
	tw_store_release(&record->in_use, 0); /* pairs with take_free */
}

static void user_code_unload(void)
{
	struct tw__run_record *record = tw_load_relaxed(&tw__run_records);
	for (struct tw__run_record *next; record; record = next) {
		next = tw_load_relaxed(&record->next);
		if (tw_load_relaxed(&record->in_use))
			*record->mine = NULL;
		free(record);
	}
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
	static struct tw__keeper keeper = {.thread_ends = user_code_thread_ends,
					   .unload = user_code_unload,
					   .after_fork_in_child = user_code_after_fork_in_child};
	ready = tw__keeper_add(&keeper);
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
	pthread_once(&user_code_once, get_ready);
	struct tw__run_record *record = ready ? take_free() : NULL;
	if (ready && !record)
		record = user_code_make();
	if (!record)
		return NULL;
	pthread_mutex_lock(&tw__registry);
	bool watched = tw__thread_watch();
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

struct tw__run_record *tw__layer_begin(const void *owner, tw_fn *fn, void *arg, const char *name,
				       uint64_t since_ns)
{
	return tw__user_begin(owner, fn, arg, name, since_ns);
}

void tw__layer_end(struct tw__run_record *record)
{
	tw__user_end(record);
}
