/*
 * One star is remembered at a time: when the rest does not match, the latest star takes one
 * character more. So the time is bounded by the product of both lengths, whatever the pattern.
 */
#include "examples/cache/glob.h"

/* Matches a set that begins at the bracket `at`; *next is what follows the set. */
static bool set_matches(const char *at, const char *end, char c, const char **next)
{
	bool matches = false, inverted = ++at < end && *at == '^';
	at += inverted;
	for (; at < end && *at != ']'; at++) {
		if (*at == '\\' && end - at >= 2) {
			matches |= *++at == c;
		} else if (end - at >= 3 && at[1] == '-') {
			unsigned char low = (unsigned char)at[0], high = (unsigned char)at[2],
				      x = (unsigned char)c;
			matches |= low <= high ? low <= x && x <= high : high <= x && x <= low;
			at += 2;
		} else {
			matches |= *at == c;
		}
	}
	*next = at < end ? at + 1 : end;
	return matches != inverted;
}

/* Whether the pattern's first element, which is no star, matches c; *next is what follows it. */
static bool one_matches(const char *at, const char *end, char c, const char **next)
{
	if (*at == '[')
		return set_matches(at, end, c, next);
	bool any = *at == '?';
	if (*at == '\\' && end - at >= 2)
		at++;
	*next = at + 1;
	return any || *at == c;
}

bool glob_matches(struct slice pattern, struct slice text)
{
	const char *p = pattern.data, *p_end = p + pattern.length, *t = text.data,
		   *t_end = t + text.length;
	const char *star = NULL, *star_text = NULL, *next;
	if (text.length == 0) /* as in Redis: no star matches the empty text */
		return pattern.length == 0;
	while (t < t_end) {
		if (p < p_end && *p == '*') {
			star = ++p;
			star_text = t;
		} else if (p < p_end && one_matches(p, p_end, *t, &next)) {
			p = next;
			t++;
		} else if (star != NULL) {
			p = star;
			t = ++star_text;
		} else {
			return false;
		}
	}
	while (p < p_end && *p == '*')
		p++;
	return p == p_end;
}
