/*
 * Finding, locking, storing and deleting keys; the commands for keys of any value, and for times to
 * live.
 */
#include <string.h>

#include "examples/cache/client.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

/* ------------------------------------------------------------------ places */

struct place place_find(struct slice key)
{
	uint64_t hash = table_hash(key);
	struct shard *s = table_shard(hash);
	return (struct place){s, hash, key, expiry_find(s, hash, key)};
}

struct place place_lock(struct slice key)
{
	uint64_t hash = table_hash(key);
	struct shard *s = table_shard(hash);
	pthread_mutex_lock(&s->lock);
	return (struct place){s, hash, key, expiry_find(s, hash, key)};
}

struct place place_read(struct call *c, struct slice key)
{
	struct place p = place_lock(key);
	struct loop_figures *figures = &c->client->loop->figures;
	figure_add(p.entry != NULL ? &figures->hits : &figures->misses, 1);
	if (p.entry == NULL)
		notify(NOTIFY_MISS, "keymiss", key);
	return p;
}

void place_unlock(struct place *p)
{
	pthread_mutex_unlock(&p->shard->lock);
}

static uint64_t shards_of(struct slice *keys, size_t count, size_t step)
{
	uint64_t set = 0;
	for (size_t i = 0; i < count; i++)
		set |= UINT64_C(1) << (table_shard(table_hash(keys[i * step])) - shards);
	return set;
}

uint64_t keys_lock(struct slice *keys, size_t count, size_t step)
{
	uint64_t all = shards_of(keys, count, step);
	for (uint64_t set = all; set != 0; set &= set - 1)
		pthread_mutex_lock(&shards[__builtin_ctzll(set)].lock);
	return all;
}

void keys_unlock(uint64_t set)
{
	for (; set != 0; set &= set - 1)
		pthread_mutex_unlock(&shards[__builtin_ctzll(set)].lock);
}

/* ------------------------------------------------------------------ storing */

/* Whether the value fits into the entry, and would not waste most of it. */
static bool fits(struct entry *e, size_t length)
{
	size_t capacity = entry_capacity(e);
	return length <= capacity && length <= MAX_STRING && capacity <= 2 * length + 64;
}

static bool store_in_place(struct place *p, size_t length, int64_t deadline_ms)
{
	if (deadline_ms > 0 && !expiry_set(p->shard, p->entry, (uint64_t)deadline_ms))
		return false;
	if (deadline_ms == DEADLINE_NONE)
		expiry_clear(p->shard, p->entry);
	p->entry->value_length = (uint32_t)length;
	return true;
}

bool store(struct place *p, size_t length, size_t keep, int64_t deadline_ms)
{
	struct entry *old = p->entry;
	if (old != NULL && fits(old, length))
		return store_in_place(p, length, deadline_ms);
	/* A value that grows will grow again. */
	struct entry *e = entry_make(p->key, keep > 0 ? length + length / 2 : length);
	e->value_length = (uint32_t)length;
	if (keep > 0)
		memcpy(entry_room(e), entry_room(old), keep);
	uint64_t deadline = deadline_ms != DEADLINE_KEEP ? (uint64_t)deadline_ms
			    : old != NULL                ? old->deadline_ms
							 : 0;
	if (deadline != 0 && !expiry_set(p->shard, e, deadline)) {
		expiry_retire(p->shard, e);
		return false;
	}
	if (old != NULL) {
		table_unlink(p->shard, p->hash, old);
		expiry_retire(p->shard, old);
	} else {
		notify(NOTIFY_NEW, "new", p->key);
	}
	table_link(p->shard, p->hash, e);
	p->entry = e;
	return true;
}

bool store_value(struct place *p, struct slice value, int64_t deadline_ms)
{
	if (!store(p, value.length, 0, deadline_ms))
		return false;
	if (value.length > 0)
		memcpy(entry_room(p->entry), value.data, value.length);
	return true;
}

static void place_remove(struct place *p)
{
	table_unlink(p->shard, p->hash, p->entry);
	expiry_retire(p->shard, p->entry);
	p->entry = NULL;
}

void place_delete(struct place *p)
{
	place_remove(p);
	notify(NOTIFY_GENERIC, "del", p->key);
}

/* ------------------------------------------------------------------ commands */

void cmd_del(struct call *c)
{
	int64_t deleted = 0;
	for (size_t i = 1; i < c->argc; i++) {
		struct place p = place_lock(c->argv[i]);
		if (p.entry != NULL) {
			place_delete(&p);
			deleted++;
		}
		place_unlock(&p);
	}
	reply_integer(c->out, deleted);
}

void cmd_exists(struct call *c)
{
	int64_t found = 0;
	for (size_t i = 1; i < c->argc; i++) {
		struct place p = place_read(c, c->argv[i]);
		found += p.entry != NULL;
		place_unlock(&p);
	}
	reply_integer(c->out, found);
}

void cmd_type(struct call *c)
{
	struct place p = place_read(c, c->argv[1]);
	reply_status(c->out, p.entry != NULL ? "string" : "none");
	place_unlock(&p);
}

/* Moves a value and its deadline to another key. Both shards are locked. */
static bool move(struct place *from, struct place *to)
{
	uint64_t deadline_ms = from->entry->deadline_ms;
	if (!store_value(to, entry_value(from->entry), (int64_t)deadline_ms))
		return false;
	place_remove(from);
	notify(NOTIFY_GENERIC, "rename_from", from->key);
	notify(NOTIFY_GENERIC, "rename_to", to->key);
	return true;
}

void cmd_rename(struct call *c)
{
	bool only_new = c->command->variant;
	uint64_t locked = keys_lock(&c->argv[1], 2, 1);
	struct place from = place_find(c->argv[1]), to = place_find(c->argv[2]);
	if (from.entry == NULL)
		reply_error(c->out, "ERR no such key");
	else if (only_new && to.entry != NULL)
		reply_integer(c->out, 0);
	else if (!slice_same(from.key, to.key) && !move(&from, &to))
		reply_no_room(c);
	else if (only_new)
		reply_integer(c->out, 1);
	else
		reply_ok(c->out);
	keys_unlock(locked);
}

void cmd_dbsize(struct call *c)
{
	size_t keys = 0;
	for (size_t i = 0; i < SHARDS; i++)
		keys += atomic_load_explicit(&shards[i].keys, memory_order_relaxed);
	reply_integer(c->out, (int64_t)keys);
}

static void retire(void *arg, struct shard *s, struct entry *e)
{
	(void)arg;
	expiry_retire(s, e);
}

void cmd_flush(struct call *c)
{
	if (c->argc > 2 ||
	    (c->argc == 2 && !slice_is(c->argv[1], "sync") && !slice_is(c->argv[1], "async"))) {
		reply_syntax_error(c);
		return;
	}
	for (size_t i = 0; i < SHARDS; i++) {
		pthread_mutex_lock(&shards[i].lock);
		table_clear(&shards[i], retire, NULL);
		pthread_mutex_unlock(&shards[i].lock);
	}
	reply_ok(c->out);
}

/* ------------------------------------------------------------------ times to live */

struct conditions {
	bool nx, xx, gt, lt;
};

static bool take_conditions(struct call *c, struct conditions *o)
{
	*o = (struct conditions){0};
	for (size_t i = 3; i < c->argc; i++) {
		bool *which = slice_is(c->argv[i], "nx")   ? &o->nx
			      : slice_is(c->argv[i], "xx") ? &o->xx
			      : slice_is(c->argv[i], "gt") ? &o->gt
			      : slice_is(c->argv[i], "lt") ? &o->lt
							   : NULL;
		if (which == NULL) {
			reply_error(c->out, "ERR Unsupported option %.*s", (int)c->argv[i].length,
				    c->argv[i].data);
			return false;
		}
		*which = true;
	}
	if (o->nx && (o->xx || o->gt || o->lt)) {
		reply_error(c->out,
			    "ERR NX and XX, GT or LT options at the same time are not compatible");
		return false;
	}
	if (o->gt && o->lt) {
		reply_error(c->out, "ERR GT and LT options at the same time are not compatible");
		return false;
	}
	return true;
}

/* A key without a deadline counts as one that ends never. */
static bool allows(const struct conditions *o, uint64_t now_ms, int64_t new_ms)
{
	bool has = now_ms != 0;
	if ((o->nx && has) || (o->xx && !has) || (o->gt && (!has || new_ms <= (int64_t)now_ms)))
		return false;
	return !(o->lt && has && new_ms >= (int64_t)now_ms);
}

void cmd_expire(struct call *c)
{
	struct conditions o;
	unsigned form = (unsigned)c->command->variant;
	int64_t value, deadline_ms;
	if (!take_conditions(c, &o) || !take_integer(c, c->argv[2], &value) ||
	    !take_deadline(c, value, form, &deadline_ms))
		return;
	struct place p = place_lock(c->argv[1]);
	if (p.entry == NULL || !allows(&o, p.entry->deadline_ms, deadline_ms)) {
		reply_integer(c->out, 0);
	} else if (deadline_ms <= (int64_t)unix_ms() || (value <= 0 && !(form & ABSOLUTE))) {
		place_delete(&p);
		reply_integer(c->out, 1);
	} else if (!expiry_set(p.shard, p.entry, (uint64_t)deadline_ms)) {
		reply_no_room(c);
	} else {
		notify(NOTIFY_GENERIC, "expire", p.key);
		reply_integer(c->out, 1);
	}
	place_unlock(&p);
}

/* -2: no such key. -1: it has no deadline. Seconds are rounded to the nearest. */
void cmd_ttl(struct call *c)
{
	int64_t answer = -2;
	unsigned form = (unsigned)c->command->variant;
	struct place p = place_read(c, c->argv[1]);
	if (p.entry != NULL)
		answer = p.entry->deadline_ms != 0 ? (int64_t)p.entry->deadline_ms : -1;
	place_unlock(&p);
	if (answer > 0) {
		int64_t left = answer - (form & ABSOLUTE ? 0 : (int64_t)unix_ms_up());
		left = left < 0 ? 0 : left;
		answer = form & IN_MS ? left : left / 1000 + (left % 1000 >= 500);
	}
	reply_integer(c->out, answer);
}

void cmd_persist(struct call *c)
{
	struct place p = place_lock(c->argv[1]);
	bool had = p.entry != NULL && p.entry->deadline_ms != 0;
	if (had) {
		expiry_clear(p.shard, p.entry);
		notify(NOTIFY_GENERIC, "persist", p.key);
	}
	place_unlock(&p);
	reply_integer(c->out, had);
}
