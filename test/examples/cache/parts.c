/*
 * parts: the cache's parts by themselves: the hash against its published vectors, the table while
 * it grows and shrinks, scans meanwhile, patterns, and the parser with requests cut at every
 * byte.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/resp.h"
#include "examples/cache/table.h"

static int failures;

static void expect(bool what, const char *text)
{
	if (what)
		return;
	printf("parts: failed: %s\n", text);
	failures++;
}

/* Of the reference code: key 00 01 .. 0f, input 00 01 .. 0e, and the empty input. */
static void hash_has_the_published_values(void)
{
	unsigned char input[15];
	const uint64_t key[2] = {0x0706050403020100, 0x0f0e0d0c0b0a0908};
	for (unsigned i = 0; i < sizeof(input); i++)
		input[i] = (unsigned char)i;
	expect(siphash(key, input, 15) == 0xd320d86d2a519956, "SipHash-1-3 of fifteen bytes");
	expect(siphash(key, input, 0) == 0xabac0158050fc4dc, "SipHash-1-3 of nothing");
}

/* ------------------------------------------------------------------ table */

#define KEYS 20000

static unsigned char seen[KEYS];

static struct slice key_of(char *text, unsigned i)
{
	return (struct slice){text, (size_t)sprintf(text, "%u", i)};
}

static void see(void *arg, struct shard *s, struct entry *e)
{
	(void)arg;
	(void)s;
	char text[16] = "";
	memcpy(text, e->bytes, e->key_length);
	seen[atoi(text)]++;
}

/* All keys go into one shard, whatever their hash says: the others stay empty. */
static void add(unsigned i)
{
	char text[16];
	struct slice key = key_of(text, i);
	struct entry *e = entry_make(key, 8);
	memset(entry_room(e), 0, 8);
	table_link(&shards[0], table_hash(key), e);
}

static void drop(unsigned i)
{
	char text[16];
	struct slice key = key_of(text, i);
	struct entry *e = table_find(&shards[0], table_hash(key), key);
	expect(e != NULL, "a key that was added is found");
	if (e == NULL)
		return;
	table_unlink(&shards[0], table_hash(key), e);
	free(e);
	expect(table_find(&shards[0], table_hash(key), key) == NULL,
	       "a key that was removed is not");
}

static void table_finds_what_it_holds(void)
{
	char text[16];
	bool all = true;
	for (unsigned i = 0; i < KEYS; i++)
		add(i);
	for (unsigned i = 0; i < KEYS; i++)
		all = all &&
		      table_find(&shards[0], table_hash(key_of(text, i)), key_of(text, i)) != NULL;
	expect(all, "all keys are found");
	expect(shards[0].keys == KEYS && shards[0].count == KEYS, "one bucket a key");
	for (unsigned i = 0; i < KEYS; i++)
		drop(i);
	expect(shards[0].keys == 0 && shards[0].count <= 2 && shards[0].room < 16,
	       "an empty table is small");
	expect(shards[0].bytes == shards[0].room * sizeof(void *),
	       "its bytes are those of its buckets");
}

/*
 * Keys below KEYS / 2 stay. The others come or go during the scan, so the table grows or shrinks.
 */
static void scan_meets_all_that_stays(bool grows)
{
	uint64_t cursor = 0;
	unsigned moving = KEYS / 2, missing = 0;
	memset(seen, 0, sizeof(seen));
	for (unsigned i = 0; i < KEYS; i++)
		if (i < KEYS / 2 || !grows)
			add(i);
	do {
		cursor = table_scan(&shards[0], cursor, see, NULL);
		for (int k = 0; k < 3 && moving < KEYS; k++, moving++)
			grows ? add(moving) : drop(moving);
	} while (cursor != 0);
	for (unsigned i = 0; i < KEYS / 2; i++)
		missing += seen[i] == 0;
	expect(missing == 0,
	       grows ? "a scan of a growing table misses nothing" : "nor one of a shrinking table");
	for (unsigned i = 0; i < KEYS; i++)
		if (i < KEYS / 2 || (grows ? i < moving : i >= moving))
			drop(i);
}

/* ------------------------------------------------------------------ patterns */

static bool matches(const char *pattern, const char *text)
{
	return glob_matches((struct slice){pattern, strlen(pattern)},
			    (struct slice){text, strlen(text)});
}

/* What else a pattern means: KEYS in replies.txt. */
static void many_stars_take_no_exponential_time(void)
{
	char text[5001], pattern[101];
	memset(text, 'a', 5000);
	text[5000] = 0;
	for (int i = 0; i < 100; i++)
		pattern[i] = i % 2 ? 'a' : '*';
	pattern[99] = 'b';
	pattern[100] = 0;
	expect(!matches(pattern, text), "many stars take no exponential time");
}

/* ------------------------------------------------------------------ parser */

static void requests_may_be_cut_anywhere(void)
{
	static const char bytes[] = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$4\r\na\r\nb\r\nECHO \"a b\" "
				    "'c'\r\n*1\r\n$4\r\nPING\r\n";
	const size_t length = sizeof(bytes) - 1;
	for (size_t cut = 1; cut < length; cut++) {
		struct resp_parser p;
		size_t used = 0, requests = 0, arguments = 0;
		resp_init(&p);
		for (size_t have = cut; used < length; have = length) {
			enum resp_answer answer;
			while (used < have &&
			       (answer = resp_parse(&p, bytes + used, have - used)) == RESP_READY) {
				requests++;
				arguments += p.argc;
				used += p.used;
				resp_next(&p);
			}
		}
		expect(requests == 3 && arguments == 7, "three requests with seven words");
		resp_free(&p);
	}
}

int main(void)
{
	table_init();
	hash_has_the_published_values();
	table_finds_what_it_holds();
	scan_meets_all_that_stays(true);
	scan_meets_all_that_stays(false);
	many_stars_take_no_exponential_time();
	requests_may_be_cut_anywhere();
	table_free();
	printf("parts: %s\n", failures == 0 ? "ok" : "FAILED");
	return failures > 0;
}
