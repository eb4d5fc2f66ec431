/* Commands that change a part of a value: counters, and strings by offset. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/cache.h"
#include "examples/cache/commands.h"
#include "examples/cache/pubsub.h"
#include "examples/cache/resp.h"

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
