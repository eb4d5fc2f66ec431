#include "wheel/base/struct_read.h"

#include <errno.h>
#include <string.h>

#include "wheel/base/misuse.h"

static bool all_zero(const void *at, size_t n)
{
	const unsigned char *byte = at;
	while (n && *byte == 0) {
		byte++;
		n--;
	}
	return n == 0;
}

int tw__struct_read(void *out, size_t known, size_t least, const void *in)
{
	size_t size;
	memcpy(&size, in, sizeof size);
	if (size < least) /* planted: any_size */
		return -EINVAL;
	memset(out, 0, known);
	memcpy(out, in, size < known ? size : known); /* planted: read_in_full */
	/* planted: last_byte */
	return size <= known || all_zero((const char *)in + known, size - known) ? 0 : -E2BIG;
}

int tw__struct_misuse(const char *type, size_t known, const void *in, int error)
{
	size_t size;
	memcpy(&size, in, sizeof size);
	if (error == -E2BIG)
		return tw__misuse(-E2BIG, "struct %s: bytes beyond the %zu known ones are not 0",
				  type, known);
	if (error == -EINVAL)
		return tw__misuse(-EINVAL, "struct %s: size %zu is too small: use TW_INIT(%s)",
				  type, size, type);
	return error;
}

int tw__struct_read_or_tell(const char *type, void *out, size_t known, size_t least, const void *in)
{
	return tw__struct_misuse(type, known, in, tw__struct_read(out, known, least, in));
}

int tw__out_misuse(const char *call, const char *type, const size_t *size)
{
	if (!size)
		return tw__refuse(-EINVAL, call, "out is NULL");
	return tw__struct_misuse(type, 0, size, -EINVAL);
}

void tw__struct_write(void *out, const void *known, size_t known_size)
{
	size_t size;
	memcpy(&size, out, sizeof size);
	memcpy(out, known, size < known_size ? size : known_size); /* planted: written_in_full */
	if (size > known_size)
		memset((char *)out + known_size, 0, size - known_size);
	memcpy(out, &size, sizeof size);
}

bool tw__executor_is_sound(const tw_executor *executor)
{
	return executor->ops && executor->ops->size >= sizeof *executor->ops &&
	       executor->ops->submit;
}

int tw__config_read_or_tell(const char *type, void *out, size_t known, size_t least, const void *in)
{
	size_t size;
	memset(out, 0, known);
	if (!in)
		return 0;
	memcpy(&size, in, sizeof size);
	if (size)
		return tw__struct_read_or_tell(type, out, known, least, in);
	/* knobs, but no size */
	return tw__struct_misuse(type, known, in, all_zero(in, known) ? 0 : -EINVAL);
}
