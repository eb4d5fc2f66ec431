/*
 * Version of the library.
 *
 * ABI promise: until 1.0.0 each minor version may change the ABI; from then on only a major version
 * may. Structs that begin with `size` may grow within a major version: a program built against an
 * older header keeps working, because the library reads only as much as `size` covers.
 */
#ifndef TICKWHEEL_VERSION_H
#define TICKWHEEL_VERSION_H

#define TW_VERSION_MAJOR 0
#define TW_VERSION_MINOR 2
#define TW_VERSION_PATCH 0
#define TW_VERSION (TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH)

/* Marks what the shared library exports; everything else in it is hidden. */
#define TW_API __attribute__((visibility("default")))

/*
 * Initializes a struct that begins with its size. All other members are 0, which is the default of
 * each.
 *
 *     struct tw_task task = TW_INIT(tw_task);
 */
#ifdef __cplusplus
#define TW_INIT(type)                                  \
	([] {                                          \
		struct type initialized = {};          \
		initialized.size = sizeof initialized; \
		return initialized;                    \
	}())
#else
#define TW_INIT(type)                       \
	{                                   \
		.size = sizeof(struct type) \
	}
#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Returns the version of the library that is linked at run time.
 *
 * Returns: its TW_VERSION.
 */
TW_API int tw_version(void);

/*
 * Tells whether the library that is linked at run time fits the headers: the same minor version
 * (until 1.0.0), and not older. For the first lines of a program.
 */
#define TW_VERSION_CHECK() (tw_version() / 100 == TW_VERSION / 100 && tw_version() >= TW_VERSION)

#ifdef __cplusplus
}
#endif
#endif
