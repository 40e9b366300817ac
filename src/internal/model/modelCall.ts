/**
 * Makes one model call: through the middleware, parsed by the dialect, with events emitted as the reply streams in.
 *
 * Middleware can send a call elsewhere, so the model that replied is known only at the end: it is the one of the call
 * that delivered the last part. Each failed call emits an event.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import * as Dialects from "../../Dialect.ts"
import { ProviderError } from "../../KernelError.ts"
import type { ModelCall, ModelStream } from "../../Middleware.ts"
import type { ReplyGrammar, ToolDefinition } from "../../Provider.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Turn } from "../../RunState.ts"
import type { StreamPart } from "../../StreamPart.ts"
import * as Usage from "../../Usage.ts"
import { guarded, guardedStream, messageOf, observed } from "../../kit/foreignCode.ts"
import { extensionError, isSound } from "../errors/extensionError.ts"
import { deep, redact } from "../../kit/redact.ts"
import { shorten } from "../../kit/text.ts"
import * as Streams from "../../kit/streams.ts"
import { cacheMissed, emit, forecastCache, noteDropped } from "../run/publish.ts"
import { type ReplyError, type Run, type Served, carry, now, currentTurn } from "../run/run.ts"
import { type ModelReply, cutUsage, hasBegun } from "./modelReply.ts"
import { emitSent, requestOf, toolsOf } from "./modelRequest.ts"
import { grammarOf } from "./permissions.ts"
import * as Budget from "../run/sharedBudget.ts"

/**
 * Calls the model once. A reply is complete once its finish part has arrived, whether or not the connection has closed.
 * A complete reply is returned even while the run is being interrupted, and its usage counts even if it is refused. A
 * reply that breaks off after its first content is returned as refused.
 */
export const callModel = (run: Run): Effect.Effect<ModelReply, ReplyError> =>
  Effect.suspend(() => {
    const turn = currentTurn(run)
    const grammar = run.agent.grammar ? grammarOf(run) : undefined
    const chosen = turn.args?.model
    if (turn.tools.length === 0 && grammar === undefined && chosen === undefined) {
      return callWith(run, turn, run, [], undefined)
    }
    const served = chosen === undefined ? Effect.succeed(run) : run.served(chosen, run)
    return Effect.flatMap(
      Effect.all([served, toolsOf(run, turn), grammar ?? Effect.undefined]),
      ([served, tools, grammar]) => callWith(run, turn, served, tools, grammar)
    )
  })

const callWith = (
  run: Run,
  turn: Turn,
  served: Served,
  tools: ReadonlyArray<ToolDefinition>,
  grammar: ReplyGrammar | undefined
): Effect.Effect<ModelReply, ReplyError> => {
  const call = requestOf(run, turn, served, tools, grammar)
  const startedAt = now(run)
  const forecast = forecastCache(run, served.model.id, tools, startedAt)
  emitSent(run, call.request, startedAt, forecast)
  const reading: Reading = { raw: [], firstAt: undefined, origin: {}, chunks: [], call, calls: 0, reader: undefined }
  // Created with the first part, so a run that waits for its model holds no reader.
  const reader = () =>
    (reading.reader ??= Dialects.of(turn.dialect, markupsOf(run.agent, grammar)).reader(
      listener(run, turn, run.live, (part) => emit(run, partOf(turn, part))),
      run.limits,
      new Origin(reading)
    ))
  const whole = (refused?: Cause.Cause<ReplyError>): ModelReply => ({
    ...replyOf(reader(), reading),
    latencyMs: now(run) - startedAt,
    raw: reading.raw,
    refused
  })
  // Named, because V8 puts a function written right behind `=` among its old objects, and with it all that it uses.
  const underWay = () => replyUnderWay(run, turn, reading.reader)
  run.reply = underWay
  const reply = traced(run, call, reader, reading, read(run, turn, reader, reading))
  return Effect.matchCauseEffect(run.restore(reply), {
    onFailure: (cause) => {
      run.reply = undefined
      const arrived = replyOf(reader(), reading)
      emitPartial(run, arrived.usage)
      const isWhole = arrived.reply.finish !== undefined
      if (!isWhole && (!hasBegun(arrived.reply) || Cause.hasInterruptsOnly(cause))) {
        spend(run, arrived)
        return Effect.failCause(cause)
      }
      return Effect.succeed(whole(Cause.hasInterruptsOnly(cause) ? undefined : cause))
    },
    onSuccess: () => {
      run.reply = undefined
      const reply = whole()
      const missed = cacheMissed(forecast?.tokens ?? 0, reply.usage)
      const dropped = noteDropped(run, reply.call)
      emitPartial(run, reply.usage)
      if (missed === undefined && dropped === undefined) return Effect.succeed(reply)
      const warnings = { ...(missed && { cacheMissed: missed }), ...(dropped && { dropped }) }
      return Effect.succeed({ ...reply, warnings })
    }
  })
}

/**
 * Returns the markups to read. With a grammar of blocks they include JSON, the form of servers that accept only a JSON
 * Schema.
 */
const markupsOf = (agent: Run["agent"], grammar: ReplyGrammar | undefined): ReadonlyArray<Dialects.Markup> =>
  grammar?._tag !== "Blocks" || agent.markups.includes("json") ? agent.markups : [...agent.markups, "json"]

/** Facts collected while a reply streams in. */
interface Reading {
  readonly raw: Array<StreamPart>
  /** When the first part arrived. */
  firstAt: number | undefined
  /** The vendor's metadata of the reply. Only telemetry reads it. */
  origin: { readonly id?: string; readonly model?: string }
  /** Arrival times of chunks, up to a limit. Only telemetry reads them. */
  readonly chunks: Array<number>
  /** The call that delivered the last part. */
  call: ModelCall
  /** The number of calls that middleware made. */
  calls: number
  reader: Dialects.Reader | undefined
}

/** The model that replied, read when the reply is complete. Thinking parts name the model that produced them. */
class Origin {
  readonly #reading: Reading

  constructor(reading: Reading) {
    this.#reading = reading
  }

  get provider(): string {
    return this.#reading.call.provider.name
  }

  get model(): string {
    return this.#reading.call.request.model.id
  }
}

/** Counts the usage of a discarded reply for the run and for the budget of its tree. */
const spend = (run: Run, { costUsd, usage }: { readonly costUsd: number; readonly usage: Usage.Usage | null }) => {
  if (usage === null) return
  carry(run, { spent: { usage, costUsd } })
  if (Budget.isBounded(run.budget)) Budget.count(run.budget, Budget.spentOf({ usage, costUsd }))
}

const emitPartial = (run: Run, usage: Usage.Usage | null): void => {
  if (usage?.partial === true) emit(run, { type: "partial_usage", usage })
}

/** Returns the reply received so far. Its usage is null if the provider reported none. */
const replyOf = (reader: Dialects.Reader, { call }: Reading) => {
  const reply = reader.end()
  const usage = reply.finish === undefined ? cutUsage(reply) : (Usage.fromAi(reply.finish.usage) ?? null)
  const { price } = call.request.model
  return { reply, call, usage, costUsd: Usage.costOf(usage, price) + Usage.hostedCost(reply.hosted, price) }
}

/** Wraps a model call in a span if telemetry is on. */
const traced = (
  run: Run,
  call: ModelCall,
  reader: () => Dialects.Reader,
  reading: Reading,
  reply: Effect.Effect<void, ReplyError>
): Effect.Effect<void, ReplyError> => {
  if (run.telemetry === undefined) return reply
  const { generation, messages, model } = call.request
  const { rootRunId, runId, step } = call
  const facts = {
    provider: call.provider.name,
    model: model.id,
    generation,
    runId,
    rootRunId,
    step,
    input: () => messages
  }
  const startedAt = now(run)
  return run.telemetry.chat(reply, facts, () => {
    const { call, costUsd, reply, usage } = replyOf(reader(), reading)
    const { content, finish } = reply
    return {
      usage,
      ...reading.origin,
      ...(finish === undefined ? {} : { finishReason: finish.reason }),
      firstChunkMs: reading.firstAt === undefined ? undefined : reading.firstAt - startedAt,
      chunkMs: reading.chunks.slice(1).map((at, index) => at - (reading.chunks[index] ?? at)),
      // Without a price the cost is unknown, not zero.
      ...(call.request.model.price === undefined ? {} : { costUsd }),
      output: () => ({ role: "assistant", content })
    }
  })
}

/** Collects the facts of a chunk for the span. */
const note = (reading: Reading, parts: ReadonlyArray<StreamPart>, at: number): void => {
  if (reading.chunks.length < maxChunks) reading.chunks.push(at)
  for (const part of parts) {
    if (part.type !== "response-metadata") continue
    const { id, modelId } = part
    reading.origin = {
      ...reading.origin,
      ...(typeof id === "string" ? { id: shorten(id, 256) } : {}),
      ...(typeof modelId === "string" ? { model: shorten(modelId, 256) } : {})
    }
  }
}

const maxChunks = 10_000

/** Streams the reply through the reader of the dialect, which emits its events. */
const read = (
  run: Run,
  turn: Turn,
  reader: () => Dialects.Reader,
  reading: Reading
): Effect.Effect<void, ReplyError> => {
  const keep = run.hooks.onModelCompleted !== undefined
  const observe = run.hooks.onStreamPart
  let batch: ReadonlyArray<StreamPart> = []
  const push = () => reader().push(batch)
  let count = 0
  const takeFew = (parts: Arr.NonEmptyReadonlyArray<StreamPart>) => {
    reading.firstAt ??= now(run)
    if (run.telemetry !== undefined) note(reading, parts, now(run))
    if (keep) for (const part of parts) reading.raw.push(part)
    if (run.parts) emitParts(run, turn, parts)
    batch = parts
    const broken = run.batch(push)
    if (broken !== undefined) return Effect.fail(broken)
    if (observe !== undefined) {
      return observed("onStreamPart", () => Effect.forEach(parts, observe, { discard: true }))
    }
    count += parts.length
    // Yields in a long reply, and to a consumer whose buffer is full.
    if (count < manyParts && !run.isFull()) return undefined
    count = 0
    return Effect.yieldNow
  }
  const take = (parts: Arr.NonEmptyReadonlyArray<StreamPart>) =>
    parts.length <= manyParts
      ? takeFew(parts)
      : Effect.forEach(Arr.chunksOf(parts, manyParts), (few) => takeFew(few) ?? Effect.void, { discard: true })
  return guarded(
    "a model call",
    () => Streams.runForEachArray(throughMiddleware(run, reading), take),
    replyError(run, reading)
  )
}

/** Number of parts after which reading a reply yields. */
const manyParts = 1_024

/** Sends the call through the middleware, the first one outermost. */
const throughMiddleware = (run: Run, reading: Reading): ModelStream => {
  const { call } = reading
  let next: ((call: ModelCall) => ModelStream) | undefined
  for (const { callModel } of run.middleware.toReversed()) {
    if (callModel === undefined) continue
    const inner = next ?? ((call: ModelCall): ModelStream => sendCall(run, reading, call))
    next = (call) => callModel(call, inner)
  }
  if (next !== undefined) return next(call)
  return call.provider.stream(call.request)
}

/** Converts failures and defects of foreign code, and of unreadable parts, to a `ReplyError`. */
const replyError =
  ({ middleware }: Run, { call }: Reading) =>
  (error: unknown, isDefect: boolean): ReplyError => {
    if (isReplyError(error)) return error
    const isWrapped = middleware.some(({ callModel }) => callModel !== undefined)
    return isWrapped ? extensionError("callModel", error) : unknownError(call, error, isDefect)
  }

/** Wraps an unexpected failure. The text of a defect may hold secrets, so it is left out. */
const unknownError = ({ provider }: ModelCall, error: unknown, isDefect: boolean): ProviderError => {
  const detail = isDefect ? "it failed unexpectedly" : messageOf(error)
  return new ProviderError({ provider: provider.name, reason: "unknown", detail })
}

const isReplyError = (error: unknown): error is ReplyError => isSound(error) && replyErrors.has(error._tag)

const replyErrors: ReadonlySet<string> = new Set<ReplyError["_tag"]>([
  "ProviderError",
  "LimitExceeded",
  "ExtensionFailed",
  "MiddlewareTermination"
])

/** Makes a call for middleware. Notes the call that delivers parts, and emits an event for a call that fails. */
const sendCall = (run: Run, reading: Reading, call: ModelCall): ModelStream =>
  Stream.suspend(() => {
    const number = ++reading.calls
    const reply = guardedStream(
      "a provider",
      () => call.provider.stream(call.request),
      (error, isDefect) =>
        isSound(error) && error._tag === "ProviderError" ? error : unknownError(call, error, isDefect)
    )
    return reply.pipe(
      Stream.mapArray((parts) => {
        reading.call = call
        return parts
      }),
      Stream.tapError((error) =>
        Effect.sync(() => {
          const model = `${call.provider.name}/${call.request.model.id}`
          const { message, reason, vendor } = error
          const words = vendor === undefined ? undefined : { vendor: deep(vendor, redact) }
          emit(run, { type: "model_call_failed", model, call: number, reason, error: redact(message), ...words })
        })
      )
    )
  })

/** Returns the events of the reply so far. */
const replyUnderWay = (run: Run, turn: Turn, reader: Dialects.Reader | undefined): ReadonlyArray<RunEvent> => {
  const events: Array<RunEvent> = []
  const { depth, rootRunId, runId, taskId } = run.state
  const scope = { runId, rootRunId, step: turn.turn - 1, depth, taskId, at: now(run) }
  reader?.repeat(
    listener(run, turn, { publish: (event) => events.push(event) }, (part) =>
      events.push({ ...scope, ...partOf(turn, part) })
    )
  )
  return events
}

const listener = (
  run: Run,
  turn: Turn,
  out: { readonly publish: ((event: RunEvent, agent: string) => unknown) | undefined },
  onPart: (part: StreamPart) => unknown
): Dialects.Listener => {
  const { depth, rootRunId, runId, taskId } = run.state
  const step = turn.turn - 1
  const { agent } = run
  // No spread of shared fields, because this runs for every token.
  const text: Dialects.Listener["text"] = (type, text) =>
    out.publish?.({ type, runId, rootRunId, step, depth, taskId, at: now(run), text }, agent.name)
  const block: Dialects.Listener["block"] = (part) => {
    if (part.type === "block_unclosed") return
    out.publish?.({ ...part, runId, rootRunId, step, depth, taskId, at: now(run) }, agent.name)
  }
  return { text, block, part: run.parts ? () => {} : onPart }
}

const emitParts = (run: Run, turn: Turn, parts: ReadonlyArray<StreamPart>) => {
  for (const part of parts) emit(run, partOf(turn, part))
}

const partOf = ({ attempt, turn, turnId }: Turn, part: StreamPart) =>
  ({ type: "stream_part", turnId, turn, attempt, part }) as const
