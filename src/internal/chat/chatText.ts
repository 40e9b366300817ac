/**
 * Messages as a store of conversations keeps them: JSON text that reads back equal.
 */

import * as Result from "effect/Result"
import { StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Messages from "../../Message.ts"
import * as Storable from "../base/storable.ts"

/** Writes what was appended together. */
export const write = (messages: ReadonlyArray<Message>): Result.Result<string, StoreError> => {
  const wire = messages.map(Messages.encode)
  const grade = Storable.grade(wire)
  if (grade === 0) return Result.fail(invalid("a message holds something that is no JSON"))
  return Result.succeed(grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire))
}

/** Why messages cannot be kept, if they cannot: a store that writes no text refuses them as well. */
export const refusal = (messages: ReadonlyArray<Message>): StoreError | undefined =>
  Storable.grade(messages.map(Messages.encode)) === 0 ? invalid("a message holds something that is no JSON") : undefined

/** Reads what was written. */
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
