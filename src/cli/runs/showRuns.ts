/** Shows one stored run: its question, its turns and calls, their answers, and the calls it waits for. */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import { causeOf, waitReason } from "../../studio/FailureCause.ts"
import { type Known, linesOf } from "../../studio/RunTree.ts"
import { plain } from "../../kit/json.ts"
import * as Kernel from "../../Kernel.ts"
import type { Answer, RunRecord, RunState } from "../../RunState.ts"
import * as RunStates from "../../RunState.ts"
import { isPoisoned, recordsOf, type RunHead, RunStore, type RunStatus } from "../../RunStore.ts"
import * as Session from "../chat/chatSession.ts"
import type { FollowFlags, ShowFlags } from "../commands/runsFlags.ts"
import { drawingOfScreen } from "../answerDrawing.ts"
import { whole } from "../plainDrawing.ts"
import { RunLines } from "../runLines.ts"
import { Screen } from "../screen.ts"
import { command } from "../storeFlag.ts"
import * as Text from "../terminalText.ts"
import { inStore } from "./findRun.ts"
import { questionOf } from "./listRuns.ts"
import { drawTree } from "./waterfall.ts"

const timeOf = (at: number): string => {
  const date = new Date(at)
  return Number.isNaN(date.getTime()) ? String(at) : date.toISOString()
}

/** Shows a run, and the calls it waits for. */
export const show = Effect.fnUntraced(function* (options: ShowFlags) {
  const screen = yield* Screen
  yield* inStore(options, (id) =>
    Effect.gen(function* () {
      const runs = yield* RunStore
      const { head, state } = Option.getOrThrow(Option.all({ state: yield* runs.load(id), head: yield* runs.head(id) }))
      const records = yield* recordsOf(id)
      const answers = records.flatMap(({ delta }) => delta.answers ?? [])
      if (options.json) return screen.out(`${Text.json(plain({ ...state, status: head.status, answers }))}\n`)
      const questions = yield* Session.questions(id)
      const next = yield* nextOf(head, questions.length, options.store)
      screen.out(
        `${[...headOf(state, head.status), ...next].join("\n")}\n\n${yield* treeOf(head, records, screen.answers)}\n`
      )
      screen.out(turnsOf(state, answers))
      for (const { callId, input, name, reason } of questions) {
        const question = `${Text.flat(name)} asks to run: ${Text.excerpt(reason, 200)}`
        screen.out(`? ${Text.flat(callId)}: ${question}\n${inFull(input)}`)
      }
      for (const { callId, input, kind, name } of yield* Session.inFlight(id)) {
        const what = `${Text.flat(name ?? kind)} was started, its end is unknown`
        screen.out(`! ${Text.flat(callId)}: ${what}\n${inFull(input)}`)
      }
      if (state.status.type !== "completed") return
      screen.out(`\n${whole(yield* drawingOfScreen(undefined), (RunStates.answer(state) ?? "").trim())}`)
    })
  )
})

/** Draws the run and the runs below it, whose records these are. */
const treeOf = Effect.fnUntraced(function* (
  { rootRunId, runId }: RunHead,
  records: ReadonlyArray<RunRecord>,
  look: Text.Look
) {
  const journals = Map.groupBy(records, ({ runId }) => runId)
  const heads = yield* RunStore.use((store) => store.list({ rootRunId, order: "oldest" }))
  const runs = new Map<string, Known>()
  for (const line of heads) {
    const records = journals.get(line.runId)
    if (records !== undefined) runs.set(line.runId, { line, records, upTo: Infinity })
  }
  const lines = drawTree(linesOf(runId, runs), yield* Clock.currentTimeMillis, look)
  return lines.map((line) => `${line}\n`).join("")
})

const headOf = (state: RunState, status: RunStatus): ReadonlyArray<string> => {
  const { agent, createdAt, forkedFrom, revision, runId, updatedAt } = state
  return [
    `run       ${Text.flat(runId)}, revision ${revision}`,
    ...(forkedFrom === undefined ? [] : [`fork of   ${Text.flat(forkedFrom.runId)}, revision ${forkedFrom.revision}`]),
    `agent     ${Text.excerpt(agent, 80)}`,
    `status    ${statusOf(status)}`,
    ...explained(state),
    `started   ${timeOf(createdAt)}, last change ${timeOf(updatedAt)}`,
    ...Text.cost(state.costUsd).map((cost) => `cost      ${cost}`),
    `question  ${Text.excerpt(questionOf(state), 400)}`
  ]
}

/** Returns a line with the command that continues a run which is interrupted or waits for an approval. */
const nextOf = Effect.fnUntraced(function* ({ runId, status }: RunHead, questions: number, store: string) {
  const verb = status.type === "interrupted" ? "resume" : status.type === "waiting" && questions > 0 ? "approve" : ""
  return verb === "" ? [] : [`next      ${yield* command(["runs", verb, runId], store)}`]
})

/** Explains a failure: its cause, its place, and the next step. */
const explained = (state: RunState): ReadonlyArray<string> => {
  const found = causeOf(state)
  if (found === undefined) return []
  const { attempts, fix, name, part, vendor } = found
  const tries = attempts === undefined || attempts < 2 ? "" : `, after ${attempts} attempts`
  return [
    `cause     ${name}, in ${Text.excerpt(part, 80)}${tries}`,
    ...(vendor === undefined
      ? []
      : [`said      ${Text.excerpt(vendor.name, 40)}: ${Text.excerpt(vendor.message, 400)}`]),
    `next      ${fix}`
  ]
}

const statusOf = (status: RunStatus): string => {
  switch (status.type) {
    case "queued":
      return `queued, after ${status.phase}${status.reason === undefined ? "" : `: ${Text.excerpt(status.reason, 200)}`}`
    case "running":
      return `running${byOf(status.by)}${sinceOf(status.since)}, after ${status.phase}`
    case "interrupted":
      return `interrupted${byOf(status.by)}, after ${status.phase}`
    case "waiting":
      return `waiting: ${Text.excerpt(waitReason(status), 200)}`
    case "cancelled":
      return `cancelled${byOf(status.by)}${status.reason === undefined ? "" : `: ${Text.excerpt(status.reason, 200)}`}`
    case "no_answer":
      return `no answer: ${Text.excerpt(status.reason, 400)}`
    case "failed":
      return `${isPoisoned(status) ? "poisoned" : "failed"}: ${Text.excerpt(status.error.message, 400)}`
    case "completed":
      return `completed: ${Text.excerpt(status.reason ?? status.source, 200)}`
  }
}

const sinceOf = (at: number | undefined): string => (at === undefined ? "" : ` since ${timeOf(at)}`)

const byOf = (name: string | undefined): string => (name === undefined ? "" : ` by ${Text.excerpt(name, 80)}`)

const turnsOf = (state: RunState, answers: ReadonlyArray<Answer>): string =>
  [...state.turns, ...(state.currentTurn === undefined ? [] : [state.currentTurn])]
    .flatMap(({ completed, model, order, outcome, turn, usage }) => [
      `turn ${String(turn).padEnd(4)} ${Text.excerpt(model ?? "no model yet", 80)}, ${Text.tokens(usage)}`,
      outcome === undefined ? "\n" : `: ${outcome.type}\n`,
      ...Calls.inOrder(order, completed).map((result) => callOf(result, answers))
    ])
    .join("")

/** Returns a call with its input, the decision about it, and its result. */
const callOf = (result: CallResult, answers: ReadonlyArray<Answer>): string => {
  const { callId, error, input, kind, name } = result
  const answer = answers.findLast((answer) => answer.callId === callId)
  const outcome =
    error === undefined ? Text.excerpt(Calls.textOf(result), 400) : Text.excerpt(`${error.name}: ${error.message}`, 400)
  return [
    `  ${Text.flat(name ?? kind)}  ${Text.excerpt(JSON.stringify(input) ?? "", 400)}\n`,
    ...(answer === undefined ? [] : [`    ${decisionOf(answer)}\n`]),
    `    ${outcome}\n`
  ].join("")
}

const decisionOf = ({ approved, by, input, reason }: Answer): string => {
  const changed = input === undefined ? "" : ", with another input"
  const why = reason === undefined ? "" : `: ${Text.excerpt(reason, 200)}`
  return `${approved ? "approved" : "denied"}${byOf(by)}${changed}${why}`
}

/** Prints an input in full, since a person decides about it. */
const inFull = (input: unknown): string => Text.paragraph(JSON.stringify(input, null, 2) ?? "")

/** Shows the events of a run as they are stored, until it is at rest. */
export const follow = Effect.fnUntraced(function* ({ after, json, ...target }: FollowFlags) {
  const screen = yield* Screen
  const lines = new RunLines(screen.out, screen.answers)
  yield* inStore(target, (id) =>
    Stream.runForEach(Kernel.follow(id, { after }), (event) =>
      Effect.sync(() => (json ? screen.out(`${Text.json(plain(event))}\n`) : lines.show(event)))
    ).pipe(Effect.ensuring(Effect.sync(() => lines.end())))
  )
})
