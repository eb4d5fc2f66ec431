/*
 * The manual executor: a list of batches behind a mutex, which is released around each run, so a
 * slow one holds up no other thread that pumps.
 *
 * The descriptor's counter is 1 if and only if runs wait. It is written and read under the lock:
 * after the unlock the last run may have ended the queue.
 */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "mpsc/base/reserve.h"
#include "mpsc/base/process.h"
#include "tickwheel/manual.h"
#include "mpsc/base/entry.h"
#include "wheel/run/work.h"

enum { QUEUE_MAX = 1 << 24, QUEUE_DEFAULT = 4096 };

struct tw_manual {
	tw_executor executor; /* first */
	tw_manual_notify_fn *notify;
	void *notify_arg;
	struct tw__origin origin;
	uint32_t room;
	pthread_mutex_t lock; /* for what follows */
	struct tw__chunk_list batches;
	uint32_t count;   /* how many these are */
	uint32_t tickets; /* that are left of the first */
	size_t waiting;   /* tickets of all */
	int fd;           /* readable while runs wait; -1: nobody has called tw_manual_fd */
	bool signalled;   /* it is readable */
};

/* The entry check of each call (mpsc/base/entry.h). */
#define manual_check(manual) TW__ORIGIN_CHECK(__func__, manual, "manual")

/* After a failed write the next hand-over tries again; after a failed read the loop wakes. */
static void update_fd(tw_manual *manual)
{
	uint64_t value;
	if (manual->fd < 0 || manual->signalled == (manual->waiting > 0))
		return;
	if (manual->waiting)
		manual->signalled = tw__eventfd_add(manual->fd);
	else
		manual->signalled = !tw__eventfd_take(manual->fd, &value) && errno == EINTR;
}

/* The submitter may have used up some. */
static uint32_t tickets_of(struct tw__chunk *chunk)
{
	tw_batch *batch = (tw_batch *)(void *)chunk;
	return tw__batch_is_work(batch) ? 1 : tw__batch_left(batch);
}

static int manual_submit(tw_executor *self, tw_batch *batch, size_t n)
{
	tw_manual *manual = (tw_manual *)self;
	/* read now: once the run is in the queue, it may end all */
	tw_manual_notify_fn *notify = manual->notify;
	void *notify_arg = manual->notify_arg;
	pthread_mutex_lock(&manual->lock);
	uint32_t count = manual->count;
	bool full = count == manual->room;
	if (!full) {
		tw__chunk_append(&manual->batches, tw__batch_chunk(batch));
		if (manual->count++ == 0)
			manual->tickets = (uint32_t)n;
		manual->waiting += n;
		update_fd(manual);
	}
	pthread_mutex_unlock(&manual->lock);
	if (count == 0 && notify)
		notify(notify_arg);
	return full ? -EAGAIN : 0;
}

static const struct tw_executor_ops ops = {sizeof ops, manual_submit};

/* Takes a ticket of the first batch or work, which look alike. NULL: none waits. */
static tw_batch *manual_take(tw_manual *manual)
{
	pthread_mutex_lock(&manual->lock);
	struct tw__chunk *first = manual->batches.first;
	if (first) {
		manual->waiting--;
		update_fd(manual);
		if (--manual->tickets == 0) {
			tw__chunk_pop(&manual->batches);
			manual->count--;
			manual->tickets = manual->count ? tickets_of(manual->batches.first) : 0;
		}
	}
	pthread_mutex_unlock(&manual->lock);
	return (tw_batch *)(void *)first;
}

static size_t manual_waiting(tw_manual *manual)
{
	pthread_mutex_lock(&manual->lock);
	size_t waiting = manual->waiting;
	pthread_mutex_unlock(&manual->lock);
	return waiting;
}

int tw_manual_pump(tw_manual *manual, size_t budget)
{
	TW__UNCANCELLED;
	int r = manual_check(manual);
	if (r)
		return r;
	size_t waiting = manual_waiting(manual), most = budget < waiting ? budget : waiting;
	int done = 0;
	tw_batch *batch;
	for (most = most < INT_MAX ? most : INT_MAX;
	     (size_t)done < most && (batch = manual_take(manual)); done++) {
		r = tw_run_one(batch);
		if (r < 0) {
			tw_run_return(batch);
			return done ? done : r;
		}
	}
	return done;
}

int tw_manual_fd(tw_manual *manual)
{
	int r = manual_check(manual);
	if (r)
		return r;
	pthread_mutex_lock(&manual->lock);
	if (manual->fd < 0)
		manual->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	r = manual->fd < 0 ? -errno : manual->fd;
	update_fd(manual);
	pthread_mutex_unlock(&manual->lock);
	return r;
}

tw_executor *tw_manual_executor(tw_manual *manual)
{
	return manual ? &manual->executor : NULL;
}

/* -------------------------------------------------------------- birth and end */

int tw_manual_create(tw_manual **out, const struct tw_manual_config *cfg)
{
	struct tw_manual_config config;
	if (!out)
		return tw__invalid("out is NULL");
	int r = TW__CONFIG_READ(tw_manual_config, &config, notify, cfg);
	if (r)
		return r;
	const char *bad = NULL;
	tw__need(&bad, config.queue <= QUEUE_MAX, "queue");
	tw__need(&bad, !config.reserved, "reserved");
	if (bad)
		return tw__bad_member(-EINVAL, __func__, "tw_manual_config", bad);
	struct tw_manual *manual = tw__alloc(sizeof *manual);
	if (!manual || !tw__origin_init(&manual->origin)) {
		tw__free(manual);
		return -ENOMEM;
	}
	*manual = (struct tw_manual){.executor = {&ops},
				     .notify = config.notify,
				     .notify_arg = config.notify_arg,
				     .origin = manual->origin,
				     .room = config.queue ? config.queue : QUEUE_DEFAULT,
				     .fd = -1};
	pthread_mutex_init(&manual->lock, NULL); /* cannot fail with default attributes */
	*out = manual;
	return 0;
}

int tw_manual_destroy(tw_manual *manual)
{
	TW__UNCANCELLED;
	if (!manual)
		return 0;
	/* in a forked child the lock may be held forever */
	if (!tw__origin_inherited(&manual->origin) && manual_waiting(manual))
		return -EBUSY;
	if (manual->fd >= 0)
		close(manual->fd);
	pthread_mutex_destroy(&manual->lock);
	tw__free(manual);
	return 0;
}
