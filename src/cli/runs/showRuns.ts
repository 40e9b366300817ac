/**
 * Reads stored runs for people and for machines: which there are, what became of one, and all of it as a file.
 *
 * Names, texts and arguments come from models and from files: each is made
 * visible before it is shown (S-19).
 */

import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import type { CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { plain } from "../../internal/base/json.ts"
import * as Replay from "../../Replay.ts"
import * as Messages from "../../Message.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { Status, RunState } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import { RunStore } from "../../RunStore.ts"
import * as Session from "../chat/chatSession.ts"
import { usage } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { failed } from "./actor.ts"

// ---------------------------------------------------------------- list

/** Lists runs that no other run began, the newest first. */
export const list = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly status: Status["type"] | undefined
  readonly search: string | undefined
  readonly limit: number
  readonly json: boolean
}) {
  const screen = yield* Screen
  const { search, status } = options
  const store = yield* Store.open(options.store, { exists: true })
  const heads = yield* RunStore.use((runs) =>
    runs.list({
      roots: true,
      limit: options.limit,
      ...(status === undefined ? {} : { status: [status] }),
      ...(search === undefined ? {} : { search })
    })
  ).pipe(
    Effect.catchTag("StoreError", (error) => Effect.fail(failed(error))),
    Effect.provide(store)
  )
  if (options.json) return screen.out(heads.map((head) => `${Text.json(head)}\n`).join(""))
  const width = Math.max(0, ...heads.map(({ runId }) => Text.flat(runId).length))
  screen.out(
    heads
      .map(({ agent, runId, status, turns, updatedAt }) => {
        const facts = `${status.type.padEnd(9)}  ${String(turns).padStart(3)} turns  ${instant(updatedAt)}`
        return `${Text.flat(runId).padEnd(width)}  ${facts}  ${Text.excerpt(agent, 40)}\n`
      })
      .join("")
  )
  if (heads.length === 0) screen.progress("there are no such runs\n")
})

// ---------------------------------------------------------------- show

/** Shows what became of a run, and what it waits for. */
export const show = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly runId: string
  readonly json: boolean
}) {
  const screen = yield* Screen
  const store = yield* Store.open(options.store, { exists: true })
  yield* Effect.gen(function* () {
    const runs = yield* RunStore
    const state = Option.getOrUndefined(yield* runs.load(options.runId))
    if (state === undefined) return yield* unknown(options.runId)
    if (options.json) return screen.out(`${Text.json(plain(state))}\n`)
    const questions = yield* Session.questions(state.runId)
    const inFlight = yield* Session.inFlight(state.runId)
    screen.out(
      [
        `run       ${Text.flat(state.runId)}, revision ${state.revision}\n`,
        ...(state.forkedFrom === undefined
          ? []
          : [`fork of   ${Text.flat(state.forkedFrom.runId)}, revision ${state.forkedFrom.revision}\n`]),
        `agent     ${Text.excerpt(state.agent, 80)}\n`,
        `status    ${statusOf(state.status)}\n`,
        `began     ${instant(state.createdAt)}, last commit ${instant(state.updatedAt)}\n`,
        `asked     ${Text.excerpt(askedOf(state), 400)}\n`,
        ...turnsOf(state),
        ...questions.map(
          ({ input, reason, callId, name }) =>
            `? ${Text.flat(callId)}: ${Text.flat(name)} wants to run: ${Text.excerpt(reason, 200)}\n${whole(input)}`
        ),
        ...inFlight.map(
          ({ input, kind, callId, name }) =>
            `! ${Text.flat(callId)}: ${Text.flat(name ?? kind)} was begun, and its end is not known\n${whole(input)}`
        ),
        ...(state.status.type === "completed" ? [`\n${Text.paragraph((RunStates.answer(state) ?? "").trim())}`] : [])
      ].join("")
    )
  }).pipe(
    Effect.catchTag("StoreError", (error) => Effect.fail(failed(error))),
    Effect.provide(store)
  )
})

const turnsOf = (state: RunState): ReadonlyArray<string> =>
  [...state.turns, ...(state.currentTurn === undefined ? [] : [state.currentTurn])].flatMap((turn) => [
    `turn ${String(turn.turn).padEnd(4)} ${Text.excerpt(turn.model ?? "no model yet", 80)}, ${Text.tokens(turn.usage)}${
      turn.outcome === undefined ? "" : `: ${turn.outcome.type}`
    }\n`,
    ...turn.completed.map((result) => `  ${Text.flat(result.name ?? result.kind)}  ${resultOf(result)}\n`)
  ])

const resultOf = (result: CallResult): string =>
  result.error === undefined
    ? Text.excerpt(Calls.textOf(result), 100)
    : Text.excerpt(`${result.error.name}: ${result.error.message}`, 200)

const statusOf = (status: Status): string => {
  switch (status.type) {
    case "running":
      return `running, after ${status.phase}`
    case "paused":
      return `paused: ${Text.excerpt(status.reason, 200)}`
    case "failed":
      return `failed: ${Text.excerpt(status.error.message, 400)}`
    case "completed":
      return `completed: ${Text.excerpt(status.reason ?? status.source, 200)}`
  }
}

const askedOf = ({ input }: RunState): string => {
  const question = input.at(-1)
  return question === undefined ? "" : Messages.text(question)
}

/** Whole, for whoever decides about it: what is cut off could be what matters. */
const whole = (input: unknown): string => Text.paragraph(JSON.stringify(input, null, 2) ?? "")

// ---------------------------------------------------------------- export

/** Writes the records of a run and of all runs below it, a JSON line each: to a new file, or to the output. */
export const exported = Effect.fnUntraced(function* (options: {
  readonly store: string
  readonly runId: string
  readonly file: string | undefined
}) {
  const screen = yield* Screen
  const store = yield* Store.open(options.store, { exists: true })
  const lines = yield* Replay.recordsOf(options.runId).pipe(
    Effect.flatMap(Effect.forEach((record) => Effect.fromResult(RunCodec.encodeRecord(record)))),
    Effect.mapError(failed),
    Effect.provide(store)
  )
  const text = lines.map((line) => `${Text.escaped(line)}\n`).join("")
  if (options.file === undefined) return screen.out(text)
  const fs = yield* FileSystem.FileSystem
  const name = Text.excerpt(options.file, 80)
  // What was said is its owner's, and what is there already stays.
  yield* Effect.mapError(fs.writeFileString(options.file, text, { flag: "wx", mode: 0o600 }), (error) =>
    usage(error.reason._tag === "AlreadyExists" ? `${name} is there already` : `${name} cannot be written`)
  )
  screen.progress(`${lines.length} records in ${name}\n`)
})

// ---------------------------------------------------------------- helpers

/** There is no such run. */
export const unknown = (runId: string) => Effect.fail(usage(`there is no run ${Text.excerpt(runId, 80)} in this store`))

const instant = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}
