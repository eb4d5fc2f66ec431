/* Commands about the connection itself. */
#include <limits.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/info.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/reply.h"

void cmd_ping(struct call *c)
{
	if (c->argc > 2) {
		reply_bad_arity(c, NULL);
	} else if (!c->resp3 && pubsub_count(c->client) > 0) {
		reply_array(c->out, 2);
		reply_text(c->out, "pong");
		reply_slice(c->out, c->argc == 2 ? c->argv[1] : SLICE(""));
	} else if (c->argc == 2) {
		reply_slice(c->out, c->argv[1]);
	} else {
		reply_status(c->out, "PONG");
	}
}

void cmd_echo(struct call *c)
{
	reply_slice(c->out, c->argv[1]);
}

void cmd_select(struct call *c)
{
	int64_t index;
	if (!take_integer(c, c->argv[1], &index))
		return;
	if (index < INT_MIN || index > INT_MAX)
		reply_error(c->out, "ERR value is out of range, value must between %d and %d",
			    INT_MIN, INT_MAX);
	else if (index != 0)
		reply_error(c->out, "ERR DB index is out of range");
	else
		reply_ok(c->out);
}

void cmd_quit(struct call *c)
{
	reply_ok(c->out);
	c->client->closing = true;
}

static void set_protocol(struct call *c, bool resp3)
{
	c->client->resp3 = c->resp3 = resp3;
	pubsub_set_resp3(c->client, resp3);
}

void cmd_reset(struct call *c)
{
	pubsub_leave(c->client);
	client_set_name(&c->client->name, SLICE(""));
	set_protocol(c, false);
	reply_status(c->out, "RESET");
}

/* ------------------------------------------------------------------ names */

static bool take_name(struct call *c, struct slice value, const char *what)
{
	for (size_t i = 0; i < value.length; i++) {
		if (value.data[i] >= '!' && value.data[i] <= '~')
			continue;
		reply_error(c->out, "ERR %s cannot contain spaces, newlines or special characters.",
			    what);
		return false;
	}
	return true;
}

static void set_name(struct call *c, struct slice value)
{
	if (!take_name(c, value, "Client names"))
		return;
	client_set_name(&c->client->name, value);
	reply_ok(c->out);
}

static void set_info(struct call *c, struct slice which, struct slice value)
{
	char **name = slice_is(which, "lib-name")  ? &c->client->library
		      : slice_is(which, "lib-ver") ? &c->client->library_version
						   : NULL;
	if (name == NULL) {
		reply_error(c->out, "ERR Unrecognized option '%.*s'", (int)which.length,
			    which.data);
	} else if (take_name(c, value, name == &c->client->library ? "lib-name" : "lib-ver")) {
		client_set_name(name, value);
		reply_ok(c->out);
	}
}

/* ------------------------------------------------------------------ CLIENT */

static void add_line(void *arg, struct client *client)
{
	client_describe(client, arg);
}

static void reply_clients(struct call *c, bool all)
{
	struct buffer text = {0};
	if (all)
		clients_each(add_line, &text);
	else
		client_describe(c->client, &text);
	reply_verbatim(c->out, text.data, buffer_length(&text), c->resp3);
	buffer_free(&text);
}

void cmd_client(struct call *c)
{
	static const struct {
		const char *name;
		size_t argc;
	} known[] = {{"id", 2},   {"getname", 2}, {"setname", 3},
		     {"info", 2}, {"list", 2},    {"setinfo", 4}};
	size_t which = 0, count = sizeof(known) / sizeof(known[0]);
	while (which < count && !slice_is(c->argv[1], known[which].name))
		which++;
	if (which == count) {
		reply_error(c->out, "ERR unknown subcommand '%.*s'. Try CLIENT HELP.",
			    (int)c->argv[1].length, c->argv[1].data);
	} else if (c->argc != known[which].argc) {
		if (which == 4)
			reply_syntax_error(c);
		else
			reply_bad_arity(c, known[which].name);
	} else if (which == 0) {
		reply_integer(c->out, (int64_t)c->client->id);
	} else if (which == 1) {
		if (c->client->name != NULL)
			reply_text(c->out, c->client->name);
		else
			reply_null(c->out, c->resp3);
	} else if (which == 2) {
		set_name(c, c->argv[2]);
	} else if (which == 5) {
		set_info(c, c->argv[2], c->argv[3]);
	} else {
		reply_clients(c, which == 4);
	}
}

/* ------------------------------------------------------------------ HELLO */

/* Options of HELLO. There are no passwords, so AUTH accepts any for the user "default". */
static bool take_hello_options(struct call *c, const struct slice **name)
{
	for (size_t i = 2; i < c->argc; i++) {
		size_t left = c->argc - i - 1;
		if (slice_is(c->argv[i], "auth") && left >= 2) {
			if (!slice_is(c->argv[i + 1], "default")) {
				reply_error(c->out, "WRONGPASS invalid username-password pair or "
						    "user is disabled.");
				return false;
			}
			i += 2;
		} else if (slice_is(c->argv[i], "setname") && left >= 1) {
			*name = &c->argv[++i];
			if (!take_name(c, **name, "Client names"))
				return false;
		} else {
			reply_error(c->out, "ERR Syntax error in HELLO option '%.*s'",
				    (int)c->argv[i].length, c->argv[i].data);
			return false;
		}
	}
	return true;
}

void cmd_hello(struct call *c)
{
	int64_t version = c->resp3 ? 3 : 2;
	const struct slice *name = NULL;
	if (c->argc >= 2 && !slice_integer(c->argv[1], &version)) {
		reply_error(c->out, "ERR Protocol version is not an integer or out of range");
		return;
	}
	if (version < 2 || version > 3) {
		reply_error(c->out, "NOPROTO unsupported protocol version");
		return;
	}
	if (!take_hello_options(c, &name))
		return;
	if (name != NULL)
		client_set_name(&c->client->name, *name);
	set_protocol(c, version == 3);
	reply_map(c->out, 7, c->resp3);
	reply_text(c->out, "server");
	reply_text(c->out, "redis");
	reply_text(c->out, "version");
	reply_text(c->out, INFO_REDIS_VERSION);
	reply_text(c->out, "proto");
	reply_integer(c->out, version);
	reply_text(c->out, "id");
	reply_integer(c->out, (int64_t)c->client->id);
	reply_text(c->out, "mode");
	reply_text(c->out, "standalone");
	reply_text(c->out, "role");
	reply_text(c->out, "master");
	reply_text(c->out, "modules");
	reply_array(c->out, 0);
}
