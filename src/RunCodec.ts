/**
 * Encodes runs as text, in the format of all durable stores.
 *
 * The records of one append are one line of JSON that begins with the version of its format. Text is decoded by schema,
 * because stored data may come from anywhere; a newer format and damaged data fail with different reasons. A value that
 * would not read back equal is refused when it is written. A state is written in parts, each with the turns since the
 * previous part, so the stored bytes grow linearly with the run.
 *
 * @since 0.1.0
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BlockTypes } from "./BlockTypes.ts"
import { type ContentCodec, contentCodec, plainContent } from "./internal/words/messageSchema.ts"
import * as Fault from "./kit/fault.ts"
import { isJsonObject, type Json, jsonObject, type JsonObject } from "./kit/json.ts"
import * as Storable from "./kit/storable.ts"
import * as Parts from "./internal/store/runParts.ts"
import * as Wire from "./internal/store/runWire.ts"
import { lazily } from "./kit/schemas.ts"
import * as Snapshot from "./kit/snapshot.ts"
import { StoreError } from "./KernelError.ts"
import { status } from "./internal/state/modelSchema.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

/**
 * The format that this version writes and reads.
 *
 * @category models
 * @since 0.1.0
 */
export const format: 2 = Wire.format

export type {
  /**
   * Marks how much of a state is already written.
   *
   * @category models
   * @since 0.1.0
   */
  Mark
} from "./internal/store/runParts.ts"

/**
 * The mark of a state that is not written yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const start: Parts.Mark = Parts.start

/**
 * Decodes runs from text.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunCodec {
  readonly decodeRecord: (text: string) => Result.Result<RunRecord, StoreError>
  /** Decodes the records of one append, up to the first one that cannot be read. */
  readonly decodeRecords: (text: string) => Decoded
  /** Decodes a state from all its parts, in order. */
  readonly decodeState: (parts: ReadonlyArray<string>) => Result.Result<RunState, StoreError>
}

/**
 * The records that could be read, and the error of the one after them, if any.
 *
 * @category models
 * @since 0.1.0
 */
export interface Decoded {
  readonly records: ReadonlyArray<RunRecord>
  readonly fault: StoreError | undefined
}

/**
 * Creates a decoder. Without `types`, contents of an application's own types stay unknown contents, with all their
 * fields.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (types?: Pick<BlockTypes["Service"], "decode">): RunCodec => {
  const { readPart, readRecord } = types === undefined ? plain() : build(contentCodec(types.decode))

  const recordOf = (value: Json): Result.Result<RunRecord, StoreError> =>
    Result.map(Result.flatMap(ofThisFormat(value), reading(readRecord)), Wire.toRecord)

  const decodeRecord = (text: string) => Result.flatMap(opened(text), recordOf)

  const decodeRecords = (text: string): Decoded => {
    const value = opened(text)
    if (Result.isFailure(value)) return { records: [], fault: value.failure }
    const records: Array<RunRecord> = []
    for (const wire of Array.isArray(value.success) ? completed(value.success) : [value.success]) {
      const record = recordOf(wire)
      if (Result.isFailure(record)) return { records, fault: record.failure }
      records.push(record.success)
    }
    return { records, fault: undefined }
  }

  const decodeState = (parts: ReadonlyArray<string>): Result.Result<RunState, StoreError> => {
    const whole = Parts.join()
    for (const text of parts) {
      const part = Result.flatMap(Result.flatMap(opened(text), ofThisFormat), reading(readPart))
      if (Result.isFailure(part)) return Result.fail(part.failure)
      if (!whole.add(part.success)) return corrupt("the parts of a state do not fit together")
    }
    const state = whole.state()
    return state === undefined ? corrupt("a state has no parts") : Result.succeed(state)
  }

  return { decodeRecord, decodeRecords, decodeState }
}

/**
 * Creates a decoder with the content types in context, if there are any.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromContext: Effect.Effect<RunCodec> = Effect.map(Effect.serviceOption(BlockTypes), (types) =>
  make(Option.getOrUndefined(types))
)

/**
 * Encodes a record as one line, without the line break. The same record gives the same text.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeRecord = (record: RunRecord): Result.Result<string, StoreError> =>
  Result.map(textOf(record), Storable.seal)

const textOf = (record: RunRecord): Result.Result<string, StoreError> =>
  // The wire form of JSON is JSON.
  Wire.isJson(record) ? Result.succeed(JSON.stringify(Wire.record(record))) : write(() => Wire.record(record))

/**
 * Encodes the records of one append as one line, without the line break. Fields equal to those of the previous record
 * are left out.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeRecords = (records: Arr.NonEmptyReadonlyArray<RunRecord>): Result.Result<string, StoreError> => {
  if (records.length === 1) return encodeRecord(records[0])
  return records.every(Wire.isJson)
    ? Result.succeed(Storable.seal(JSON.stringify(Wire.records(records))))
    : Result.map(
        write(() => Wire.records(records)),
        Storable.seal
      )
}

/**
 * Encodes the part of a state after a mark. Default: all of it.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeState = (state: RunState, mark: Parts.Mark = start): Result.Result<string, StoreError> =>
  Result.map(
    write(() => Parts.write(state, mark)),
    Storable.seal
  )

/**
 * Returns true if two records are equal once stored, regardless of the order of their fields.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSame = (a: RunRecord, b: RunRecord): boolean => {
  if (a === b) return true
  const [one, other] = [textOf(a), textOf(b)]
  if (Result.isFailure(one) || Result.isFailure(other)) return false
  return one.success === other.success || Equal.equals(JSON.parse(one.success), JSON.parse(other.success))
}

/**
 * Returns the error if a record cannot be stored. Stores that do not encode records as text must refuse such records,
 * too.
 *
 * @category guards
 * @since 0.1.0
 */
export const refusal = (record: RunRecord): StoreError | undefined => {
  if (Wire.isJson(record)) return undefined
  const wire = take(() => Wire.record(record))
  return Result.isFailure(wire) ? wire.failure : undefined
}

/**
 * Returns the error of an operation on data in another format.
 *
 * @category guards
 * @since 0.1.0
 */
export const otherFormat = (found: number, operation: string): StoreError =>
  fault(
    "format",
    operation,
    found > format
      ? `format ${found} is newer than ${format}, the newest that this version of kernai reads; update kernai`
      : `format ${found} is older than ${format}, the oldest that this version of kernai reads`
  )

/**
 * Encodes a status. A running status is written as its phase alone.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeStatus = (status: Status): Result.Result<string, StoreError> =>
  status.type === "running" ? Result.succeed(status.phase) : write(() => status)

/**
 * Decodes a status.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decodeStatus = (text: string): Result.Result<Status, StoreError> =>
  Result.flatMap(
    text.startsWith("{") ? json(text) : Result.succeed({ type: "running", phase: text }),
    reading(plain().readStatus)
  )

// ---------------------------------------------------------------- schemas

const build = (content: ContentCodec) => ({
  readRecord: Schema.decodeUnknownResult(Wire.recordSchema(content)),
  readPart: Schema.decodeUnknownResult(Parts.partSchema(content)),
  readStatus: Schema.decodeUnknownResult(status())
})

/** Reads the built-in content types only. */
const plain = lazily(() => build(plainContent()))

// ---------------------------------------------------------------- text

type Reader<A> = (input: unknown) => Result.Result<A, Schema.SchemaError>

const json = (text: string): Result.Result<Json, StoreError> =>
  Result.try({ try: (): Json => JSON.parse(text), catch: () => fault("corrupt", "read", "a text is not JSON") })

/** Parses a text and checks its checksum, which texts written by hand lack. */
const opened = (text: string): Result.Result<Json, StoreError> =>
  Storable.check(text) === "wrong" ? corrupt("its checksum is wrong") : json(text)

/** Refuses JSON of another format. */
const ofThisFormat = (value: Json): Result.Result<Json, StoreError> => {
  const found = isJsonObject(value) ? value["format"] : undefined
  return typeof found === "number" && found !== format ? Result.fail(otherFormat(found, "read")) : Result.succeed(value)
}

/** Gives each record of a list the fields that it shares with the previous one. */
const completed = (list: ReadonlyArray<Json>): ReadonlyArray<Json> => {
  let shared: JsonObject = {}
  return list.map((value) => {
    if (!isJsonObject(value)) return value
    const { step, ...own } = value
    const held: JsonObject = own["type"] === undefined ? own : { events: [own] }
    const scope = step === undefined ? {} : { scope: { ...jsonObject(shared["scope"]), step } }
    const record: JsonObject = { op: "phase", ...shared, ...scope, ...held }
    const { delta: _, events: _events, op: _op, revision = 0, scopes: _scopes, ...next } = record
    shared = { ...next, revision: Number(revision) + 1 }
    return record
  })
}

const reading =
  <A>(read: Reader<A>) =>
  (value: unknown): Result.Result<A, StoreError> =>
    Result.try({ try: () => read(value), catch: () => fault("corrupt", "read", "a text nests too deeply") }).pipe(
      Result.flatMap(Result.mapError((error) => fault("corrupt", "read", sentence(Fault.ofSchema(error)))))
    )

const take = (
  wire: () => object
): Result.Result<{ readonly wire: object; readonly grade: Storable.Grade }, StoreError> =>
  Result.try({
    try: () => {
      const taken = wire()
      return { wire: taken, grade: Storable.grade(taken) }
    },
    // A getter may throw anything, so its error is left out.
    catch: () => fault("invalid", "write", "a value cannot be read")
  }).pipe(Result.flatMap((taken) => (taken.grade === 0 ? Result.fail(misfit(taken.wire)) : Result.succeed(taken))))

const write = (wire: () => object): Result.Result<string, StoreError> =>
  Result.flatMap(take(wire), ({ grade, wire }) =>
    Result.try({
      try: () => (grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire)),
      catch: () => fault("limit_exceeded", "write", "a text is longer than a string can be")
    })
  )

/** Returns an error that says where a value is not JSON. */
const misfit = (wire: object): StoreError => {
  const found = Snapshot.take(wire, Storable.bounds)
  return fault("invalid", "write", Result.isFailure(found) ? sentence(found.failure) : "a value is not JSON")
}

const sentence = ({ path, reason }: Fault.Fault): string => `at '${path}': ${reason}`

const fault = (reason: StoreError["reason"], operation: string, detail: string): StoreError =>
  new StoreError({ operation, reason, detail })

const corrupt = (detail: string): Result.Result<never, StoreError> => Result.fail(fault("corrupt", "read", detail))
