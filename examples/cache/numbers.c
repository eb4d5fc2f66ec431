/* Commands that change a part of a value: counters, and strings by offset. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

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
		if (store_value(&p, (struct slice){text, (size_t)length}, DEADLINE_KEEP)) {
			notify(NOTIFY_STRING, "incrby", p.key);
			reply_integer(c->out, value);
		} else {
			reply_no_room(c);
		}
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
