/* Lines: in at the end, out anywhere, with foreign links in between. */
#include "executor/base/line.h"
#include "test/support/expect.h"

TestSuite(base_line, .timeout = 20);

enum { PLACES = 6 };

static struct tw__line line;
static struct tw__in_line places[PLACES]; /* odd ones are foreign: only the first word is theirs */

static tw__link link_of(int i)
{
	return tw__in_line_link(&places[i]) | (i & 1 ? TW__FOREIGN : 0);
}

static void fill(void)
{
	tw__line_init(&line);
	for (int i = 0; i < PLACES; i++) {
		places[i] = (struct tw__in_line){0};
		tw__line_append(&line, link_of(i));
	}
}

/* Takes out all, and expects these. */
static void expect_line(const int *wanted, int n)
{
	for (int i = 0; i < n; i++) {
		expect_eq(line.first, link_of(wanted[i]));
		expect_eq(tw__line_pop(&line), link_of(wanted[i]));
	}
	expect_eq(line.first, 0);
	expect_eq(line.end == &line.first, true);
}
#define expect_in_line(...) \
	expect_line((int[]){__VA_ARGS__}, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)))

Test(base_line, is_first_in_first_out)
{
	fill();
	expect_in_line(0, 1, 2, 3, 4, 5);
	fill();
	tw__line_pop(&line);
	tw__line_append(&line, link_of(0));
	expect_in_line(1, 2, 3, 4, 5, 0);
}

Test(base_line, is_left_from_anywhere)
{
	fill();
	tw__line_leave(&line, &places[2]);
	tw__line_leave(&line, &places[0]);
	tw__line_leave(&line, &places[4]);
	expect_in_line(1, 3, 5);
	tw__line_init(&line);
	tw__line_append(&line, link_of(0));
	tw__line_append(&line, link_of(2));
	tw__line_leave(&line, &places[2]); /* the last */
	tw__line_append(&line, link_of(4));
	tw__line_leave(&line, &places[0]);
	tw__line_leave(&line, &places[4]); /* the only one */
	expect_eq(line.first, 0);
	tw__line_append(&line, link_of(2));
	expect_in_line(2);
}

Test(base_line, takes_in_before_any_place)
{
	fill();
	tw__line_leave(&line, &places[4]);
	tw__line_insert(&line, &line.first, &places[4]);
	tw__line_leave(&line, &places[2]);
	tw__line_insert(&line, tw__link_at(link_of(5)), &places[2]); /* behind the last */
	tw__line_leave(&line, &places[0]);
	tw__line_append(&line, link_of(0));
	expect_in_line(4, 1, 3, 5, 2, 0);
}

Test(base_line, moves_as_a_whole)
{
	struct tw__line other;
	fill();
	tw__line_init(&other);
	tw__line_move(&other, &line); /* nothing */
	tw__line_leave(&line, &places[0]);
	tw__line_append(&other, link_of(0));
	tw__line_move(&line, &other);
	expect_eq(line.first, 0);
	tw__line_leave(&other, &places[4]);
	tw__line_move(&other, &line);
	expect_in_line(0, 1, 2, 3, 5);
}
