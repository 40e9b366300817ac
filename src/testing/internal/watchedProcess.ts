/** Observes one process of a crash matrix: its appends, model calls and skills. Cuts it off as planned. */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { ConcurrentAppendError, RunExists, StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Middleware, ModelCall, ModelStream } from "../../Middleware.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { RunRecord } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { CallScope, Effects } from "../../Skill.ts"
import { aroundCalls, type SkillRegistry } from "../../SkillRegistry.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { Machine } from "./replay/virtualProcess.ts"
import { perObject } from "../../kit/perObject.ts"

/** The place where a run is cut off: the number of the process and of its append, both counted from 1, and the way. */
export interface Cut {
  readonly process: number
  readonly commit: number
  readonly way: "before" | "unacknowledged" | "after" | "stalled"
}

/** The place where a run is interrupted: the number of the process and of its step, both counted from 1. */
export interface Interruption {
  readonly process: number
  readonly step: number
  readonly way: "interrupted"
}

/** The identity of a call. Models repeat call ids from run to run and from turn to turn. */
export interface Place {
  readonly runId: string
  readonly step: number
  readonly callId: string
}

/** Returns a place as a key. */
export const keyOf = ({ callId, runId, step }: Place): string => JSON.stringify([runId, step, callId])

/** One observed action, in the order of the virtual world. */
export type Fact =
  | { readonly type: "stored"; readonly machine: string; readonly record: RunRecord }
  | { readonly type: "refused"; readonly machine: string; readonly record: RunRecord; readonly tag: string }
  /** The same record again, as after a lost acknowledgement. */
  | {
      readonly type: "repeated"
      readonly machine: string
      readonly record: RunRecord
      readonly tag: string | undefined
    }
  | { readonly type: "asked"; readonly machine: string; readonly runId: string }
  | (Place & {
      readonly type: "started"
      readonly machine: string
      readonly effects: Effects
      readonly input: string
    })
  /** The call ended, or was interrupted. */
  | (Place & { readonly type: "ended" | "cut"; readonly machine: string })
  /** A decision to run this call again. */
  | (Place & { readonly type: "allowed" })

/** The replies of a model to one request: its failures, then its reply. */
export interface Said {
  readonly failures: Array<Stream.Error<ModelStream>>
  parts: ReadonlyArray<StreamPart> | undefined
  /** The number of failures seen in this case. */
  failed: number
}

/** The state shared by all processes of one case: the facts, and the replies of the model. */
export interface Witness {
  readonly facts: { readonly push: (fact: Fact) => unknown }
  readonly said: {
    readonly get: (key: string) => Said | undefined
    readonly set: (key: string, said: Said) => void
  }
}

/** An observed process. */
interface Watched {
  /** Returns the number of appends it has tried. */
  readonly commits: () => number
  readonly store: RunStore.RunStoreShape
  readonly skills: SkillRegistry["Service"]
  readonly protocols: ProtocolRegistry["Service"]
  readonly middleware: Middleware
}

/** The parts of a process. */
interface Parts {
  readonly store: RunStore.RunStoreShape
  readonly skills: SkillRegistry["Service"]
  readonly protocols: ProtocolRegistry["Service"]
}

/** Observes a process: one of a virtual world, or a real one. */
export const watch = (
  machine: Pick<Machine, "name" | "kill" | "stop" | "ask">,
  witness: Witness,
  parts: Parts,
  cut: Cut | undefined
): Watched => {
  const { facts } = witness
  const name = machine.name
  let commits = 0
  let doomed = false

  const die: Effect.Effect<never> = Effect.suspend(() => {
    machine.kill()
    return Effect.never
  })

  /** A doomed process dies when its current code has ended. */
  const ended: Effect.Effect<void> = Effect.suspend(() => (doomed ? die : Effect.void))

  const ask: Ask = (effect) => machine.ask(effect)

  const { repeated, stored } = recording(name, facts, ask)

  const within = watchedCode(name, facts, ended)

  const put = <E extends ConcurrentAppendError | RunExists | StoreError>(
    records: ReadonlyArray<RunRecord>,
    write: Effect.Effect<void, E>
  ): Effect.Effect<void, E> =>
    Effect.suspend(() => {
      commits++
      const way = cut !== undefined && cut.commit === commits ? cut.way : undefined
      if (doomed || way === "before") return die
      if (way === "stalled") {
        machine.stop()
        return Effect.andThen(Effect.yieldNow, stored(records, write))
      }
      if (way === "unacknowledged") {
        return Effect.andThen(Effect.andThen(stored(records, write), repeated(records, write)), die)
      }
      doomed = way === "after"
      return stored(records, write)
    })

  return {
    commits: () => commits,
    store: watchedStore(parts.store, ask, put),
    skills: aroundCalls(
      parts.skills,
      (skill) => (input, scope) => within(scope, skill.effects, input, skill.call(input, scope))
    ),
    protocols: watchedProtocols(parts.protocols, within),
    middleware: { callModel: (call, next) => askOnce(witness, name, ended, call, next) }
  }
}

/** Runs code of the subject. Records its start, and kills a doomed process when it ends. */
const watchedCode =
  (name: string, facts: Witness["facts"], ended: Effect.Effect<void>) =>
  <A, E, R>(scope: CallScope, effects: Effects, input: unknown, body: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const place = { runId: scope.runId, step: scope.step, callId: scope.callId }
      facts.push({ type: "started", machine: name, ...place, effects, input: JSON.stringify(input) })
      return Effect.onExit(body, (exit) => {
        const isCut = Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause)
        facts.push({ type: isCut ? "cut" : "ended", machine: name, ...place })
        return isCut ? Effect.void : ended
      })
    })

type Ask = <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

const watchedStore = (
  store: RunStore.RunStoreShape,
  ask: Ask,
  put: <E extends ConcurrentAppendError | RunExists | StoreError>(
    records: ReadonlyArray<RunRecord>,
    write: Effect.Effect<void, E>
  ) => Effect.Effect<void, E>
): RunStore.RunStoreShape => ({
  append: (records, state) => put(records, store.append(records, state)),
  load: (runId) => ask(store.load(runId)),
  head: (runId) => ask(store.head(runId)),
  read: store.read,
  tail: store.tail,
  list: (filter) => ask(store.list(filter)),
  acquire: (runId, claim) => ask(store.acquire(runId, claim)),
  release: (runId, workerId) => ask(store.release(runId, workerId)),
  cancelled: store.cancelled,
  remove: (runIds) => ask(store.remove(runIds))
})

/**
 * Appends records and notes the outcome outside of the process, since a dead process may still have stored its records.
 */
const recording = (name: string, facts: Witness["facts"], ask: Ask) => {
  const note = (records: ReadonlyArray<RunRecord>, fact: (record: RunRecord) => Fact) =>
    Effect.sync(() => records.forEach((record) => facts.push(fact(record))))

  const stored = <E extends ConcurrentAppendError | RunExists | StoreError>(
    records: ReadonlyArray<RunRecord>,
    write: Effect.Effect<void, E>
  ): Effect.Effect<void, E> =>
    ask(
      write.pipe(
        Effect.tap(() => note(records, (record) => ({ type: "stored", machine: name, record }))),
        Effect.tapError(({ _tag: tag }) => note(records, (record) => ({ type: "refused", machine: name, record, tag })))
      )
    )

  const repeated = <E extends { readonly _tag: string }>(
    records: ReadonlyArray<RunRecord>,
    write: Effect.Effect<void, E>
  ) => {
    const again = (tag: string | undefined) =>
      note(records, (record) => ({ type: "repeated", machine: name, record, tag }))
    return Effect.matchEffect(ask(write), { onSuccess: () => again(undefined), onFailure: ({ _tag }) => again(_tag) })
  }

  return { stored, repeated }
}

/** Asks a model once. The same request of another process gets the same reply. */
const askOnce = (
  witness: Witness,
  machine: string,
  ended: Effect.Effect<void>,
  call: ModelCall,
  next: (call: ModelCall) => ModelStream
): ModelStream =>
  Stream.suspend(() => {
    witness.facts.push({ type: "asked", machine, runId: call.runId })
    // A program replies by the state of its run, whose times differ from those of the undisturbed run.
    if (call.request.model.provider === "program") return Stream.concat(next(call), Stream.fromEffectDrain(ended))
    const said = saidTo(witness, call)
    const end = Stream.fromEffectDrain(ended)
    const failure = said.failures[said.failed]
    if (failure !== undefined) {
      return Stream.concat(
        end,
        Stream.suspend(() => {
          said.failed++
          return Stream.fail(failure)
        })
      )
    }
    if (said.parts !== undefined) return Stream.concat(Stream.fromIterable(said.parts), end)
    const parts: Array<StreamPart> = []
    return next(call).pipe(
      Stream.tap((part) => Effect.sync(() => parts.push(part))),
      Stream.tapError((error) => Effect.sync(() => (said.failed = said.failures.push(error)))),
      Stream.concat(Stream.fromEffectDrain(Effect.sync(() => (said.parts = parts)))),
      Stream.concat(end)
    )
  })

const textOf = (part: string | number | Message): string =>
  typeof part === "object" ? textOfMessage(part) : JSON.stringify(part)

// A turn sends the messages of all earlier turns.
const textOfMessage = perObject((message: Message) => JSON.stringify(message))

const saidTo = (witness: Witness, call: ModelCall): Said => {
  const { messages, model } = call.request
  const key = [call.runId, call.step, model.id, ...messages].map(textOf).join()
  const known = witness.said.get(key)
  if (known !== undefined) return known
  const said: Said = { failures: [], parts: undefined, failed: 0 }
  witness.said.set(key, said)
  return said
}

type Within = <A, E, R>(
  scope: CallScope,
  effects: Effects,
  input: unknown,
  body: Effect.Effect<A, E, R>
) => Effect.Effect<A, E, R>

const watchedProtocols = (protocols: ProtocolRegistry["Service"], within: Within): ProtocolRegistry["Service"] => {
  const wrap = (protocol: AnyProtocol): AnyProtocol => ({
    ...protocol,
    handle: (block, scope) => within(scope, protocol.effects, block.content, protocol.handle(block, scope))
  })
  return {
    ...protocols,
    find: (name) => Option.map(protocols.find(name), wrap),
    all: Effect.map(protocols.all, (all) => all.map(wrap))
  }
}
