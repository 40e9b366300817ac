/**
 * Runs as text: what every durable store writes and reads.
 *
 * A record is one line of JSON with the number of its format. What is read is
 * decoded by schema, because stored data may come from anywhere (S-16), and a
 * newer format is told apart from damage. What is written reads back
 * equal, or is refused. A state is written in parts, each with the turns
 * since the one before, so that what is kept of a run grows with the run and
 * not with its square (DR-5).
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { BlockTypes } from "./BlockTypes.ts"
import type { BlockValidationError, Content } from "./Content.ts"
import * as Contents from "./Content.ts"
import * as Codec from "./internal/words/contentCodec.ts"
import * as Fault from "./internal/base/fault.ts"
import { isJsonObject, type Json, type JsonObject } from "./internal/base/json.ts"
import * as Legacy from "./internal/store/legacyRecords.ts"
import * as Parts from "./internal/store/runParts.ts"
import * as RunSchema from "./internal/store/runSchema.ts"
import * as Wire from "./internal/store/runWire.ts"
import * as Snapshot from "./internal/base/snapshot.ts"
import * as Storable from "./internal/base/storable.ts"
import { StoreError } from "./KernelError.ts"
import type { RunRecord, RunState, Status } from "./RunState.ts"

/**
 * The format this version writes, and the newest it reads.
 *
 * @category models
 * @since 0.1.0
 */
export const format = 2

export type {
  /**
   * Up to where a state is already written in parts.
   *
   * @category models
   * @since 0.1.0
   */
  Mark
} from "./internal/store/runParts.ts"

/**
 * The mark of a state of which nothing is written yet.
 *
 * @category constructors
 * @since 0.1.0
 */
export const start: Parts.Mark = Parts.start

/**
 * Texts to runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface RunCodec {
  readonly decodeRecord: (text: string) => Result.Result<RunRecord, StoreError>
  /** Reads a state from all its parts, in order. */
  readonly decodeState: (parts: ReadonlyArray<string>) => Result.Result<RunState, StoreError>
}

/**
 * Reads runs. Unless `types` are given, contents of an application's own types stay unknown, and lose nothing (CP-8).
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (types?: Pick<BlockTypes["Service"], "decode">): RunCodec => {
  const { readPart, readRecord } = types === undefined ? plain() : build(types.decode)

  const decodeRecord = (text: string): Result.Result<RunRecord, StoreError> =>
    Result.map(Result.flatMap(parse(text, Legacy.upgradeRecord), reading(readRecord)), fromWire)

  const decodeState = (parts: ReadonlyArray<string>): Result.Result<RunState, StoreError> => {
    const whole = Parts.join()
    for (const text of parts) {
      const part = Result.flatMap(parse(text, Legacy.upgradePart), reading(readPart))
      if (Result.isFailure(part)) return Result.fail(part.failure)
      if (!whole.add(part.success)) return corrupt("the parts of a state do not fit together")
    }
    const state = whole.state()
    return state === undefined ? corrupt("a state has no parts") : Result.succeed(state)
  }

  return { decodeRecord, decodeState }
}

/**
 * Reads runs with the content types of the context, if it has any.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromContext: Effect.Effect<RunCodec> = Effect.map(Effect.serviceOption(BlockTypes), (types) =>
  make(Option.getOrUndefined(types))
)

/**
 * Writes a record as one line, without its end. The same record gives the same text.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeRecord = (record: RunRecord): Result.Result<string, StoreError> =>
  // Most records are the kernel's own making throughout: there is nothing to look at.
  Wire.isOwn(record)
    ? Result.succeed(JSON.stringify(Wire.record(format, record)))
    : write(() => Wire.record(format, record))

/**
 * Writes the part of a state that comes after a mark: all of it without one.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeState = (state: RunState, mark: Parts.Mark = start): Result.Result<string, StoreError> =>
  write(() => Wire.part({ format, ...Parts.split(state, mark) }))

/**
 * Tells whether two texts are the same record, in whatever order its fields were written.
 *
 * @category guards
 * @since 0.1.0
 */
export const isSame = (a: string, b: string): boolean => {
  if (a === b) return true
  const { decodeRecord } = make()
  const [one, other] = [a, b].map((text) => Result.flatMap(decodeRecord(text), encodeRecord))
  return (
    one !== undefined &&
    other !== undefined &&
    Result.isSuccess(one) &&
    Result.isSuccess(other) &&
    one.success === other.success
  )
}

/**
 * Why a record cannot be stored, if it cannot: what a store that writes no text must refuse as well.
 *
 * @category guards
 * @since 0.1.0
 */
export const refusal = (record: RunRecord): StoreError | undefined => {
  if (Wire.isOwn(record)) return undefined
  const wire = take(() => Wire.record(format, record))
  return Result.isFailure(wire) ? wire.failure : undefined
}

/**
 * Writes a status: of one that runs, only its phase.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encodeStatus = (status: Status): Result.Result<string, StoreError> =>
  status.type === "running" ? Result.succeed(status.phase) : write(() => status)

/**
 * Reads a status.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decodeStatus = (text: string): Result.Result<Status, StoreError> =>
  Result.flatMap(
    text.startsWith("{")
      ? Result.map(json(text), Legacy.upgradeStatus)
      : Result.succeed({ type: "running", phase: text }),
    reading(plain().readStatus)
  )

// ---------------------------------------------------------------- records

const fromWire = (wire: RunSchema.Record): RunRecord => {
  const { createdAt, delta = {}, events = [], op, revision, runId, scope, scopes, workerId } = wire
  const shared = { runId, revision, at: createdAt, ...(scope ?? { rootRunId: runId, step: 0, depth: 0 }) }
  return {
    runId,
    revision,
    op,
    events: events.map((event, index) => {
      const scope = scopes?.[index] ?? shared
      return { ...event, ...scope, taskId: scope.taskId }
    }),
    delta,
    createdAt,
    workerId
  }
}

// ---------------------------------------------------------------- schemas

const build = (decode: (input: unknown) => Effect.Effect<Content, BlockValidationError>) => {
  const content: Schema.Codec<Content, unknown> = Schema.Unknown.pipe(
    Schema.decodeTo(Schema.declare(Codec.isContent, { expected: "a content" }), {
      // Most contents are bare texts, and those have nothing to look into.
      decode: SchemaGetter.transformEffect((input) =>
        isBareText(input) ? Effect.succeed(Contents.text(input.text)) : Effect.mapError(decode(input), Fault.toIssue)
      ),
      encode: SchemaGetter.transform(Codec.encode)
    })
  )
  const { record, part, status } = RunSchema.make(format, content)
  return {
    readRecord: Schema.decodeUnknownResult(record),
    readPart: Schema.decodeUnknownResult(part),
    readStatus: Schema.decodeUnknownResult(status)
  }
}

const isBareText = (input: unknown): input is { readonly type: "text"; readonly text: string } =>
  typeof input === "object" &&
  input !== null &&
  "type" in input &&
  input.type === "text" &&
  "text" in input &&
  typeof input.text === "string" &&
  Object.keys(input).length === 2

let built: ReturnType<typeof build> | undefined

/** The schemas that know the built-in contents, made when first needed. */
const plain = () =>
  (built ??= build((input) =>
    Effect.suspend(() => Effect.fromResult(Codec.decode(input, () => undefined, Storable.bounds)))
  ))

// ---------------------------------------------------------------- text

type Reader<A> = (input: unknown) => Result.Result<A, Schema.SchemaError>

const json = (text: string): Result.Result<Json, StoreError> =>
  Result.try({ try: (): Json => JSON.parse(text), catch: () => fault("corrupt", "read", "a text is not JSON") })

/** Reads JSON of this format or of an older one, which is rewritten. */
const parse = (text: string, upgrade: (value: JsonObject) => JsonObject): Result.Result<Json, StoreError> =>
  Result.flatMap(json(text), (value): Result.Result<Json, StoreError> => {
    if (!isJsonObject(value)) return Result.succeed(value)
    const found = value["format"]
    if (found === 1) return Result.succeed(upgrade(value))
    return typeof found === "number" && found > format
      ? Result.fail(fault("format", "read", `format ${found} is newer than ${format}, the newest this version reads`))
      : Result.succeed(value)
  })

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
    // A getter may throw anything; it is not repeated.
    catch: () => fault("invalid", "write", "a value cannot be read")
  }).pipe(Result.flatMap((taken) => (taken.grade === 0 ? Result.fail(misfit(taken.wire)) : Result.succeed(taken))))

const write = (wire: () => object): Result.Result<string, StoreError> =>
  Result.flatMap(take(wire), ({ grade, wire }) =>
    Result.try({
      try: () => (grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire)),
      catch: () => fault("limit_exceeded", "write", "a text is longer than a string can be")
    })
  )

/** Where a value stops being JSON. */
const misfit = (wire: object): StoreError => {
  const found = Snapshot.take(wire, Storable.bounds)
  return fault("invalid", "write", Result.isFailure(found) ? sentence(found.failure) : "a value is no JSON")
}

const sentence = ({ path, reason }: Fault.Fault): string => `at '${path}': ${reason}`

const fault = (reason: StoreError["reason"], operation: string, detail: string): StoreError =>
  new StoreError({ operation, reason, detail })

const corrupt = (detail: string): Result.Result<never, StoreError> => Result.fail(fault("corrupt", "read", detail))
