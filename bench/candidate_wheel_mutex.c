/*
 * A timing wheel with a mutex for each producer, the thread-safe rival that is hardest to beat.
 * Each thread adds to a wheel of its own and cancels there, so its mutex is nearly always free. One
 * thread turns all wheels in each tick. Deadlines are counted from the producer's cached time.
 * Callbacks run outside the mutex, in batches.
 *
 * What it does not do: a timer is cancelled by the thread that scheduled it; there are no handles,
 * the record is the user's and must outlive the callback; one slow callback delays all others; the
 * thread wakes up in each tick, whether anything is due or not.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench/candidate.h"
#include "bench/due.h"
#include "bench/list_wheel.h"
#include "bench/measure.h"

struct producer {
	_Alignas(64) pthread_mutex_t lock; /* of the wheel and of the records in it */
	uint64_t loop_ns;                  /* its thread's own */
	struct due_batch due;
	struct list_wheel wheel;
};

struct record {
	struct wheel_timer timer;
	struct producer *producer; /* that scheduled it */
};

struct wheels {
	unsigned producers;
	uint32_t slots;
	struct producer *all;
	struct record *records;
	_Atomic uint64_t wakeups;
	atomic_bool stop;
	pthread_t thread;
};

static void *turn_all(void *me)
{
	struct wheels *self = me;
	while (!atomic_load_explicit(&self->stop, memory_order_relaxed)) {
		uint64_t now_tick = now_ns() / TICK_NS;
		for (struct producer *p = self->all; p < self->all + self->producers; p++) {
			pthread_mutex_lock(&p->lock);
			list_wheel_turn(&p->wheel, now_tick);
			due_run(&p->due);
			pthread_mutex_unlock(&p->lock);
		}
		atomic_fetch_add_explicit(&self->wakeups, 1, memory_order_relaxed);
		sleep_until_ns((now_tick + 1) * TICK_NS);
	}
	return NULL;
}

/* What a create that failed has made ends with the process. */
static void *create(const struct candidate_setup *setup)
{
	struct wheels *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->producers = setup->threads;
	self->slots = setup->slots;
	self->all = touched_array(setup->threads, sizeof *self->all);
	self->records = touched_array(setup->slots, sizeof *self->records);
	if (!self->all || !self->records)
		return NULL;
	for (struct producer *p = self->all; p < self->all + self->producers; p++) {
		pthread_mutex_init(&p->lock, NULL);
		p->loop_ns = now_ns();
		list_wheel_init(&p->wheel, p->loop_ns / TICK_NS);
		p->due.lock = &p->lock;
		p->wheel.due = &p->due;
	}
	return pthread_create(&self->thread, NULL, turn_all, self) ? NULL : self;
}

static void destroy(void *me)
{
	struct wheels *self = me;
	atomic_store(&self->stop, true);
	pthread_join(self->thread, NULL);
	free(self->all);
	free(self->records);
	free(self);
}

static inline uint64_t due_tick(const struct producer *producer, uint64_t delay_ns)
{
	return (producer->loop_ns + delay_ns + TICK_NS - 1) / TICK_NS;
}

static int schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
		    void *arg)
{
	struct wheels *self = me;
	struct producer *producer = &self->all[thread];
	struct record *record = &self->records[slot];
	pthread_mutex_lock(&producer->lock);
	record->timer.fn = fn;
	record->timer.arg = arg;
	record->producer = producer;
	list_wheel_add(&producer->wheel, &record->timer, due_tick(producer, delay_ns));
	pthread_mutex_unlock(&producer->lock);
	return 0;
}

static bool cancel(void *me, uint32_t slot)
{
	struct wheels *self = me;
	struct record *record = &self->records[slot];
	if (!record->producer)
		return false;
	pthread_mutex_lock(&record->producer->lock);
	bool pending = record->timer.link != NULL;
	if (pending)
		list_wheel_remove(&record->timer);
	pthread_mutex_unlock(&record->producer->lock);
	return pending;
}

static bool touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct wheels *self = me;
	struct producer *producer = &self->all[thread];
	struct wheel_timer *timer = &self->records[slot].timer;
	pthread_mutex_lock(&producer->lock);
	bool pending = timer->link != NULL;
	if (pending)
		list_wheel_retime(&producer->wheel, timer, due_tick(producer, delay_ns));
	pthread_mutex_unlock(&producer->lock);
	return pending;
}

static void turn(void *me, unsigned thread, uint64_t at_ns)
{
	struct wheels *self = me;
	self->all[thread].loop_ns = at_ns;
}

static void view(void *me, struct candidate_view *out)
{
	struct wheels *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct record),
				       .wakeups = atomic_load(&self->wakeups)};
	for (struct producer *p = self->all; p < self->all + self->producers; p++)
		pthread_mutex_lock(&p->lock);
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += self->records[slot].timer.link != NULL;
	for (struct producer *p = self->all; p < self->all + self->producers; p++)
		pthread_mutex_unlock(&p->lock);
}

const struct candidate candidate_wheel_mutex = {
    .name = "wheel-mutex",
    .what = "a wheel and a mutex for each producer, a thread that turns all, time cached",
    .workloads = ON_ALL & ~(ON_IDLE | ON_PERIODIC),
    .spared = ON_RETENTION,
    .create = create,
    .destroy = destroy,
    .schedule = schedule,
    .cancel = cancel,
    .touch = touch,
    .turn = turn,
    .view = view,
};
