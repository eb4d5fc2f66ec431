/*
 * A line: first in, first out, and out of the middle too. Its owner's lock guards it.
 *
 * A link is the address of the next one's link; 0: the end. With FOREIGN it leads to a batch or a
 * work, which has nothing but a first word for the link, and leaves at the head alone.
 */
#ifndef TW_EXECUTOR_LINE_H
#define TW_EXECUTOR_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mpsc/base/assert.h"

typedef uintptr_t __attribute__((may_alias)) tw__link;

enum { TW__FOREIGN = 4 };

struct tw__in_line {
	tw__link next;
	tw__link *where; /* the link that leads here; NULL: in no line (after leave) */
};

struct tw__line {
	tw__link first;
	tw__link *end; /* the last link, which is 0 */
};

static inline tw__link *tw__link_at(tw__link link)
{
	return (tw__link *)(link & ~(tw__link)TW__FOREIGN);
}

static inline tw__link tw__in_line_link(struct tw__in_line *place)
{
	return (tw__link)place;
}

static inline void tw__link_set(tw__link *where, tw__link link)
{
	*where = link;
	if (link && !(link & TW__FOREIGN))
		((struct tw__in_line *)link)->where = where;
}

static inline void tw__line_init(struct tw__line *line)
{
	line->first = 0;
	line->end = &line->first;
}

static inline void tw__line_append(struct tw__line *line, tw__link link)
{
	tw__link_set(line->end, link);
	line->end = tw__link_at(link);
	*line->end = 0;
}

/* Before what the link `where` of the line leads to. */
static inline void tw__line_insert(struct tw__line *line, tw__link *where,
				   struct tw__in_line *place)
{
	if (!*where)
		line->end = &place->next;
	tw__link_set(&place->next, *where);
	*where = tw__in_line_link(place);
	place->where = where;
}

/* Takes the first out. The line is not empty. */
static inline tw__link tw__line_pop(struct tw__line *line)
{
	tw__link first = line->first, next = *tw__link_at(first);
	if (!next)
		line->end = &line->first;
	tw__link_set(&line->first, next);
	return first;
}

/* If it is in another line than this one, it is not the last of that. */
static inline void tw__line_leave(struct tw__line *line, struct tw__in_line *place)
{
	TW_ASSERT(*place->where == tw__in_line_link(place));
	if (line->end == &place->next)
		line->end = place->where;
	tw__link_set(place->where, place->next);
	place->where = NULL;
}

/* Moves all of it to the end of another one. */
static inline void tw__line_move(struct tw__line *line, struct tw__line *to)
{
	if (!line->first)
		return;
	tw__link_set(to->end, line->first);
	to->end = line->end;
	tw__line_init(line);
}

#endif
