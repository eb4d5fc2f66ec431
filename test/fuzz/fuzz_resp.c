/*
 * The protocol's parser of examples/cache: any bytes, whole and cut into pieces, must give the
 * same requests and the same error, and nothing may be read beyond the bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "examples/cache/resp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	uint64_t digest;
	size_t requests, used;
	enum resp_answer last;
	char error[64];
};

static void digest(struct outcome *o, const void *bytes, size_t length)
{
	const unsigned char *at = bytes;
	for (size_t i = 0; i < length; i++)
		o->digest = (o->digest ^ at[i]) * 0x100000001b3; /* FNV-1a */
}

static void take(struct outcome *o, const struct resp_parser *p)
{
	o->requests++;
	for (size_t i = 0; i < p->argc; i++) {
		digest(o, &p->argv[i].length, sizeof(p->argv[i].length));
		digest(o, p->argv[i].data, p->argv[i].length);
		if (i > 0 && p->argv[i].length < 64 && p->argv[i - 1].length < 64)
			o->requests += glob_matches(p->argv[i - 1], p->argv[i]);
	}
}

/* Gives the parser `step` bytes more at a time, each time in memory of their own exact size. */
static struct outcome parse(const uint8_t *data, size_t size, size_t step)
{
	struct outcome o = {.last = RESP_MORE};
	struct resp_parser p;
	resp_init(&p);
	p.max_bulk = 4096;
	for (size_t have = 0; o.last != RESP_ERROR && have < size;) {
		have = size - have < step ? size : have + step;
		do {
			size_t length = have - o.used;
			char *bytes = malloc(length > 0 ? length : 1);
			if (length > 0)
				memcpy(bytes, data + o.used, length);
			o.last = resp_parse(&p, bytes, length);
			if (o.last == RESP_READY) {
				take(&o, &p);
				o.used += p.used;
				resp_next(&p);
			}
			free(bytes);
		} while (o.last == RESP_READY);
	}
	if (o.last == RESP_ERROR)
		memcpy(o.error, p.error, sizeof(o.error));
	resp_free(&p);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = parse(data, size, size), cut = parse(data, size, 1 + size / 3),
		       bytes = parse(data, size, 1);
	const struct outcome *others[] = {&cut, &bytes};
	for (int i = 0; i < 2; i++)
		if (whole.digest != others[i]->digest || whole.requests != others[i]->requests ||
		    whole.used != others[i]->used || whole.last != others[i]->last ||
		    strcmp(whole.error, others[i]->error) != 0)
			abort();
	return 0;
}
