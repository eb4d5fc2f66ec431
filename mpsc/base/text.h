/* Names that users chose and functions, as text. */
#ifndef TW_MPSC_TEXT_H
#define TW_MPSC_TEXT_H

#include <stdio.h>

#include "tickwheel/stats.h"

/* How bytes that are not printable UTF-8 are shown. */
enum tw__text_style {
	TW__TEXT_PLAIN, /* \xHH */
	/* \\xHH: labels may escape only \\, \" and \n. A backslash before xHH is \\x5c */
	TW__TEXT_LABEL
};

/*
 * Writes a text for between quotes, with quotes, backslashes, control characters and what is not
 * UTF-8 escaped. Different texts are written differently.
 */
void tw__text_put(FILE *out, const char *text, enum tw__text_style style);

enum { TW__FUNCTION_ROOM = 256 };

/* Names a function: its exported symbol, else FILE+OFFSET for addr2line, else its address. */
void tw__text_function(char text[TW__FUNCTION_ROOM], tw_fn *fn);

#endif
