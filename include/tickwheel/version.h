/*
 * Version of the library.
 *
 * ABI promise: until 1.0.0 each minor version may change the ABI; from then on only a major version may.
 * Structs that begin with `size` may grow within a major version: a program built against an older header
 * keeps working, since the library reads only as much as `size` covers.
 */
#ifndef TICKWHEEL_VERSION_H
#define TICKWHEEL_VERSION_H

#define TW_VERSION_MAJOR 0
#define TW_VERSION_MINOR 1
#define TW_VERSION_PATCH 0
#define TW_VERSION (TW_VERSION_MAJOR * 10000 + TW_VERSION_MINOR * 100 + TW_VERSION_PATCH)

/* Marks what the shared library exports; everything else in it is hidden. */
#define TW_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* TW_VERSION of the library that is linked at run time, to compare with the one compiled against. Any thread. */
TW_API int tw_version(void);

#ifdef __cplusplus
}
#endif
#endif
