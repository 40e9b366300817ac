/**
 * Encodes runs as text, in the format of all durable stores.
 *
 * The records of one append are one line of JSON that begins with the version of its format. Text is decoded by schema,
 * because stored data may come from anywhere; a newer format and damaged data fail with different reasons. A value that
 * would not read back equal is refused when it is written. A state is written in parts, each with the turns since the
 * previous part, so the stored bytes grow linearly with the run. The runs of a conversation may share their earlier
 * messages, in chunks that a store keeps apart; see `SharedHistory` of `kernai/store-kit`.
 *
 * @since 0.1.0
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { BlockTypes } from "./BlockTypes.ts"
import { type ContentCodec, contentCodec, plainContent } from "./internal/words/messageSchema.ts"
import { isJsonObject, type Json, jsonObject, type JsonObject } from "./kit/json.ts"
import * as Storable from "./kit/storable.ts"
import * as Parts from "./internal/store/runParts.ts"
import * as Wire from "./internal/store/runWire.ts"
import { corrupt, fault, json, opened, reading, take, write } from "./internal/store/storedText.ts"
import { lazily } from "./kit/schemas.ts"
import type { StoreError } from "./KernelError.ts"
import { status } from "./internal/state/modelSchema.ts"
import type { Message } from "./Message.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

/**
 * The newest format that this version writes and reads: that of runs with shared messages.
 *
 * @category models
 * @since 0.1.0
 */
export const format: 3 = Wire.format

/**
 * The oldest format that this version reads, and the one that it writes for runs without shared messages.
 *
 * @category models
 * @since 0.1.0
 */
export const oldestFormat: 2 = Wire.oldest

export type {
  /**
   * Some messages of a conversation, and the id of the chunk with those before them.
   *
   * @category models
   * @since 0.1.0
   */
  Chunk,
  /**
   * Earlier messages of a run that are stored apart: the chunk with the last of them, and their number.
   *
   * @category models
   * @since 0.1.0
   */
  Earlier
} from "./internal/store/runWire.ts"

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
  /** Decodes a record that holds all of its messages. */
  readonly decodeRecord: (text: string) => Result.Result<RunRecord, StoreError>
  /**
   * Decodes the records of one append, up to the first one that cannot be read. `earlier` are the messages that the text
   * refers to; see `earlierIn`.
   */
  readonly decodeRecords: (text: string, earlier?: ReadonlyArray<Message>) => Decoded
  /** Decodes a state from all its parts, in order, and the messages that the first one refers to. */
  readonly decodeState: (
    parts: ReadonlyArray<string>,
    earlier?: ReadonlyArray<Message>
  ) => Result.Result<RunState, StoreError>
  /** Decodes a chunk of shared messages. */
  readonly decodeChunk: (text: string) => Result.Result<Wire.Chunk, StoreError>
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
  const { readChunk, readPart, readRecord } = types === undefined ? plain() : build(contentCodec(types.decode))

  const recordOf = (value: Json, earlier: ReadonlyArray<Message>): Result.Result<RunRecord, StoreError> =>
    Result.flatMap(Result.flatMap(ofThisFormat(value), reading(readRecord)), (wire) =>
      wire.earlier === undefined || wire.earlier.messages === earlier.length
        ? Result.succeed(Wire.toRecord(wire, earlier))
        : corrupt("its earlier messages are missing")
    )

  const decodeRecord = (text: string) => Result.flatMap(opened(text), (value) => recordOf(value, []))

  const decodeRecords = (text: string, earlier: ReadonlyArray<Message> = []): Decoded => {
    const value = opened(text)
    if (Result.isFailure(value)) return { records: [], fault: value.failure }
    const records: Array<RunRecord> = []
    for (const wire of Array.isArray(value.success) ? completed(value.success) : [value.success]) {
      const record = recordOf(wire, earlier)
      if (Result.isFailure(record)) return { records, fault: record.failure }
      records.push(record.success)
    }
    return { records, fault: undefined }
  }

  const decodeState = (
    parts: ReadonlyArray<string>,
    earlier: ReadonlyArray<Message> = []
  ): Result.Result<RunState, StoreError> => {
    const whole = Parts.join(earlier)
    for (const text of parts) {
      const part = Result.flatMap(Result.flatMap(opened(text), ofThisFormat), reading(readPart))
      if (Result.isFailure(part)) return Result.fail(part.failure)
      if (!whole.add(part.success)) return corrupt("the parts of a state do not fit together")
    }
    const state = whole.state()
    return state === undefined ? corrupt("a state has no parts") : Result.succeed(state)
  }

  const decodeChunk = (text: string): Result.Result<Wire.Chunk, StoreError> =>
    Result.flatMap(Result.flatMap(opened(text), ofThisFormat), reading(readChunk))

  return { decodeRecord, decodeRecords, decodeState, decodeChunk }
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

const textOf = (record: RunRecord, earlier?: Wire.Earlier): Result.Result<string, StoreError> =>
  // The wire form of JSON is JSON.
  Wire.isJson(record)
    ? Result.succeed(JSON.stringify(Wire.record(record, earlier)))
    : write(() => Wire.record(record, earlier))

/**
 * Encodes the records of one append as one line, without the line break. Fields equal to those of the previous record
 * are left out, and so are the earlier messages of a new run that are stored apart.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeRecords = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  earlier?: Wire.Earlier
): Result.Result<string, StoreError> => {
  const given = earlier === undefined ? records : Arr.map(records, (record) => Wire.own(record, earlier))
  if (given.length === 1) return Result.map(textOf(given[0], earlier), Storable.seal)
  return given.every(Wire.isJson)
    ? Result.succeed(Storable.seal(JSON.stringify(Wire.records(given, earlier))))
    : Result.map(
        write(() => Wire.records(given, earlier)),
        Storable.seal
      )
}

/**
 * Encodes the part of a state after a mark, without the earlier messages of its input that are stored apart. Default:
 * all of it.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeState = (
  state: RunState,
  mark: Parts.Mark = start,
  earlier?: Wire.Earlier
): Result.Result<string, StoreError> =>
  Result.map(
    write(() => Parts.write(state, mark, earlier)),
    Storable.seal
  )

/**
 * Returns the earlier messages that a text of records, or the first part of a state, refers to. Undefined for a text
 * that holds all of its messages, or that cannot be read.
 *
 * @category codecs
 * @since 0.1.0
 */
export const earlierIn = (text: string): Wire.Earlier | undefined => {
  // Most texts need not be parsed for it.
  if (!refers.test(text)) return undefined
  const value = Result.getOrUndefined(json(text))
  const { earlier } = jsonObject(Array.isArray(value) ? value[0] : value)
  return Result.getOrUndefined(reading(readEarlier())(earlier))
}

const refers = /^\[?\{(?:"sum":"\w*",)?"format":3,"earlier"/

/**
 * Encodes a message as JSON. The same message gives the same text.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeMessage = (message: Message): Result.Result<string, StoreError> => write(() => Wire.message(message))

/**
 * Encodes a chunk of messages.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeChunk = (chunk: Wire.Chunk): Result.Result<string, StoreError> =>
  Result.map(
    write(() => Wire.chunk(chunk)),
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
      : `format ${found} is older than ${oldestFormat}, the oldest that this version of kernai reads`
  )

/**
 * Returns true if this version reads a format.
 *
 * @category guards
 * @since 0.1.0
 */
export const isReadable = (found: number): boolean => found >= oldestFormat && found <= format

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
  readChunk: Schema.decodeUnknownResult(Wire.chunkSchema(content)),
  readStatus: Schema.decodeUnknownResult(status())
})

const readEarlier = lazily(() => Schema.decodeUnknownResult(Wire.earlierSchema()))

/** Reads the built-in content types only. */
const plain = lazily(() => build(plainContent()))

// ---------------------------------------------------------------- formats

/** Refuses JSON of a format that this version does not read. */
const ofThisFormat = (value: Json): Result.Result<Json, StoreError> => {
  const found = isJsonObject(value) ? value["format"] : undefined
  return typeof found === "number" && !isReadable(found)
    ? Result.fail(otherFormat(found, "read"))
    : Result.succeed(value)
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
    const { delta: _, earlier: _earlier, events: _events, op: _op, revision = 0, scopes: _scopes, ...next } = record
    shared = { ...next, revision: Number(revision) + 1 }
    return record
  })
}
