/**
 * Ends the process after a signal, even if something in it does not stop.
 */

import { Codes } from "./exit.ts"

/**
 * Ends the process with status 143 some milliseconds after SIGTERM. Runs that are drained in order take less time; a
 * finalizer that hangs, or a handle that nobody closes, takes no more.
 */
export const endAfterSigterm = (millis: number): void => {
  // The first signal counts: repeating it does not give more time.
  process.once("SIGTERM", () => void setTimeout(() => process.exit(Codes.terminated), millis).unref())
}
