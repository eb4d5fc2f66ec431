/* Commands about the server: COMMAND, TIME, DEBUG, SHUTDOWN. */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "examples/cache/cache.h"
#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/reply.h"

static void reply_flags(struct call *c, unsigned flags)
{
	size_t count = ((flags & COMMAND_GROWS) != 0) + ((flags & COMMAND_FAST) != 0);
	reply_set(c->out, count, c->resp3);
	if (flags & COMMAND_GROWS)
		reply_status(c->out, "denyoom");
	if (flags & COMMAND_FAST)
		reply_status(c->out, "fast");
}

static void reply_command(struct call *c, const struct command *command)
{
	reply_array(c->out, 6);
	reply_text(c->out, command->name);
	reply_integer(c->out, command->arity);
	reply_flags(c, command->flags);
	reply_integer(c->out, command->first_key);
	reply_integer(c->out, command->last_key);
	reply_integer(c->out, command->key_step);
}

static void reply_commands(struct call *c)
{
	size_t count;
	const struct command *list = commands_list(&count);
	reply_array(c->out, count);
	for (size_t i = 0; i < count; i++)
		reply_command(c, &list[i]);
}

/* redis-cli asks for DOCS at its start, and does without what it does not get. */
void cmd_command(struct call *c)
{
	size_t count;
	commands_list(&count);
	if (c->argc == 1)
		reply_commands(c);
	else if (slice_is(c->argv[1], "count") && c->argc == 2)
		reply_integer(c->out, (int64_t)count);
	else if (slice_is(c->argv[1], "docs"))
		reply_map(c->out, 0, c->resp3);
	else if (slice_is(c->argv[1], "count"))
		reply_bad_arity(c, "count");
	else
		reply_error(c->out, "ERR unknown subcommand '%.*s'. Try COMMAND HELP.",
			    (int)c->argv[1].length, c->argv[1].data);
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

/* Holds up the clients of this loop only; a Redis server would stand still. */
static void debug_sleep(struct call *c)
{
	char text[32], *end;
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

void cmd_debug(struct call *c)
{
	if (slice_is(c->argv[1], "sleep") && c->argc == 3)
		debug_sleep(c);
	else
		reply_error(c->out,
			    "ERR unknown subcommand or wrong number of arguments for '%.*s'. Try "
			    "DEBUG HELP.",
			    (int)c->argv[1].length, c->argv[1].data);
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
