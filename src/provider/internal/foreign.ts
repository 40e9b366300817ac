/**
 * Shared parts of the bridges to models of other packages.
 *
 * Their parts are collected in the same `Reply` as a vendor's own stream: ids are unique, parameters are parsed once
 * and strictly, and everything is bounded. Metadata that such a model expects back with its thinking or its calls is
 * kept whole, under the name of the bridge.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { isDeeper, type Json, type JsonObject, sizeOf } from "../../kit/json.ts"
import type { ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { StreamPart } from "../../StreamPart.ts"
import { open, patiently } from "./attempts.ts"
import { allowed, type Fault } from "./providerFault.ts"
import { type Piece, wireId } from "./messageParts.ts"
import { fields, isFields, text } from "./readFields.ts"
import { Reply } from "./replyParts.ts"

/**
 * Calls another package's model and emits its parts, one array for each read.
 *
 * `ask` begins a call; `reader` reads its parts.
 */
export const stream = <Part>(
  provider: string,
  ask: Effect.Effect<Stream.Stream<Part, Fault>, Fault, Scope.Scope>,
  reader: (reply: Reply) => (part: Part) => Fault | undefined
): Stream.Stream<StreamPart, ProviderError> =>
  Stream.unwrap(
    patiently(
      provider,
      [],
      Effect.flatMap(Effect.andThen(allowed, ask), (parts) => open(read(parts, reader)))
    )
  )

const read = <Part>(
  parts: Stream.Stream<Part, Fault>,
  reader: (reply: Reply) => (part: Part) => Fault | undefined
): Stream.Stream<StreamPart, Fault> =>
  Stream.unwrap(
    Effect.gen(function* () {
      const limits = yield* Limits
      const reply = new Reply(limits)
      const take = reader(reply)
      const pull = timely(yield* Stream.toPull(parts), limits)
      let broken: Fault | undefined
      const next: PartsPull = Effect.suspend(() => {
        if (broken !== undefined) return Effect.fail(broken)
        return reply.isFinished
          ? Cause.done()
          : Pull.matchEffect(pull, { onSuccess: deliver, onFailure: Effect.failCause, onDone: () => Effect.fail(cut) })
      })
      const deliver = (parts: ReadonlyArray<Part>): PartsPull => {
        for (const part of parts) {
          broken ??= reply.isFinished ? undefined : take(part)
          broken ??= reply.fault
        }
        const out = reply.out
        if (!Arr.isArrayNonEmpty(out) || broken?.reason === "limit_exceeded") return next
        reply.out = []
        return Effect.succeed(out)
      }
      return Stream.fromPull(Effect.succeed(next))
    })
  )

type PartsPull = Pull.Pull<Arr.NonEmptyReadonlyArray<StreamPart>, Fault>

const cut: Fault = { reason: "incomplete" }

const timely = <A>(pull: Pull.Pull<A, Fault>, { idleTimeout }: Limits): Pull.Pull<A, Fault> =>
  Effect.timeoutOrElse(pull, {
    duration: idleTimeout,
    orElse: () => Effect.fail<Fault>({ reason: "timeout", note: `idleTimeout is ${Duration.format(idleTimeout)}` })
  })

/** Joins neighbouring messages with results, since some vendors want all results of a reply in one. */
export const together = <A extends { readonly role: string; readonly content: unknown }>(
  messages: ReadonlyArray<A>
): ReadonlyArray<A> => {
  const joined: Array<A> = []
  for (const message of messages) {
    const last = joined.at(-1)
    const isMore = message.role === "tool" && last?.role === "tool"
    if (isMore && Array.isArray(last.content) && Array.isArray(message.content)) {
      joined[joined.length - 1] = { ...last, content: [...last.content, ...message.content] }
    } else joined.push(message)
  }
  return joined
}

/** Collects the thinking and the calls of another package's model, whose ids may repeat. */
export const makeCollector = (provider: string, reply: Reply) => {
  const thoughts = new Map<string, JsonObject>()
  const calls = new Map<string, { readonly key: string; readonly id: string }>()
  const note = (id: string, metadata: unknown) => {
    const told = metadataOf(metadata)
    if (told === undefined) return
    thoughts.set(id, merge(thoughts.get(id), told))
    reply.keep(id.length + sizeOf(told))
  }
  const begin = (id: string, name: string) => {
    const key = String(reply.callCount)
    const call = { key, id: reply.call(key, id, name) }
    calls.set(id, call)
    return call
  }
  return {
    /** Adds metadata to thinking, at its start or later. */
    note,
    endThinking: (id: string, metadata: unknown) => {
      note(id, metadata)
      const told = thoughts.get(id)
      thoughts.delete(id)
      if (told !== undefined) reply.endThinking({ [provider]: { options: told } })
    },
    begin,
    params: (id: string, delta: string) => {
      const call = calls.get(id)
      if (call !== undefined) reply.params(call.key, delta)
    },
    /**
     * Ends a call. `input` is used if no fragment of it arrived. Metadata to send back is stored as a thought without
     * text.
     */
    end: (id: string, name: string, input: unknown, metadata: unknown) => {
      const open = calls.get(id)
      const call = open ?? begin(id, name)
      calls.delete(id)
      if (open === undefined) {
        if (typeof input === "string") reply.params(call.key, input)
        else reply.input(call.key, input)
      }
      reply.endCall(call.key)
      const told = metadataOf(metadata)
      if (told !== undefined) reply.endThinking({ [provider]: { callId: call.id, options: told } })
    }
  }
}

const merge = (before: JsonObject | undefined, told: JsonObject): JsonObject => {
  const merged: { [key: string]: Json } = { ...before }
  for (const [key, value] of Object.entries(told)) {
    const known = merged[key]
    merged[key] = isJson(known) && isJson(value) ? { ...known, ...value } : value
  }
  return merged
}

// Drops metadata that is not JSON or cannot be read.
const metadataOf = (metadata: unknown): JsonObject | undefined => {
  if (!isFields(metadata)) return undefined
  const plain = Result.try((): unknown => (isDeeper(metadata, 32) ? undefined : JSON.parse(JSON.stringify(metadata))))
  return Result.isSuccess(plain) && isJson(plain.success) && Object.keys(plain.success).length > 0
    ? plain.success
    : undefined
}

// The result of JSON.parse is JSON.
const isJson = (value: unknown): value is JsonObject => isFields(value)

/** Reads the metadata of one message: of a thought, or of a call by its id. */
export const optionsOf = (pieces: ReadonlyArray<Piece>) => {
  const calls = new Map<string, JsonObject>()
  for (const piece of pieces) {
    if (piece.kind !== "thought" || !isFields(piece.signature)) continue
    const callId = text(piece.signature, "callId")
    const options = fields(piece.signature, "options")
    if (callId !== undefined && isJson(options)) calls.set(wireId(callId), options)
  }
  return {
    call: (id: string): JsonObject | undefined => calls.get(id),
    /** Undefined for a thought without text that only signs a call. */
    thought: (piece: Extract<Piece, { kind: "thought" }>): JsonObject | undefined => {
      const signature = isFields(piece.signature) ? piece.signature : {}
      const options = fields(signature, "options")
      if (text(signature, "callId") !== undefined) return undefined
      return isJson(options) ? options : {}
    }
  }
}
