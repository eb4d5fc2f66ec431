/* Text inside HTML: the characters that HTML gives a meaning are escaped. */
#ifndef BENCH_HTML_H
#define BENCH_HTML_H

#include <stdio.h>
#include <string.h>

static inline void write_text(FILE *out, const char *text)
{
	for (; *text; text++)
		if (strchr("<>&\"", *text))
			fprintf(out, "&#%d;", *text);
		else
			fputc(*text, out);
}

#endif
