/*
 * The heap with mutex and condition variable, with four children a node: half as many levels, one
 * cache line for each.
 */
#define HEAP_ARITY 4
#define HEAP_CANDIDATE candidate_heap4_mutex
#define HEAP_NAME "heap4-mutex"
#define HEAP_WHAT \
	"4-ary heap with indices, mutex, condition variable, a thread that runs due timers"
#define HEAP_PEER true
#include "bench/candidate_heap_mutex.c"
