/**
 * A reply while it streams in: its reader, the events that it emits, and facts about it.
 */

import * as Dialects from "../../Dialect.ts"
import type { LimitExceeded } from "../../KernelError.ts"
import type { ModelCall } from "../../Middleware.ts"
import type { RunEvent } from "../../RunEvent.ts"
import type { Turn } from "../../RunState.ts"
import type { StreamPart } from "../../StreamPart.ts"
import * as Usage from "../../Usage.ts"
import { shorten } from "../../kit/text.ts"
import type { Publish } from "../../store-kit/internal/liveTree.ts"
import { type Run, now } from "../run/run.ts"
import { type ModelReply, cutUsage } from "./modelReply.ts"

/**
 * A reply that is being read. `take` adds parts.
 *
 * Middleware can send a call elsewhere, so the model that replied is known only at the end: it is the one of the call
 * that delivered the last part.
 */
export class ReplyReading {
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
    const usage = reply.finish === undefined ? cutUsage(reply) : (Usage.fromAi(reply.finish.usage) ?? null)
    const { price } = this.call.request.model
    return {
      reply,
      call: this.call,
      usage,
      costUsd: Usage.costOf(usage, price) + Usage.hostedCost(reply.hosted, price),
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
