/* A child process whose output comes back through a pipe. It ends when the demo ends in any way. */
#ifndef EXAMPLES_DEMO_PROCESS_H
#define EXAMPLES_DEMO_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct process {
	pid_t pid; /* 0: none, or ended */
	int output_fd;
	int status; /* as from wait, when it has ended */
	char output[65536];
	size_t length;
};

/* argv[0] is looked up in PATH. False: the fork failed. */
bool process_start(struct process *p, char *const argv[]);

/* Reads until the output holds `text`. False: the child ended, or the time ran out. */
bool process_wait_for(struct process *p, const char *text, int timeout_ms);
bool process_has_ended(struct process *p);

/*
 * Sends SIGTERM, reads the rest, returns the exit status: 128 + n for signal n. Kills it after
 * timeout_ms.
 */
int process_stop(struct process *p, int timeout_ms);

#endif
