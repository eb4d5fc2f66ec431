/* The table of commands, and the way of a request through it. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"

#define LONGEST_NAME 32
#define MAX_SHOWN 128

/*
 * In the order of their names: command_find searches in halves. "a|b" is the subcommand b of a. A
 * command without a function has nothing but subcommands.
 */
static const struct command commands[] = {
    {"append", cmd_append, 3, false, 0},
    {"client", NULL, -2, false, 0},
    {"client|getname", cmd_client_getname, 2, false, 0},
    {"client|id", cmd_client_id, 2, false, 0},
    {"client|info", cmd_client_list, 2, false, false},
    {"client|list", cmd_client_list, -2, false, true},
    {"client|setinfo", cmd_client_setinfo, 4, false, 0},
    {"client|setname", cmd_client_setname, 3, false, 0},
    {"command", NULL, -2, false, 0},
    {"command|count", cmd_command_count, 2, false, 0},
    {"command|docs", cmd_command_docs, -2, false, 0},
    {"config", NULL, -2, false, 0},
    {"config|get", cmd_config_get, -3, false, 0},
    {"config|resetstat", cmd_config_resetstat, 2, false, 0},
    {"config|set", cmd_config_set, -4, false, 0},
    {"dbsize", cmd_dbsize, 1, false, 0},
    {"debug", cmd_debug, -2, false, 0},
    {"decr", cmd_incr, 2, false, -1},
    {"decrby", cmd_incrby, 3, false, -1},
    {"del", cmd_del, -2, false, 0},
    {"echo", cmd_echo, 2, false, 0},
    {"exists", cmd_exists, -2, false, 0},
    {"expire", cmd_expire, -3, false, IN_SECONDS},
    {"expireat", cmd_expire, -3, false, ABSOLUTE},
    {"expiretime", cmd_ttl, 2, false, ABSOLUTE},
    {"flushall", cmd_flush, -1, false, 0},
    {"flushdb", cmd_flush, -1, false, 0},
    {"get", cmd_get, 2, false, 0},
    {"getdel", cmd_getdel, 2, false, 0},
    {"getex", cmd_getex, -2, false, 0},
    {"getrange", cmd_getrange, 4, false, 0},
    {"getset", cmd_getset, 3, false, 0},
    {"hello", cmd_hello, -1, false, 0},
    {"incr", cmd_incr, 2, false, 1},
    {"incrby", cmd_incrby, 3, false, 1},
    {"incrbyfloat", cmd_incrbyfloat, 3, false, 0},
    {"info", cmd_info, -1, false, 0},
    {"keys", cmd_keys, 2, false, 0},
    {"mget", cmd_mget, -2, false, 0},
    {"mset", cmd_mset, -3, false, false},
    {"msetnx", cmd_mset, -3, false, true},
    {"persist", cmd_persist, 2, false, 0},
    {"pexpire", cmd_expire, -3, false, IN_MS},
    {"pexpireat", cmd_expire, -3, false, IN_MS | ABSOLUTE},
    {"pexpiretime", cmd_ttl, 2, false, IN_MS | ABSOLUTE},
    {"ping", cmd_ping, -1, true, 0},
    {"psetex", cmd_setex, 4, false, IN_MS},
    {"psubscribe", cmd_subscribe, -2, true, true},
    {"pttl", cmd_ttl, 2, false, IN_MS},
    {"publish", cmd_publish, 3, false, 0},
    {"pubsub", NULL, -2, false, 0},
    {"pubsub|channels", cmd_pubsub_channels, -2, false, 0},
    {"pubsub|numpat", cmd_pubsub_numpat, 2, false, 0},
    {"pubsub|numsub", cmd_pubsub_numsub, -2, false, 0},
    {"punsubscribe", cmd_unsubscribe, -1, true, true},
    {"quit", cmd_quit, -1, true, 0},
    {"randomkey", cmd_randomkey, 1, false, 0},
    {"rename", cmd_rename, 3, false, false},
    {"renamenx", cmd_rename, 3, false, true},
    {"reset", cmd_reset, 1, true, 0},
    {"scan", cmd_scan, -2, false, 0},
    {"select", cmd_select, 2, false, 0},
    {"set", cmd_set, -3, false, 0},
    {"setex", cmd_setex, 4, false, IN_SECONDS},
    {"setnx", cmd_setnx, 3, false, 0},
    {"setrange", cmd_setrange, 4, false, 0},
    {"shutdown", cmd_shutdown, -1, false, 0},
    {"strlen", cmd_strlen, 2, false, 0},
    {"subscribe", cmd_subscribe, -2, true, false},
    {"time", cmd_time, 1, false, 0},
    {"touch", cmd_exists, -2, false, 0},
    {"ttl", cmd_ttl, 2, false, IN_SECONDS},
    {"type", cmd_type, 2, false, 0},
    {"unlink", cmd_del, -2, false, 0},
    {"unsubscribe", cmd_unsubscribe, -1, true, false},
};

#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

void cmd_command_count(struct call *c)
{
	int64_t count = 0;
	for (size_t i = 0; i < COMMANDS; i++)
		count += strchr(commands[i].name, '|') == NULL;
	reply_integer(c->out, count);
}

static int compare_names(const void *name, const void *command)
{
	return strcmp(name, ((const struct command *)command)->name);
}

/* The subcommand, or the command if it has none of that name. NULL: neither. */
static const struct command *command_find(const struct slice *argv, size_t argc)
{
	char lower[2 * LONGEST_NAME + 1] = "";
	const struct command *found = NULL;
	for (size_t word = 0, end = 0; word < argc && word < 2; word++) {
		if (argv[word].length >= LONGEST_NAME)
			return found;
		if (word == 1)
			lower[end++] = '|';
		for (size_t i = 0; i < argv[word].length; i++)
			lower[end++] = (char)tolower((unsigned char)argv[word].data[i]);
		const struct command *next =
		    bsearch(lower, commands, COMMANDS, sizeof(commands[0]), compare_names);
		if (next == NULL)
			return found;
		found = next;
	}
	return found;
}

/* As a C string: up to the first zero byte, and at most `most` characters. */
static int shown(struct slice s, size_t most)
{
	return (int)strnlen(s.data, s.length < most ? s.length : most);
}

static void reply_unknown(struct call *c)
{
	char list[MAX_SHOWN * 2 + 8] = "";
	size_t length = 0;
	for (size_t i = 1; i < c->argc && length < MAX_SHOWN; i++)
		length += (size_t)snprintf(list + length, sizeof(list) - length, "'%.*s' ",
					   shown(c->argv[i], MAX_SHOWN - length), c->argv[i].data);
	reply_error(c->out, "ERR unknown command '%.*s', with args beginning with: %s",
		    shown(c->argv[0], MAX_SHOWN), c->argv[0].data, list);
}

static bool is_subscribed_only(const struct call *c)
{
	return !c->resp3 && !c->command->subscribed && pubsub_total(c->client) > 0;
}

/* What a browser sends when a web page makes it talk to this port: nothing after it is run. */
static bool is_attack(struct slice name)
{
	return slice_is(name, "post") || slice_is(name, "host:");
}

static void refuse_subcommand(struct call *c, const char *why)
{
	char name[LONGEST_NAME] = "";
	for (size_t i = 0; c->command->name[i] != 0 && c->command->name[i] != '|'; i++)
		name[i] = (char)toupper((unsigned char)c->command->name[i]);
	reply_error(c->out, "ERR %s '%.*s'. Try %s HELP.", why, (int)c->argv[1].length,
		    c->argv[1].data, name);
}

void reply_bad_subcommand(struct call *c)
{
	refuse_subcommand(c, "unknown subcommand or wrong number of arguments for");
}

static void run(struct call *c)
{
	const struct command *command = c->command;
	if (command == NULL && is_attack(c->argv[0]))
		c->client->closing = true;
	else if (command == NULL)
		reply_unknown(c);
	else if (command->arity > 0 ? c->argc != (size_t)command->arity
				    : c->argc < (size_t)-command->arity)
		reply_bad_arity(c);
	else if (command->run == NULL)
		refuse_subcommand(c, "unknown subcommand");
	else if (is_subscribed_only(c))
		reply_error(c->out,
			    "ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING "
			    "/ QUIT / RESET "
			    "are allowed in this context",
			    command->name);
	else
		command->run(c);
}

/*
 * What a command publishes reaches its own client before the reply, as with Redis: the reply waits
 * in a buffer of its own if the client is subscribed. (In RESP2 a subscribed client runs no command
 * that publishes.)
 */
void command_run(struct client *client, struct slice *argv, size_t argc)
{
	struct buffer apart = {0};
	bool waits = client->resp3 && pubsub_total(client) > 0;
	struct call c = {.client = client,
			 .command = command_find(argv, argc),
			 .argv = argv,
			 .argc = argc,
			 .out = waits ? &apart : &client->out,
			 .resp3 = client->resp3};
	size_t before = buffer_length(c.out);
	figure_add(&client->loop->figures.commands, 1);
	if (c.command != NULL)
		atomic_store_explicit(&client->last_command, c.command->name, memory_order_relaxed);
	run(&c);
	if (buffer_length(c.out) > before && c.out->data[c.out->start + before] == '-')
		figure_add(&client->loop->figures.errors, 1);
	if (waits) {
		pubsub_collect(client, true);
		buffer_add(&client->out, apart.data, buffer_length(&apart));
		buffer_free(&apart);
	}
}

/* ------------------------------------------------------------------ arguments */

bool take_integer(struct call *c, struct slice s, int64_t *out)
{
	if (slice_integer(s, out))
		return true;
	reply_error(c->out, "ERR value is not an integer or out of range");
	return false;
}

void reply_syntax_error(struct call *c)
{
	reply_error(c->out, "ERR syntax error");
}

void reply_bad_arity(struct call *c)
{
	reply_error(c->out, "ERR wrong number of arguments for '%s' command", c->command->name);
}

void reply_no_room(struct call *c)
{
	reply_error(c->out, "OOM no room for another timer");
}

void reply_bad_expire(struct call *c)
{
	reply_error(c->out, "ERR invalid expire time in '%s' command", c->command->name);
}

bool take_deadline(struct call *c, int64_t value, unsigned form, int64_t *out_ms)
{
	int64_t base = form & ABSOLUTE ? 0 : (int64_t)unix_ms_up();
	if ((!(form & IN_MS) && __builtin_mul_overflow(value, 1000, &value)) ||
	    value > INT64_MAX - base) {
		reply_bad_expire(c);
		return false;
	}
	*out_ms = value + base;
	return true;
}
