/* Commands that go through the table: KEYS, SCAN, RANDOMKEY. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/commands.h"
#include "examples/cache/resp.h"

#define MAX_CURSOR 20
#define RANDOM_TRIES 100

struct found {
	struct slice pattern;
	bool has_pattern;
	bool none; /* of a TYPE that no key has */
	size_t count;
	int64_t visited;
	struct buffer names;
};

static void collect(void *arg, struct shard *s, struct entry *e)
{
	struct found *f = arg;
	(void)s;
	f->visited++;
	if (f->none || !expiry_visible(e) ||
	    (f->has_pattern && !glob_matches(f->pattern, entry_key(e))))
		return;
	reply_slice(&f->names, entry_key(e));
	f->count++;
}

void cmd_keys(struct call *c)
{
	struct found f = {.pattern = c->argv[1], .has_pattern = !slice_is(c->argv[1], "*")};
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&shards[i].lock);
		table_each(&shards[i], collect, &f);
		pthread_mutex_unlock(&shards[i].lock);
	}
	reply_list(c->out, f.count, &f.names);
}

static bool take_cursor(struct call *c, uint64_t *cursor)
{
	char text[MAX_CURSOR + 2], *end;
	struct slice s = c->argv[1];
	if (s.length <= MAX_CURSOR && (s.length == 0 || !isspace((unsigned char)s.data[0]))) {
		memcpy(text, s.length > 0 ? s.data : "", s.length);
		text[s.length] = 0;
		errno = 0;
		*cursor = strtoull(text, &end, 10);
		if (end == text + s.length && errno == 0)
			return true;
	}
	reply_error(c->out, "ERR invalid cursor");
	return false;
}

static bool take_scan_options(struct call *c, struct found *f, int64_t *count)
{
	for (size_t i = 2; i < c->argc; i += 2) {
		bool has_value = i + 1 < c->argc;
		if (has_value && slice_is(c->argv[i], "count")) {
			if (!take_integer(c, c->argv[i + 1], count))
				return false;
		} else if (has_value && slice_is(c->argv[i], "match")) {
			f->pattern = c->argv[i + 1];
			f->has_pattern = !slice_is(f->pattern, "*");
		} else if (has_value && slice_is(c->argv[i], "type")) {
			f->none = !slice_is(c->argv[i + 1], "string");
		} else {
			*count = 0;
		}
		if (*count < 1) {
			reply_syntax_error(c);
			return false;
		}
	}
	return true;
}

/*
 * A cursor is a place in a shard, and the shard's number in its lowest digits. Empty buckets
 * count a tenth, so that a sparse table holds nobody up; an empty shard does not count.
 */
static uint64_t scan_on(struct found *f, uint64_t cursor, int64_t count)
{
	uint64_t at = cursor / SHARDS, steps = 0, most = (uint64_t)count * 10 + SHARDS;
	size_t shard = cursor % SHARDS;
	while (shard < SHARDS && f->visited < count && steps < most) {
		pthread_mutex_lock(&shards[shard].lock);
		do {
			at = table_scan(&shards[shard], at, collect, f);
			steps++;
		} while (at != 0 && f->visited < count && steps < most);
		pthread_mutex_unlock(&shards[shard].lock);
		shard += at == 0;
	}
	return shard < SHARDS ? at * SHARDS + shard : 0;
}

void cmd_scan(struct call *c)
{
	uint64_t cursor;
	int64_t count = 10;
	char text[MAX_CURSOR + 1];
	struct found f = {0};
	if (!take_cursor(c, &cursor) || !take_scan_options(c, &f, &count))
		return;
	cursor = scan_on(&f, cursor, count);
	snprintf(text, sizeof(text), "%" PRIu64, cursor);
	reply_array(c->out, 2);
	reply_text(c->out, text);
	reply_list(c->out, f.count, &f.names);
}

static uint64_t next_random(void)
{
	static _Thread_local uint64_t state;
	if (state == 0)
		state = (uint64_t)(uintptr_t)&state | 1;
	state ^= state << 13; /* Marsaglia, 2003 */
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Keys that are past their deadline are passed over, as often as Redis tries. */
void cmd_randomkey(struct call *c)
{
	bool found = false;
	for (int i = 0; i < RANDOM_TRIES && !found; i++) {
		size_t first = next_random() % SHARDS;
		for (size_t k = 0; k < SHARDS && !found; k++) {
			struct shard *s = &shards[(first + k) % SHARDS];
			pthread_mutex_lock(&s->lock);
			struct entry *e = table_any(s, next_random());
			found = e != NULL && expiry_visible(e);
			if (found)
				reply_slice(c->out, entry_key(e));
			pthread_mutex_unlock(&s->lock);
		}
	}
	if (!found)
		reply_null(c->out, c->resp3);
}
