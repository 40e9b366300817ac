/**
 * The skill that reads on in a result that was cut, and the words about it.
 */

/** The name of the skill. */
export const name = "read_result"

/** What stands behind a text that is only a part. */
export const block = (id: string, next: number, bytes: number): string =>
  `[cut after ${next} of ${bytes} bytes; go on with ${name} ${JSON.stringify({ id, offset: next })}]`
