/* Commands about the server: INFO, COMMAND, TIME, DEBUG, SHUTDOWN, CONFIG. */
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

#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

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

static bool is_wanted(const struct call *c, const char *name)
{
	for (size_t i = 1; i < c->argc; i++)
		if (slice_is(c->argv[i], name) || slice_is(c->argv[i], "all") ||
		    slice_is(c->argv[i], "everything") || slice_is(c->argv[i], "default"))
			return true;
	return c->argc == 1;
}

/* Writes a section, if the call wants it. Each line of the format ends in a line end. */
__attribute__((format(printf, 4, 5))) static void section(const struct call *c, struct buffer *out,
							  const char *name, const char *format, ...)
{
	char text[1024];
	va_list list;
	if (!is_wanted(c, name))
		return;
	snprintf(text, sizeof(text), "%s# %s\r\n", buffer_length(out) > 0 ? "\r\n" : "", name);
	reply_raw(out, text);
	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	for (const char *at = text, *end; (end = strchr(at, '\n')) != NULL; at = end + 1) {
		buffer_add(out, at, (size_t)(end - at));
		buffer_add(out, "\r\n", 2);
	}
}

#define N "%" PRIu64 "\n"
#define LATENCY "p50=%" PRIu64 ",p99=%" PRIu64 ",p99.9=%" PRIu64 ",max=" N
#define USEC(l) (l).p50_ns / 1000, (l).p99_ns / 1000, (l).p999_ns / 1000, (l).max_ns / 1000

static void write_server(const struct call *c, struct buffer *out)
{
	uint64_t now = tw_service_now(cache.service), up = (now - cache.started_ns) / TW_SECOND;
	section(c, out, "Server",
		"redis_version:" REDIS_VERSION "\nredis_mode:standalone\nos:Linux\narch_bits:64\n"
		"multiplexing_api:epoll\nprocess_id:%d\nrun_id:%040" PRIx64 "\ntcp_port:%u\n"
		"io_threads_active:%u\nserver_time_usec:" N "uptime_in_seconds:" N
		"uptime_in_days:" N "hz:10\n",
		getpid(), cache.unix_offset_ns, cache.port, cache.loop_count,
		(now + cache.unix_offset_ns) / TW_MICROSECOND, up, up / 86400);
	section(c, out, "Clients", "connected_clients:%u\nmaxclients:%u\nblocked_clients:0\n",
		atomic_load_explicit(&cache.clients, memory_order_relaxed), cache.max_clients);
}

static void write_memory(const struct call *c, struct buffer *out, uint64_t timers)
{
	uint64_t keys = 0;
	struct rusage u;
	for (size_t k = 0; k < SHARDS; k++)
		keys += atomic_load_explicit(&shards[k].bytes, memory_order_relaxed);
	getrusage(RUSAGE_SELF, &u);
	section(c, out, "Memory",
		"used_memory:" N "used_memory_human:%.2fM\nused_memory_rss:" N "used_memory_peak:" N
		"used_memory_dataset:" N "used_memory_timers:" N
		"maxmemory:0\nmaxmemory_policy:noeviction\nmem_allocator:libc\n",
		keys + timers, (double)(keys + timers) / (1 << 20), resident_bytes(),
		(uint64_t)u.ru_maxrss * 1024, keys, timers);
	section(c, out, "Persistence", "loading:0\nrdb_changes_since_last_save:0\naof_enabled:0\n");
	section(c, out, "CPU", "used_cpu_sys:%ld.%06ld\nused_cpu_user:%ld.%06ld\n",
		(long)u.ru_stime.tv_sec, (long)u.ru_stime.tv_usec, (long)u.ru_utime.tv_sec,
		(long)u.ru_utime.tv_usec);
}

static void write_stats(const struct call *c, struct buffer *out, uint64_t expired)
{
	struct loop_figures f = loops_figures(false);
	section(
	    c, out, "Stats",
	    "total_connections_received:" N "total_commands_processed:" N
	    "instantaneous_ops_per_sec:" N "total_net_input_bytes:" N "total_net_output_bytes:" N
	    "rejected_connections:" N "expired_keys:" N "evicted_keys:0\nkeyspace_hits:" N
	    "keyspace_misses:" N "pubsub_channels:%zu\npubsub_patterns:%zu\ntotal_error_replies:" N
	    "protocol_errors:" N "client_output_buffer_limit_disconnections:" N,
	    figure_read(&f.connections), figure_read(&f.commands), figure_read(&commands_a_second),
	    figure_read(&f.input_bytes), figure_read(&f.output_bytes), figure_read(&f.rejected),
	    expired - figure_read(&expired_before_reset), figure_read(&f.hits),
	    figure_read(&f.misses), pubsub_topics(false), pubsub_topics(true),
	    figure_read(&f.errors), figure_read(&f.protocol_errors), figure_read(&f.slow_clients));
	section(c, out, "Replication", "role:master\nconnected_slaves:0\n");
}

/* First the service's ledger, then the cache's own: made is the sum of all others. */
static void write_timers(const struct call *c, struct buffer *out, const struct tw_service_stats *s,
			 struct shard_figures *f, uint64_t present)
{
	section(c, out, "Timers",
		"timers_scheduled:" N "timers_fired:" N "timers_cancelled:" N "timers_dropped:" N
		"timers_pending:" N "timers_moved:" N "timers_refused:" N "timers_met_in_flight:" N
		"timers_wakeups:" N "timers_lateness_usec:" LATENCY "timers_run_usec:" LATENCY
		"deadlines_made:" N "deadlines_expired:" N "deadlines_ended_otherwise:" N
		"deadlines_present:" N,
		s->scheduled, s->fired, s->cancelled, s->dropped, s->pending, s->resets,
		figure_read(&f->timers_refused), figure_read(&f->met_in_flight), s->wakeups,
		USEC(s->lateness), USEC(s->run), figure_read(&f->volatile_made),
		figure_read(&f->expired), figure_read(&f->volatile_ended), present);
}

void cmd_info(struct call *c)
{
	struct buffer text = {0};
	struct tw_service_stats timers = {.size = sizeof(timers)};
	uint64_t keys, present;
	struct shard_figures figures = info_shards(&keys, &present);
	tw_service_stats(cache.service, &timers);
	write_server(c, &text);
	write_memory(c, &text, timers.memory_bytes);
	write_stats(c, &text, figure_read(&figures.expired));
	write_timers(c, &text, &timers, &figures, present);
	if (keys > 0)
		section(c, &text, "Keyspace",
			"db0:keys=%" PRIu64 ",expires=%" PRIu64 ",avg_ttl=0\n", keys, present);
	else
		section(c, &text, "Keyspace", "%s", "");
	reply_verbatim(c->out, text.data, buffer_length(&text), c->resp3);
	buffer_free(&text);
}

/* ------------------------------------------------------------------ others */

/* redis-cli asks for it at its start, and does without what it does not get. */
void cmd_command_docs(struct call *c)
{
	reply_map(c->out, 0, c->resp3);
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
		reply_bad_subcommand(c);
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

/* ------------------------------------------------------------------ CONFIG */

static const char notify_setting[] = "notify-keyspace-events";

struct setting {
	const char *name, *text; /* text NULL: the number is the value */
	unsigned number;
};

enum { SETTINGS = 14 };

static void read_settings(struct setting *out, char *letters)
{
	const struct setting all[SETTINGS] = {
	    {notify_setting, letters, 0},
	    {"maxclients", NULL, cache.max_clients},
	    {"port", NULL, cache.port},
	    {"bind", cache.bind, 0},
	    {"io-threads", NULL, cache.loop_count},
	    {"maxmemory", "0", 0},
	    {"maxmemory-policy", "noeviction", 0},
	    {"proto-max-bulk-len", NULL, RESP_MAX_BULK},
	    {"client-output-buffer-limit", "normal 134217728 0 0 slave 0 0 0 pubsub 33554432 0 0",
	     0},
	    {"databases", "1", 0},
	    {"timeout", "0", 0},
	    {"tcp-keepalive", "300", 0},
	    {"save", "", 0},
	    {"appendonly", "no", 0},
	};
	notify_letters(atomic_load_explicit(&cache.notify, memory_order_relaxed), letters);
	memcpy(out, all, sizeof(all));
}

/* A setting is replied by the name that it was asked for, or by its own if a pattern found it. */
void cmd_config_get(struct call *c)
{
	struct setting all[SETTINGS];
	struct buffer found = {0};
	size_t count = 0;
	char letters[24], digits[24];
	read_settings(all, letters);
	for (const struct setting *s = all; s < all + SETTINGS; s++) {
		struct slice name = {s->name, strlen(s->name)};
		size_t i = 2;
		while (i < c->argc && !slice_is(c->argv[i], s->name) &&
		       !glob_matches(c->argv[i], name))
			i++;
		if (i == c->argc)
			continue;
		snprintf(digits, sizeof(digits), "%u", s->number);
		reply_slice(&found, slice_is(c->argv[i], s->name) ? c->argv[i] : name);
		reply_text(&found, s->text != NULL ? s->text : digits);
		count++;
	}
	reply_map(c->out, count, c->resp3);
	buffer_add(c->out, found.data, buffer_length(&found));
	buffer_free(&found);
}

static bool is_setting(struct slice name)
{
	struct setting all[SETTINGS];
	char letters[24];
	size_t i = 0;
	read_settings(all, letters);
	while (i < SETTINGS && !slice_is(name, all[i].name))
		i++;
	return i < SETTINGS;
}

static void refuse_setting(struct call *c, struct slice name, const char *why)
{
	reply_error(c->out, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s",
		    (int)name.length, name.data, why);
}

/* All settings of one command are stored, or none of them: one can be. */
void cmd_config_set(struct call *c)
{
	unsigned flags;
	if (c->argc % 2 != 0) {
		reply_syntax_error(c);
		return;
	}
	for (size_t i = 2; i < c->argc; i += 2) {
		struct slice name = c->argv[i];
		if (!is_setting(name)) {
			reply_error(
			    c->out,
			    "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
			    (int)name.length, name.data);
			return;
		}
		if (!slice_is(name, notify_setting)) {
			refuse_setting(c, name, "can't set immutable config");
			return;
		}
		if (i > 2) {
			refuse_setting(c, name, "duplicate parameter");
			return;
		}
	}
	if (!notify_parse(c->argv[3], &flags)) {
		refuse_setting(c, (struct slice){notify_setting, strlen(notify_setting)},
			       "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.");
		return;
	}
	atomic_store_explicit(&cache.notify, flags, memory_order_relaxed);
	reply_ok(c->out);
}

void cmd_config_resetstat(struct call *c)
{
	info_reset();
	reply_ok(c->out);
}
