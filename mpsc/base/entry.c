#include "mpsc/base/entry.h"

#include <errno.h>
#include <string.h>

static bool all_zero(const void *at, size_t n)
{
	const unsigned char *byte = at;
	while (n && *byte == 0) {
		byte++;
		n--;
	}
	return n == 0;
}

static size_t size_of(const void *in)
{
	size_t size;
	memcpy(&size, in, sizeof size);
	return size;
}

static int too_small(const char *type, size_t size)
{
	return tw__refuse(-EINVAL, type, "size %zu is too small: use TW_INIT(%s)", size, type);
}

int tw__struct_read(const char *type, void *out, size_t known, size_t least, const void *in)
{
	size_t size = size_of(in);
	if (size < least) /* planted: any_size */
		return too_small(type, size);
	memset(out, 0, known);
	memcpy(out, in, size < known ? size : known); /* planted: read_in_full */
	/* planted: last_byte */
	if (size <= known || all_zero((const char *)in + known, size - known))
		return 0;
	return tw__refuse(-E2BIG, type, "bytes beyond the %zu known ones are not 0", known);
}

int tw__out_check(const char *call, const char *type, const void *out, size_t least)
{
	if (!out)
		return tw__refuse(-EINVAL, call, "out is NULL");
	return size_of(out) < least ? too_small(type, size_of(out)) : 0;
}

void tw__struct_write(void *out, const void *known, size_t known_size)
{
	size_t size = size_of(out);
	memcpy(out, known, size < known_size ? size : known_size); /* planted: written_in_full */
	if (size > known_size)
		memset((char *)out + known_size, 0, size - known_size);
	memcpy(out, &size, sizeof size);
}

bool tw__executor_is_sound(const tw_executor *executor)
{
	return !executor || (executor->ops && executor->ops->size >= sizeof *executor->ops &&
			     executor->ops->submit);
}

int tw__struct_read_config(const char *type, void *out, size_t known, size_t least, const void *in)
{
	if (in && size_of(in))
		return tw__struct_read(type, out, known, least, in);
	memset(out, 0, known);
	/* else: knobs, but no size */
	return !in || all_zero(in, known) ? 0 : too_small(type, 0);
}

tw_cold int tw__period_read(const char *call, struct tw_period *out, const struct tw_period *in)
{
	const char *bad = NULL, *beyond = NULL;
	int r = TW__STRUCT_READ(tw_period, out, mode, in);
	if (r)
		return r;
	tw__need(&bad, out->period_ns > 0, "period_ns");
	tw__need(&bad, (unsigned)out->mode <= TW_FIXED_DELAY, "mode");
	tw__need(&bad, (unsigned)out->missed <= TW_MISSED_BURST, "missed");
	tw__need(&bad, !out->reserved, "reserved");
	tw__need(&beyond, out->period_ns <= TW_MAX_DELAY_NS, "period_ns");
	tw__need(&beyond, out->first_ns <= TW_MAX_DELAY_NS, "first_ns");
	return tw__bad_member(bad ? -EINVAL : -ERANGE, call, "tw_period", bad ? bad : beyond);
}
