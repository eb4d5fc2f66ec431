/*
 * C11 atomics with the memory order in the name, and other words for compilers. Every access that
 * two threads may make at the same time goes through one of these. There are no standalone fences:
 * ThreadSanitizer and the pairing tables need each ordering at an access.
 */
#ifndef TW_MPSC_ATOMICS_H
#define TW_MPSC_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TW__CACHE_LINE 64

#define tw_load_relaxed(p) atomic_load_explicit((p), memory_order_relaxed)
#define tw_load_acquire(p) atomic_load_explicit((p), memory_order_acquire)
#define tw_load_seq_cst(p) atomic_load_explicit((p), memory_order_seq_cst)

#define tw_store_relaxed(p, v) atomic_store_explicit((p), (v), memory_order_relaxed)
#define tw_store_release(p, v) atomic_store_explicit((p), (v), memory_order_release)
#define tw_store_seq_cst(p, v) atomic_store_explicit((p), (v), memory_order_seq_cst)

#define tw_exchange_acquire(p, v) atomic_exchange_explicit((p), (v), memory_order_acquire)
#define tw_exchange_seq_cst(p, v) atomic_exchange_explicit((p), (v), memory_order_seq_cst)

#define tw_add_relaxed(p, v) atomic_fetch_add_explicit((p), (v), memory_order_relaxed)
#define tw_add_release(p, v) atomic_fetch_add_explicit((p), (v), memory_order_release)
#define tw_add_acq_rel(p, v) atomic_fetch_add_explicit((p), (v), memory_order_acq_rel)
#define tw_add_seq_cst(p, v) atomic_fetch_add_explicit((p), (v), memory_order_seq_cst)
#define tw_sub_relaxed(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_relaxed)
#define tw_sub_seq_cst(p, v) atomic_fetch_sub_explicit((p), (v), memory_order_seq_cst)
#define tw_or_relaxed(p, v) atomic_fetch_or_explicit((p), (v), memory_order_relaxed)
#define tw_or_seq_cst(p, v) atomic_fetch_or_explicit((p), (v), memory_order_seq_cst)
#define tw_and_seq_cst(p, v) atomic_fetch_and_explicit((p), (v), memory_order_seq_cst)

/* A failure stores the value in *expected: an acquire load, unless relaxed. */
#define tw_cas_acq_rel(p, expected, v)                                                      \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_acq_rel, \
						memory_order_acquire)
#define tw_cas_seq_cst(p, expected, v)                                                      \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_seq_cst, \
						memory_order_seq_cst)
#define tw_cas_relaxed(p, expected, v)                                                      \
	atomic_compare_exchange_strong_explicit((p), (expected), (v), memory_order_relaxed, \
						memory_order_relaxed)
#define tw_cas_weak_release(p, expected, v)                                               \
	atomic_compare_exchange_weak_explicit((p), (expected), (v), memory_order_release, \
					      memory_order_relaxed)

/* The light half of an asymmetric barrier (gate.h). */
#define tw_compiler_barrier() atomic_signal_fence(memory_order_seq_cst)

/* Adds to a counter that one thread writes and others read. */
static inline void tw_bump(_Atomic uint64_t *counter, uint64_t by)
{
	tw_store_relaxed(counter, tw_load_relaxed(counter) + by);
}

static inline void tw_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield");
#endif
}

/* Fetches the line at p to be written; p may point anywhere. */
static inline void tw_prefetch_write(const void *p)
{
#if defined(__x86_64__)
	__asm__ volatile("prefetchw %0"
			 :
			 /* the builtin asks to read */
			 : "m"(*(const char *)p));
#else
	__builtin_prefetch(p, 1);
#endif
}

#define tw_likely(x) __builtin_expect(!!(x), 1)
#define tw_unlikely(x) __builtin_expect(!!(x), 0)

#define tw_cold __attribute__((cold))

/* The struct that has `member` at this address. */
#define TW__OWNER(type, member, address) \
	((type *)(void *)((char *)(address)-offsetof(type, member)))

/*
 * What libtickwheel-layers uses of the core beside the public functions; all else is hidden
 * (packaging/tickwheel.map). TW_LAYER: a layer is compiled.
 */
#ifdef TW_LAYER
#define TW_PRIVATE
#else
#define TW_PRIVATE __attribute__((visibility("protected")))
#endif

/*
 * Tells ThreadSanitizer of an order between two threads of the user with nothing of the library on
 * their stacks, in a library built without it. Otherwise packaging/tsan.supp applies.
 */
void __tsan_acquire(void *object) __attribute__((weak));
void __tsan_release(void *object) __attribute__((weak));

static inline void tw_tsan_acquire(void *object)
{
	if (tw_unlikely(__tsan_acquire != NULL))
		__tsan_acquire(object);
}

static inline void tw_tsan_release(void *object)
{
	if (tw_unlikely(__tsan_release != NULL))
		__tsan_release(object);
}

#endif
