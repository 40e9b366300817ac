/**
 * What two conversations have in common.
 *
 * @since 0.1.0
 */
import type { Message } from "../Message.ts"

/** How many messages two conversations share at their beginning. Messages are shared values: the same object is the same message. */
export const commonPrefix = (before: ReadonlyArray<Message>, after: ReadonlyArray<Message>): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && before[index] === after[index]) index++
  return index
}
