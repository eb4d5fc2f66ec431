#include "tools/top/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --------------------------------------------------------------------- lines */

/* Cuts the next line off. NULL: there is none. */
static char *next_line(char **rest)
{
	char *line = *rest, *end = line ? strchr(line, '\n') : NULL;
	if (!end)
		return NULL;
	*end = 0;
	*rest = end + 1;
	return line;
}

/* Where the labels of a sample end: at the first brace outside of quotes. */
static char *end_of_labels(char *at)
{
	for (bool quoted = false; *at; at++) {
		if (quoted && *at == '\\' && at[1])
			at++;
		else if (*at == '"')
			quoted = !quoted;
		else if (*at == '}' && !quoted)
			return at;
	}
	return NULL;
}

/* "tickwheel_NAME VALUE" or "tickwheel_NAME{LABELS} VALUE" */
static bool read_sample(char *line, struct page_sample *sample)
{
	static const char prefix[] = "tickwheel_";
	if (strncmp(line, prefix, sizeof prefix - 1) != 0)
		return false;
	char *end = line + strcspn(line, " {"), *value = end;
	sample->name = line + sizeof prefix - 1;
	sample->labels = "";
	if (*end == '{') {
		char *close = end_of_labels(end + 1);
		if (!close)
			return false;
		*close = 0;
		sample->labels = end + 1;
		value = close + 1;
	}
	if (*value != ' ' && *value != 0)
		return false;
	char *number = value + 1;
	*end = 0;
	sample->value = strtod(number, &value);
	return value != number;
}

static size_t count_lines(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += *text == '\n';
	return n;
}

/* -------------------------------------------------------------------- labels */

void page_label(const struct page_sample *sample, const char *label, char *out, size_t room)
{
	size_t length = strlen(label), n = 0;
	const char *at = sample->labels;
	out[0] = 0;
	while (*at && !(strncmp(at, label, length) == 0 && at[length] == '=')) {
		const char *value = strchr(at, '"');
		if (!value)
			return;
		for (value++; *value && *value != '"'; value++)
			value += *value == '\\' && value[1];
		at = *value ? value + 1 : value;
		at += *at == ',';
	}
	if (!*at)
		return;
	for (at += length + 2; *at && *at != '"' && n + 1 < room; at++) {
		if (*at == '\\' && (at[1] == '"' || at[1] == '\\'))
			at++;
		out[n++] = *at;
	}
	out[n] = 0;
}

double page_find(const struct page *page, const char *name, const char *label, bool *known)
{
	*known = true;
	for (size_t i = 0; i < page->count; i++) {
		const struct page_sample *sample = &page->samples[i];
		if (strcmp(sample->name, name) == 0 && (!label || strstr(sample->labels, label)))
			return sample->value;
	}
	*known = false;
	return 0;
}

double page_value(const struct page *page, const char *name, const char *label)
{
	bool known;
	return page_find(page, name, label, &known);
}

/* ------------------------------------------------------------- distributions */

static struct tw_histogram *histogram_of(struct page *page, const char *of)
{
	if (strcmp(of, "lateness") == 0)
		return &page->lateness;
	if (strcmp(of, "wait") == 0)
		return &page->wait;
	return strcmp(of, "run") == 0 ? &page->run : NULL;
}

static void add_cell(struct page *page, const struct page_sample *sample)
{
	char of[16], bucket[16];
	page_label(sample, "of", of, sizeof of);
	page_label(sample, "bucket", bucket, sizeof bucket);
	struct tw_histogram *histogram = histogram_of(page, of);
	unsigned long i = strtoul(bucket, NULL, 10);
	if (!histogram || i >= TW_HISTOGRAM_BUCKETS)
		return;
	histogram->buckets[i] += (uint64_t)sample->value;
	histogram->count += (uint64_t)sample->value;
}

static void read_distributions(struct page *page)
{
	for (size_t i = 0; i < page->count; i++)
		if (strcmp(page->samples[i].name, "cell") == 0)
			add_cell(page, &page->samples[i]);
	page->lateness.max_ns = (uint64_t)(page_value(page, "max_lateness_seconds", NULL) * 1e9);
	page->wait.max_ns = (uint64_t)(page_value(page, "max_wait_seconds", NULL) * 1e9);
	page->run.max_ns = (uint64_t)(page_value(page, "max_run_seconds", NULL) * 1e9);
}

/* ---------------------------------------------------------------------- page */

static enum page_fault read_head(struct page *page, char **rest, int *format)
{
	char *line = next_line(rest);
	if (!line || sscanf(line, "# tickwheel-top %d", format) != 1)
		return PAGE_FOREIGN;
	if (*format != PAGE_FORMAT)
		return PAGE_OTHER_FORMAT;
	line = next_line(rest);
	if (!line || strncmp(line, "# service ", 10) != 0)
		return PAGE_FOREIGN;
	snprintf(page->service, sizeof page->service, "%s", line + 10);
	return PAGE_OK;
}

static enum page_fault read_body(struct page *page, char *rest)
{
	page->samples = calloc(count_lines(rest) + 1, sizeof *page->samples);
	if (!page->samples)
		return PAGE_NO_MEMORY;
	for (char *line; (line = next_line(&rest));) {
		if (strcmp(line, "# EOF") == 0)
			return PAGE_OK;
		if (line[0] != '#' && read_sample(line, &page->samples[page->count]))
			page->count++;
	}
	return PAGE_CUT;
}

enum page_fault page_parse(struct page *page, char *text, int *format)
{
	char *rest = text;
	*page = (struct page){.text = text};
	enum page_fault fault = read_head(page, &rest, format);
	if (!fault)
		fault = read_body(page, rest);
	if (fault) {
		page_free(page);
		return fault;
	}
	read_distributions(page);
	return PAGE_OK;
}

void page_free(struct page *page)
{
	free(page->samples);
	free(page->text);
	*page = (struct page){.text = NULL};
}
