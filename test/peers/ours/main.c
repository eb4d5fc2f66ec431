/*
 * The player of our side: reads scripts from its input, one after the other, and writes the trace
 * of each, up to a line "end".
 *
 * Each script is played in a process of its own, so that one that crashes or hangs says so in its
 * trace.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/peers/ours/script.h"

enum { PATIENCE_S = 5 };

static const struct {
	const char *row;
	void (*play)(struct script *script);
} rows[] = {
    {"actions", play_actions},
    {"scheduler", play_scheduler},
    {"limiter", play_limiter},
    {"timers", play_timers},
};

static void play(struct script *script)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (strcmp(rows[i].row, script->row) == 0)
			rows[i].play(script);
}

static void play_apart(struct script *script)
{
	int status = 0;
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		alarm(PATIENCE_S);
		play(script);
		fflush(stdout);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		say("no process");
	else if (WIFSIGNALED(status))
		say("died: %s", strsignal(WTERMSIG(status)));
	else if (WEXITSTATUS(status))
		say("exit %d", WEXITSTATUS(status));
}

int main(void)
{
	static struct script script;
	while (script_read(&script)) {
		play_apart(&script);
		say("end");
		fflush(stdout);
	}
	return 0;
}
