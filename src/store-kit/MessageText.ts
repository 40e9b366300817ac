/**
 * The messages of a conversation as stored text.
 *
 * @since 0.1.0
 */

import * as Result from "effect/Result"
import { StoreError } from "../KernelError.ts"
import * as Messages from "../Message.ts"
import type { Message } from "../Message.ts"
import * as Storable from "../kit/storable.ts"

/**
 * Encodes the messages of one append.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = (messages: ReadonlyArray<Message>): Result.Result<string, StoreError> => {
  const wire = messages.map(Messages.encode)
  const grade = Storable.grade(wire)
  if (grade === 0) return Result.fail(invalid("a message holds a value that is not JSON"))
  return Result.succeed(grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire))
}

/**
 * Returns the error for messages that cannot be stored, if any. Stores that write no text must reject them, too.
 *
 * @category guards
 * @since 0.1.0
 */
export const refusal = (messages: ReadonlyArray<Message>): StoreError | undefined =>
  Storable.grade(messages.map(Messages.encode)) === 0 ? invalid("a message holds a value that is not JSON") : undefined

/**
 * Decodes the messages of one append.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (text: string): Result.Result<ReadonlyArray<Message>, StoreError> =>
  Result.flatMap(Result.try({ try: (): unknown => JSON.parse(text), catch: () => corrupt("it is not JSON") }), (wire) =>
    Array.isArray(wire)
      ? Result.all(
          wire.map((message: unknown) => Result.mapError(Messages.decode(message), (error) => corrupt(error.message)))
        )
      : Result.fail(corrupt("it is not a list"))
  )

const invalid = (detail: string) => new StoreError({ operation: "append", reason: "invalid", detail })

const corrupt = (detail: string) => new StoreError({ operation: "read messages", reason: "corrupt", detail })
