/*
 * TW_PRIVATE marks what libtickwheel-layers uses of the core beside the public functions. All else
 * is hidden. packaging/tickwheel.map lists the names under a version node of their own.
 */
#ifndef TW_MPSC_PRIVATE_H
#define TW_MPSC_PRIVATE_H

/*
 * In the core: another library sees it, and the core itself calls it directly. TW_LAYER: a layer is
 * compiled, or a part that both libraries have; there it comes from the core.
 */
#ifdef TW_LAYER
#define TW_PRIVATE
#else
#define TW_PRIVATE __attribute__((visibility("protected")))
#endif

#endif
