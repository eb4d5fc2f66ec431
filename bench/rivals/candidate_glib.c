/*
 * glib's timeout sources, twice from one source.
 *
 * glib: a GMainContext on one thread, its best case: no other thread has to be woken. A turn is an
 * iteration that does not block, as in a loop that has other work.
 *
 * glib-mt: the context runs in a thread of its own, and others attach and destroy sources, which
 * GMainContext allows.
 *
 * The use chosen for both: g_timeout_source_new, g_source_attach, g_source_destroy, without going
 * through the default context and its table of numbers (g_timeout_add, g_source_remove). A source
 * is made for each schedule: glib has no way to arm a destroyed one again. A move is
 * g_source_set_ready_time on the attached source; with threads it is cancel and schedule, since a
 * source that is about to be dispatched runs in spite of a later ready time.
 *
 * Timeouts have milliseconds, from a clock in microseconds: they are rounded up, and a microsecond
 * is added, so that none is early. Each iteration looks at all sources of the context: its cost
 * grows with the number of pending timers, so that glib takes part only with few of them.
 */
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/measure.h"
#include "bench/candidate.h"

enum { MOST_SOURCES = 12000 };

/*
 * One schedule of a slot. Its source and its slot hold a reference each, for a callback may be
 * about to run.
 */
struct glib_shot {
	expiry_fn *fn;
	void *arg;
	_Atomic bool ended; /* it runs or is cancelled: the thread that sets this first decides */
	_Atomic int references;
};

struct glib_slot {
	GSource *source; /* one reference; NULL: never scheduled */
	struct glib_shot *shot;
};

struct glib_loop {
	GMainContext *context;
	GMainLoop *main;
	bool threaded;
	uint32_t slots;
	struct glib_slot *timers;
	pthread_t thread;
};

static gboolean glib_expire(gpointer data)
{
	struct glib_shot *shot = data;
	if (!atomic_exchange(&shot->ended, true))
		shot->fn(shot->arg);
	return G_SOURCE_REMOVE;
}

static void glib_release(gpointer data)
{
	struct glib_shot *shot = data;
	if (atomic_fetch_sub(&shot->references, 1) == 1)
		g_free(shot);
}

static void *glib_thread(void *me)
{
	struct glib_loop *self = me;
	g_main_context_push_thread_default(self->context);
	g_main_loop_run(self->main);
	g_main_context_pop_thread_default(self->context);
	return NULL;
}

static void *glib_create(const struct candidate_setup *setup, bool threaded)
{
	struct glib_loop *self = touched_array(1, sizeof *self);
	if (!self)
		return NULL;
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	if (!self->timers) {
		free(self);
		return NULL;
	}
	self->threaded = threaded;
	self->context = g_main_context_new();
	self->main = g_main_loop_new(self->context, FALSE);
	if (!threaded)
		g_main_context_acquire(self->context);
	else if (pthread_create(&self->thread, NULL, glib_thread, self))
		abort();
	return self;
}

static void *glib_create_bare(const struct candidate_setup *setup)
{
	return glib_create(setup, false);
}

static void *glib_create_threaded(const struct candidate_setup *setup)
{
	return glib_create(setup, true);
}

static void glib_drop(struct glib_slot *timer)
{
	if (!timer->source)
		return;
	g_source_destroy(timer->source);
	g_source_unref(timer->source);
	glib_release(timer->shot);
	timer->source = NULL;
}

static void glib_destroy(void *me)
{
	struct glib_loop *self = me;
	if (self->threaded) {
		while (!g_main_loop_is_running(self->main))
			sleep_until_ns(now_ns() + 100000);
		g_main_loop_quit(self->main);
		pthread_join(self->thread, NULL);
	}
	for (uint32_t slot = 0; slot < self->slots; slot++)
		glib_drop(&self->timers[slot]);
	g_main_loop_unref(self->main);
	g_main_context_unref(self->context);
	free(self->timers);
	free(self);
}

static guint glib_interval_ms(uint64_t delay_ns)
{
	return (guint)((delay_ns + 1000 + 999999) / 1000000);
}

static int glib_schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
			 void *arg)
{
	(void)thread;
	struct glib_loop *self = me;
	struct glib_slot *timer = &self->timers[slot];
	glib_drop(timer);
	struct glib_shot *shot = g_new(struct glib_shot, 1);
	*shot = (struct glib_shot){.fn = fn, .arg = arg, .references = 2};
	timer->shot = shot;
	timer->source = g_timeout_source_new(glib_interval_ms(delay_ns));
	g_source_set_callback(timer->source, glib_expire, shot, glib_release);
	g_source_attach(timer->source, self->context);
	return 0;
}

static bool glib_pending(const struct glib_slot *timer)
{
	return timer->source && !atomic_load(&timer->shot->ended);
}

static bool glib_cancel(void *me, uint32_t slot)
{
	struct glib_loop *self = me;
	struct glib_slot *timer = &self->timers[slot];
	if (!timer->source || atomic_exchange(&timer->shot->ended, true))
		return false;
	glib_drop(timer);
	return true;
}

static bool glib_touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	(void)thread;
	struct glib_loop *self = me;
	struct glib_slot *timer = &self->timers[slot];
	if (!glib_pending(timer))
		return false;
	g_source_set_ready_time(timer->source,
				g_get_monotonic_time() + (gint64)(delay_ns + 1999) / 1000);
	return true;
}

static bool glib_touch_threaded(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct glib_loop *self = me;
	struct glib_slot *timer = &self->timers[slot];
	if (!timer->source)
		return false;
	expiry_fn *fn = timer->shot->fn;
	void *arg = timer->shot->arg;
	if (!glib_cancel(me, slot))
		return false;
	return glib_schedule(me, thread, slot, delay_ns, fn, arg) == 0;
}

static void glib_turn(void *me, unsigned thread, uint64_t at_ns)
{
	(void)thread, (void)at_ns;
	struct glib_loop *self = me;
	g_main_context_iteration(self->context, FALSE);
}

static gboolean glib_alarm(gpointer rang)
{
	*(bool *)rang = true;
	return G_SOURCE_REMOVE;
}

static uint64_t glib_drive(void *me, uint64_t end_ns)
{
	struct glib_loop *self = me;
	bool rang = false;
	uint64_t now = now_ns();
	GSource *alarm = g_timeout_source_new(end_ns > now ? glib_interval_ms(end_ns - now) : 0);
	g_source_set_callback(alarm, glib_alarm, &rang, NULL);
	g_source_attach(alarm, self->context);
	while (!rang)
		g_main_context_iteration(self->context, TRUE);
	g_source_unref(alarm);
	return 0;
}

static void glib_view(void *me, struct candidate_view *out)
{
	struct glib_loop *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct glib_slot)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += glib_pending(&self->timers[slot]);
}

static uint32_t glib_most_slots(void)
{
	return MOST_SOURCES;
}

const struct candidate candidate_glib = {
    .name = "glib",
    .what = "glib's timeout sources, one GMainContext on one thread",
    .bare = true,
    .peer = true,
    .rival = true,
    .spared = ON_TOUCH | ON_FIRE,
    .most_slots = glib_most_slots,
    .workloads = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_APART,
    .create = glib_create_bare,
    .destroy = glib_destroy,
    .schedule = glib_schedule,
    .cancel = glib_cancel,
    .touch = glib_touch,
    .turn = glib_turn,
    .drive = glib_drive,
    .view = glib_view,
};

const struct candidate candidate_glib_mt = {
    .name = "glib-mt",
    .what = "glib's timeout sources, the context in a thread",
    .peer = true,
    .rival = true,
    .most_slots = glib_most_slots,
    .workloads = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_APART,
    .create = glib_create_threaded,
    .destroy = glib_destroy,
    .schedule = glib_schedule,
    .cancel = glib_cancel,
    .touch = glib_touch_threaded,
    .view = glib_view,
};
