#include "test/support/tracer.h"

#include <stddef.h>
#include <string.h>

#if defined(__x86_64__) && defined(TW_PROBES)

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

enum { SITES = 128, HITS = 256, TRAP = 0xcc, NOP = 0x90, PAGE = 4096 };

struct site {
	uintptr_t at;
	const char *name, *arguments;
};

static struct site sites[SITES];
static unsigned site_count, hit_count;
static struct traced hits[HITS];

static const struct {
	const char *name; /* of 8, 4, 2 bytes */
	int at;
} registers[] = {{"rax eax ax", REG_RAX},    {"rbx ebx bx", REG_RBX},    {"rcx ecx cx", REG_RCX},
		 {"rdx edx dx", REG_RDX},    {"rsi esi si", REG_RSI},    {"rdi edi di", REG_RDI},
		 {"rbp ebp bp", REG_RBP},    {"rsp esp sp", REG_RSP},    {"r8 r8d r8w", REG_R8},
		 {"r9 r9d r9w", REG_R9},     {"r10 r10d r10w", REG_R10}, {"r11 r11d r11w", REG_R11},
		 {"r12 r12d r12w", REG_R12}, {"r13 r13d r13w", REG_R13}, {"r14 r14d r14w", REG_R14},
		 {"r15 r15d r15w", REG_R15}};

/* After a '%'. */
static uint64_t register_named(const char *text, const ucontext_t *context)
{
	size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789");
	for (size_t i = 0; i < sizeof registers / sizeof *registers; i++)
		for (const char *name = registers[i].name; name; name = strchr(name, ' ')) {
			name += *name == ' ';
			if (strcspn(name, " ") == length && !strncmp(name, text, length))
				return (uint64_t)context->uc_mcontext.gregs[registers[i].at];
		}
	return 0;
}

/*
 * "SIZE@$number", "SIZE@%register", "SIZE@offset(%register)"; a size below zero: with a sign. What
 * is else, or has an index, is read as 0.
 */
static uint64_t argument(const char *text, const ucontext_t *context)
{
	long size = strtol(text, NULL, 10), bytes = size < 0 ? -size : size;
	const char *what = strchr(text, '@') + 1;
	uint64_t value = 0;
	if (*what == '$') {
		value = (uint64_t)strtoll(what + 1, NULL, 10);
	} else if (*what == '%') {
		value = register_named(what + 1, context);
	} else {
		char *bracket;
		long offset = strtol(what, &bracket, 10);
		if (bracket[0] == '(' && bracket[strcspn(bracket, ",)")] == ')' &&
		    strncmp(bracket, "(%rip", 5) != 0)
			memcpy(&value,
			       (void *)(register_named(bracket + 2, context) + (uint64_t)offset),
			       (size_t)bytes);
	}
	return bytes < 8 ? value & ((UINT64_C(1) << 8 * bytes) - 1) : value;
}

static void trapped(int number, siginfo_t *info, void *of)
{
	const ucontext_t *context = of;
	uintptr_t at = (uintptr_t)context->uc_mcontext.gregs[REG_RIP] - 1;
	for (unsigned i = 0; i < site_count; i++)
		if (sites[i].at == at && hit_count < HITS) {
			struct traced *hit = &hits[hit_count++];
			const char *text = sites[i].arguments;
			*hit = (struct traced){.name = sites[i].name};
			for (int n = 0; n < TRACER_ARGUMENTS && *text; n++) {
				hit->arguments[n] = argument(text, context);
				text += strcspn(text, " ");
				text += *text == ' ';
			}
			return;
		}
}

static int first_object(struct dl_phdr_info *info, size_t size, void *base)
{
	*(uintptr_t *)base = info->dlpi_addr;
	return 1;
}

/* provider, name, arguments: strings one after the other. */
static void add_site(uintptr_t at, const char *provider)
{
	const char *name = provider + strlen(provider) + 1;
	if (!strcmp(provider, "tickwheel") && site_count < SITES)
		sites[site_count++] = (struct site){at, name, name + strlen(name) + 1};
}

static void read_notes(const char *notes, size_t size, uintptr_t base)
{
	for (size_t at = 0; at < size;) {
		const Elf64_Nhdr *note = (const void *)(notes + at);
		const char *description = notes + at + sizeof *note + (note->n_namesz + 3u) / 4 * 4;
		uint64_t location;
		memcpy(&location, description, sizeof location);
		add_site(base + location, description + 3 * sizeof location);
		at = (size_t)(description - notes) + (note->n_descsz + 3u) / 4 * 4;
	}
}

/* The file stays mapped: the names lie there. */
static void find_sites(void)
{
	struct stat file;
	uintptr_t base = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &file))
		return;
	const char *image = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (image == MAP_FAILED)
		return;
	dl_iterate_phdr(first_object, &base);
	const Elf64_Ehdr *head = (const void *)image;
	const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);
	const char *names = image + sections[head->e_shstrndx].sh_offset;
	for (unsigned i = 0; i < head->e_shnum; i++)
		if (!strcmp(names + sections[i].sh_name, ".note.stapsdt"))
			read_notes(image + sections[i].sh_offset, sections[i].sh_size, base);
}

static bool arm(uintptr_t at)
{
	unsigned char *code = (unsigned char *)at;
	void *page = (void *)(at / PAGE * PAGE);
	if (*code != NOP || mprotect(page, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
		return false;
	*code = TRAP;
	return mprotect(page, PAGE, PROT_READ | PROT_EXEC) == 0;
}

bool tracer_open(void)
{
	struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
	bool armed = sigaction(SIGTRAP, &action, NULL) == 0;
	find_sites();
	for (unsigned i = 0; i < site_count && armed; i++)
		armed = arm(sites[i].at);
	return armed && site_count > 0;
}

unsigned tracer_count(const char *name)
{
	unsigned count = 0;
	for (unsigned i = 0; i < hit_count; i++)
		count += !strcmp(hits[i].name, name);
	return count;
}

const struct traced *tracer_last(const char *name)
{
	for (unsigned i = hit_count; i > 0; i--)
		if (!strcmp(hits[i - 1].name, name))
			return &hits[i - 1];
	return NULL;
}

void tracer_forget(void)
{
	hit_count = 0;
}

#else

bool tracer_open(void)
{
	return false;
}

unsigned tracer_count(const char *name)
{
	return 0;
}

const struct traced *tracer_last(const char *name)
{
	return NULL;
}

void tracer_forget(void)
{
}

#endif
