/* Commands about the server: INFO, COMMAND, TIME, DEBUG, SHUTDOWN. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/loop.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

static _Atomic uint64_t expired_before_reset, commands_a_second;

/* ------------------------------------------------------------------ figures */

struct shard_figures info_shards(uint64_t *keys, uint64_t *volatile_keys)
{
	struct shard_figures all = {0};
	*keys = *volatile_keys = 0;
	for (size_t i = 0; i < SHARDS; i++) {
		struct shard_figures *f = &shards[i].figures;
		*keys += atomic_load_explicit(&shards[i].keys, memory_order_relaxed);
		*volatile_keys +=
		    atomic_load_explicit(&shards[i].volatile_keys, memory_order_relaxed);
		figure_add(&all.volatile_made, figure_read(&f->volatile_made));
		figure_add(&all.expired, figure_read(&f->expired));
		figure_add(&all.volatile_ended, figure_read(&f->volatile_ended));
		figure_add(&all.met_in_flight, figure_read(&f->met_in_flight));
		figure_add(&all.timers_refused, figure_read(&f->timers_refused));
	}
	return all;
}

/* Of all loops: loop_figures holds nothing but counters. */
static struct loop_figures loops_figures(bool resets)
{
	struct loop_figures all = {0};
	size_t count = sizeof(all) / sizeof(all.commands);
	for (unsigned i = 0; i < cache.loop_count; i++) {
		_Atomic uint64_t *of = &cache.loops[i].figures.connections, *sum = &all.connections;
		for (size_t k = 0; k < count; k++) {
			figure_add(&sum[k], figure_read(&of[k]));
			if (resets) /* a loop may count in the same moment: that may be lost */
				atomic_store_explicit(&of[k], 0, memory_order_relaxed);
		}
	}
	return all;
}

void info_sample(void)
{
	static uint64_t last_ns, last_commands;
	struct loop_figures f = loops_figures(false);
	uint64_t now = tw_service_now(cache.service), commands = figure_read(&f.commands);
	uint64_t more = commands - (commands < last_commands ? 0 : last_commands);
	atomic_store_explicit(&commands_a_second, more * TW_SECOND / (now - last_ns + 1),
			      memory_order_relaxed);
	last_ns = now;
	last_commands = commands;
}

void info_reset(void)
{
	uint64_t keys, present;
	struct shard_figures f = info_shards(&keys, &present);
	atomic_store_explicit(&expired_before_reset, figure_read(&f.expired), memory_order_relaxed);
	loops_figures(true);
}

static uint64_t resident_bytes(void)
{
	unsigned long whole, resident = 0;
	FILE *statm = fopen("/proc/self/statm", "r");
	if (statm != NULL && fscanf(statm, "%lu %lu", &whole, &resident) != 2)
		resident = 0;
	if (statm != NULL)
		fclose(statm);
	return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ------------------------------------------------------------------ INFO */

struct info {
	const struct call *call;
	struct buffer text;
	bool wanted; /* the section that is being written */
};

static bool is_wanted(const struct call *c, const char *name)
{
	for (size_t i = 1; i < c->argc; i++)
		if (slice_is(c->argv[i], name) || slice_is(c->argv[i], "all") ||
		    slice_is(c->argv[i], "everything") || slice_is(c->argv[i], "default"))
			return true;
	return c->argc == 1;
}

__attribute__((format(printf, 2, 3))) static void line(struct info *i, const char *format, ...)
{
	char text[256];
	va_list list;
	if (!i->wanted)
		return;
	va_start(list, format);
	int length = vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	buffer_add(&i->text, text, (size_t)length);
	buffer_add(&i->text, "\r\n", 2);
}

static void number(struct info *i, const char *name, uint64_t value)
{
	line(i, "%s:%" PRIu64, name, value);
}

static void section(struct info *i, const char *name)
{
	i->wanted = is_wanted(i->call, name);
	line(i, "%s# %s", buffer_length(&i->text) > 0 ? "\r\n" : "", name);
}

static void latency(struct info *i, const char *name, const struct tw_latency *l)
{
	line(i, "timers_%s_usec:p50=%" PRIu64 ",p99=%" PRIu64 ",p99.9=%" PRIu64 ",max=%" PRIu64,
	     name, l->p50_ns / 1000, l->p99_ns / 1000, l->p999_ns / 1000, l->max_ns / 1000);
}

static void write_server(struct info *i)
{
	uint64_t now = tw_service_now(cache.service);
	uint64_t up = (now - cache.started_ns) / TW_SECOND;
	section(i, "Server");
	line(i, "redis_version:" REDIS_VERSION);
	line(i, "redis_mode:standalone");
	line(i, "os:Linux");
	line(i, "arch_bits:64");
	line(i, "multiplexing_api:epoll");
	number(i, "process_id", (uint64_t)getpid());
	line(i, "run_id:%040" PRIx64, cache.unix_offset_ns);
	number(i, "tcp_port", cache.port);
	number(i, "io_threads_active", cache.loop_count);
	number(i, "server_time_usec", (now + cache.unix_offset_ns) / TW_MICROSECOND);
	number(i, "uptime_in_seconds", up);
	number(i, "uptime_in_days", up / 86400);
	line(i, "hz:10");
	section(i, "Clients");
	number(i, "connected_clients", atomic_load_explicit(&cache.clients, memory_order_relaxed));
	number(i, "maxclients", cache.max_clients);
	line(i, "blocked_clients:0");
}

static void write_memory(struct info *i, uint64_t timers)
{
	uint64_t keys = 0;
	struct rusage u;
	for (size_t k = 0; k < SHARDS; k++)
		keys += atomic_load_explicit(&shards[k].bytes, memory_order_relaxed);
	getrusage(RUSAGE_SELF, &u);
	section(i, "Memory");
	number(i, "used_memory", keys + timers);
	line(i, "used_memory_human:%.2fM", (double)(keys + timers) / (1 << 20));
	number(i, "used_memory_rss", resident_bytes());
	number(i, "used_memory_peak", (uint64_t)u.ru_maxrss * 1024);
	number(i, "used_memory_dataset", keys);
	number(i, "used_memory_timers", timers);
	line(i, "maxmemory:0\r\nmaxmemory_policy:noeviction\r\nmem_allocator:libc");
	section(i, "Persistence");
	line(i, "loading:0\r\nrdb_changes_since_last_save:0\r\naof_enabled:0");
}

static void write_stats(struct info *i, uint64_t expired)
{
	struct loop_figures f = loops_figures(false);
	section(i, "Stats");
	number(i, "total_connections_received", figure_read(&f.connections));
	number(i, "total_commands_processed", figure_read(&f.commands));
	number(i, "instantaneous_ops_per_sec", figure_read(&commands_a_second));
	number(i, "total_net_input_bytes", figure_read(&f.input_bytes));
	number(i, "total_net_output_bytes", figure_read(&f.output_bytes));
	number(i, "rejected_connections", figure_read(&f.rejected));
	number(i, "expired_keys", expired - figure_read(&expired_before_reset));
	line(i, "evicted_keys:0");
	number(i, "keyspace_hits", figure_read(&f.hits));
	number(i, "keyspace_misses", figure_read(&f.misses));
	number(i, "pubsub_channels", pubsub_topics(false));
	number(i, "pubsub_patterns", pubsub_topics(true));
	number(i, "total_error_replies", figure_read(&f.errors));
	number(i, "protocol_errors", figure_read(&f.protocol_errors));
	number(i, "client_output_buffer_limit_disconnections", figure_read(&f.slow_clients));
	section(i, "Replication");
	line(i, "role:master\r\nconnected_slaves:0");
}

static void write_cpu(struct info *i)
{
	struct rusage u;
	getrusage(RUSAGE_SELF, &u);
	section(i, "CPU");
	line(i, "used_cpu_sys:%ld.%06ld", (long)u.ru_stime.tv_sec, (long)u.ru_stime.tv_usec);
	line(i, "used_cpu_user:%ld.%06ld", (long)u.ru_utime.tv_sec, (long)u.ru_utime.tv_usec);
}

/*
 * The first block is the service's ledger, the second is the cache's own: made is the sum of all
 * others.
 */
static void write_timers(struct info *i, const struct tw_service_stats *s, struct shard_figures *f,
			 uint64_t present)
{
	section(i, "Timers");
	number(i, "timers_scheduled", s->scheduled);
	number(i, "timers_fired", s->fired);
	number(i, "timers_cancelled", s->cancelled);
	number(i, "timers_dropped", s->dropped);
	number(i, "timers_pending", s->pending);
	number(i, "timers_moved", s->resets);
	number(i, "timers_refused", figure_read(&f->timers_refused));
	number(i, "timers_met_in_flight", figure_read(&f->met_in_flight));
	number(i, "timers_wakeups", s->wakeups);
	latency(i, "lateness", &s->lateness);
	latency(i, "run", &s->run);
	number(i, "deadlines_made", figure_read(&f->volatile_made));
	number(i, "deadlines_expired", figure_read(&f->expired));
	number(i, "deadlines_ended_otherwise", figure_read(&f->volatile_ended));
	number(i, "deadlines_present", present);
}

void cmd_info(struct call *c)
{
	struct info i = {.call = c};
	struct tw_service_stats timers = {.size = sizeof(timers)};
	uint64_t keys, present;
	struct shard_figures figures = info_shards(&keys, &present);
	tw_service_stats(cache.service, &timers);
	write_server(&i);
	write_memory(&i, timers.memory_bytes);
	write_stats(&i, figure_read(&figures.expired));
	write_cpu(&i);
	write_timers(&i, &timers, &figures, present);
	section(&i, "Keyspace");
	if (keys > 0)
		line(&i, "db0:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=0", keys, present);
	reply_verbatim(c->out, i.text.data, buffer_length(&i.text), c->resp3);
	buffer_free(&i.text);
}

/* ------------------------------------------------------------------ others */

static void reply_command(struct call *c, const struct command *command)
{
	reply_array(c->out, 6);
	reply_text(c->out, command->name);
	reply_integer(c->out, command->arity);
	reply_set(c->out, (command->flags & COMMAND_FAST) != 0, c->resp3);
	if (command->flags & COMMAND_FAST)
		reply_status(c->out, "fast");
	reply_integer(c->out, command->first_key);
	reply_integer(c->out, command->last_key);
	reply_integer(c->out, command->key_step);
}

/* redis-cli asks for DOCS at its start, and does without what it does not get. */
void cmd_command(struct call *c)
{
	size_t count;
	const struct command *list = commands_list(&count);
	if (c->argc == 1) {
		reply_array(c->out, count);
		for (size_t i = 0; i < count; i++)
			reply_command(c, &list[i]);
	} else if (slice_is(c->argv[1], "count") && c->argc == 2) {
		reply_integer(c->out, (int64_t)count);
	} else if (slice_is(c->argv[1], "docs")) {
		reply_map(c->out, 0, c->resp3);
	} else if (slice_is(c->argv[1], "count")) {
		reply_bad_arity(c, "count");
	} else {
		reply_unknown_subcommand(c);
	}
}

void cmd_time(struct call *c)
{
	struct timespec now;
	char text[24];
	clock_gettime(CLOCK_REALTIME, &now);
	reply_array(c->out, 2);
	snprintf(text, sizeof(text), "%lld", (long long)now.tv_sec);
	reply_text(c->out, text);
	snprintf(text, sizeof(text), "%ld", now.tv_nsec / 1000);
	reply_text(c->out, text);
}

/* DEBUG SLEEP holds up the clients of this loop only; a Redis server would stand still. */
void cmd_debug(struct call *c)
{
	char text[32], *end;
	if (!slice_is(c->argv[1], "sleep") || c->argc != 3) {
		reply_error(c->out,
			    "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
			    "DEBUG HELP.",
			    (int)c->argv[1].length, c->argv[1].data);
		return;
	}
	struct slice s = c->argv[2];
	snprintf(text, sizeof(text), "%.*s", (int)(s.length < 31 ? s.length : 31), s.data);
	double seconds = strtod(text, &end);
	if (*end != 0 || !isfinite(seconds) || seconds < 0)
		seconds = 0;
	struct timespec left = {(time_t)seconds, (long)((seconds - floor(seconds)) * 1e9)};
	while (nanosleep(&left, &left) < 0 && errno == EINTR)
		;
	reply_ok(c->out);
}

void cmd_shutdown(struct call *c)
{
	static const char *const words[] = {"nosave", "now", "force", "save"};
	for (size_t i = 1; i < c->argc; i++) {
		size_t k = 0;
		while (k < 4 && !slice_is(c->argv[i], words[k]))
			k++;
		if (slice_is(c->argv[i], "abort")) {
			reply_error(c->out, "ERR No shutdown in progress.");
			return;
		}
		if (k == 4) {
			reply_syntax_error(c);
			return;
		}
	}
	c->client->closing = true;
	cache_shut_down();
}
