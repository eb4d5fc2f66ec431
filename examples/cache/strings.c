/* Commands that read and write whole values. */
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

enum set_flags {
	ONLY_NEW = 1,
	ONLY_OLD = 2,
	WANTS_OLD = 4, /* GET */
	KEEPS = 8,     /* KEEPTTL */
	PERSISTS = 16,
	RELATIVE_S = 32,
	RELATIVE_MS = 64,
	ABSOLUTE_S = 128,
	ABSOLUTE_MS = 256,
	DEADLINES = RELATIVE_S | RELATIVE_MS | ABSOLUTE_S | ABSOLUTE_MS
};

struct set_options {
	unsigned flags;
	struct slice when;
};

/* Each option, and those that exclude it. */
static const struct {
	const char *word;
	unsigned flag, excluded_by;
	bool in_set, in_getex, has_value;
} options[] = {
    {"nx", ONLY_NEW, ONLY_OLD, true, false, false},
    {"xx", ONLY_OLD, ONLY_NEW, true, false, false},
    {"get", WANTS_OLD, 0, true, false, false},
    {"keepttl", KEEPS, PERSISTS | DEADLINES, true, false, false},
    {"persist", PERSISTS, KEEPS | DEADLINES, false, true, false},
    {"ex", RELATIVE_S, KEEPS | PERSISTS | (DEADLINES & ~RELATIVE_S), true, true, true},
    {"px", RELATIVE_MS, KEEPS | PERSISTS | (DEADLINES & ~RELATIVE_MS), true, true, true},
    {"exat", ABSOLUTE_S, KEEPS | PERSISTS | (DEADLINES & ~ABSOLUTE_S), true, true, true},
    {"pxat", ABSOLUTE_MS, KEEPS | PERSISTS | (DEADLINES & ~ABSOLUTE_MS), true, true, true},
};

static bool take_options(struct call *c, size_t first, bool is_set, struct set_options *o)
{
	*o = (struct set_options){0};
	for (size_t i = first; i < c->argc; i++) {
		size_t k = 0, count = sizeof(options) / sizeof(options[0]);
		while (k < count && (!slice_is(c->argv[i], options[k].word) ||
				     !(is_set ? options[k].in_set : options[k].in_getex)))
			k++;
		if (k == count || (o->flags & options[k].excluded_by) ||
		    (options[k].has_value && i + 1 == c->argc)) {
			reply_syntax_error(c);
			return false;
		}
		o->flags |= options[k].flag;
		if (options[k].has_value)
			o->when = c->argv[++i];
	}
	return true;
}

/* A deadline that lies in the future of 1970: SET and GETEX refuse others. */
static bool take_positive_deadline(struct call *c, struct slice when, unsigned flags,
				   int64_t *out_ms)
{
	int64_t value;
	unsigned form = (flags & (RELATIVE_MS | ABSOLUTE_MS) ? IN_MS : IN_SECONDS) |
			(flags & (ABSOLUTE_S | ABSOLUTE_MS) ? ABSOLUTE : 0);
	if (!take_integer(c, when, &value))
		return false;
	if (value <= 0) {
		reply_bad_expire(c);
		return false;
	}
	return take_deadline(c, value, form, out_ms);
}

static void reply_value(struct call *c, const struct place *p)
{
	if (p->entry != NULL)
		reply_slice(c->out, entry_value(p->entry));
	else
		reply_null(c->out, c->resp3);
}

/* Stores, notifies, and replies +OK if wanted. */
static void set_and_tell(struct call *c, struct place *p, struct slice value, int64_t deadline_ms,
			 bool wants_ok)
{
	if (!store_value(p, value, deadline_ms)) {
		if (wants_ok)
			reply_no_room(c);
		return;
	}
	notify(NOTIFY_STRING, "set", p->key);
	if (deadline_ms > 0)
		notify(NOTIFY_GENERIC, "expire", p->key);
	if (wants_ok)
		reply_ok(c->out);
}

void cmd_get(struct call *c)
{
	struct place p = place_read(c, c->argv[1]);
	reply_value(c, &p);
	place_unlock(&p);
}

void cmd_set(struct call *c)
{
	struct set_options o;
	int64_t deadline_ms = DEADLINE_NONE;
	if (!take_options(c, 3, true, &o))
		return;
	if ((o.flags & DEADLINES) && !take_positive_deadline(c, o.when, o.flags, &deadline_ms))
		return;
	if (o.flags & KEEPS)
		deadline_ms = DEADLINE_KEEP;
	struct place p = place_lock(c->argv[1]);
	bool wants_old = (o.flags & WANTS_OLD) != 0;
	if (wants_old)
		reply_value(c, &p);
	if (((o.flags & ONLY_NEW) && p.entry != NULL) ||
	    ((o.flags & ONLY_OLD) && p.entry == NULL)) {
		if (!wants_old)
			reply_null(c->out, c->resp3);
	} else {
		set_and_tell(c, &p, c->argv[2], deadline_ms, !wants_old);
	}
	place_unlock(&p);
}

void cmd_setex(struct call *c)
{
	int64_t deadline_ms;
	unsigned flags = c->command->variant == IN_MS ? RELATIVE_MS : RELATIVE_S;
	if (!take_positive_deadline(c, c->argv[2], flags, &deadline_ms))
		return;
	struct place p = place_lock(c->argv[1]);
	set_and_tell(c, &p, c->argv[3], deadline_ms, true);
	place_unlock(&p);
}

void cmd_setnx(struct call *c)
{
	struct place p = place_lock(c->argv[1]);
	bool is_new = p.entry == NULL;
	if (is_new)
		set_and_tell(c, &p, c->argv[2], DEADLINE_NONE, false);
	place_unlock(&p);
	reply_integer(c->out, is_new);
}

void cmd_getset(struct call *c)
{
	struct place p = place_lock(c->argv[1]);
	reply_value(c, &p);
	set_and_tell(c, &p, c->argv[2], DEADLINE_NONE, false);
	place_unlock(&p);
}

static void apply_getex(struct call *c, struct place *p, unsigned flags, int64_t deadline_ms)
{
	bool is_absolute = (flags & (ABSOLUTE_S | ABSOLUTE_MS)) != 0;
	if (is_absolute && deadline_ms <= (int64_t)unix_ms()) {
		reply_value(c, p);
		place_delete(p);
	} else if (deadline_ms > 0 && !expiry_set(p->shard, p->entry, (uint64_t)deadline_ms)) {
		reply_no_room(c);
	} else if (deadline_ms > 0) {
		reply_value(c, p);
		notify(NOTIFY_GENERIC, "expire", p->key);
	} else {
		reply_value(c, p);
		bool had = p->entry->deadline_ms != 0;
		if (flags & PERSISTS)
			expiry_clear(p->shard, p->entry);
		if (had && (flags & PERSISTS))
			notify(NOTIFY_GENERIC, "persist", p->key);
	}
}

void cmd_getex(struct call *c)
{
	struct set_options o;
	int64_t deadline_ms = DEADLINE_NONE;
	if (!take_options(c, 2, false, &o))
		return;
	struct place p = place_read(c, c->argv[1]);
	if (p.entry == NULL)
		reply_null(c->out, c->resp3);
	else if (!(o.flags & DEADLINES) || take_positive_deadline(c, o.when, o.flags, &deadline_ms))
		apply_getex(c, &p, o.flags, deadline_ms);
	place_unlock(&p);
}

void cmd_getdel(struct call *c)
{
	struct place p = place_read(c, c->argv[1]);
	reply_value(c, &p);
	if (p.entry != NULL)
		place_delete(&p);
	place_unlock(&p);
}

void cmd_mget(struct call *c)
{
	reply_array(c->out, c->argc - 1);
	for (size_t i = 1; i < c->argc; i++) {
		struct place p = place_read(c, c->argv[i]);
		reply_value(c, &p);
		place_unlock(&p);
	}
}

/* All keys in one step: their shards stay locked until the last one is set. */
void cmd_mset(struct call *c)
{
	size_t pairs = (c->argc - 1) / 2;
	bool may = true, only_new = c->command->variant;
	if (c->argc % 2 == 0) {
		reply_bad_arity(c);
		return;
	}
	uint64_t locked = keys_lock(&c->argv[1], pairs, 2);
	for (size_t i = 0; only_new && may && i < pairs; i++)
		may = place_find(c->argv[1 + 2 * i]).entry == NULL;
	for (size_t i = 0; may && i < pairs; i++) {
		struct place p = place_find(c->argv[1 + 2 * i]);
		set_and_tell(c, &p, c->argv[2 + 2 * i], DEADLINE_NONE, false);
	}
	keys_unlock(locked);
	if (only_new)
		reply_integer(c->out, may);
	else
		reply_ok(c->out);
}
