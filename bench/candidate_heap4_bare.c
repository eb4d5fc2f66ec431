/*
 * The bare heap with four children a node: half as many levels, and the children of a node share a
 * cache line.
 */
#define HEAP_ARITY 4
#define HEAP_CANDIDATE candidate_heap4_bare
#define HEAP_NAME "heap4-bare"
#define HEAP_WHAT "4-ary heap with indices, no lock, one thread, time cached"
#define HEAP_PEER true
#include "bench/candidate_heap_bare.c"
