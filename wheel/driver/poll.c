/*
 * One poll of the service: drain the lanes, turn the wheel to the present tick, submit due runs,
 * cascade far timers, sweep a little.
 *
 * It never allocates and has no path that can fail; inline callbacks may allocate.
 */
#include "wheel/driver/driver.h"

#include <string.h>
#include <time.h>

#include "wheel/core/frame.h"
#include "wheel/run/run.h"
#include "wheel/run/work.h"

enum { POLLS_PER_LOOK = 16 }; /* polls between two looks at whether to sweep */

static uint64_t cpu_now(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* ------------------------------------------------------------------ hand over */

/* Puts due chunks into outboxes. */
static void poll_collect(tw_service *service, struct tw__chunk_list *due, uint64_t now_ns)
{
	struct tw__chunk *chunk;
	while ((chunk = tw__chunk_pop(due))) {
		uint64_t due_ns = tw__tick_ns(service, chunk->tick);
		tw__histogram_add(&service->driver->counters.lateness,
				  now_ns > due_ns ? now_ns - due_ns : 0, chunk->count);
		tw__outbox_add(service, chunk);
	}
}

static void turn_wheel(tw_service *service)
{
	uint64_t now_ns = tw__driver_now(service);
	struct tw__chunk_list due = {0};
	bool more;
	tw_store_relaxed(&service->watch.turned_ns, now_ns);
	/* planted: late_polls */
	service->driver->turning_to = tw__ticks_down(service, now_ns - service->time.start_ns);
	bool far = service->driver->turning_to > service->driver->wheel.next + TW__SHORT_TICKS;
	if (tw_unlikely(far) && tw_load_relaxed(&service->gate.word) & TW__GATE_OPEN)
		tw__driver_publish(service, TW__GATE_OPEN); /* timer/schedule.c, open_short_way */
	do {
		more = tw__wheel_turn(&service->driver->wheel, service->driver->turning_to, &due);
		tw_store_release(&service->gate.cursor,
				 /* before batches are submitted: claims rely on it */
				 service->driver->wheel.next - 1);
		poll_collect(service, &due, now_ns);
	} while (tw_unlikely(more));
}

/*
 * Everything in the wheel is due now: TW_CLOSE_RUN. The wheel is emptied first, since what finds no
 * outbox comes back to it.
 */
static void empty_wheel(tw_service *service)
{
	struct tw__chunk_list all = {0};
	struct tw__chunk *chunk;
	while ((chunk = tw__wheel_pop(&service->driver->wheel)))
		tw__chunk_append(&all, chunk);
	while ((chunk = tw__chunk_pop(&all))) {
		chunk->tick = service->driver->wheel.next - 1;
		for (unsigned i = 0; i < chunk->count; i++)
			tw__location_in_batch(service, chunk->entries[i]);
		tw__outbox_add(service, chunk);
	}
}

/* -------------------------------------------------------------------- returned */

unsigned tw__driver_collect(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	unsigned given_back = 0;
	/* RUN3 */
	struct tw__chunk *chunk = tw_exchange_acquire(&service->submitted->returned, NULL), *next;
	for (; chunk; chunk = next) {
		next = chunk->next;
		uint64_t bits =
		    tw_load_relaxed(tw__batch_word((tw_batch *)(void *)chunk, HOLDER_GIVEN_BACK));
		for (; bits; bits &= bits - 1, given_back++)
			tw__refile(service, chunk->entries[__builtin_ctzll(bits)]);
		tw__outbox_returned(service, chunk);
		tw__chunk_put(&service->driver->wheel, chunk);
	}
	return given_back;
}

/* ---------------------------------------------------------------------- poll */

/* Entries that threads have put since the last call. */
static uint64_t count_pushed(tw_service *service)
{
	uint64_t pushed = 0;
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next) {
		struct tw__local *local = (struct tw__local *)lane;
		uint64_t written =
		    tw_load_relaxed(&lane->tail) + tw_load_relaxed(&local->young.tail);
		pushed += written - local->seen;
		local->seen = written;
	}
	return pushed;
}

static void account(tw_service *service, uint64_t cpu_ns)
{
	tw_bump(&service->driver->counters.ticks, 1);
	tw_bump(&service->driver->counters.tick_cpu_ns, cpu_ns);
	if (cpu_ns > tw_load_relaxed(&service->driver->counters.tick_cpu_max_ns))
		tw_store_relaxed(&service->driver->counters.tick_cpu_max_ns, cpu_ns);
}

void tw__driver_take_chunks(tw_service *service)
{
	struct tw__driver *driver = service->driver;
	size_t mapped = tw_load_acquire(&service->slots.memory.ranges[TW__ARENA].mapped);
	uint32_t chunks = (uint32_t)(mapped / sizeof(struct tw__chunk));
	if (tw_likely(chunks == driver->wheel.arena_chunks))
		return;
	driver->wheel.arena_chunks = chunks;
	driver->outboxes.submit_limit = chunks / 8;
}

struct tw__poll tw__poll(tw_service *service, struct tw__local *local, size_t budget)
{
	TW_ASSERT_DRIVER(service);
	struct tw__poll poll = {0};
	struct tw__run frame = {.within = service->works, /* tw__inside_poll */
				.drives = service->clock};
	tw__frame_begin(&frame);
	/* a system call; a caller's loop accounts for itself */
	uint64_t cpu_ns = service->threaded ? cpu_now() : 0;
	tw__driver_take_chunks(service);
	tw__driver_collect(service);
	service->driver->outboxes.refiled = service->driver->outboxes.short_of_chunks = false;
	/* first: what lanes hold is read against the old cursor */
	bool again = false;
	poll.pushed = count_pushed(service);
	poll.drained = tw__drain(service, tw_load_relaxed(&service->phase.closed), &again);
	turn_wheel(service);
	if (tw_unlikely(tw__forced(service)))
		empty_wheel(service);
	if (tw_likely(!tw__dropping(service)))
		poll.done = tw__outbox_deliver(service, local, budget);
	/* last: inline work may take its time, and what was due before it must not wait for it */
	poll.done += tw__works_offer(service);
	poll.elapsed = service->driver->wheel.next - service->driver->moved_tick;
	poll.now = tw__wheel_move_nearer(&service->driver->wheel) || (again && poll.drained);
	service->driver->moved_tick = service->driver->wheel.next;
	bool look = ++service->driver->polls % POLLS_PER_LOOK == 0 || service->driver->park.woken;
	tw__sweep(service, poll.drained, look);
	tw__purge(service, look, poll.drained + poll.pushed + poll.done > 8 * TW__BUSY_ENTRIES);
	poll.soon = again || tw__purging(service) || service->works->deferred ||
		    (tw__any_ready(service) && !tw__dropping(service));
	service->driver->park.woken = false;
	tw_store_relaxed(&service->entries, service->driver->wheel.entries);
	tw_store_relaxed(&service->driver->counters.chunks_used,
			 tw__depot_held(&service->driver->wheel.chunks));
	if (poll.drained || poll.done)
		account(service, service->threaded ? cpu_now() - cpu_ns : 0);
	tw__frame_end(&frame);
	return poll;
}

/* ----------------------------------------------------------------- publishing */

void tw__driver_publish(tw_service *service, uint64_t flags)
{
	TW_ASSERT_DRIVER(service);
	uint64_t replaced = tw__gate_sequence(tw_load_relaxed(&service->gate.word));
	flags |= tw_load_relaxed(&service->phase.closed) ? 0 : TW__GATE_ACCEPTING;
	if (!service->time.published) { /* nobody counts from it */
		tw__gate_publish(&service->gate, flags);
		return;
	}
	uint64_t base_ns = tw__driver_now(service) + service->time.tick_ns;
	service->driver->bases.bases_ns[(replaced + 1) % TW__EPOCHS] = base_ns;
	tw_store_relaxed(&service->gate.base_ns, base_ns); /* an estimate to its readers */
	tw__gate_publish(&service->gate, flags);
	/* drain.c, (b) */
	service->driver->bases.replaced_ns[replaced % TW__EPOCHS] = tw__driver_now(service);
}

void tw__driver_publish_closed(tw_service *service)
{
	TW_ASSERT_DRIVER(service);
	if (tw_load_relaxed(&service->phase.closed))
		return;
	tw_store_release(&service->phase.closed, true);
	tw__driver_publish(service, 0);
	tw__gate_barrier(&service->gate); /* close.c has seen that it works, or is alone */
	/* the descriptor is readable from now on: nobody arms the bell again */
	if (tw_load_relaxed(&service->driver->loop.open))
		tw__gate_ring(&service->gate);
}

bool tw__driver_any_unread(tw_service *service)
{
	for (struct tw__lane *lane = tw__queue_first(&service->queue); lane; lane = lane->next)
		if (tw__lane_unread(lane))
			return true;
	return false;
}
