/**
 * The studio, a page about runs.
 *
 * @since 0.2.0
 */

export * as Studio from "./Studio.ts"
