/* Scripts: their calls, taken apart and made; and what is said. */
#include "script.h"
#include "script_verbs.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "expect.h"

enum { STORY = 8192 };

static struct {
	const struct stage *stage; /* NULL: no script plays */
	const struct verb *more;
	char text[SCRIPT_TEXT]; /* of all its calls */
	atomic_size_t used;
	char story[STORY];
	size_t told;
	uint64_t told_ms;
	unsigned step;
} now;

const char *error_name(int error)
{
	static _Thread_local char number[16];
	const char *name = error == -ENOTSUP ? "ENOTSUP" /* which is EOPNOTSUPP */
			   : error < 0       ? strerrorname_np(-error)
					     : NULL;
	snprintf(number, sizeof number, "%d", error);
	return name ? name : number;
}

static pthread_mutex_t telling = PTHREAD_MUTEX_INITIALIZER;

static void append(const char *format, va_list arguments)
{
	int n = vsnprintf(now.story + now.told, STORY - now.told, format, arguments);
	if (n < 0 || now.told + (size_t)n >= STORY)
		abort();
	now.told += (size_t)n;
}

static void append_text(const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	append(format, arguments);
	va_end(arguments);
}

void say(const char *format, ...)
{
	if (!now.stage)
		return;
	pthread_mutex_lock(&telling);
	if (now.told)
		append_text(", ");
	uint64_t ms = (rig_now(now.stage->rig) - RIG_START_NS) / MS;
	if (ms != now.told_ms && !now.stage->rig->is_real)
		append_text("@%llu ", (unsigned long long)ms);
	now.told_ms = ms;
	va_list arguments;
	va_start(arguments, format);
	append(format, arguments);
	va_end(arguments);
	pthread_mutex_unlock(&telling);
}

unsigned current_step(void)
{
	return now.step;
}

void say_answer(int answer)
{
	if (answer)
		say("%s", error_name(answer));
}

void say_outcome(int outcome)
{
	static const char *const words[] = {[TW_CANCELLED] = "CANCELLED",
					    [TW_RUNNING] = "RUNNING",
					    [TW_GONE] = "GONE",
					    [TW_FINISHED] = "FINISHED",
					    [TW_SELF] = "SELF"};
	say("%s", outcome < 0 ? error_name(outcome) : words[outcome]);
}

void say_gauges(const struct words *words, const struct gauge *gauges, const void *from)
{
	for (int i = 1; i < words->n; i++) {
		const struct gauge *gauge = gauges;
		while (gauge->name && strcmp(gauge->name, words->word[i]) != 0)
			gauge++;
		cr_assert_not_null(gauge->name, "no gauge %s", words->word[i]);
		uint64_t value;
		memcpy(&value, (const char *)from + gauge->offset, sizeof value);
		say("%s=%llu", gauge->name, (unsigned long long)value);
	}
}

bool has_word(const struct words *words, const char *word)
{
	for (int i = 0; i < words->n; i++)
		if (strcmp(words->word[i], word) == 0)
			return true;
	return false;
}

/* A number, or an error's name. False: neither. */
static bool parse_number(const char *text, int64_t *number, char **end)
{
	for (int error = 1; error <= EHWPOISON; error++) /* the last one */
		if (strcmp(error_name(-error), text) == 0) {
			*number = -error;
			*end = strchr(text, 0);
			return true;
		}
	*number = strtoll(text, end, 10);
	return *end != text;
}

int64_t option_of(const struct words *words, const char *name, int64_t otherwise)
{
	size_t length = strlen(name);
	for (int i = 0; i < words->n; i++) {
		const char *word = words->word[i];
		int64_t number;
		char *end;
		if (strncmp(word, name, length) != 0 || word[length] != '=')
			continue;
		cr_assert(parse_number(word + length + 1, &number, &end) && !*end, "%s", word);
		return number;
	}
	return otherwise;
}

uint64_t ms_of(const struct words *words, const char *name)
{
	return (uint64_t)option_of(words, name, 0) * MS;
}

static void add_numbers(struct words *words, const char *word)
{
	int64_t first, last;
	char *end;
	if (!parse_number(word, &first, &end))
		return;
	last = first;
	if (strncmp(end, "..", 2) == 0)
		cr_assert(parse_number(end + 2, &last, &end), "%s", word);
	cr_assert(!*end && last - first < SCRIPT_NUMBERS - words->numbers, "%s", word);
	for (int64_t number = first; number <= last; number++)
		words->number[words->numbers++] = number;
}

/* Where the text from `from` on has this character outside of braces and brackets; or its end. */
static char *find_outside(char *from, char wanted)
{
	int depth = 0;
	for (; *from && (depth || *from != wanted); from++)
		depth += strchr("{[", *from) ? 1 : strchr("}]", *from) ? -1 : 0;
	return from;
}

static void add_word(struct words *words, char *word, char *end)
{
	bool is_run = *word == '{', is_release = *word == '[';
	if (is_run || is_release) {
		end[-1] = 0;
		*(is_run ? &words->in_run : &words->in_release) = word + 1;
		return;
	}
	expect_lt(words->n, SCRIPT_WORDS);
	words->word[words->n++] = word;
	add_numbers(words, word);
}

/* The words lie in the text, which is changed. */
static struct words words_of(char *text)
{
	struct words words = {0};
	while (*text) {
		char *end = find_outside(text, ' ');
		bool is_last = !*end;
		*end = 0;
		if (end > text)
			add_word(&words, text, end);
		text = is_last ? end : end + 1;
	}
	return words;
}

static char *copy_text(const char *text)
{
	size_t size = strlen(text) + 1, at = atomic_fetch_add(&now.used, size);
	expect_le(at + size, SCRIPT_TEXT);
	return memcpy(now.text + at, text, size);
}

static const struct verb *find_verb(const struct verb *verbs, const char *name)
{
	for (; verbs && verbs->name; verbs++)
		if (strcmp(verbs->name, name) == 0)
			return verbs;
	return NULL;
}

static void call_words(char *text)
{
	struct words words = words_of(text);
	const struct verb *verb = find_verb(now.more, words.word[0]);
	verb = verb ? verb : find_verb(now.stage->verbs, words.word[0]);
	verb = verb ? verb : find_verb(script_verbs, words.word[0]);
	cr_assert_not_null(verb, "no verb %s", words.word[0]);
	verb->call(&words);
}

void play_calls(const char *calls)
{
	if (!calls)
		return;
	for (char *call = copy_text(calls), *end; *call; call = end) {
		end = find_outside(call, ';');
		if (*end)
			*end++ = 0;
		call_words(call);
	}
}

static void play_step(const struct script *script, const struct step *step)
{
	now.step++;
	now.told = 0;
	now.story[0] = 0;
	play_calls(step->call);
	script_end_step();
	cr_expect_str_eq(now.story, step->wanted, "%s, step %d (%s):\n  said:   %s\n  wanted: %s",
			 script->name, (int)(step - script->steps) + 1, step->call, now.story,
			 step->wanted);
}

static void open_stage(const struct stage *stage, const char *given)
{
	now.stage = stage;
	now.used = 0;
	now.told_ms = 0;
	now.told = 0;
	struct words words = words_of(copy_text(given));
	script_begin(stage);
	stage->open(&words);
	script_opened(&words);
}

static void close_stage(void)
{
	now.told = 0;
	script_end();
	now.stage->close();
	script_closed();
	now.stage = NULL;
}

const char *script_given = "";

/* The words of its first call, if that is "given". */
static const char *given_of(const struct script *script)
{
	static char given[SCRIPT_TEXT];
	const char *first = script->steps->call;
	bool is_given = strncmp(first, "given ", 6) == 0;
	snprintf(given, sizeof given, "%s %s", script_given, is_given ? first + 6 : "");
	*find_outside(given, ';') = 0;
	return given;
}

void play(const struct stage *stage, const struct verb *more, const struct script *scripts,
	  size_t n)
{
	now.more = more;
	for (const struct script *script = scripts; script < scripts + n; script++) {
		open_stage(stage, given_of(script));
		for (const struct step *step = script->steps; step->call; step++)
			play_step(script, step);
		close_stage();
		cr_expect(now.told == 0, "%s, at its end: %s", script->name, now.story);
	}
}
