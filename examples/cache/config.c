/* CONFIG: what can be read, and the two settings that can be changed. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/glob.h"
#include "examples/cache/info.h"
#include "examples/cache/notify.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"
#include "examples/cache/resp.h"

#define MAX_VALUE 256

struct setting {
	const char *name;
	void (*print)(char *out);
	/* Takes the value, and stores it if `stores`. NULL: the setting cannot be changed. */
	bool (*set)(struct slice value, bool stores, const char **why);
	const char *constant; /* if print is NULL */
};

static void print_number(char *out, uint64_t n)
{
	snprintf(out, MAX_VALUE, "%" PRIu64, n);
}

static void print_maxmemory(char *out)
{
	print_number(out, atomic_load_explicit(&cache.maxmemory, memory_order_relaxed));
}

static void print_max_clients(char *out)
{
	print_number(out, cache.max_clients);
}

static void print_port(char *out)
{
	print_number(out, cache.port);
}

static void print_threads(char *out)
{
	print_number(out, cache.loop_count);
}

static void print_max_bulk(char *out)
{
	print_number(out, cache.max_bulk);
}

static void print_bind(char *out)
{
	snprintf(out, MAX_VALUE, "%s", cache.bind);
}

static void print_unix(char *out)
{
	snprintf(out, MAX_VALUE, "%s", cache.unix_path != NULL ? cache.unix_path : "");
}

static void print_output_limit(char *out)
{
	snprintf(out, MAX_VALUE, "normal 0 0 0 slave 0 0 0 pubsub %u 0 0", PUBSUB_MAX_MAIL);
}

static void print_notify(char *out)
{
	notify_letters(atomic_load_explicit(&cache.notify, memory_order_relaxed), out);
}

/* "100", "100b", "64k", "64kb", "2m", "2mb", "1g", "1gb": k is 1000 and kb is 1024. */
static bool set_maxmemory(struct slice value, bool stores, const char **why)
{
	static const struct {
		const char *unit;
		uint64_t factor;
	} units[] = {{"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1 << 10},
		     {"m", 1000000}, {"mb", 1 << 20}, {"g", 1000000000}, {"gb", 1 << 30}};
	size_t digits = 0;
	int64_t number;
	while (digits < value.length && value.data[digits] >= '0' && value.data[digits] <= '9')
		digits++;
	struct slice unit = {value.data + digits, value.length - digits};
	*why = "argument must be a memory value";
	if (!slice_integer((struct slice){value.data, digits}, &number))
		return false;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (!slice_is(unit, units[i].unit))
			continue;
		uint64_t bytes;
		if (__builtin_mul_overflow((uint64_t)number, units[i].factor, &bytes))
			return false;
		if (stores)
			atomic_store_explicit(&cache.maxmemory, bytes, memory_order_relaxed);
		return true;
	}
	return false;
}

static bool set_notify(struct slice value, bool stores, const char **why)
{
	unsigned flags;
	*why = "Invalid event class character. Use 'Ag$lshzxeKEtmdn'.";
	if (!notify_parse(value, &flags))
		return false;
	if (stores)
		atomic_store_explicit(&cache.notify, flags, memory_order_relaxed);
	return true;
}

static const struct setting settings[] = {
    {"maxmemory", print_maxmemory, set_maxmemory, NULL},
    {"notify-keyspace-events", print_notify, set_notify, NULL},
    {"maxmemory-policy", NULL, NULL, "volatile-ttl"},
    {"maxclients", print_max_clients, NULL, NULL},
    {"proto-max-bulk-len", print_max_bulk, NULL, NULL},
    {"client-output-buffer-limit", print_output_limit, NULL, NULL},
    {"port", print_port, NULL, NULL},
    {"bind", print_bind, NULL, NULL},
    {"unixsocket", print_unix, NULL, NULL},
    {"io-threads", print_threads, NULL, NULL},
    {"databases", NULL, NULL, "1"},
    {"timeout", NULL, NULL, "0"},
    {"tcp-keepalive", NULL, NULL, "300"},
    {"save", NULL, NULL, ""},
    {"appendonly", NULL, NULL, "no"},
};

#define SETTINGS (sizeof(settings) / sizeof(settings[0]))

static const struct setting *find(struct slice name)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (slice_is(name, settings[i].name))
			return &settings[i];
	return NULL;
}

static bool is_pattern(struct slice s)
{
	return memchr(s.data, '*', s.length) != NULL || memchr(s.data, '?', s.length) != NULL ||
	       memchr(s.data, '[', s.length) != NULL;
}

/*
 * The name to reply for a setting: as it was asked for, if it was asked for by name. Empty: it
 * was not.
 */
static struct slice asked_name(const struct call *c, const char *name)
{
	struct slice s = {name, strlen(name)};
	for (size_t i = 2; i < c->argc; i++) {
		if (slice_is(c->argv[i], name))
			return c->argv[i];
		if (is_pattern(c->argv[i]) && glob_matches(c->argv[i], s))
			return s;
	}
	return SLICE("");
}

static void config_get(struct call *c)
{
	struct buffer found = {0};
	size_t count = 0;
	for (size_t i = 0; i < SETTINGS; i++) {
		char value[MAX_VALUE];
		struct slice name = asked_name(c, settings[i].name);
		if (name.length == 0)
			continue;
		if (settings[i].print != NULL)
			settings[i].print(value);
		reply_slice(&found, name);
		reply_text(&found, settings[i].print != NULL ? value : settings[i].constant);
		count++;
	}
	reply_map(c->out, count, c->resp3);
	buffer_add(c->out, found.data, buffer_length(&found));
	buffer_free(&found);
}

static bool is_repeated(const struct call *c, size_t at, const struct setting *s)
{
	for (size_t i = 2; i < at; i += 2)
		if (find(c->argv[i]) == s)
			return true;
	return false;
}

static bool refuse_setting(struct call *c, struct slice name, const char *why)
{
	reply_error(c->out, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s",
		    (int)name.length, name.data, why);
	return false;
}

/* Checks all names, then all values: either all settings are stored, or none. */
static bool config_check(struct call *c)
{
	const char *why = "";
	for (size_t i = 2; i < c->argc; i += 2) {
		const struct setting *s = find(c->argv[i]);
		if (s == NULL) {
			reply_error(
			    c->out,
			    "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
			    (int)c->argv[i].length, c->argv[i].data);
			return false;
		}
		if (s->set == NULL)
			return refuse_setting(c, c->argv[i], "can't set immutable config");
		if (is_repeated(c, i, s))
			return refuse_setting(c, c->argv[i], "duplicate parameter");
	}
	for (size_t i = 2; i < c->argc; i += 2) {
		const struct setting *s = find(c->argv[i]);
		if (!s->set(c->argv[i + 1], false, &why))
			return refuse_setting(c, (struct slice){s->name, strlen(s->name)}, why);
	}
	return true;
}

static void config_set(struct call *c)
{
	const char *why;
	if (!config_check(c))
		return;
	for (size_t i = 2; i < c->argc; i += 2)
		find(c->argv[i])->set(c->argv[i + 1], true, &why);
	reply_ok(c->out);
}

void cmd_config(struct call *c)
{
	struct slice which = c->argv[1];
	if (slice_is(which, "get")) {
		if (c->argc < 3)
			reply_bad_arity(c, "get");
		else
			config_get(c);
	} else if (slice_is(which, "set")) {
		if (c->argc < 4)
			reply_bad_arity(c, "set");
		else if (c->argc % 2 != 0)
			reply_syntax_error(c);
		else
			config_set(c);
	} else if (slice_is(which, "resetstat")) {
		if (c->argc != 2) {
			reply_bad_arity(c, "resetstat");
			return;
		}
		totals_reset();
		reply_ok(c->out);
	} else {
		reply_error(c->out, "ERR unknown subcommand '%.*s'. Try CONFIG HELP.",
			    (int)which.length, which.data);
	}
}
