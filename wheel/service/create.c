/* Creates services: config, pool, memory, lanes. Calls wheel/driver, executor/pool. */
#include "wheel/service/parts.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "executor/pool/layer.h"
#include "mpsc/base/process.h"
#include "mpsc/base/reserve.h"
#include "mpsc/base/clock.h"
#include "mpsc/base/random.h"
#include "mpsc/base/entry.h"
#include "wheel/driver/driver.h"
#include "wheel/timer/group.h"
#include "wheel/run/run.h"
#include "mpsc/base/misuse.h"

/* ----------------------------------------------------------------- the lanes */

/* Of bases with no timer in between, the last one is kept. */
static tw_cold __attribute__((noinline)) unsigned keep_base(const struct tw__entry *base,
							    struct tw__entry *out, unsigned kept)
{
	if (kept > 0 && tw__what_kind(out[kept - 1].what) >= TW__KIND_EPOCH)
		kept--;
	out[kept] = *base;
	return kept + 1;
}

/* Drops entries of timers that are gone, without a branch: half of them would be mispredicted. */
static unsigned entries_pack(void *context, const struct tw__entry *entries, unsigned n,
			     struct tw__entry *out, unsigned kept)
{
	const _Atomic uint64_t *words = ((const tw_service *)context)->slots.words;
#pragma GCC unroll 4
	for (unsigned i = 0; i < n; i++) {
		uint64_t what = entries[i].what,
			 word = tw_load_acquire(&words[tw__entry_slot(what)]);
		if (tw_unlikely(tw__what_kind(what) >= TW__KIND_EPOCH)) {
			kept = keep_base(&entries[i], out, kept);
			continue;
		}
		out[kept] = entries[i];
		kept += what && (word ^ what) < UINT64_C(1) << TW__GENERATION_SHIFT;
	}
	return kept;
}

static bool local_init(struct tw__lane *lane, void *context)
{
	struct tw__local *local = (struct tw__local *)lane;
	tw_service *service = context;
	memset((char *)local + sizeof local->lane, 0, sizeof *local - sizeof local->lane);
	tw__magazine_init(&service->slots, &local->magazine);
	local->young_from = UINT64_MAX;
	return tw__lane_init(&local->young, lane->bound, entries_pack, service);
}

static void local_fini(struct tw__lane *lane)
{
	tw__free(tw_load_relaxed(&((struct tw__local *)lane)->latencies));
	tw__lane_fini(tw__young_of(lane));
}

static void local_orphaned(struct tw__lane *lane, void *context)
{
	struct tw__local *local = (struct tw__local *)lane;
	tw_service *service = context;
	tw_store_relaxed(&local->of_service, 0);
	tw__magazine_flush(&service->slots, &local->magazine);
}

static const struct tw__queue_ops lane_ops = {.lane_size = sizeof(struct tw__local),
					      .init = local_init,
					      .fini = local_fini,
					      .orphaned = local_orphaned,
					      .pack = entries_pack};

/* --------------------------------------------------------------------- config */

static int config_check(const struct tw_service_config *c)
{
	const char *bad = NULL;
	uint32_t most = c->max_workers ? c->max_workers : TW__WORKERS_MAX;
	bool is_plain = c->sched_policy == SCHED_OTHER;
	tw__need(&bad, c->workers <= (c->executor ? 0 : TW__WORKERS_MAX), "workers");
	tw__need(&bad,
		 c->executor ? !c->max_workers : c->workers <= most && most <= TW__WORKERS_MAX,
		 "max_workers");
	tw__need(&bad, c->tick_ns >= 50000 && c->tick_ns <= 1000000000, "tick_ns");
	tw__need(&bad, c->buckets >= 64 && c->buckets <= 65536 && !(c->buckets & (c->buckets - 1)),
		 "buckets");
	tw__need(&bad, c->max_timers <= 1u << TW__SLOT_BITS, "max_timers");
	tw__need(&bad, c->lane_entries >= 1024 && c->lane_entries <= 1u << 30, "lane_entries");
	tw__need(&bad, (unsigned)c->drive <= TW_DRIVE_MANUAL, "drive");
	tw__need(&bad, tw__executor_is_sound(c->executor), "executor");
	tw__need(&bad, c->clock->ops, "clock");
	tw__need(&bad, (c->affinity == NULL) == (c->affinity_size == 0), "affinity");
	tw__need(&bad, is_plain || c->sched_policy == SCHED_FIFO || c->sched_policy == SCHED_RR,
		 "sched_policy");
	tw__need(&bad, is_plain == (c->sched_priority == 0), "sched_priority");
	int r = tw__bad_member(-EINVAL, "tw_service_create", "tw_service_config", bad);
	return r ? r : tw__clock_check(c->clock);
}

/* Of an older or newer program; with the defaults, except for executor and workers. */
static tw_cold int config_read(struct tw_service_config *out, const struct tw_service_config *cfg)
{
	int r = TW__CONFIG_READ(tw_service_config, out, buckets, cfg);
	if (r)
		return r;
	if (!out->tick_ns)
		out->tick_ns = 1000000;
	if (!out->buckets)
		out->buckets = 4096;
	if (!out->max_timers)
		out->max_timers = 16u << 20;
	if (!out->lane_entries)
		out->lane_entries = 1u << 20;
	if (!out->clock)
		out->clock = tw__clock_default();
	if (!out->thread_name)
		out->thread_name = "tw";
	while (!out->seed)
		out->seed = tw__random_bits();
	return config_check(out);
}

/* ------------------------------------------------------------------- creation */

/*
 * Room for each slot: a live entry, a dead one, a batch that is out; and what comes during a sweep.
 */
enum { ENTRIES_A_SLOT = 3, ENTRIES_FIRST = 1 << 20 };

/*
 * The tick thread has no path that can fail, so chunks must suffice. How many of the arena are
 * mapped follows from the slots: the lower one of two lines.
 *
 * Many slots, by shape. Who may hold chunks:
 *   wheel      what its entries fill, and `slack`, twice: for filed entries, and for what a poll
 *              spreads
 *   outboxes   packed, no more than in the wheel, and a chunk that is not full for each outbox
 *   batches    submit_limit, and one for each outbox whose executor holds none (outbox.c,
 *              may_submit)
 *   lanes      a segment is drained only while there is a chunk for each of its entries, beside
 *              what outboxes and batches may still need (drain.c)
 *   spare      what a step of a poll brings before it is packed, and chunks split for a budget
 *
 * Few slots, by entries: each chunk has one. Half of the chunks may be in batches. The others are
 * for two entries a slot, in the wheel or on the way back to it, and for what is drained (driver.h,
 * tw__chunks_wanted).
 */
enum {
	CHUNK_BYTES = sizeof(struct tw__chunk),
	FEW_A_SLOT = 4 * CHUNK_BYTES,
	FEW_FIRST = 2 * (2 * TW__SEGMENT_ENTRIES + 2 * TW__FEW_SPARE_CHUNKS) * CHUNK_BYTES,
	/* what its entries fill, and a quarter of that for batches */
	MANY_A_SLOT = ENTRIES_A_SLOT * CHUNK_BYTES * 5 / (4 * TW__CHUNK_ENTRIES) + 1
};

/* The wheel's table, the depot of its chunks, and outboxes, one behind the other. */
static int make_memory(tw_service *service)
{
	struct tw__driver *driver = service->driver;
	/* levels for all instants: sums of an instant and a delay */
	uint64_t ticks = UINT64_MAX / service->config.tick_ns;
	struct tw__wheel_size size = {service->config.buckets,
				      64 - (unsigned)__builtin_clzll(ticks)};
	size_t chunks = tw__wheel_chunks_for(size, ENTRIES_FIRST) + tw__wheel_slack(size) +
			TW__SPARE_CHUNKS + TW__SEGMENT_ENTRIES + TW__OUTBOX_CHUNKS;
	struct tw__wheel_bytes bytes = {FEW_FIRST, FEW_A_SLOT, chunks * CHUNK_BYTES * 8 / 7,
					MANY_A_SLOT, 0};
	size_t arena = tw__arena_bytes(&bytes, tw__slots_end(service->config.max_timers));
	/* bits in the depot: what of the arena is mapped beyond its end has them, too */
	uint32_t most =
	    (uint32_t)((arena / TW__RANGE_ALIGNMENT + 1) * (TW__RANGE_ALIGNMENT / CHUNK_BYTES));
	size_t table = driver->table_bytes = tw__wheel_table_bytes(size),
	       depot = tw__depot_bytes(most, TW__CHUNK_BLOCK_SHIFT);
	bytes.tables = table + depot + TW__OUTBOXES_BYTES;
	if (tw__slots_init(&service->slots, service->config.max_timers, bytes))
		return -ENOMEM;
	char *memory = service->slots.memory.ranges[TW__WHEEL_TABLES].at;
	driver->outboxes.boxes = (struct tw__outbox *)(void *)memory;
	driver->outboxes.boxes[0].executor = service->executor;
	memory += TW__OUTBOXES_BYTES;
	tw__wheel_init(&driver->wheel, size, memory, memory + table,
		       (struct tw__chunk *)(void *)service->slots.memory.ranges[TW__ARENA].at, most,
		       tw__resolve, service);
	driver->wheel.arena_chunks = 0;
	tw__driver_take_chunks(service);
	return 0;
}

static void set_constants(tw_service *service, const struct tw_service_config *cfg)
{
	service->config = *cfg;
	service->clock = cfg->clock;
	service->executor = cfg->executor;
	service->inline_executor = tw_executor_inline();
	service->time.tick_ns = cfg->tick_ns;
	service->time.tick_shift = 63 - (uint32_t)__builtin_clzll(cfg->tick_ns - 1);
	/* 2^(64+shift) / tick_ns, rounded up (tw__ticks_down) */
	unsigned __int128 power = (unsigned __int128)1 << (64 + service->time.tick_shift);
	service->time.tick_multiplier = (uint64_t)((power + cfg->tick_ns - 1) / cfg->tick_ns);
	service->threaded = cfg->drive == TW_DRIVE_THREAD;
	service->time.steps = !cfg->clock->ops->runs;
	tw__alarm_init(&service->driver->loop.alarm);
	service->time.published = service->threaded && cfg->clock->ops->runs;
	service->time.has_young = service->time.published;
	service->time.short_most_ns = TW__SHORT_TICKS * cfg->tick_ns;
	service->time.start_ns = service->driver->last_now_ns = service->driver->last_reading_ns =
	    tw_clock_now(cfg->clock);
	service->time.round_up_ns = cfg->tick_ns - 1 - service->time.start_ns;
	service->time.by_counter = cfg->clock == tw_clock_monotonic() && tw__counter_is_the_clock();
}

struct whole {
	tw_service service;
	alignas(TW__CACHE_LINE) struct tw__submitted submitted;
	alignas(TW__CACHE_LINE) struct tw__works works;
	alignas(TW__CACHE_LINE) struct tw__driver driver;
};

/* The service's own, a shared one, or none (*out is NULL). */
static int join_pool(struct tw_service_config *config, tw_pool **out)
{
	bool owned = !config->executor;
	*out = tw__pool_of(config->executor);
	int r = owned ? tw__pool_create(out, 0, config) : 0;
	if (r || !*out)
		return r;
	config->executor = tw_pool_executor(*out);
	return tw__pool_join(*out, true); /* of its own pool: cannot fail */
}

/* What tw__service_free can take back at any step. */
static int service_open(tw_service *service, const struct tw_service_config *cfg)
{
	service->works->deferred_end = &service->works->deferred;
	set_constants(service, cfg);
	tw__gate_init(&service->gate);
	tw__groups_init(&service->groups, cfg->max_timers);
	tw__queue_init(&service->queue, cfg->lane_entries, &lane_ops, service);
	service->gate.queue_id = service->queue.id;
	pthread_mutex_init(&service->driving, NULL);
	int r = make_memory(service);
	if (!r && service->threaded && cfg->clock->ops->by_alarm)
		r = tw__alarm_open(&service->driver->loop.alarm, cfg->clock->ops->id,
				   &service->gate);
	if (!r && service->threaded)
		r = tw__driver_start(service);
	return r;
}

static int service_make(tw_service **out, struct tw_service_config *cfg)
{
	tw_pool *pool;
	struct tw__origin origin;
	struct whole *whole =
	    tw__origin_init(&origin) ? tw__alloc_aligned(TW__CACHE_LINE, sizeof *whole) : NULL;
	int r = whole ? join_pool(cfg, &pool) : -ENOMEM;
	if (r) {
		tw__free(whole);
		return r;
	}
	memset(whole, 0, sizeof *whole);
	tw_service *service = &whole->service;
	service->origin = origin;
	service->submitted = &whole->submitted;
	service->works = &whole->works;
	service->driver = &whole->driver;
	tw_store_relaxed(&service->watch.pool, pool);
	r = service_open(service, cfg);
	if (r) {
		tw__service_free(service);
		return r;
	}
	if (cfg->clock->ops->join)
		cfg->clock->ops->join(cfg->clock, service);
	*out = service;
	return 0;
}

tw_cold int tw_service_create(tw_service **out, const struct tw_service_config *cfg)
{
	TW__UNCANCELLED;
	struct tw_service_config config;
	if (!out)
		return tw__invalid("out is NULL");
	int r = config_read(&config, cfg);
	if (!r)
		r = tw__system_refused("tw_service_create", service_make(out, &config));
	if (!r)
		tw__clock_default_fix();
	return r;
}

void tw__service_leave_pool(tw_service *service)
{
	pthread_mutex_lock(&tw__registry); /* pool_stats and liveness may be reading it */
	tw_pool *pool = tw_load_relaxed(&service->watch.pool);
	tw_store_relaxed(&service->watch.pool, NULL);
	pthread_mutex_unlock(&tw__registry);
	if (pool)
		tw__pool_leave(pool, true);
}

tw_cold void tw__service_free(tw_service *service)
{
	struct tw__kept *kept = tw_load_acquire(&service->kept);
	tw__service_leave_pool(service);
	if (!tw__forked(service)) { /* else locks may be held, and lists half written */
		if (service->clock->ops->leave)
			service->clock->ops->leave(service->clock, service);
		tw__queue_fini(&service->queue);
		pthread_mutex_destroy(&service->driving);
	}
	tw__groups_unmap(&service->groups);
	tw__alarm_close(&service->driver->loop.alarm);
	tw__slots_unmap(&service->slots);
	tw__free(service); /* the whole */
	if (kept)
		kept->free(kept);
}

/* ------------------------------------------------------------------- the rest */

int tw_version(void)
{
	return TW_VERSION;
}

uint64_t tw_service_now(const tw_service *service)
{
	return tw__service_check(service) ? 0 : tw__clock_read(service);
}

int tw_service_advance(tw_service *service, size_t budget)
{
	TW__UNCANCELLED;
	if (budget == 0 || (budget > INT_MAX && budget != TW_NO_LIMIT))
		return tw__bad(-EINVAL, __func__, "budget");
	int r = tw__service_check(service);
	if (r)
		return r;
	if (service->threaded)
		return tw__invalid("the service has a tick thread: set drive to TW_DRIVE_MANUAL");
	if (tw_load_acquire(&service->phase.closed))
		return -ESHUTDOWN;
	struct tw__local *local = tw__local_of(service);
	if (!local || !tw__local_ready_to_run(local))
		return -ENOMEM;
	if (pthread_mutex_trylock(&service->driving)) /* planted: advance_unlocked */
		return -EBUSY;
	bool closed = tw_load_acquire(&service->phase.closed);
	size_t done = closed ? 0 : tw__loop_advance(service, local, budget);
	pthread_mutex_unlock(&service->driving);
	if (closed)
		return -ESHUTDOWN;
	return done > INT_MAX ? INT_MAX : (int)done;
}
