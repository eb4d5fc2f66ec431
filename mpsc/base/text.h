/* Text for people and for monitors: names that users chose, functions. */
#ifndef TW_MPSC_TEXT_H
#define TW_MPSC_TEXT_H

#include <stdio.h>

#include "tickwheel/stats.h"

/* How bytes that are not printable UTF-8 are shown. */
enum tw__text_style {
	TW__TEXT_PLAIN, /* \xHH */
	/* \\xHH: in a label only \\, \" and \n may be escaped. A backslash before xHH is \\x5c */
	TW__TEXT_LABEL
};

/*
 * Writes a text for between quotes: quotes, backslashes, newlines, other control characters and
 * bytes that are not UTF-8 are escaped. Different texts are written differently.
 */
void tw__text_put(FILE *out, const char *text, enum tw__text_style style);

enum { TW__FUNCTION_ROOM = 256 };

/*
 * Names a function: its symbol if the program exports one, else FILE+OFFSET as addr2line reads it,
 * else the address.
 */
void tw__text_function(char text[TW__FUNCTION_ROOM], tw_fn *fn);

#endif
