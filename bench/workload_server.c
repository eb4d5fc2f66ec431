/*
 * W9: timers as a server uses them, 100 000 requests a second over n connections, in real time.
 * Each request has a timeout of
 * 200 ms, cancelled by its answer in 99 of 100 cases, and pushes its connection's keep-alive
 *     timeout of 1 s away; a
 * connection that was closed by it is opened again by its next request. One thread serves; it
 * sleeps between the steps of the script. CPU time is that of the whole process without the
 * baseline's, per request.
 */
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "bench/ledger.h"
#include "bench/baseline.h"
#include "bench/load.h"
#include "bench/server_script.h"
#include "bench/workload.h"

/* A timer of the server; the slots of connections come first. */
struct timeout {
	_Atomic uint64_t deadline_ns; /* at the earliest */
	_Atomic bool fired;
};

struct server {
	const struct order *order;
	void *self;
	struct server_script script;
	struct timeout *timeouts;
	struct outcome *outcome;
	uint64_t loop_ns;
	uint64_t scheduled, cancelled, opened, timed_out, overdue, behind_max_ns;
};

static void time_out(void *one)
{
	uint64_t at = now_ns();
	struct timeout *timeout = one;
	recorder_note(recorder_mine(),
		      atomic_load_explicit(&timeout->deadline_ns, memory_order_relaxed), at);
	atomic_store_explicit(&timeout->fired, true, memory_order_release);
}

static void schedule(struct server *server, uint32_t slot, uint64_t delay_ns)
{
	struct timeout *timeout = &server->timeouts[slot];
	const struct candidate *candidate = server->order->candidate;
	int answer;
	atomic_store_explicit(&timeout->deadline_ns, server->loop_ns + delay_ns,
			      memory_order_relaxed);
	atomic_store_explicit(&timeout->fired, false, memory_order_relaxed);
	while ((answer = candidate->schedule(server->self, 0, slot, delay_ns, time_out, timeout)) ==
	       -EAGAIN)
		sched_yield();
	if (answer != 0)
		outcome_fail(server->outcome, "schedule refused: %s", strerror(-answer));
	server->scheduled++;
}

/*
 * It could not be cancelled or moved: its callback has begun, and must have ended before the timer
 * is used again.
 */
static void await_callback(struct server *server, uint32_t slot)
{
	const struct timeout *timeout = &server->timeouts[slot];
	uint64_t end = now_ns() + 5 * SECOND_NS;
	while (!atomic_load_explicit(&timeout->fired, memory_order_acquire)) {
		if (now_ns() > end)
			outcome_fail(server->outcome,
				     "a timer is neither pending nor has its callback run");
		sched_yield();
	}
}

static void open_connections(struct server *server)
{
	struct random random = {.state = 2};
	const uint64_t longest = KEEP_ALIVE_MS * MILLISECOND_NS;
	for (uint32_t slot = 0; slot < server->order->n; slot++) {
		server->loop_ns = now_ns();
		if (server->order->candidate->turn)
			server->order->candidate->turn(server->self, 0, server->loop_ns);
		schedule(server, slot, random_between(random_next(&random), longest / 2, longest));
	}
}

static void arrive(struct server *server, const struct request *request)
{
	const uint64_t keep_alive_ns = KEEP_ALIVE_MS * MILLISECOND_NS;
	uint32_t connection = request->connection;
	if (server->order->candidate->touch(server->self, 0, connection, keep_alive_ns)) {
		atomic_store_explicit(&server->timeouts[connection].deadline_ns,
				      server->loop_ns + keep_alive_ns, memory_order_relaxed);
	} else {
		await_callback(server, connection);
		schedule(server, connection, keep_alive_ns);
		server->opened++;
	}
	schedule(server, server->order->n + request->slot, REQUEST_TIMEOUT_MS * MILLISECOND_NS);
}

/* A silent one should have timed out by now, or the candidate, or this thread, is far behind. */
static void end(struct server *server, const struct request *request)
{
	uint32_t slot = server->order->n + request->slot;
	bool fired = atomic_load_explicit(&server->timeouts[slot].fired, memory_order_acquire);
	bool cancelled = !fired && server->order->candidate->cancel(server->self, slot);
	server->cancelled += cancelled;
	server->timed_out += !cancelled;
	server->overdue += cancelled && request->silent;
	if (!cancelled)
		await_callback(server, slot);
}

static void take_step(struct server *server, uint32_t step, uint64_t at_ns)
{
	const struct server_script *script = &server->script;
	drive_until(server->order->candidate, server->self, at_ns);
	server->loop_ns = now_ns();
	if (server->loop_ns - at_ns > server->behind_max_ns)
		server->behind_max_ns = server->loop_ns - at_ns;
	if (server->order->candidate->turn)
		server->order->candidate->turn(server->self, 0, server->loop_ns);
	for (uint32_t r = script->ends[step]; r != NO_REQUEST; r = script->requests[r].next)
		end(server, &script->requests[r]);
	for (uint32_t r = script->arrivals[step]; r < script->arrivals[step + 1]; r++)
		arrive(server, &script->requests[r]);
}

/* The CPU time of it. */
static uint64_t serve(struct server *server, struct baseline *baseline)
{
	uint32_t steps = server->script.steps;
	uint64_t start = now_ns() + 5 * MILLISECOND_NS, cpu = process_cpu_ns();
	baseline_start(baseline, start, start + steps * MILLISECOND_NS, server->outcome);
	for (uint32_t step = 0; step < steps; step++)
		take_step(server, step, start + step * MILLISECOND_NS);
	baseline_join(baseline);
	return process_cpu_ns() - cpu - baseline->cpu_ns;
}

static void run(const struct order *order, struct outcome *outcome)
{
	static struct baseline baseline;
	static struct records all;
	struct server server = {.order = order, .outcome = outcome};
	if (!server_script_make(&server.script, order->quick ? 1000 : 2000, order->n))
		outcome_fail(outcome, "no memory for the script");
	uint32_t slots = order->n + server.script.request_slots;
	server.self = make_candidate(order, slots, outcome);
	server.timeouts = touched_array(slots, sizeof *server.timeouts);
	if (!server.timeouts)
		outcome_fail(outcome, "no memory for the timeouts");
	open_connections(&server);
	uint64_t cpu = serve(&server, &baseline);
	recorded(&all);
	outcome_set(outcome, "cpu_ns_per_op",
		    (double)cpu / server.script.arrivals[server.script.steps]);
	outcome_set(outcome, "timed_out", (double)server.timed_out);
	outcome_set(outcome, "reopened", (double)server.opened);
	outcome_set(outcome, "overdue", (double)server.overdue);
	outcome_set(outcome, "behind_max_ns", (double)server.behind_max_ns);
	set_lateness(outcome, &all.lateness, &baseline.lateness);
	check_records(&all, outcome);
	check_ledger(order->candidate, server.self, server.scheduled, server.cancelled, outcome);
	order->candidate->destroy(server.self);
}

const struct workload workload_server = {
    .name = "W9",
    .bit = ON_SERVER,
    .run = run,
};
