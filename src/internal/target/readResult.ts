/**
 * The skill that reads the rest of a result that was cut.
 */

/** The name of the skill. */
export const name = "read_result"

/** The hint behind a text that was cut. */
export const block = (id: string, next: number, bytes: number): string =>
  `[cut after ${next} of ${bytes} bytes; go on with ${name} ${JSON.stringify({ id, offset: next })}]`
