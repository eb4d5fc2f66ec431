/*
 * sandbox PROGRAM ARGUMENT...: runs a program to which the system refuses membarrier from its first
 * moment on, as old kernels and strict sandboxes do. The library's gate is sequentially consistent
 * on both sides then, which is otherwise code that never runs (mpsc/gate.h).
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
	    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof filter / sizeof *filter, .filter = filter};
	if (argc < 2) {
		fprintf(stderr, "usage: sandbox PROGRAM ARGUMENT...\n");
		return 2;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
		perror("sandbox");
		return 2;
	}
	if (syscall(SYS_membarrier, 0, 0, 0) != -1 || errno != ENOSYS) {
		fprintf(stderr, "sandbox: membarrier is still there\n");
		return 2;
	}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 2;
}
