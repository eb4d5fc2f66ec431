/*
 * DPDK's rte_timer: a skip list for each lcore, without huge pages and without devices.
 *
 * The use chosen: each thread is an lcore, its timers are in its own list, and it calls
 * rte_timer_manage in each turn of its loop. This is what DPDK's guide shows and its best: no lock
 * is contended. An rte_timer is in each connection; a move is rte_timer_reset on a pending timer.
 * Other lcores may stop and reset the timer too, through the list's lock, which makes it safe for
 * threads; here none does.
 *
 * A DPDK program turns without sleeping. Here the loop sleeps from tick to tick where nothing else
 * is to do.
 *
 * Ticks are cycles of the processor's counter, whose frequency DPDK rounds. The ratio to the clock
 * is measured here over the whole run instead, and 1/8192 of each delay is added, so that none is
 * early.
 */
#include <sched.h>
#include <stdlib.h>

#include <rte_config.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_lcore.h>
#include <rte_timer.h>

#include "bench/measure.h"
#include "bench/candidate.h"

struct dpdk_timer {
	struct rte_timer rte;
	expiry_fn *fn;
	void *arg;
};

enum { DPDK_MOST_THREADS = 64 };

struct dpdk {
	uint32_t slots;
	struct dpdk_timer *timers;
	uint64_t first_ns, first_cycles;
	struct dpdk_thread {
		_Alignas(64) double cycles_per_ns;
	} threads[DPDK_MOST_THREADS];
	unsigned lcores[RTE_MAX_LCORE];
	int lcore_count;
};

/* The calling thread's lcore; RTE_MAX_LCORE before its first turn. */
static _Thread_local unsigned dpdk_lcore = RTE_MAX_LCORE;

static void dpdk_expire(struct rte_timer *rte, void *arg)
{
	(void)arg;
	struct dpdk_timer *timer = (struct dpdk_timer *)rte;
	timer->fn(timer->arg);
}

/* For lists of other threads, which have ended. */
static void dpdk_expire_foreign(struct rte_timer *rte)
{
	dpdk_expire(rte, NULL);
}

/*
 * DPDK binds the main thread to one processor, and threads that it starts would inherit that: it is
 * undone.
 */
static bool dpdk_begin(void)
{
	static char arguments[][24] = {"bench",       "--no-huge",  "--no-pci",
				       "-m",          "64",         "--no-telemetry",
				       "--no-shconf", "--lcores=0", "--log-level=1"};
	enum { COUNT = sizeof arguments / sizeof *arguments };
	char *pointers[COUNT + 1] = {NULL};
	for (unsigned i = 0; i < COUNT; i++)
		pointers[i] = arguments[i];
	cpu_set_t processors;
	sched_getaffinity(0, sizeof processors, &processors);
	bool begun = rte_eal_init(COUNT, pointers) >= 0 && rte_timer_subsystem_init() >= 0;
	sched_setaffinity(0, sizeof processors, &processors);
	return begun;
}

static void *dpdk_create(const struct candidate_setup *setup)
{
	const uint64_t calibration_ns = 20000000;
	struct dpdk *self = touched_array(1, sizeof *self);
	if (!self || setup->threads > DPDK_MOST_THREADS || !dpdk_begin())
		return NULL;
	self->slots = setup->slots;
	self->timers = touched_array(setup->slots, sizeof *self->timers);
	if (!self->timers)
		return NULL;
	for (uint32_t slot = 0; slot < setup->slots; slot++)
		rte_timer_init(&self->timers[slot].rte);
	self->first_ns = now_ns();
	self->first_cycles = rte_get_timer_cycles();
	sleep_until_ns(self->first_ns + calibration_ns);
	for (unsigned lcore = 0; lcore < RTE_MAX_LCORE; lcore++)
		self->lcores[lcore] = lcore;
	self->lcore_count = RTE_MAX_LCORE;
	return self;
}

static void dpdk_destroy(void *me)
{
	struct dpdk *self = me;
	free(self->timers);
	free(self);
}

/* The first caller is the main thread or one of the bench's; each becomes an lcore. */
static void dpdk_take_lcore(void)
{
	if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() < 0)
		abort();
	dpdk_lcore = rte_lcore_id();
}

static void dpdk_turn(void *me, unsigned thread, uint64_t at_ns)
{
	struct dpdk *self = me;
	struct dpdk_thread *mine = &self->threads[thread];
	if (dpdk_lcore == RTE_MAX_LCORE)
		dpdk_take_lcore();
	mine->cycles_per_ns = (double)(rte_get_timer_cycles() - self->first_cycles) /
			      (double)(at_ns - self->first_ns);
	rte_timer_manage();
}

static void dpdk_reset(struct dpdk *self, unsigned thread, struct dpdk_timer *timer,
		       uint64_t delay_ns)
{
	const struct dpdk_thread *mine = &self->threads[thread];
	uint64_t padded_ns = delay_ns + delay_ns / 8192 + 1000;
	uint64_t cycles = (uint64_t)((double)padded_ns * mine->cycles_per_ns);
	rte_timer_reset(&timer->rte, cycles, SINGLE, dpdk_lcore, dpdk_expire, NULL);
}

static int dpdk_schedule(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns, expiry_fn *fn,
			 void *arg)
{
	struct dpdk *self = me;
	struct dpdk_timer *timer = &self->timers[slot];
	timer->fn = fn;
	timer->arg = arg;
	dpdk_reset(self, thread, timer, delay_ns);
	return 0;
}

static bool dpdk_cancel(void *me, uint32_t slot)
{
	struct dpdk *self = me;
	struct rte_timer *rte = &self->timers[slot].rte;
	return rte_timer_pending(rte) && rte_timer_stop(rte) == 0;
}

static bool dpdk_touch(void *me, unsigned thread, uint32_t slot, uint64_t delay_ns)
{
	struct dpdk *self = me;
	struct dpdk_timer *timer = &self->timers[slot];
	if (!rte_timer_pending(&timer->rte))
		return false;
	dpdk_reset(self, thread, timer, delay_ns);
	return true;
}

static void dpdk_manage_all(struct dpdk *self)
{
	if (dpdk_lcore == rte_lcore_id())
		rte_timer_manage();
	else
		rte_timer_alt_manage(0, self->lcores, self->lcore_count, dpdk_expire_foreign);
}

static uint64_t dpdk_drive(void *me, uint64_t end_ns)
{
	struct dpdk *self = me;
	uint64_t turns = 0, now;
	for (;;) {
		dpdk_manage_all(self);
		now = now_ns();
		if (now >= end_ns)
			return turns;
		uint64_t next = (now / TICK_NS + 1) * TICK_NS;
		sleep_until_ns(next < end_ns ? next : end_ns);
		turns++;
	}
}

static void dpdk_view(void *me, struct candidate_view *out)
{
	struct dpdk *self = me;
	*out = (struct candidate_view){.user_bytes = sizeof(struct dpdk_timer)};
	for (uint32_t slot = 0; slot < self->slots; slot++)
		out->pending += rte_timer_pending(&self->timers[slot].rte) != 0;
}

const struct candidate candidate_dpdk = {
    .name = "dpdk",
    .what = "DPDK's rte_timer, a list for each thread, no huge pages",
    .peer = true,
    .rival = true,
    .workloads = ON_CHURN | ON_REQUEST | ON_TOUCH | ON_FIRE | ON_APART,
    .create = dpdk_create,
    .destroy = dpdk_destroy,
    .schedule = dpdk_schedule,
    .cancel = dpdk_cancel,
    .touch = dpdk_touch,
    .turn = dpdk_turn,
    .drive = dpdk_drive,
    .view = dpdk_view,
};
