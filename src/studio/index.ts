/**
 * The studio, a page about runs.
 *
 * @since 0.1.0
 */

export * as Studio from "./Studio.ts"
