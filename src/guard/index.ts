/**
 * Guards around a model and its calls: personal data, secrets, instructions in results, and banned replies.
 *
 * @since 0.1.0
 */

export * as Detector from "./Detector.ts"
export * as Guard from "./Guard.ts"
export * as Judge from "./Judge.ts"
