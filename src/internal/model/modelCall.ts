/**
 * Makes one model call: through the middleware, parsed by the dialect, with events emitted as the reply streams in. Each
 * failed call emits an event.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Stream from "effect/Stream"
import * as Dialects from "../../Dialect.ts"
import { type KernelError, type LimitExceeded, type ProgramError, ProviderError } from "../../KernelError.ts"
import type { ModelCall, ModelStream } from "../../Middleware.ts"
import type { ReplyGrammar } from "../../Provider.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Turn } from "../../RunState.ts"
import type { StreamPart } from "../../StreamPart.ts"
import * as Usage from "../../Usage.ts"
import { guarded, guardedStream, messageOf, observed } from "../../kit/foreignCode.ts"
import { extensionError, isSound } from "../errors/extensionError.ts"
import { deep, redact } from "../../kit/redact.ts"
import { isHighSurrogate, shorten } from "../../kit/text.ts"
import type { Publish } from "../../store-kit/internal/liveTree.ts"
import { emit } from "../run/publish.ts"
import { type ReplyError, type Run, carry, currentTurn, now } from "../run/run.ts"
import { type ModelReply, cutUsage, hasBegun } from "./modelReply.ts"
import { emitSent, requestOf, toolsOf } from "./modelRequest.ts"
import { grammarOf } from "./permissions.ts"
import { cacheMissed, forecastCache, noteDropped } from "./requestWarnings.ts"
import * as Budget from "../run/treeBudget.ts"

/**
 * Calls the model once. A reply is complete once its finish part has arrived, whether or not the connection has closed.
 * A complete reply is returned even while the run is being interrupted, and its usage counts even if it is refused. A
 * reply that breaks off after its first content is returned as refused.
 */
export const callModel = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<ModelReply, ReplyError> {
  const turn = currentTurn(run)
  const chosen = turn.args?.model
  const served = chosen === undefined ? run : yield* run.served(chosen, run)
  const tools = turn.tools.length === 0 ? [] : yield* toolsOf(run, turn)
  const { grammar: isWanted, typed } = run.agent
  const grammar = !isWanted && !typed ? undefined : yield* grammarOf(run, served.model, tools)
  let leftOut: ModelReply["leftOut"] = []
  const noteLeftOut = (media: ModelReply["leftOut"]) => {
    leftOut = media
  }
  const call = requestOf(run, turn, served, tools, grammar, noteLeftOut)
  const reading = new ReplyReading(run, turn, call, markupsOf(run.agent, grammar))
  const forecast = forecastCache(run, served.model.id, tools, reading.startedAt)
  emitSent(run, call.request, reading.startedAt, forecast)
  run.reply = reading
  const exit = yield* Effect.exit(run.restore(tracedModel(run, reading, read(run, reading))))
  run.reply = undefined
  const reply: ModelReply = leftOut.length === 0 ? reading.reply() : { ...reading.reply(), leftOut }
  if (reply.usage?.partial === true) emit(run, { type: "partial_usage", usage: reply.usage })
  if (Exit.isSuccess(exit)) return withWarnings(run, reply, forecast?.tokens ?? 0)
  const { cause } = exit
  const isInterrupted = Cause.hasInterruptsOnly(cause)
  if (reading.calls === 0) emitFailed(run, reading.call, 1, cause.reasons.find(Cause.isFailReason)?.error)
  if (reply.reply.finish === undefined && (!hasBegun(reply.reply) || isInterrupted)) {
    countDiscarded(run, reply)
    return yield* Effect.failCause(cause)
  }
  return isInterrupted ? reply : { ...reply, refused: cause }
})

/**
 * Returns the markups to read. With a grammar of blocks they include JSON, the form of servers that accept only a JSON
 * Schema.
 */
const markupsOf = (agent: Run["agent"], grammar: ReplyGrammar | undefined): ReadonlyArray<Dialects.Markup> =>
  grammar?._tag !== "Blocks" || agent.markups.includes("json") ? agent.markups : [...agent.markups, "json"]

/** Adds what a live consumer should know of the request: a missed cache, and options that the model dropped. */
const withWarnings = (run: Run, reply: ModelReply, forecast: number): ModelReply => {
  const missed = cacheMissed(forecast, reply.usage)
  const dropped = noteDropped(run, reply.call)
  if (missed === undefined && dropped === undefined) return reply
  return { ...reply, warnings: { ...(missed && { cacheMissed: missed }), ...(dropped && { dropped }) } }
}

/** Counts the usage of a discarded reply for the run and for the budget of its tree. Synchronous. */
const countDiscarded = (run: Run, { costUsd, usage }: ModelReply): void => {
  if (usage === null) return
  const spent = Usage.expense(usage, costUsd)
  carry(run, { spent })
  if (Budget.isBounded(run.budget)) Budget.count(run.budget, Budget.spentOf(spent))
}

/** Wraps a model call in a span if telemetry is on. */
const tracedModel = (
  run: Run,
  reading: ReplyReading,
  reply: Effect.Effect<void, ReplyError>
): Effect.Effect<void, ReplyError> => {
  if (run.telemetry === undefined) return reply
  const { provider, request, rootRunId, runId, step } = reading.call
  const { generation, messages, model } = request
  const input = () => messages
  const facts = { provider: provider.name, model: model.id, generation, runId, rootRunId, step, input }
  return run.telemetry.chat(reply, facts, () => {
    const { costUsd, reply, usage } = reading.reply()
    const { content, finish } = reply
    const { chunks, origin, startedAt } = reading
    const [first] = chunks
    return {
      usage,
      ...origin,
      ...(finish === undefined ? {} : { finishReason: finish.reason }),
      firstChunkMs: first === undefined ? undefined : first - startedAt,
      chunkMs: chunks.slice(1).map((at, index) => at - (chunks[index] ?? at)),
      costUsd,
      output: () => ({ role: "assistant", content })
    }
  })
}

/** Streams the reply into its reading, which emits its events. */
const read = (run: Run, reading: ReplyReading): Effect.Effect<void, ReplyError> => {
  const observe = run.hooks.onStreamPart
  let count = 0
  const takeFew = (parts: Arr.NonEmptyReadonlyArray<StreamPart>) => {
    const broken = reading.take(parts)
    if (broken !== undefined) return Effect.fail(broken)
    if (observe !== undefined) {
      return observed("onStreamPart", () => Effect.forEach(parts, observe, { discard: true }))
    }
    count += parts.length
    // Yields in a long reply, and to a consumer whose buffer is full.
    if (count < manyParts && !run.isFull()) return Effect.void
    count = 0
    return Effect.yieldNow
  }
  const take = (parts: Arr.NonEmptyReadonlyArray<StreamPart>) =>
    parts.length <= manyParts
      ? takeFew(parts)
      : Effect.forEach(Arr.chunksOf(parts, manyParts), (few) => takeFew(few), { discard: true })
  return guarded(
    "a model call",
    () => Stream.runForEachArray(throughMiddleware(run, reading), take),
    (error, isDefect) => replyError(run, reading, error, isDefect)
  )
}

/** Number of parts after which reading a reply yields. */
const manyParts = 1_024

/** Sends the call through the middleware, the first one outermost. */
const throughMiddleware = (run: Run, reading: ReplyReading): ModelStream => {
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
const replyError = ({ middleware }: Run, { call }: ReplyReading, error: unknown, isDefect: boolean): ReplyError => {
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

/** Errors that say why a provider, or the program that replies in its place, has no reply. */
const failedCalls: ReadonlySet<string> = new Set<(ProviderError | ProgramError)["_tag"]>([
  "ProviderError",
  "ProgramFailed",
  "ProgramChanged",
  "ProgramImpure"
])

const replyErrors: ReadonlySet<string> = new Set<string>([
  ...failedCalls,
  "BudgetExhaustedError",
  "LimitExceeded",
  "ExtensionFailed",
  "MiddlewareTermination"
])

/** Makes a call for middleware. Notes the call that delivers parts, and emits an event for a call that fails. */
const sendCall = (run: Run, reading: ReplyReading, call: ModelCall): ModelStream =>
  Stream.suspend(() => {
    const number = ++reading.calls
    const reply = guardedStream(
      "a provider",
      () => call.provider.stream(call.request),
      (error, isDefect) => (isSound(error) && isFailedCall(error) ? error : unknownError(call, error, isDefect))
    )
    return reply.pipe(
      Stream.mapArray((parts) => {
        reading.call = call
        return parts
      }),
      Stream.tapError((error) =>
        Effect.sync(() => {
          emitFailed(run, call, number, error)
        })
      )
    )
  })

const isFailedCall = (error: KernelError): error is ProviderError | ProgramError => failedCalls.has(error._tag)

/** Emits the failure of a call, with the options that it dropped. Synchronous. */
const emitFailed = (run: Run, call: ModelCall, number: number, error: unknown): void => {
  if (!(error instanceof ProviderError)) return
  const dropped = noteDropped(run, call)
  emit(run, {
    type: "model_call_failed",
    model: `${call.provider.name}/${call.request.model.id}`,
    call: number,
    reason: error.reason,
    error: redact(error.message),
    ...(error.vendor && { vendor: deep(error.vendor, redact) }),
    ...(dropped && { dropped })
  })
}

// ---------------------------------------------------------------- the reply

/**
 * A reply that is being read. `take` adds parts.
 *
 * Middleware can send a call elsewhere, so the model that replied is known only at the end: it is the one of the call
 * that delivered the last part.
 */
class ReplyReading {
  readonly startedAt: number
  /** The call that delivered the last part. Set by the calls that middleware makes. */
  call: ModelCall
  /** The number of calls that middleware made. */
  calls = 0
  /** Arrival times of chunks, up to a limit. Collected for telemetry alone. */
  readonly chunks: Array<number> = []
  /** The vendor's metadata of the reply. Collected for telemetry alone. */
  origin: { readonly id?: string; readonly model?: string } = {}
  readonly #run: Run
  readonly #dialect: Dialects.Dialect
  readonly #turn: Turn
  readonly #listener: ReplyListener
  readonly #raw: Array<StreamPart> = []
  #reader: Dialects.Reader | undefined

  constructor(run: Run, turn: Turn, call: ModelCall, markups: ReadonlyArray<Dialects.Markup>) {
    this.startedAt = now(run)
    this.call = call
    this.#run = run
    this.#turn = turn
    this.#dialect = Dialects.of(turn.dialect, markups)
    this.#listener = new ReplyListener(run, turn, run.live)
  }

  /** The provider that replied. Thinking parts name it. */
  get provider(): string {
    return this.call.provider.name
  }

  /** The model that replied. */
  get model(): string {
    return this.call.request.model.id
  }

  /** Reads parts that arrived together and emits their events. Returns the limit that was exceeded, if any. */
  take(parts: ReadonlyArray<StreamPart>): LimitExceeded | undefined {
    const { batch, hooks, parts: emitsParts, telemetry } = this.#run
    if (telemetry !== undefined) this.#note(parts)
    if (hooks.onModelCompleted !== undefined) for (const part of parts) this.#raw.push(part)
    if (emitsParts) for (const part of parts) this.#listener.emitPart(part)
    const reader = this.#open()
    return batch(() => reader.push(parts))
  }

  /** Returns the reply received so far. Its usage is null if the provider reported none. */
  reply(): ModelReply {
    const reply = this.#open().end()
    const usage =
      reply.finish === undefined ? cutUsage(reply, this.call.request) : (Usage.fromAi(reply.finish.usage) ?? null)
    const { price } = this.call.request.model
    return {
      reply,
      call: this.call,
      usage,
      costUsd: Usage.addCost(Usage.costOf(usage, price), Usage.hostedCost(reply.hosted, price)),
      latencyMs: now(this.#run) - this.startedAt,
      raw: this.#raw,
      refused: undefined
    }
  }

  /** Returns the events of the reply so far, for a follower that joins now. */
  events(): ReadonlyArray<RunEvent> {
    const events: Array<RunEvent> = []
    const publish: Publish = (event) => events.push(event)
    this.#reader?.repeat(new ReplyListener(this.#run, this.#turn, { publish }))
    return events
  }

  /** Returns the reader. Created with the first part, so a run that waits for its model holds none. */
  #open(): Dialects.Reader {
    return (this.#reader ??= this.#dialect.reader(this.#listener, this.#run.limits, this))
  }

  #note(parts: ReadonlyArray<StreamPart>): void {
    if (this.chunks.length < maxChunks) this.chunks.push(now(this.#run))
    for (const part of parts) {
      if (part.type !== "response-metadata") continue
      const { id, modelId } = part
      this.origin = {
        ...this.origin,
        ...(typeof id === "string" ? { id: shorten(id, 256) } : {}),
        ...(typeof modelId === "string" ? { model: shorten(modelId, 256) } : {})
      }
    }
  }
}

const maxChunks = 10_000

/** UTF-16 units of the longest text of one event. */
const longestPiece = 4_096

/** Publishes the events of a reply. */
class ReplyListener implements Dialects.Listener {
  readonly #run: Run
  readonly #turn: Turn
  readonly #out: { readonly publish: Publish | undefined }

  constructor(run: Run, turn: Turn, out: { readonly publish: Publish | undefined }) {
    this.#run = run
    this.#turn = turn
    this.#out = out
  }

  text(type: "text_chunk" | "block_content", text: string): void {
    if (text.length <= longestPiece) return this.#piece(type, text)
    // A provider may deliver a whole reply as one part.
    for (let from = 0; from < text.length;) {
      const end = from + longestPiece
      const next = isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end
      this.#piece(type, text.slice(from, next))
      from = next
    }
  }

  #piece(type: "text_chunk" | "block_content", text: string): void {
    const { publish } = this.#out
    if (publish === undefined) return
    // No spread of shared fields, because this runs for every token.
    const { depth, rootRunId, runId, taskId } = this.#run.state
    const step = this.#turn.turn - 1
    publish({ type, runId, rootRunId, step, depth, taskId, at: now(this.#run), text }, this.#run.agent.name)
  }

  block(part: Parameters<Dialects.Listener["block"]>[0]): void {
    const { publish } = this.#out
    if (publish === undefined || part.type === "block_unclosed") return
    publish({ ...part, ...this.#scope() }, this.#run.agent.name)
  }

  part(part: StreamPart): void {
    // Otherwise every part is emitted as it arrives.
    if (!this.#run.parts) this.emitPart(part)
  }

  emitPart(part: StreamPart): void {
    const { attempt, turn, turnId } = this.#turn
    this.#out.publish?.({ ...this.#scope(), type: "stream_part", turnId, turn, attempt, part }, this.#run.agent.name)
  }

  #scope() {
    const { depth, rootRunId, runId, taskId } = this.#run.state
    return { runId, rootRunId, step: this.#turn.turn - 1, depth, taskId, at: now(this.#run) }
  }
}
