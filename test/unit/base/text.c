/* Names in quotes: a reader gets each byte back, so no two names look the same. */
#include "mpsc/base/text.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "test/support/random.h"

TestSuite(base_text, .timeout = 60);

enum { ROOM = 256 };

static unsigned hex_digit(char c)
{
	const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
	return at ? (unsigned)(at - digits) : 16;
}

/* Copies `text`. Replaces each \xHH, and each backslash before a character of `from`. */
static void unescape(char *out, const char *text, const char *from, const char *to, bool hex)
{
	while (*text) {
		const char *at = *text == '\\' && text[1] ? strchr(from, text[1]) : NULL;
		if (at) {
			*out++ = to[at - from];
			text += 2;
		} else if (hex && text[0] == '\\' && text[1] == 'x' && hex_digit(text[2]) < 16 &&
			   hex_digit(text[3]) < 16) {
			*out++ = (char)(hex_digit(text[2]) << 4 | hex_digit(text[3]));
			text += 4;
		} else
			*out++ = *text++;
	}
	*out = 0;
}

/* What a scraper accepts between the quotes of a label: no bare quote or newline, three escapes. */
static bool is_label(const char *text)
{
	for (; *text; text++) {
		if (*text == '"' || *text == '\n')
			return false;
		if (*text == '\\' && (!text[1] || !strchr("\\\"n", *++text)))
			return false;
	}
	return true;
}

/* What a reader takes the name to be. A reader that gets it right cannot take two for one. */
static void read_back(const char *shown, enum tw__text_style style, char *name)
{
	char value[ROOM * 8];
	if (style == TW__TEXT_PLAIN) {
		unescape(name, shown, "\\\"n", "\\\"\n", true);
		return;
	}
	cr_assert(is_label(shown), "no scraper reads \"%s\"", shown);
	unescape(value, shown, "\\\"n", "\\\"\n", false);
	unescape(name, value, "", "", true);
}

static void expect_back(const char *name, enum tw__text_style style)
{
	char shown[ROOM * 8] = "", back[ROOM * 8];
	FILE *out = fmemopen(shown, sizeof shown, "w");
	cr_assert(out != NULL);
	tw__text_put(out, name, style);
	fclose(out);
	read_back(shown, style, back);
	cr_assert(strcmp(back, name) == 0, "\"%s\" is shown as \"%s\", as \"%s\" is", name, shown,
		  back);
}

static void expect_all_back(enum tw__text_style style)
{
	char name[ROOM];
	for (int a = 1; a < 256; a++)
		for (int b = 0; b < 256; b++) {
			memcpy(name, (char[]){(char)a, (char)b, 0}, 3);
			expect_back(name, style);
		}
	for (int c = 1; c < 256; c++)
		name[c - 1] = (char)c;
	name[255] = 0;
	expect_back(name, style);
	static const char *const parts[] = {"\\", "x",    "0",        "1",    "5", "c",
					    "\"", "\x01", "\xc3\xa9", "\xff", "n", "\n"};
	uint64_t seed = 1;
	for (int round = 0; round < 50000; round++) {
		name[0] = 0;
		for (int i = 0; i < 12; i++)
			strcat(name, parts[random_below(&seed, sizeof parts / sizeof *parts)]);
		expect_back(name, style);
	}
}

Test(base_text, labels_of_different_names_differ)
{
	expect_all_back(TW__TEXT_LABEL);
}

Test(base_text, listings_of_different_names_differ)
{
	expect_all_back(TW__TEXT_PLAIN);
}
