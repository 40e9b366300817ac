/**
 * Programs that a model writes, run as agents.
 *
 * @since 0.1.0
 */

export * as Code from "./Code.ts"
