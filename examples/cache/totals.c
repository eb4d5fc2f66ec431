#include <string.h>
#include <stdio.h>
#include <unistd.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/info.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/table.h"

static _Atomic uint64_t expired_before_reset, evicted_before_reset, commands_a_second;

static void add_shard(struct totals *t, struct shard *s)
{
	t->keys += s->keys;
	t->volatile_keys += s->volatile_keys;
	t->key_bytes += s->bytes;
	t->volatile_made += figure_read(&s->figures.volatile_made);
	t->expired += figure_read(&s->figures.expired);
	t->evicted += figure_read(&s->figures.evicted);
	t->volatile_ended += figure_read(&s->figures.volatile_ended);
	t->met_in_flight += figure_read(&s->figures.met_in_flight);
	t->timers_refused += figure_read(&s->figures.timers_refused);
}

static void add_loop(struct totals *t, struct loop_figures *f)
{
	t->connections += figure_read(&f->connections);
	t->rejected += figure_read(&f->rejected);
	t->commands += figure_read(&f->commands);
	t->hits += figure_read(&f->hits);
	t->misses += figure_read(&f->misses);
	t->errors += figure_read(&f->errors);
	t->input_bytes += figure_read(&f->input_bytes);
	t->output_bytes += figure_read(&f->output_bytes);
	t->protocol_errors += figure_read(&f->protocol_errors);
	t->slow_subscribers += figure_read(&f->slow_subscribers);
}

void totals_get(struct totals *t)
{
	*t = (struct totals){.clients = atomic_load_explicit(&cache.clients, memory_order_relaxed)};
	t->client_bytes =
	    t->clients * sizeof(struct client) + cache.loop_count * sizeof(struct loop);
	for (size_t i = 0; i < SHARDS; i++)
		add_shard(t, &shards[i]);
	for (unsigned i = 0; i < cache.loop_count; i++)
		add_loop(t, &cache.loops[i].figures);
	t->expired_before_reset = figure_read(&expired_before_reset);
	t->evicted_before_reset = figure_read(&evicted_before_reset);
	t->commands_a_second = figure_read(&commands_a_second);
}

/* A loop may count in the same moment: what it adds then may be lost or stay. */
void totals_reset(void)
{
	struct totals t;
	totals_get(&t);
	atomic_store_explicit(&expired_before_reset, t.expired, memory_order_relaxed);
	atomic_store_explicit(&evicted_before_reset, t.evicted, memory_order_relaxed);
	for (unsigned i = 0; i < cache.loop_count; i++) {
		_Atomic uint64_t *figures = &cache.loops[i].figures.connections;
		for (size_t k = 0; k < sizeof(cache.loops[i].figures) / sizeof(*figures); k++)
			atomic_store_explicit(&figures[k], 0, memory_order_relaxed);
	}
}

void totals_sample(void)
{
	static uint64_t last_ns, last_commands;
	struct totals t;
	uint64_t now = tw_service_now(cache.service);
	totals_get(&t);
	if (t.commands < last_commands) /* CONFIG RESETSTAT */
		last_commands = 0;
	double seconds = (double)(now - last_ns) / (double)TW_SECOND;
	uint64_t rate = (uint64_t)((double)(t.commands - last_commands) / seconds + 0.5);
	atomic_store_explicit(&commands_a_second, rate, memory_order_relaxed);
	last_ns = now;
	last_commands = t.commands;
}

uint64_t info_resident_bytes(void)
{
	unsigned long whole, resident = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (statm != NULL) {
		if (fscanf(statm, "%lu %lu", &whole, &resident) != 2)
			resident = 0;
		fclose(statm);
	}
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
