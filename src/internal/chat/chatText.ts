/**
 * Encodes messages for stores of conversations, as JSON that reads back equal.
 */

import * as Result from "effect/Result"
import { StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import * as Storable from "../base/storable.ts"

/** Encodes the messages of one append. */
export const write = (messages: ReadonlyArray<Message>): Result.Result<string, StoreError> => {
  const wire = messages.map(Messages.encode)
  const grade = Storable.grade(wire)
  if (grade === 0) return Result.fail(invalid("a message holds something that is no JSON"))
  return Result.succeed(grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire))
}

/** Returns why messages cannot be stored, if so. Stores that write no text must refuse them, too. */
export const refusal = (messages: ReadonlyArray<Message>): StoreError | undefined =>
  Storable.grade(messages.map(Messages.encode)) === 0 ? invalid("a message holds something that is no JSON") : undefined

/** Decodes the messages of one append. */
export const read = (text: string): Result.Result<ReadonlyArray<Message>, StoreError> =>
  Result.flatMap(Result.try({ try: (): unknown => JSON.parse(text), catch: () => corrupt("it is no JSON") }), (wire) =>
    Array.isArray(wire)
      ? Result.all(
          wire.map((message: unknown) => Result.mapError(Messages.decode(message), (error) => corrupt(error.message)))
        )
      : Result.fail(corrupt("it is no list"))
  )

const invalid = (detail: string) => new StoreError({ operation: "append", reason: "invalid", detail })
const corrupt = (detail: string) => new StoreError({ operation: "read messages", reason: "corrupt", detail })
