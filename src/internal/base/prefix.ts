/**
 * What two conversations have in common.
 */

import type { Message } from "../../Message.ts"

/**
 * How many messages two conversations share at their beginning. Messages are shared values, so by default only the same
 * object is the same message.
 */
export const commonPrefix = (
  before: ReadonlyArray<Message>,
  after: ReadonlyArray<Message>,
  isSame: (a: Message | undefined, b: Message | undefined) => boolean = isShared
): number => {
  if (before === after) return before.length
  const end = Math.min(before.length, after.length)
  let index = 0
  while (index < end && isSame(before[index], after[index])) index++
  return index
}

const isShared = (a: Message | undefined, b: Message | undefined): boolean => a === b
