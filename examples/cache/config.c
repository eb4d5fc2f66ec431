/* CONFIG: what can be read, and the one setting that can be changed. */
#include <stdio.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

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
