/*
 * Runs gnuplot: script in, SVGs out, both by way of temporary files, so that nobody waits for
 * anybody's pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/measure.h"
#include "bench/plot.h"
#include "bench/workload.h"

/* It takes about a second. One that hangs costs the page its plots, and not the run its end. */
enum { PATIENCE_S = 30 };

extern char **environ;

static const char start_of_svg[] = "<?xml", end_of_svg[] = "</svg>";

/* Its status, as of waitpid(). It is killed if it takes too long: *late. */
static int wait_for(pid_t pid, bool *late)
{
	uint64_t end_ns = now_ns() + PATIENCE_S * SECOND_NS;
	int status = 0;
	for (pid_t ended = 0; ended == 0 || (ended < 0 && errno == EINTR);) {
		*late = now_ns() >= end_ns;
		if (*late)
			kill(pid, SIGKILL);
		ended = waitpid(pid, &status, *late ? 0 : WNOHANG);
		if (ended == 0)
			sleep_until_ns(now_ns() + 10 * MILLISECOND_NS);
	}
	return status;
}

/* Its exit status; -1: it could not be started, errno. */
static int run_gnuplot(FILE *script, FILE *output, FILE *errors, bool *late)
{
	char *arguments[] = {"gnuplot", "--default-settings", "-", NULL};
	posix_spawn_file_actions_t files;
	pid_t pid;
	fflush(script);
	rewind(script);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fileno(script), STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fileno(output), STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, fileno(errors), STDERR_FILENO);
	int error = posix_spawnp(&pid, arguments[0], &files, NULL, arguments, environ);
	posix_spawn_file_actions_destroy(&files);
	if (error) {
		errno = error;
		return -1;
	}
	return wait_for(pid, late);
}

/* NULL: no memory. */
static char *whole(FILE *file)
{
	fseek(file, 0, SEEK_END);
	long size = ftell(file);
	char *text = size < 0 ? NULL : malloc((size_t)size + 1);
	rewind(file);
	if (text)
		text[fread(text, 1, (size_t)size, file)] = 0;
	return text;
}

/* True: as many as there are plots. Cuts the output into strings. */
static bool split(struct plots *plots)
{
	size_t count = 0;
	plots->svgs = calloc(plots->count + 1, sizeof *plots->svgs);
	if (!plots->svgs || !plots->output)
		return false;
	for (char *at = plots->output; (at = strstr(at, start_of_svg));) {
		char *end = strstr(at, end_of_svg);
		if (!end || count == plots->count)
			return false;
		plots->svgs[count++] = at;
		at = end + strlen(end_of_svg);
		if (*at)
			*at++ = 0;
	}
	return count == plots->count;
}

static void tell(int status, bool late, FILE *errors)
{
	char line[200], said[200] = "";
	rewind(errors);
	while (fgets(line, sizeof line, errors))
		if (line[strspn(line, " \t\n^")])
			snprintf(said, sizeof said, "%.*s", (int)strcspn(line, "\n"), line);
	if (status < 0)
		fprintf(stderr,
			"bench: the page has no plots: gnuplot cannot be run (Debian's package "
			"gnuplot-nox): %s\n",
			strerror(errno));
	else if (late)
		fprintf(stderr, "bench: the page has no plots: gnuplot was stopped after %d s\n",
			PATIENCE_S);
	else
		fprintf(stderr, "bench: the page has no plots: gnuplot failed: %s\n",
			said[0] ? said : "it said nothing");
}

static void forget(struct plots *plots)
{
	free(plots->svgs);
	free(plots->output);
	plots->svgs = NULL;
	plots->output = NULL;
}

bool plots_draw(struct plots *plots)
{
	FILE *output = tmpfile(), *errors = tmpfile();
	bool drawn = false;
	if (!plots->script || !output || !errors) {
		fprintf(stderr, "bench: the page has no plots: no temporary file: %s\n",
			strerror(errno));
	} else {
		bool late = false;
		int status = run_gnuplot(plots->script, output, errors, &late);
		plots->output = whole(output);
		drawn = status == 0 && split(plots);
		if (!drawn)
			tell(status, late, errors);
	}
	if (output)
		fclose(output);
	if (errors)
		fclose(errors);
	if (!drawn)
		forget(plots);
	return drawn;
}

static bool begins(const char *line, const char *with)
{
	return strncmp(line, with, strlen(with)) == 0;
}

/*
 * Copies the plot line by line. Leaves out the prolog, the titles (browsers show them as tool
 * tips) and the ids. Only the first plot defines the marks; the other plots use its ids.
 */
void plots_write(FILE *out, const struct plots *plots, size_t plot)
{
	bool in_marks = false;
	if (!plots->svgs)
		return;
	for (const char *line = plots->svgs[plot], *next; line; line = next) {
		const char *end = strchr(line, '\n');
		size_t length = end ? (size_t)(end - line) : strlen(line);
		next = end ? end + 1 : NULL;
		in_marks |= begins(line, "<defs>");
		if (begins(line + strspn(line, "\t"), "<g id="))
			fputs("<g>\n", out);
		else if (length && !begins(line, "<?xml") && !begins(line, "<title>") &&
			 !begins(line, "<desc>") && !(in_marks && plot > 0))
			fprintf(out, "%.*s\n", (int)length, line);
		in_marks &= !begins(line, "</defs>");
	}
}

void plots_end(struct plots *plots)
{
	if (plots->script)
		fclose(plots->script);
	forget(plots);
}
