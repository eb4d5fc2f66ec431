/* CONFIG: what can be read, and the one setting that can be changed. */
#include <stdio.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/glob.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

#define MAX_VALUE 256

static const char notify_setting[] = "notify-keyspace-events";

/* What CONFIG GET tells; NULL after the last. */
static const char *setting(size_t i, char *value)
{
	static const char *const constants[][2] = {
	    {"maxmemory", "0"},
	    {"maxmemory-policy", "noeviction"},
	    {"proto-max-bulk-len", "536870912"},
	    {"client-output-buffer-limit", "normal 134217728 0 0 slave 0 0 0 pubsub 33554432 0 0"},
	    {"databases", "1"},
	    {"timeout", "0"},
	    {"tcp-keepalive", "300"},
	    {"save", ""},
	    {"appendonly", "no"}};
	const size_t count = sizeof(constants) / sizeof(constants[0]);
	switch (i) {
	case 0:
		notify_letters(atomic_load_explicit(&cache.notify, memory_order_relaxed), value);
		return notify_setting;
	case 1:
		snprintf(value, MAX_VALUE, "%u", cache.max_clients);
		return "maxclients";
	case 2:
		snprintf(value, MAX_VALUE, "%u", cache.port);
		return "port";
	case 3:
		snprintf(value, MAX_VALUE, "%s", cache.bind);
		return "bind";
	case 4:
		snprintf(value, MAX_VALUE, "%u", cache.loop_count);
		return "io-threads";
	default:
		if (i - 5 >= count)
			return NULL;
		snprintf(value, MAX_VALUE, "%s", constants[i - 5][1]);
		return constants[i - 5][0];
	}
}

/*
 * The name to reply for a setting: as it was asked for, if it was asked for by name. Empty: it was
 * not.
 */
static struct slice asked_name(const struct call *c, const char *name)
{
	struct slice s = {name, strlen(name)};
	for (size_t i = 2; i < c->argc; i++) {
		if (slice_is(c->argv[i], name))
			return c->argv[i];
		if (glob_matches(c->argv[i], s))
			return s;
	}
	return SLICE("");
}

static void config_get(struct call *c)
{
	struct buffer found = {0};
	size_t count = 0;
	char value[MAX_VALUE];
	const char *name;
	for (size_t i = 0; (name = setting(i, value)) != NULL; i++) {
		struct slice asked = asked_name(c, name);
		if (asked.length == 0)
			continue;
		reply_slice(&found, asked);
		reply_text(&found, value);
		count++;
	}
	reply_map(c->out, count, c->resp3);
	buffer_add(c->out, found.data, buffer_length(&found));
	buffer_free(&found);
}

static bool is_setting(struct slice name)
{
	char value[MAX_VALUE];
	const char *known;
	for (size_t i = 0; (known = setting(i, value)) != NULL; i++)
		if (slice_is(name, known))
			return true;
	return false;
}

static void refuse_setting(struct call *c, struct slice name, const char *why)
{
	reply_error(c->out, "ERR CONFIG SET failed (possibly related to argument '%.*s') - %s",
		    (int)name.length, name.data, why);
}

/* All settings of one command are stored, or none of them: one can be. */
static void config_set(struct call *c)
{
	unsigned flags;
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

void cmd_config(struct call *c)
{
	struct slice which = c->argv[1];
	if (slice_is(which, "get") && c->argc < 3) {
		reply_bad_arity(c, "get");
	} else if (slice_is(which, "get")) {
		config_get(c);
	} else if (slice_is(which, "set") && c->argc < 4) {
		reply_bad_arity(c, "set");
	} else if (slice_is(which, "set") && c->argc % 2 != 0) {
		reply_syntax_error(c);
	} else if (slice_is(which, "set")) {
		config_set(c);
	} else if (!slice_is(which, "resetstat")) {
		reply_unknown_subcommand(c);
	} else if (c->argc != 2) {
		reply_bad_arity(c, "resetstat");
	} else {
		info_reset();
		reply_ok(c->out);
	}
}
