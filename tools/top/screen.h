/* Lines of a fixed width, and the terminal that shows them. */
#ifndef TOOLS_TOP_SCREEN_H
#define TOOLS_TOP_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

enum { SCREEN_LINES = 256, SCREEN_BYTES = 4096 };

/*
 * Text as it is to be shown: at most `columns` wide and `rows` high; what goes beyond that is cut.
 */
struct screen {
	unsigned columns, rows;
	bool utf8;
	unsigned count; /* lines begun */
	unsigned width; /* of the last one, in columns */
	size_t used;    /* of its bytes */
	char lines[SCREEN_LINES][SCREEN_BYTES];
};

void screen_clear(struct screen *screen, unsigned columns, unsigned rows);

/* Begins a line. */
void screen_line(struct screen *screen);

/* Appends to the line. Bytes that cannot be printed are shown as '?'. */
__attribute__((format(printf, 2, 3))) void screen_put(struct screen *screen, const char *format,
						      ...);

/* Appends text as a field: cut, or filled with spaces, to `width` columns. */
void screen_field(struct screen *screen, const char *text, unsigned width);

/* Fills the line with spaces up to a column. */
void screen_to(struct screen *screen, unsigned column);

/* Writes the lines as text. */
bool screen_print(const struct screen *screen);

/* -------------------------------------------------------------------- terminal */

/*
 * Takes the terminal: keys come one by one, the program has a screen of its own. False: there is
 * none.
 */
bool terminal_open(void);
void terminal_close(void);

void terminal_size(unsigned *columns, unsigned *rows);

/* Shows the lines in place of those that were shown before. */
void terminal_show(const struct screen *screen);

/*
 * Waits for a key. 0: none came within the time, or the size has changed; -1: the terminal is gone,
 * or a signal says to end.
 */
int terminal_key(unsigned wait_ms);

#endif
