/* Commands that read and write values, whole or in part, and counters. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ------------------------------------------------------------------ parts of a value, counters */

#define MAX_DECIMAL 5120 /* characters of the largest long double without exponent */

static bool write_value(struct call *c, struct place *p, struct slice value, const char *event)
{
	if (!store_value(p, value, DEADLINE_KEEP)) {
		reply_no_room(c);
		return false;
	}
	notify(NOTIFY_STRING, event, p->key);
	return true;
}

static void add_to(struct call *c, int64_t by)
{
	char text[24];
	int64_t value = 0;
	struct place p = place_lock(c->argv[1]);
	if (p.entry != NULL && !take_integer(c, entry_value(p.entry), &value)) {
		;
	} else if (__builtin_add_overflow(value, by, &value)) {
		reply_error(c->out, "ERR increment or decrement would overflow");
	} else {
		int length = snprintf(text, sizeof(text), "%" PRId64, value);
		if (write_value(c, &p, (struct slice){text, (size_t)length}, "incrby"))
			reply_integer(c->out, value);
	}
	place_unlock(&p);
}

void cmd_incr(struct call *c)
{
	add_to(c, c->command->variant);
}

void cmd_incrby(struct call *c)
{
	int64_t by;
	if (!take_integer(c, c->argv[2], &by))
		return;
	if (c->command->variant < 0 && by == INT64_MIN)
		reply_error(c->out, "ERR decrement would overflow");
	else
		add_to(c, by * c->command->variant);
}

/* ------------------------------------------------------------------ INCRBYFLOAT */

static bool slice_float(struct slice s, long double *out)
{
	char text[MAX_DECIMAL], *end;
	if (s.length == 0 || s.length >= sizeof(text) || isspace((unsigned char)s.data[0]))
		return false;
	memcpy(text, s.data, s.length);
	text[s.length] = 0;
	errno = 0;
	*out = strtold(text, &end);
	bool out_of_range = errno == ERANGE && (isinf(*out) || *out == 0);
	return end == text + s.length && !out_of_range && !isnan(*out);
}

/* Seventeen digits after the point, less the zeros at the end. */
static int print_float(char *text, size_t room, long double value)
{
	int length = snprintf(text, room, "%.17Lf", value);
	while (text[length - 1] == '0')
		length--;
	length -= text[length - 1] == '.';
	if (length == 2 && memcmp(text, "-0", 2) == 0) {
		text[0] = '0';
		length = 1;
	}
	return length;
}

void cmd_incrbyfloat(struct call *c)
{
	char text[MAX_DECIMAL];
	long double value = 0, by;
	struct place p = place_lock(c->argv[1]);
	if ((p.entry != NULL && !slice_float(entry_value(p.entry), &value)) ||
	    !slice_float(c->argv[2], &by)) {
		reply_error(c->out, "ERR value is not a valid float");
	} else if (!isfinite(value + by)) {
		reply_error(c->out, "ERR increment would produce NaN or Infinity");
	} else {
		struct slice sum = {text, (size_t)print_float(text, sizeof(text), value + by)};
		if (write_value(c, &p, sum, "incrbyfloat"))
			reply_slice(c->out, sum);
	}
	place_unlock(&p);
}

/* ------------------------------------------------------------------ parts of a value */

static bool is_too_long(struct call *c, size_t length)
{
	if (length <= MAX_STRING)
		return false;
	reply_error(c->out, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
	return true;
}

/* Makes the value at least so long, filled up with zero bytes, and writes the part. */
static void write_part(struct call *c, struct place *p, size_t offset, struct slice part,
		       const char *event)
{
	size_t had = p->entry != NULL ? p->entry->value_length : 0, end = offset + part.length;
	size_t length = had > end ? had : end;
	if (is_too_long(c, length))
		return;
	if (!store(p, length, had, DEADLINE_KEEP)) {
		reply_no_room(c);
		return;
	}
	char *value = entry_room(p->entry);
	if (offset > had)
		memset(value + had, 0, offset - had);
	if (part.length > 0)
		memcpy(value + offset, part.data, part.length);
	notify(NOTIFY_STRING, event, p->key);
	reply_integer(c->out, (int64_t)length);
}

void cmd_append(struct call *c)
{
	struct place p = place_lock(c->argv[1]);
	write_part(c, &p, p.entry != NULL ? p.entry->value_length : 0, c->argv[2], "append");
	place_unlock(&p);
}

void cmd_setrange(struct call *c)
{
	int64_t offset;
	if (!take_integer(c, c->argv[2], &offset))
		return;
	if (offset < 0) {
		reply_error(c->out, "ERR offset is out of range");
		return;
	}
	struct place p = place_lock(c->argv[1]);
	if (c->argv[3].length == 0)
		reply_integer(c->out, p.entry != NULL ? (int64_t)p.entry->value_length : 0);
	else
		write_part(c, &p, (size_t)offset, c->argv[3], "setrange");
	place_unlock(&p);
}

void cmd_strlen(struct call *c)
{
	struct place p = place_read(c, c->argv[1]);
	reply_integer(c->out, p.entry != NULL ? (int64_t)p.entry->value_length : 0);
	place_unlock(&p);
}

/* Negative offsets count from the end. */
static struct slice part_of(struct slice value, int64_t start, int64_t end)
{
	int64_t length = (int64_t)value.length;
	if (start < 0 && end < 0 && start > end)
		return SLICE("");
	start = start < 0 ? start + length : start;
	end = end < 0 ? end + length : end;
	start = start < 0 ? 0 : start;
	end = end < 0 ? 0 : end >= length ? length - 1 : end;
	if (length == 0 || start > end)
		return SLICE("");
	return (struct slice){value.data + start, (size_t)(end - start) + 1};
}

void cmd_getrange(struct call *c)
{
	int64_t start, end;
	if (!take_integer(c, c->argv[2], &start) || !take_integer(c, c->argv[3], &end))
		return;
	struct place p = place_read(c, c->argv[1]);
	reply_slice(c->out,
		    p.entry != NULL ? part_of(entry_value(p.entry), start, end) : SLICE(""));
	place_unlock(&p);
}
