/**
 * Turns failures of a database into failures of a store.
 */

import * as Effect from "effect/Effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { errorCode } from "../../kit/failedRequest.ts"
import { StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"

/** Creates the failure of an operation. */
export const failed =
  (operation: string) =>
  (error: SqlError): Effect.Effect<never, StoreError> => {
    const { _tag } = error.reason
    const reason = _tag === "LockTimeoutError" || _tag === "StatementTimeoutError" ? "timeout" : "unavailable"
    return Effect.fail(new StoreError({ operation, reason, detail: wordsOf(error) }))
  }

/** Returns the message of an error and of its cause, since a driver's own message may name only the operation. */
export const wordsOf = ({ message, reason: { cause } }: SqlError): string => {
  const why = (cause instanceof Error && cause.message) || errorCode(cause)
  return why === undefined || message.includes(why) ? message : `${message}: ${why}`
}

/**
 * Turns the defect of a transaction that lost its connection into a failure: effect/sql dies because the rollback
 * fails, too.
 */
export const orLost = <A, E, R>(transaction: Effect.Effect<A, E, R>): Effect.Effect<A, E | SqlError, R> =>
  Effect.catchDefect(transaction, (defect) => (isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect)))

/** Fails for a stored value that differs from what was written. */
export const corrupt = (detail: string): Effect.Effect<never, StoreError> =>
  Effect.fail(new StoreError({ operation: "read", reason: "corrupt", detail }))

/** Fails for a run in another format. */
export const readable = (format: number): Effect.Effect<void, StoreError> =>
  RunCodec.isReadable(format) ? Effect.void : Effect.fail(RunCodec.otherFormat(format, "read"))
