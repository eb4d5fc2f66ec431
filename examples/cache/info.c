/* The INFO command: sections of "name:value" lines, as redis-cli and exporters read them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/info.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

struct figures {
	struct totals totals;
	struct tw_service_stats timers;
};

static void line(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct buffer *out, const char *format, ...)
{
	char text[256];
	va_list list;
	va_start(list, format);
	int length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	buffer_add(out, text, (size_t)length);
	buffer_add(out, "\r\n", 2);
}

static uint64_t uptime_s(void)
{
	return (tw_service_now(cache.service) - cache.started_ns) / TW_SECOND;
}

static void server_section(struct buffer *out, const struct figures *f)
{
	(void)f;
	line(out, "redis_version:%s", INFO_REDIS_VERSION);
	line(out, "redis_mode:standalone");
	line(out, "tickcache_version:%s", INFO_TICKCACHE_VERSION);
	line(out, "arch_bits:64");
	line(out, "multiplexing_api:epoll");
	line(out, "process_id:%d", (int)getpid());
	line(out, "tcp_port:%u", cache.port);
	line(out, "io_threads_active:%u", cache.loop_count);
	line(out, "server_time_usec:%" PRIu64,
	     (tw_service_now(cache.service) + cache.unix_offset_ns) / TW_MICROSECOND);
	line(out, "uptime_in_seconds:%" PRIu64, uptime_s());
	line(out, "uptime_in_days:%" PRIu64, uptime_s() / 86400);
}

static void clients_section(struct buffer *out, const struct figures *f)
{
	line(out, "connected_clients:%" PRIu64, f->totals.clients);
	line(out, "maxclients:%u", cache.max_clients);
	line(out, "blocked_clients:0");
}

static void memory_section(struct buffer *out, const struct figures *f)
{
	uint64_t most = atomic_load_explicit(&cache.maxmemory, memory_order_relaxed);
	line(out, "used_memory:%" PRIu64,
	     f->totals.key_bytes + f->timers.memory_bytes + f->totals.client_bytes);
	line(out, "used_memory_rss:%" PRIu64, info_resident_bytes());
	line(out, "used_memory_dataset:%" PRIu64, f->totals.key_bytes);
	line(out, "used_memory_timers:%" PRIu64, f->timers.memory_bytes);
	line(out, "maxmemory:%" PRIu64, most);
	line(out, "maxmemory_policy:volatile-ttl");
	line(out, "mem_allocator:libc");
}

static void stats_section(struct buffer *out, const struct figures *f)
{
	const struct totals *t = &f->totals;
	line(out, "total_connections_received:%" PRIu64, t->connections);
	line(out, "total_commands_processed:%" PRIu64, t->commands);
	line(out, "instantaneous_ops_per_sec:%" PRIu64, t->commands_a_second);
	line(out, "total_net_input_bytes:%" PRIu64, t->input_bytes);
	line(out, "total_net_output_bytes:%" PRIu64, t->output_bytes);
	line(out, "rejected_connections:%" PRIu64, t->rejected);
	line(out, "expired_keys:%" PRIu64, t->expired - t->expired_before_reset);
	line(out, "evicted_keys:%" PRIu64, t->evicted - t->evicted_before_reset);
	line(out, "keyspace_hits:%" PRIu64, t->hits);
	line(out, "keyspace_misses:%" PRIu64, t->misses);
	line(out, "pubsub_channels:%zu", pubsub_channels());
	line(out, "pubsub_patterns:%zu", pubsub_patterns());
	line(out, "total_error_replies:%" PRIu64, t->errors);
	line(out, "protocol_errors:%" PRIu64, t->protocol_errors);
	line(out, "client_output_buffer_limit_disconnections:%" PRIu64, t->slow_subscribers);
}

static void replication_section(struct buffer *out, const struct figures *f)
{
	(void)f;
	line(out, "role:master");
	line(out, "connected_slaves:0");
}

static void cpu_section(struct buffer *out, const struct figures *f)
{
	struct rusage u;
	(void)f;
	getrusage(RUSAGE_SELF, &u);
	line(out, "used_cpu_sys:%ld.%06ld", (long)u.ru_stime.tv_sec, (long)u.ru_stime.tv_usec);
	line(out, "used_cpu_user:%ld.%06ld", (long)u.ru_utime.tv_sec, (long)u.ru_utime.tv_usec);
}

static void keyspace_section(struct buffer *out, const struct figures *f)
{
	if (f->totals.keys > 0)
		line(out, "db0:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=0", f->totals.keys,
		     f->totals.volatile_keys);
}

static void latency_lines(struct buffer *out, const char *name, const struct tw_latency *l)
{
	line(out, "timers_%s_usec:p50=%" PRIu64 ",p99=%" PRIu64 ",p99.9=%" PRIu64 ",max=%" PRIu64,
	     name, l->p50_ns / 1000, l->p99_ns / 1000, l->p999_ns / 1000, l->max_ns / 1000);
}

/*
 * The first block is the service's ledger, the second is the cache's own: made is the sum of all
 * others.
 */
static void timers_section(struct buffer *out, const struct figures *f)
{
	const struct tw_service_stats *s = &f->timers;
	const struct totals *t = &f->totals;
	line(out, "timers_scheduled:%" PRIu64, s->scheduled);
	line(out, "timers_fired:%" PRIu64, s->fired);
	line(out, "timers_cancelled:%" PRIu64, s->cancelled);
	line(out, "timers_dropped:%" PRIu64, s->dropped);
	line(out, "timers_pending:%" PRIu64, s->pending);
	line(out, "timers_moved:%" PRIu64, s->resets);
	line(out, "timers_moved_earlier:%" PRIu64, s->resets_eager);
	line(out, "timers_refused:%" PRIu64, t->timers_refused);
	line(out, "timers_met_in_flight:%" PRIu64, t->met_in_flight);
	line(out, "timers_wakeups:%" PRIu64, s->wakeups);
	line(out, "timers_memory:%" PRIu64, s->memory_bytes);
	latency_lines(out, "lateness", &s->lateness);
	latency_lines(out, "wait", &s->wait);
	latency_lines(out, "run", &s->run);
	line(out, "deadlines_made:%" PRIu64, t->volatile_made);
	line(out, "deadlines_expired:%" PRIu64, t->expired);
	line(out, "deadlines_evicted:%" PRIu64, t->evicted);
	line(out, "deadlines_ended_otherwise:%" PRIu64, t->volatile_ended);
	line(out, "deadlines_present:%" PRIu64, t->volatile_keys);
}

static const struct {
	const char *name, *title;
	void (*write)(struct buffer *out, const struct figures *f);
} sections[] = {
    {"server", "Server", server_section},
    {"clients", "Clients", clients_section},
    {"memory", "Memory", memory_section},
    {"stats", "Stats", stats_section},
    {"replication", "Replication", replication_section},
    {"cpu", "CPU", cpu_section},
    {"timers", "Timers", timers_section},
    {"keyspace", "Keyspace", keyspace_section},
};

static bool is_wanted(const struct call *c, const char *name)
{
	for (size_t i = 1; i < c->argc; i++)
		if (slice_is(c->argv[i], name) || slice_is(c->argv[i], "all") ||
		    slice_is(c->argv[i], "everything") || slice_is(c->argv[i], "default"))
			return true;
	return c->argc == 1;
}

void cmd_info(struct call *c)
{
	struct figures f = {.timers = {.size = sizeof(f.timers)}};
	struct buffer text = {0};
	totals_get(&f.totals);
	tw_service_stats(cache.service, &f.timers);
	for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
		if (!is_wanted(c, sections[i].name))
			continue;
		if (buffer_length(&text) > 0)
			buffer_add(&text, "\r\n", 2);
		line(&text, "# %s", sections[i].title);
		sections[i].write(&text, &f);
	}
	reply_verbatim(c->out, text.data, buffer_length(&text), c->resp3);
	buffer_free(&text);
}
