/* SUBSCRIBE and its relatives, PUBLISH, PUBSUB. */
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

static void reply_change(struct call *c, const char *what, const struct slice *name, size_t count)
{
	reply_push(c->out, 3, c->resp3);
	reply_text(c->out, what);
	if (name != NULL)
		reply_slice(c->out, *name);
	else
		reply_null(c->out, c->resp3);
	reply_integer(c->out, (int64_t)count);
}

static void subscribe(struct call *c, bool is_pattern)
{
	for (size_t i = 1; i < c->argc; i++) {
		size_t count = pubsub_subscribe(c->client, c->argv[i], is_pattern);
		reply_change(c, is_pattern ? "psubscribe" : "subscribe", &c->argv[i], count);
	}
}

static void unsubscribe_all(struct call *c, bool is_pattern, const char *what)
{
	struct buffer name = {0};
	if (!pubsub_any(c->client, is_pattern, &name)) {
		reply_change(c, what, NULL, pubsub_count(c->client));
		return;
	}
	do {
		struct slice s = {name.data, buffer_length(&name)};
		reply_change(c, what, &s, pubsub_unsubscribe(c->client, s, is_pattern));
		name.start = name.end = 0;
	} while (pubsub_any(c->client, is_pattern, &name));
	buffer_free(&name);
}

static void unsubscribe(struct call *c, bool is_pattern)
{
	const char *what = is_pattern ? "punsubscribe" : "unsubscribe";
	if (c->argc == 1) {
		unsubscribe_all(c, is_pattern, what);
		return;
	}
	for (size_t i = 1; i < c->argc; i++) {
		size_t count = pubsub_unsubscribe(c->client, c->argv[i], is_pattern);
		reply_change(c, what, &c->argv[i], count);
	}
}

void cmd_subscribe(struct call *c)
{
	subscribe(c, false);
}

void cmd_psubscribe(struct call *c)
{
	subscribe(c, true);
}

void cmd_unsubscribe(struct call *c)
{
	unsubscribe(c, false);
}

void cmd_punsubscribe(struct call *c)
{
	unsubscribe(c, true);
}

void cmd_publish(struct call *c)
{
	reply_integer(c->out, (int64_t)pubsub_publish(c->argv[1], c->argv[2]));
}

static void reply_numsub(struct call *c)
{
	reply_array(c->out, 2 * (c->argc - 2));
	for (size_t i = 2; i < c->argc; i++) {
		reply_slice(c->out, c->argv[i]);
		reply_integer(c->out, (int64_t)pubsub_subscribers(c->argv[i]));
	}
}

void cmd_pubsub(struct call *c)
{
	struct slice which = c->argv[1];
	if (slice_is(which, "channels")) {
		if (c->argc > 3)
			reply_error(
			    c->out,
			    "ERR unknown subcommand or wrong number of arguments for '%.*s'. "
			    "Try PUBSUB HELP.",
			    (int)which.length, which.data);
		else
			pubsub_list(c->argc == 3 ? c->argv[2] : SLICE("*"), c->out);
	} else if (slice_is(which, "numsub")) {
		reply_numsub(c);
	} else if (slice_is(which, "numpat")) {
		if (c->argc != 2)
			reply_bad_arity(c, "numpat");
		else
			reply_integer(c->out, (int64_t)pubsub_patterns());
	} else {
		reply_error(c->out, "ERR unknown subcommand '%.*s'. Try PUBSUB HELP.",
			    (int)which.length, which.data);
	}
}
