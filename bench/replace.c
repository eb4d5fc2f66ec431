/* Written beside the file, forced to the disk, then renamed over it. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/replace.h"

bool is_special_file(const char *path)
{
	struct stat is;
	return stat(path, &is) == 0 && !S_ISREG(is.st_mode) && !S_ISDIR(is.st_mode);
}

static int make_folders(const char *path)
{
	char folder[4096];
	if ((size_t)snprintf(folder, sizeof folder, "%s", path) >= sizeof folder) {
		errno = ENAMETOOLONG;
		return -1;
	}
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(folder, 0777) < 0 && errno != EEXIST)
			return -1;
		*slash = '/';
	}
	return 0;
}

static int refuse_folder(const char *path)
{
	struct stat is;
	if (stat(path, &is) < 0 || !S_ISDIR(is.st_mode))
		return 0;
	errno = EISDIR;
	return -1;
}

int replace_begin(struct replacement *replacement, const char *path)
{
	char *beside = replacement->beside;
	replacement->path = path;
	beside[0] = 0;
	if (!is_special_file(path)) {
		if (make_folders(path) < 0 || refuse_folder(path) < 0)
			return -1;
		if ((size_t)snprintf(beside, sizeof replacement->beside, "%s.%ld", path,
				     (long)getpid()) >= sizeof replacement->beside) {
			errno = ENAMETOOLONG;
			return -1;
		}
	}
	replacement->file = fopen(beside[0] ? beside : path, "we");
	return replacement->file ? 0 : -1;
}

/* fsync has no meaning on devices and pipes, and says so. */
static int force_out(FILE *file)
{
	if (fflush(file) != 0)
		return -1;
	if (ferror(file)) {
		errno = EIO; /* of a write that failed long ago stdio does not tell more */
		return -1;
	}
	return fsync(fileno(file)) == 0 || errno == EINVAL || errno == EROFS ? 0 : -1;
}

int replace_end(struct replacement *replacement)
{
	const char *beside = replacement->beside;
	int failed = force_out(replacement->file), error = errno;
	if (fclose(replacement->file) != 0 && !failed) {
		failed = -1;
		error = errno;
	}
	if (!failed && beside[0] && rename(beside, replacement->path) < 0) {
		failed = -1;
		error = errno;
	}
	if (failed && beside[0])
		unlink(beside);
	errno = error;
	return failed;
}

int replace_try(const char *path)
{
	struct replacement attempt;
	if (replace_begin(&attempt, path) < 0)
		return -1;
	fclose(attempt.file);
	if (attempt.beside[0])
		unlink(attempt.beside);
	return 0;
}
