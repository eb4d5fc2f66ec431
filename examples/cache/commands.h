/* Commands: the table of them, what a call is, and what the families of commands share. */
#ifndef EXAMPLES_CACHE_COMMANDS_H
#define EXAMPLES_CACHE_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "examples/cache/buffer.h"
#include "examples/cache/table.h"

struct client;
struct command;

struct call {
	struct client *client;
	const struct command *command;
	struct slice *argv;
	size_t argc;
	struct buffer *out;
	bool resp3;
};

typedef void command_fn(struct call *c);

struct command {
	const char *name;
	command_fn *run;
	int arity;       /* arguments with the name; negative: at least -n */
	bool subscribed; /* allowed while a RESP2 client is subscribed */
	int variant;     /* what `run` does differently from others with the same function */
};

/* Runs a request, and writes its reply to the client. */
void command_run(struct client *client, struct slice *argv, size_t argc);

/* ------------------------------------------------------------------ arguments */

/* A number of the request. False: the error has been replied. */
bool take_integer(struct call *c, struct slice s, int64_t *out);
void reply_syntax_error(struct call *c);
void reply_bad_arity(struct call *c);
void reply_bad_subcommand(struct call *c);
void reply_no_room(struct call *c);

/* How a command tells a time: variants of the commands for times to live. */
enum time_form { IN_SECONDS = 0, IN_MS = 1, ABSOLUTE = 2 };

/*
 * A point in time, from a number of the request: Unix time in milliseconds. Checks for overflow
 * only. False: the error has been replied.
 */
bool take_deadline(struct call *c, int64_t value, unsigned form, int64_t *out_ms);
void reply_bad_expire(struct call *c);

/* ------------------------------------------------------------------ keys */

/* A key of a call, with its shard locked. */
struct place {
	struct shard *shard;
	uint64_t hash;
	struct slice key;
	struct entry *entry; /* NULL: there is no such key */
};

/* Locks the key's shard and looks the key up; counts a hit or a miss if it is a reading command. */
struct place place_lock(struct slice key);
struct place place_read(struct call *c, struct slice key);
void place_unlock(struct place *p);

/*
 * For calls with several keys: locks the shards of `count` keys, `step` arguments apart, in one
 * order for all.
 */
uint64_t keys_lock(struct slice *keys, size_t count, size_t step); /* the set of shards */
void keys_unlock(uint64_t set);

/* The same as place_lock with the lock held already. */
struct place place_find(struct slice key);

/* What becomes of the deadline when a value is stored. */
#define DEADLINE_NONE INT64_C(0)
#define DEADLINE_KEEP INT64_C(-1)

/*
 * Makes room for a value of `length` bytes and gives the key its deadline: in place, or in a new
 * entry that takes the old entry's place. The first `keep` bytes of the value stay. The caller
 * then writes the value to entry_room. False: the service had no room for the timer, nothing has
 * changed.
 */
bool store(struct place *p, size_t length, size_t keep, int64_t deadline_ms);
bool store_value(struct place *p, struct slice value, int64_t deadline_ms);

/* Deletes the key of a place, and publishes "del". */
void place_delete(struct place *p);

/* ------------------------------------------------------------------ figures: info.c */

/* Of all shards. */
struct shard_figures info_shards(uint64_t *keys, uint64_t *volatile_keys);

/* One thread, about once a second: for instantaneous_ops_per_sec. */
void info_sample(void);

/* What CONFIG RESETSTAT sets to zero; the ledgers go on. */
void info_reset(void);

/* ------------------------------------------------------------------ families */

command_fn cmd_get, cmd_set, cmd_setex, cmd_setnx, cmd_getset, cmd_getex, cmd_getdel, cmd_mget,
    cmd_mset;
command_fn cmd_append, cmd_strlen, cmd_incr, cmd_incrby, cmd_incrbyfloat, cmd_getrange,
    cmd_setrange;
command_fn cmd_del, cmd_exists, cmd_type, cmd_rename, cmd_randomkey, cmd_keys, cmd_scan, cmd_dbsize,
    cmd_flush;
command_fn cmd_expire, cmd_ttl, cmd_persist;
command_fn cmd_subscribe, cmd_unsubscribe, cmd_publish, cmd_pubsub_channels, cmd_pubsub_numpat,
    cmd_pubsub_numsub;
command_fn cmd_ping, cmd_echo, cmd_hello, cmd_select, cmd_quit, cmd_reset;
command_fn cmd_client_getname, cmd_client_id, cmd_client_list, cmd_client_setinfo,
    cmd_client_setname;
command_fn cmd_command_count, cmd_command_docs, cmd_config_get, cmd_config_resetstat,
    cmd_config_set, cmd_info, cmd_time, cmd_debug, cmd_shutdown;

#endif
