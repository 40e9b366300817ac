/**
 * Shows stored runs: a list, one run, and its records.
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { causeOf } from "../../internal/state/failureCause.ts"
import { plain } from "../../internal/base/json.ts"
import * as Kernel from "../../Kernel.ts"
import { MediaStore } from "../../MediaStore.ts"
import * as Replay from "../../Replay.ts"
import * as Messages from "../../Message.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunState } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import { RunStore, type RunStatus } from "../../RunStore.ts"
import * as Session from "../chat/chatSession.ts"
import type { ListFlags } from "../commands/runsCommand.ts"
import { asFailure, usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/** Fails because the store has no such run. */
export const notFound = (id: string) => Effect.fail(usage(`there is no run ${Text.excerpt(id, 80)} in this store`))

const timeOf = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

/** Lists the runs that are no tasks of another, newest first. */
export const list = Effect.fnUntraced(function* (options: ListFlags) {
  const screen = yield* Screen
  const { limit, search, status } = options
  const store = yield* Store.openExisting(options.store)
  const heads = yield* RunStore.use((runs) =>
    runs.list({ roots: true, limit, search, status: status === undefined ? undefined : [status] })
  ).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
  if (options.json) return screen.out(heads.map((head) => `${Text.json(head)}\n`).join(""))
  const width = Math.max(0, ...heads.map(({ runId }) => Text.flat(runId).length))
  for (const { agent, runId, status, turns, updatedAt } of heads) {
    const facts = [status.type.padEnd(11), `${String(turns).padStart(3)} turns`, timeOf(updatedAt)]
    screen.out(`${[Text.flat(runId).padEnd(width), ...facts, Text.excerpt(agent, 40)].join("  ")}\n`)
  }
  if (heads.length === 0) screen.progress("there are no such runs\n")
})

/** Shows a run, and what it waits for. */
export const show = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly id: string
  readonly json: boolean
}) {
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  yield* Effect.gen(function* () {
    const runs = yield* RunStore
    const state = Option.getOrUndefined(yield* runs.load(options.id))
    const head = Option.getOrUndefined(yield* runs.head(options.id))
    if (state === undefined || head === undefined) return yield* notFound(options.id)
    if (options.json) return screen.out(`${Text.json(plain({ ...state, status: head.status }))}\n`)
    screen.out(`${headOf(state, head.status).join("\n")}\n${turnsOf(state)}`)
    for (const { callId, input, name, reason } of yield* Session.questions(state.runId)) {
      screen.out(
        `? ${Text.flat(callId)}: ${Text.flat(name)} asks to run: ${Text.excerpt(reason, 200)}\n${inFull(input)}`
      )
    }
    for (const { callId, input, kind, name } of yield* Session.inFlight(state.runId)) {
      screen.out(`! ${Text.flat(callId)}: ${Text.flat(name ?? kind)} was started, its end is unknown\n${inFull(input)}`)
    }
    if (state.status.type === "completed") screen.out(`\n${Text.paragraph((RunStates.answer(state) ?? "").trim())}`)
  }).pipe(Effect.mapError(asFailure), Effect.provide(store.runs))
})

const headOf = (state: RunState, status: RunStatus): ReadonlyArray<string> => {
  const { agent, createdAt, forkedFrom, input, revision, runId, updatedAt } = state
  const question = input.at(-1)
  return [
    `run       ${Text.flat(runId)}, revision ${revision}`,
    ...(forkedFrom === undefined ? [] : [`fork of   ${Text.flat(forkedFrom.runId)}, revision ${forkedFrom.revision}`]),
    `agent     ${Text.excerpt(agent, 80)}`,
    `status    ${statusOf(status)}`,
    ...explained(state),
    `started   ${timeOf(createdAt)}, last change ${timeOf(updatedAt)}`,
    `question  ${question === undefined ? "" : Text.excerpt(Messages.text(question), 400)}`
  ]
}

/** Says what failed, where, and what to do next. */
const explained = (state: RunState): ReadonlyArray<string> => {
  const found = causeOf(state)
  if (found === undefined) return []
  const { attempts, fix, name, part } = found
  const tries = attempts === undefined || attempts < 2 ? "" : `, after ${attempts} attempts`
  return [`cause     ${name}, in ${Text.excerpt(part, 80)}${tries}`, `next      ${fix}`]
}

const statusOf = (status: RunStatus): string => {
  switch (status.type) {
    case "queued":
      return `queued, after ${status.phase}`
    case "running":
      return `running${byOf(status.by)}${sinceOf(status.since)}, after ${status.phase}`
    case "interrupted":
      return `interrupted${byOf(status.by)}, after ${status.phase}`
    case "waiting":
      return `waiting: ${Text.excerpt(status.reason, 200)}`
    case "cancelled":
      return `cancelled${byOf(status.by)}${status.reason === undefined ? "" : `: ${Text.excerpt(status.reason, 200)}`}`
    case "failed":
      return `failed: ${Text.excerpt(status.error.message, 400)}`
    case "completed":
      return `completed: ${Text.excerpt(status.reason ?? status.source, 200)}`
  }
}

const sinceOf = (at: number | undefined): string => (at === undefined ? "" : ` since ${timeOf(at)}`)

const byOf = (name: string | undefined): string => (name === undefined ? "" : ` by ${Text.excerpt(name, 80)}`)

const turnsOf = (state: RunState): string =>
  [...state.turns, ...(state.currentTurn === undefined ? [] : [state.currentTurn])]
    .flatMap(({ completed, model, outcome, turn, usage }) => [
      `turn ${String(turn).padEnd(4)} ${Text.excerpt(model ?? "no model yet", 80)}, ${Text.tokens(usage)}`,
      outcome === undefined ? "\n" : `: ${outcome.type}\n`,
      ...completed.map((result) => `  ${Text.flat(result.name ?? result.kind)}  ${resultOf(result)}\n`)
    ])
    .join("")

const resultOf = (result: CallResult): string =>
  result.error === undefined
    ? Text.excerpt(Calls.textOf(result), 100)
    : Text.excerpt(`${result.error.name}: ${result.error.message}`, 200)

/** Prints an input in full: a person decides about it. */
const inFull = (input: unknown): string => Text.paragraph(JSON.stringify(input, null, 2) ?? "")

/** Prints the events of a run as they are stored, until it is at rest. */
export const follow = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly id: string
  readonly after: number
}) {
  const { after, id } = options
  const screen = yield* Screen
  const store = yield* Store.openExisting(options.store)
  yield* Stream.runForEach(Kernel.follow(id, { after }), (event) =>
    Effect.sync(() => screen.out(`${Text.json(plain(event))}\n`))
  ).pipe(
    Effect.catchTag("RunNotFound", () => notFound(id)),
    Effect.mapError(asFailure),
    Effect.provide(store.runs)
  )
})

/** Writes the records of a run and of its tasks as JSON lines, to a new file or to the output. */
export const exported = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly id: string
  readonly file: string | undefined
  readonly html: boolean
}) {
  const store = yield* Store.openExisting(options.store)
  if (options.html) return yield* exportPage(store, options)
  const lines = yield* Replay.recordsOf(options.id).pipe(
    Effect.flatMap(Effect.forEach((record) => Effect.fromResult(RunCodec.encodeRecord(record)))),
    Effect.mapError(asFailure),
    Effect.provide(store.runs)
  )
  const text = lines.map((line) => `${Text.escaped(line)}\n`).join("")
  yield* writeNew(options.file, text, `${lines.length} records`)
})

/** Writes a run as one page that needs no network. */
const exportPage = Effect.fnUntraced(function* (
  store: Store.Store,
  { file, id }: { readonly id: string; readonly file: string | undefined }
) {
  const { htmlOf } = yield* Effect.promise(() => import("../../studio/internal/exportPage.ts"))
  const html = yield* Effect.gen(function* () {
    return yield* htmlOf(yield* RunStore, yield* MediaStore, id)
  }).pipe(Effect.mapError(asFailure), Effect.provide(Layer.merge(store.runs, store.media)))
  yield* writeNew(file, html, "the run")
})

/** Writes a new file that only its owner reads, or to the output. An existing file is not replaced. */
const writeNew = Effect.fnUntraced(function* (file: string | undefined, text: string, what: string) {
  const screen = yield* Screen
  if (file === undefined) return screen.out(text)
  const fs = yield* FileSystem.FileSystem
  const name = Text.excerpt(file, 80)
  yield* Effect.mapError(fs.writeFileString(file, text, { flag: "wx", mode: 0o600 }), (error) =>
    usage(error.reason._tag === "AlreadyExists" ? `${name} already exists` : `${name} cannot be written`)
  )
  screen.progress(`${what} in ${name}\n`)
})
