/**
 * Follows a run to its end and tells it: to people, or to machines.
 *
 * Every command that runs something ends here, so all of them look the same,
 * print the same JSON and end with the same codes.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { jsonObject, plain } from "../internal/base/json.ts"
import type { KernelError } from "../KernelError.ts"
import type { RunEvent } from "../RunEvent.ts"
import type { RunResult } from "../RunState.ts"
import { Codes, CommandFailed } from "./exit.ts"
import { initial, type Options as Look, paint } from "./pen.ts"
import * as Render from "./renderRun.ts"
import { Screen, type Shape } from "./screen.ts"
import * as Text from "./terminalText.ts"

/**
 * What is printed: progress and the answer, the answer alone, one JSON object at the end, or a JSON line for every event.
 */
export type Form = "text" | "quiet" | "json" | "events"

/** How a run is told. */
export interface Options {
  readonly form: Form
  /** Undefined: as the screen has it. */
  readonly colors?: boolean | undefined
  /** The line above the run, for people. */
  readonly title: string
  /** What is asked; nothing by whoever goes on with a run. */
  readonly question?: string | undefined
  /** The run is kept: people are told its id. */
  readonly kept?: boolean
  /** Says what is wrong with an answer, if something is. */
  readonly check?: (result: RunResult<unknown>) => string | undefined
}

/** Runs, tells, and gives the result. */
export const follow = <R>(
  events: Stream.Stream<RunEvent, KernelError, R>,
  options: Options
): Effect.Effect<RunResult<unknown>, CommandFailed, R | Screen> =>
  Effect.gen(function* () {
    const screen = yield* Screen
    const look = { columns: screen.columns, colors: options.colors ?? screen.colors }
    const started = yield* Clock.currentTimeMillis
    if (options.form === "text") screen.progress(heading(options, look))
    const result = yield* listen(events, tellerOf(options, screen, look))
    const wrong = options.check?.(result)
    if (wrong !== undefined) return yield* new CommandFailed({ code: Codes.failed, reason: wrong })
    const took = (yield* Clock.currentTimeMillis) - started
    if (options.form === "text") screen.progress(summary(result, took, look))
    if (options.form === "json") screen.out(`${Text.json({ ok: true, ...jsonObject(plain(result)) })}\n`)
    if (options.form === "text" || options.form === "quiet") screen.out(Text.paragraph(result.text.trim()))
    return result
  }).pipe(
    Effect.tapError((error) =>
      Screen.use((screen) =>
        Effect.sync(() => {
          if (options.form === "json")
            screen.out(`${Text.json({ ok: false, error: { tag: error.tag, message: error.reason } })}\n`)
        })
      )
    )
  )

// ---------------------------------------------------------------- listening

/** Who hears of the events as they come, and of their end. */
interface Teller {
  readonly tell: (events: ReadonlyArray<RunEvent>) => void
  readonly end: () => void
}

const tellerOf = ({ form, kept }: Options, screen: Shape, look: Look): Teller => {
  switch (form) {
    case "text":
      return painter(screen, look, kept === true)
    case "events":
      return {
        tell: (events) => screen.out(events.map((event) => `${Text.json(plain(event))}\n`).join("")),
        end: () => {}
      }
    case "quiet":
    case "json":
      return { tell: () => {}, end: () => {} }
  }
}

const painter = (screen: Shape, look: Look, kept: boolean): Teller => {
  let state = initial
  return {
    tell: (events) => {
      let text = ""
      for (const event of events) {
        const [next, shown] = Render.step(state, event, look)
        state = next
        if (kept && event.type === "run_started" && event.depth === 0) text += idOf(event.runId, look)
        text += shown
      }
      if (text !== "") screen.progress(text)
    },
    end: () => screen.progress(Render.end(state))
  }
}

const listen = <R>(events: Stream.Stream<RunEvent, KernelError, R>, teller: Teller) =>
  Effect.gen(function* () {
    let ending: Ending | undefined
    yield* Stream.runForEachArray(events, (batch) =>
      Effect.sync(() => {
        ending = batch.findLast(isEnding) ?? ending
        teller.tell(batch)
      })
    ).pipe(
      Effect.ensuring(Effect.sync(teller.end)),
      Effect.mapError(
        (error) =>
          new CommandFailed({
            code: Codes.failed,
            reason: elsewhere.has(error._tag) ? error.message : `the run failed: ${error.message}`,
            tag: error._tag
          })
      )
    )
    if (ending?.type === "run_completed" && ending.result !== undefined) return ending.result
    return yield* new CommandFailed(
      ending?.type === "paused"
        ? {
            code: Codes.paused,
            reason: `the run ${ending.runId} waits for a person: ${ending.reason}${howTo(ending.reason)}`,
            tag: "RunPaused"
          }
        : { code: Codes.failed, reason: "the run ended without an answer" }
    )
  })

/** How a pause is ended that people can end. */
const howTo = (reason: string): string =>
  reason === "approval_required" ? "; 'kernai runs approve' or 'kernai runs deny' answers it" : ""

/** The run is not where it was looked for, or another's: nothing is wrong with it. */
const elsewhere: ReadonlySet<string> = new Set<KernelError["_tag"]>([
  "AgentCrashError",
  "ConcurrentAppendError",
  "RewindNotAllowed",
  "RunBusy",
  "RunNotFound"
])

type Ending = Extract<RunEvent, { readonly type: "run_completed" | "paused" }>

const isEnding = (event: RunEvent): event is Ending =>
  event.depth === 0 && (event.type === "run_completed" || event.type === "paused")

// ---------------------------------------------------------------- lines

const heading = ({ question, title }: Options, look: Look): string => {
  const asked =
    question === undefined ? "" : `${paint("question", "title", look)}  ${Text.excerpt(question, look.columns - 10)}\n`
  return `${paint(Text.excerpt(title, look.columns), "quiet", look)}\n${asked}`
}

const idOf = (runId: string, look: Look): string => `${paint("run", "title", look)}       ${Text.flat(runId)}\n`

const summary = (result: RunResult<unknown>, took: number, look: Look): string => {
  const { costUsd, toolCallsMade, turns, unreportedTurns, usage } = result
  const facts = [
    Text.count(turns, "turn"),
    Text.count(toolCallsMade.length, "call"),
    Text.tokens(unreportedTurns === turns ? null : usage),
    ...(costUsd === 0 ? [] : [`$${costUsd.toFixed(4)}`]),
    Text.duration(took)
  ]
  return `${paint("answer", "title", look)}  ${paint(facts.join(", "), "quiet", look)}\n\n`
}
