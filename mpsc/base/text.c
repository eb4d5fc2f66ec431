#include "mpsc/base/text.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* -------------------------------------------------------------------- UTF-8 */

/*
 * The length of the well-formed UTF-8 character that begins here (RFC 3629) unless that is a
 * control character or the end; else 0.
 */
static unsigned printable_length(const unsigned char *at)
{
	if (*at < 0x80)
		return *at >= 0x20 && *at != 0x7f;
	unsigned length = *at >= 0xf0 ? 4 : *at >= 0xe0 ? 3 : 2;
	uint32_t c = *at & (0x7fu >> length);
	/* below 0xa0: control characters */
	static const uint32_t least[] = {0, 0, 0xa0, 0x800, 0x10000};
	if (*at < 0xc2 || *at > 0xf4)
		return 0;
	for (unsigned i = 1; i < length; i++) {
		if ((at[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (at[i] & 0x3fu);
	}
	bool surrogate = c >= 0xd800 && c < 0xe000;
	return c < least[length] || c > 0x10ffff || surrogate ? 0 : length;
}

static bool is_like_escape(const unsigned char *at)
{
	return at[0] == '\\' && at[1] == 'x' &&
	       strspn((const char *)at + 2, "0123456789abcdef") >= 2;
}

void tw__text_put(FILE *out, const char *text, enum tw__text_style style)
{
	const unsigned char *at = (const unsigned char *)text;
	while (*at) {
		unsigned length = printable_length(at);
		if (style == TW__TEXT_LABEL && is_like_escape(at))
			fputs("\\\\x5c", out);
		else if (*at == '"' || *at == '\\')
			fprintf(out, "\\%c", *at);
		else if (*at == '\n')
			fputs("\\n", out);
		else if (length)
			fwrite(at, 1, length, out);
		else
			fprintf(out, style == TW__TEXT_LABEL ? "\\\\x%02x" : "\\x%02x", *at);
		at += length ? length : 1;
	}
}

/* ------------------------------------------------------------------ functions */

void tw__text_function(char text[TW__FUNCTION_ROOM], tw_fn *fn)
{
	Dl_info info;
	uintptr_t address = (uintptr_t)fn;
	bool found = dladdr((void *)address, &info) && info.dli_fname;
	const char *slash = found ? strrchr(info.dli_fname, '/') : NULL;
	if (found && info.dli_sname && (uintptr_t)info.dli_saddr == address)
		snprintf(text, TW__FUNCTION_ROOM, "%s", info.dli_sname);
	else if (found)
		snprintf(text, TW__FUNCTION_ROOM, "%s+%#jx", slash ? slash + 1 : info.dli_fname,
			 (uintmax_t)(address - (uintptr_t)info.dli_fbase));
	else
		snprintf(text, TW__FUNCTION_ROOM, "%p", (void *)address);
}
